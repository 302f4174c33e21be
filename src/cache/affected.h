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

/* an observation that is searched for again */
typedef struct Affected
{
	uint32		block;
	int32		row;			/* in the block; -1: the observation was added */
	Fingerprint fingerprint;
	const char *bytes;
	uint32		length;
	float		reach;			/* former reach, then the new one */
} Affected;

/*
 * Find the differences that the changes make to the table, and bring the baselines up to date.
 * Returns false, and has done nothing, if more than this share of the observations would be
 * searched for again.  *searched is how many are.
 */
extern bool geonn_increment(const GeonnIncrement *increment, double most,
							GeonnDifference *difference, int64 *searched);

/* ---- cache/affected_rows.c ---- */

/* The bytes of an element of an array of Affected, for geonn_baseline_points. */
extern const char *geonn_bytes_of_affected(const void *source, uint64 number);

/*
 * Search for these observations among all references, and set their reaches.  Adds the differences
 * of their rows, and of those of removed observations, from the table's.
 */
extern void geonn_increment_rows(const GeonnIncrement *increment, Affected *affected, uint64 count,
								 GeonnDifference *difference);

/* ---- cache/baseline_update.c ---- */

/*
 * Bring the baselines up to date with the changes, and with the new reaches of these observations.
 */
extern void geonn_increment_baselines(const GeonnIncrement *increment, const Affected *affected,
									  uint64 count);

#endif							/* GEONN_CACHE_AFFECTED_H */
