/*
 * radix_sort.h
 *		Radix sort on all threads.
 */
#ifndef GEONN_RADIX_SORT_H
#define GEONN_RADIX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "engine/base/atomics.h"

struct column_block;

/*
 * Keys and values, and room for as many more.  The sort may swap the columns and the room:
 * afterwards key and value are the sorted columns.
 */
struct radix_sort
{
	size_t		count;
	const atomic_bool *cancelled;	/* or NULL: never cancelled */
	uint64_t   *key;
	uint32_t   *value;
	uint64_t   *room_key;
	uint32_t   *room_value;
};

/* Return a key for a number, not NAN: keys are in the order of their numbers, and 0 and -0 have the same key. */
static inline uint64_t
radix_sort_key(double number)
{
	const uint64_t sign = (uint64_t) 1 << 63;
	double		unsigned_zero = number + 0.0;
	uint64_t	bits;

	memcpy(&bits, &unsigned_zero, sizeof(bits));
	return bits & sign ? ~bits : bits | sign;
}

/* Place the columns of a sort, and their room, for so many keys in a block. */
extern void radix_sort_place(struct radix_sort *sort, struct column_block *block, size_t count);

/*
 * Sort by the keys; equal keys keep their order.  Returns false if memory for the counters is
 * short.  Once *cancelled is set, the sort ends early, with the values in some order.
 */
extern bool radix_sort(struct radix_sort *sort);

#endif							/* GEONN_RADIX_SORT_H */
