/*
 * full_compare.h
 *		All rows of a cache's table are compared with those that it should have.
 */
#ifndef GEONN_CACHE_FULL_COMPARE_H
#define GEONN_CACHE_FULL_COMPARE_H

#include "cache/baseline.h"
#include "cache/target.h"

/*
 * Search for all observations, and find how the table's rows differ from those that are found, with the
 * active snapshot.  The search adds the observations to build, unless that is NULL.  expects_many: most
 * rows are expected to differ.  Returns how many rows the table will have.
 */
extern int64 geonn_full_compare(const GeonnCache *cache, const GeonnJoin *join, TupleDesc row_type,
								BaselineBuild *build, bool expects_many,
								GeonnDifference *difference);

#endif							/* GEONN_CACHE_FULL_COMPARE_H */
