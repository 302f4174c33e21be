/*
 * affected.h
 *		The differences that changes of both sides make to a cache's table.
 */
#ifndef GEONN_CACHE_AFFECTED_H
#define GEONN_CACHE_AFFECTED_H

#include "cache/baseline.h"
#include "cache/target.h"

/* what the last run read, and what has changed since */
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
 * Returns false, and has done nothing, if the share of the observations that are affected is greater
 * than `most`, from 0 to 1.  *searched is how many observations were searched for again.
 */
extern bool geonn_increment(const GeonnIncrement *increment, double most,
							GeonnDifference *difference, int64 *searched);

#endif							/* GEONN_CACHE_AFFECTED_H */
