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
} StoredSides;

/* what a full refresh does about baselines */
typedef enum BaselinePlan
{
	BASELINES_MAKE,				/* a run makes new baselines */
	BASELINES_COMPARE,			/* a run makes new baselines, unless the stored ones turn out to be right */
	BASELINES_KEEP,				/* a run leaves the stored baselines, which are right, as they are */
	BASELINES_SKIP				/* a run deletes the stored baselines, and makes none */
} BaselinePlan;

typedef struct GeonnLastRun
{
	/* the state of both sides before the present run reads them */
	uint8		label[CACHE_SIDES][LABEL_BYTES];	/* all bytes are 0: the side has no label now */
	List	   *relations[CACHE_SIDES]; /* geonn_relations_read */

	bool		exists;			/* the last run's row exists and is valid: the fields below are set */
	const char *reason;			/* if it does not exist: why */
	bool		same[CACHE_SIDES];	/* the side has not changed since the last run */
	int64		rows;			/* how many rows the cache's table has */
	StoredSides sides;
	bool		has_baselines;	/* baselines of what the run read are stored */
	BaselinePlan plan;			/* what the present run does about baselines */
	int			wasted;			/* how many runs in a row made baselines that the next run could not use */
	int			pause;			/* how many runs pass before one makes baselines again */
} GeonnLastRun;

/* A state without a last run, with the sources' labels under the active snapshot. */
extern GeonnLastRun *geonn_last_run_none(const GeonnJoin *join);

/* Load what the last run read.  A side is the same if its label now is the one of that run. */
extern GeonnLastRun *geonn_last_run_load(const GeonnCache *cache, const GeonnJoin *join, Snapshot snapshot);

/*
 * Create the triggers of a cache's table that notice changes by anything but its refresh.  Raises an error if
 * they do not notice every change.
 */
extern void geonn_last_run_make_triggers(const GeonnCache *cache);

/* Insert the row of geonn_cache_last_run that the triggers delete on a change. */
extern void geonn_last_run_create(const GeonnCache *cache);

/*
 * Called before anything is read: inserts that row if it is missing, so that the triggers notice other
 * sessions' changes.  May wait for their transactions.  With a fixed snapshot (REPEATABLE READ), inserts
 * none, and the next run is a full one.
 */
extern void geonn_last_run_begin(const GeonnCache *cache);

/*
 * Store what a run read: the table has this many rows, which the join returns for sides with these labels.
 * last_run->has_baselines says whether baselines of what the run read are stored.  Raises an error if
 * a side has got or lost a table, such as a partition, since the labels were made.
 */
extern void geonn_last_run_store(const GeonnCache *cache, const GeonnJoin *join, int64 rows,
								 const GeonnLastRun *last_run);

#endif							/* GEONN_CACHE_LAST_RUN_H */
