/*
 * affected.h
 *		A cache's table is brought up to date by what has changed.
 */
#ifndef GEONN_CACHE_AFFECTED_H
#define GEONN_CACHE_AFFECTED_H

#include "cache/baseline.h"
#include "cache/target.h"

/* what has changed, and what the table was made of */
typedef struct GeonnIncrement
{
	const GeonnCache *cache;
	GeonnJoin  *join;
	TupleDesc	row_type;
	GeonnBaseline *observations;
	GeonnBaseline *references;
	BaselineChanges observation_changes;
	BaselineChanges reference_changes;
} GeonnIncrement;

/*
 * Find the differences that the changes make to the table, and bring the baselines up to date.
 * Returns false, and has done nothing, if more than this share of the observations would be
 * searched for again.  *searched is how many are.
 */
extern bool geonn_increment(const GeonnIncrement *increment, double most,
							GeonnDifference *difference, int64 *searched);

#endif							/* GEONN_CACHE_AFFECTED_H */
