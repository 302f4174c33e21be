/*
 * parallel.h
 *		A loop on all cores, for what tests do before and after what they are for.
 */
#ifndef GEONN_TEST_PARALLEL_H
#define GEONN_TEST_PARALLEL_H

#include <stddef.h>

/*
 * Call work for pieces [begin, end) of 0 ... count - 1, each of so many but
 * for the last, from as many threads as the host has cores; returns when all are
 * done.  Where threads can't be had, this one does it.
 */
extern void parallel(size_t count, size_t piece,
					 void (*work) (void *argument, size_t begin, size_t end),
					 void *argument);

/* cores that this process may use */
extern int	parallel_cores(void);

#endif							/* GEONN_TEST_PARALLEL_H */
