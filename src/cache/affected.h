/*
 * affected.h
 *		A cache's table is brought up to date by what has changed.
 */
#ifndef GEONN_CACHE_AFFECTED_H
#define GEONN_CACHE_AFFECTED_H

#include "cache/last_run.h"

/*
 * Find what has changed since the last run, by its baselines; update the baselines, and the rows of the table.  If so much
 * has changed that a full refresh is less work, returns false without writing rows, unless `always`.
 */
extern bool geonn_refresh_by_changes(const GeonnCache *cache, GeonnJoin *join, TupleDesc row_type,
									 GeonnLastRun *last_run, bool always, GeonnRunResult *result);

#endif							/* GEONN_CACHE_AFFECTED_H */
