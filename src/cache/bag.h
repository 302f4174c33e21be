/*
 * bag.h
 *		A bag of rows: the sum of their hashes, of 128 bits.
 *
 * Two bags have the same sum if they have the same rows, each as often as the other.  Bags of other rows
 * have the same sum by an accident that is less likely than any other fault of a machine, as with the
 * sums that file systems and version control trust: the hashes (cache/siphash.h) have a secret key, so
 * that such an accident cannot be arranged.
 */
#ifndef GEONN_CACHE_BAG_H
#define GEONN_CACHE_BAG_H

#include "postgres.h"

typedef struct Bag
{
	uint64		sum[2];			/* both are 0 for an empty bag */
} Bag;

static inline void
geonn_bag_add(Bag *bag, const uint64 *hash)
{
	bag->sum[0] += hash[0];
	bag->sum[1] += hash[1];
}

static inline void
geonn_bag_remove(Bag *bag, const uint64 *hash)
{
	bag->sum[0] -= hash[0];
	bag->sum[1] -= hash[1];
}

static inline bool
geonn_bag_is(const Bag *bag, const Bag *other)
{
	return bag->sum[0] == other->sum[0] && bag->sum[1] == other->sum[1];
}

#endif							/* GEONN_CACHE_BAG_H */
