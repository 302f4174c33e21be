/*
 * full_search.h
 *		The search for all observations, and the baselines that are made of what it reads.  Its rows fill a
 *		new table, or those of the table that differ from them are updated.
 */
#ifndef GEONN_CACHE_FULL_SEARCH_H
#define GEONN_CACHE_FULL_SEARCH_H

#include "cache/last_run.h"
#include "cache/target.h"

/*
 * Fill a new table, which no other session sees yet and which has the columns of the cache's table, with the
 * rows that the search returns now.  The search adds the observations that it reads to build, unless build
 * is NULL.  The options are those of table_multi_insert().  Returns the number of rows.
 */
extern uint64 geonn_full_fill(const GeonnCache *cache, const GeonnJoin *join, BaselineBuild *build,
							  Relation table, int options);

/*
 * Search for all observations with the active snapshot, and update those rows of the table that differ from
 * the found ones.  The search adds the observations to build, unless build is NULL.  expects_many: most rows
 * are expected to differ.  Sets the counts of the result.
 */
extern void geonn_full_update(const GeonnCache *cache, const GeonnJoin *join, TupleDesc row_type,
							  BaselineBuild *build, bool expects_many, GeonnRunResult *result);

/*
 * Begin the baselines, as last_run->plan says, before anything is read.  Returns the baseline of the observations, to
 * which the full search adds the observations that it reads; NULL: none is made.
 */
extern BaselineBuild *geonn_baselines_begin(const GeonnCache *cache, const GeonnJoin *join,
											GeonnLastRun *last_run);

/*
 * Write both baselines, or keep the stored ones if they are still right.  Reads the references with the
 * active snapshot.  With NULL as build, does nothing.
 */
extern void geonn_baselines_end(const GeonnCache *cache, const GeonnJoin *join, GeonnLastRun *last_run,
								BaselineBuild *build);

#endif							/* GEONN_CACHE_FULL_SEARCH_H */
