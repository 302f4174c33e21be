/*
 * last_run.h
 *		The last run: what a refresh of a cache read, for the next one to begin with.
 */
#ifndef GEONN_CACHE_LAST_RUN_H
#define GEONN_CACHE_LAST_RUN_H

#include "cache/baseline.h"

/* bytes of the label of a side's contents, a SHA-256 */
#define LABEL_BYTES		32

/* the column geonn_cache_last_run.sides */
typedef struct StoredSides
{
	uint64		seed[CACHE_SIDES][2];	/* the secret keys of the baselines' hashes */
	uint8		label[CACHE_SIDES][LABEL_BYTES];	/* labels of what the run read */
	int32		srid[CACHE_SIDES];	/* of the geometries that were read; 0: not known, or the side has none */
} StoredSides;

/* The plan of a full refresh for its baselines. */
typedef enum BaselinePlan
{
	BASELINES_MAKE,				/* a run makes new baselines */
	BASELINES_COMPARE,			/* a run makes new baselines, and writes them unless the stored ones turn out to be right */
	BASELINES_KEEP,				/* a run leaves the stored baselines as they are, because they are right */
	BASELINES_SKIP				/* a run deletes the stored baselines, and makes no new ones */
} BaselinePlan;

typedef struct GeonnLastRun
{
	/* The state of both sides before the present run reads them. */
	uint8		label[CACHE_SIDES][LABEL_BYTES];	/* all bytes are 0: the side has no label now */
	List	   *relations[CACHE_SIDES]; /* geonn_relations_read */

	bool		exists;			/* the last run's row exists and is valid; the fields below `reason` are set only then */
	const char *reason;			/* while `exists` is false: why the last run's row is missing or not valid */
	bool		same[CACHE_SIDES];	/* the side has not changed since the last run */
	int64		rows;			/* how many rows the cache's table has */
	StoredSides sides;
	bool		has_baselines;	/* the last run has stored baselines of what it read */
	BaselinePlan plan;			/* the present run's plan for baselines */
	int			wasted;			/* how many runs in a row have made baselines that the next run could not use */
	int			pause;			/* how many runs are going to pass before one makes baselines again */
} GeonnLastRun;

/* Return a state without a last run, with the sources' labels under the active snapshot. */
extern GeonnLastRun *geonn_last_run_none(const GeonnJoin *join);

/* Load the state that the last run stored.  A side is the same if its label now is the label that it had in that run. */
extern GeonnLastRun *geonn_last_run_load(const GeonnCache *cache, const GeonnJoin *join, Snapshot snapshot);

/*
 * Create the triggers of a cache's table, which notice changes by anything but the cache's refresh.  Raises
 * an error if they do not notice every change.
 */
extern void geonn_last_run_make_triggers(const GeonnCache *cache);

/* Insert the row of geonn_cache_last_run that the triggers delete when the table changes. */
extern void geonn_last_run_create(const GeonnCache *cache);

/*
 * Insert the row of geonn_cache_last_run if it is missing, before anything is read, so that the triggers
 * notice other sessions' changes.  May wait for the transactions of these sessions.  With a fixed
 * snapshot (REPEATABLE READ), inserts no row, and the next run is a full one.
 */
extern void geonn_last_run_begin(const GeonnCache *cache);

/*
 * Store the state that a run read: the table has this many rows, which the join returns for sides with
 * these labels.  last_run->has_baselines says whether baselines of the same state are stored.  Raises an
 * error if a side has got or lost a table, such as a partition, since the labels were made.
 */
extern void geonn_last_run_store(const GeonnCache *cache, const GeonnJoin *join, int64 rows,
								 const GeonnLastRun *last_run);

#endif							/* GEONN_CACHE_LAST_RUN_H */
