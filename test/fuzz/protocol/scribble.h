/*
 * scribble.h
 *		Shared memory that changes while the other side reads it.
 */
#ifndef GEONN_SCRIBBLE_H
#define GEONN_SCRIBBLE_H

#include <stddef.h>
#include <stdint.h>

/*
 * From now on numbers are written to random places of this memory, by a thread of its
 * own and until scribble_stop, instead of where they were written before.
 */
extern void scribble_begin(void *start, size_t bytes, uint64_t seed);

/* No memory changes any more; the caller may unmap it. */
extern void scribble_stop(void);

/* One of the numbers at which coordinates and distances begin, end, or are none. */
extern double scribble_number(uint64_t which);

#endif							/* GEONN_SCRIBBLE_H */
