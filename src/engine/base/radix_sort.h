/*
 * radix_sort.h
 *		Radix sort on all threads.
 */
#ifndef GEONN_RADIX_SORT_H
#define GEONN_RADIX_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/atomics.h"

/* values with keys, and room for as many; sorting swaps the two at will */
struct radix_sort
{
	size_t		count;
	const atomic_bool *cancelled;	/* or NULL: nobody cancels it */
	uint64_t   *key;
	uint32_t   *value;
	uint64_t   *room_key;
	uint32_t   *room_value;
};

/*
 * Sort by the lowest `bits` bits of the keys, the only ones that may be set; what is
 * equal keeps its order.  False where memory for the counters is short.  Ends
 * early, with the values in some order, once *cancelled is set.
 */
extern bool radix_sort(struct radix_sort *sort, unsigned bits);

#endif							/* GEONN_RADIX_SORT_H */
