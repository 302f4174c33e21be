/*
 * last_run.h
 *		The last run: what a refresh of a cache read, for the next one to begin with.
 */
#ifndef GEONN_CACHE_LAST_RUN_H
#define GEONN_CACHE_LAST_RUN_H

#include "cache/baseline.h"

/* labels of both sides as they are now, or empty values */
typedef struct GeonnLabels
{
	bytea	   *label[CACHE_SIDES];
} GeonnLabels;

typedef struct GeonnLastRun
{
	bool		exists;			/* what follows is known, and the table is as it was left */
	const char *reason;			/* why it does not exist */
	bool		same[CACHE_SIDES];	/* nothing has changed since */
	int64		rows;
	uint64		seed[CACHE_SIDES][2];
	TimestampTz since;			/* the run has read all that changed_since says is older; 0: not known */
	bool		has_baselines;
	int			wasted;
	int			pause;
} GeonnLastRun;

/* The labels of what the join reads, with the active snapshot. */
extern GeonnLabels geonn_labels_now(const GeonnJoin *join);

/* What the last run read, compared with these labels. */
extern GeonnLastRun *geonn_last_run_load(const GeonnCache *cache, const GeonnJoin *join,
										 GeonnLabels now, Snapshot snapshot);

/* Have changes of a table be noticed that this transaction has made. */
extern void geonn_last_run_create(const GeonnCache *cache);

/*
 * Before anything is read: have changes of the table by others be noticed from now on,
 * where they would not be.  May wait for others' transactions.  Where the snapshot is taken
 * already they are not noticed, and the next run is a full one.
 */
extern void geonn_last_run_begin(const GeonnCache *cache);

/*
 * The table has so many rows, and is what the join returns, for these labels; baselines of what
 * it read are there, or not (has_baselines is false).
 */
extern void geonn_last_run_end(const GeonnCache *cache, const GeonnJoin *join, GeonnLabels now,
							   int64 rows, const GeonnLastRun *last_run, TimestampTz since);

/* The baseline of a side, with the seed that last_run has; it is not read yet. */
extern GeonnBaseline *geonn_last_run_baseline(const GeonnCache *cache, const GeonnJoin *join,
											  const GeonnLastRun *last_run, CacheSide side);

/* Make baselines of what the join reads, with the active snapshot and new seeds. */
extern void geonn_last_run_make_baselines(const GeonnCache *cache, GeonnJoin *join, GeonnLastRun *last_run);

#endif							/* GEONN_CACHE_LAST_RUN_H */
