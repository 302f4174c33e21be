/*
 * cache_incremental.h
 *		A cache's table is brought up to date by what has changed.
 */
#ifndef GEONN_CACHE_INCREMENTAL_H
#define GEONN_CACHE_INCREMENTAL_H

#include "cache_copy.h"
#include "cache_target.h"

/* what there is to begin with */
typedef struct GeonnIncrement
{
	const GeonnCache *cache;
	GeonnJoin  *join;
	TupleDesc	row_type;
	GeonnCopy  *observations;
	GeonnCopy  *references;
	CopyChanges observation_changes;
	CopyChanges reference_changes;
} GeonnIncrement;

/* an observation that is searched for again */
typedef struct Work
{
	uint32		part;
	int32		row;			/* of the part; -1: it has come */
	CopyPlace	place;
	const char *bytes;
	uint32		length;
	float		bound;			/* as it is found */
	bool		seen;			/* it has rows */
} Work;

/*
 * Find the differences of the table that the changes make, and bring the copies up to date.
 * Returns false, and has done nothing, where more than this share of the
 * observations would be searched for anew.  *searched is how many are.
 */
extern bool geonn_increment(const GeonnIncrement *increment, double most,
							GeonnDifference *difference, int64 *searched);

/* ---- cache_increment_rows.c ---- */

/* The bytes of one of an array of them, for geonn_copy_points. */
extern const char *geonn_bytes_of_work(const void *source, uint64 number);

/*
 * Search for these observations among all references, with their bounds; and find how their
 * rows, and those of observations that have gone, differ from the table's.
 */
extern void geonn_increment_rows(const GeonnIncrement *increment, Work *work, uint64 count,
								 GeonnDifference *difference);

/* ---- cache_increment_copies.c ---- */

/* Bring the copies up to date: with what changed, and the new bounds of these. */
extern void geonn_increment_copies(const GeonnIncrement *increment, const Work *work,
								   uint64 count);

#endif							/* GEONN_CACHE_INCREMENTAL_H */
