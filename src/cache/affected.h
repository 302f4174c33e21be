/*
 * affected.h
 *		A cache's table is brought up to date by what has changed.
 */
#ifndef GEONN_CACHE_AFFECTED_H
#define GEONN_CACHE_AFFECTED_H

#include "cache/baseline.h"
#include "cache/target.h"

/* what there is to begin with */
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

/* an observation that is searched for again */
typedef struct Affected
{
	uint32		block;
	int32		row;			/* of the block; -1: it was added */
	Fingerprint fingerprint;
	const char *bytes;
	uint32		length;
	float		reach;			/* as it is found */
	bool		has_rows;		/* it has rows */
} Affected;

/*
 * Find the differences of the table that the changes make, and bring the baselines up to date.
 * Returns false, and has done nothing, where more than this share of the
 * observations would be searched for anew.  *searched is how many are.
 */
extern bool geonn_increment(const GeonnIncrement *increment, double most,
							GeonnDifference *difference, int64 *searched);

/* ---- cache/affected_rows.c ---- */

/* The bytes of one of an array of them, for geonn_baseline_points. */
extern const char *geonn_bytes_of_affected(const void *source, uint64 number);

/*
 * Search for these observations among all references, with their reaches; and find how their
 * rows, and those of observations that were removed, differ from the table's.
 */
extern void geonn_increment_rows(const GeonnIncrement *increment, Affected *affected, uint64 count,
								 GeonnDifference *difference);

/* ---- cache/baseline_update.c ---- */

/* Bring the baselines up to date: with what changed, and the new reaches of these. */
extern void geonn_increment_baselines(const GeonnIncrement *increment, const Affected *affected,
									  uint64 count);

#endif							/* GEONN_CACHE_AFFECTED_H */
