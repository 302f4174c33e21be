/*
 * last_run.h
 *		The last run: what a refresh of a cache read, for the next one to begin with.
 */
#ifndef GEONN_CACHE_LAST_RUN_H
#define GEONN_CACHE_LAST_RUN_H

#include "cache/baseline.h"

/* what the sides are now, before they are read */
typedef struct GeonnLabels
{
	bytea	   *label[CACHE_SIDES]; /* of the contents, or empty values */
	List	   *relations[CACHE_SIDES]; /* geonn_relations_read */
} GeonnLabels;

/* what a run that searches for everything does about baselines */
typedef enum BaselinePlan
{
	BASELINES_MAKE,				/* make new ones */
	BASELINES_COMPARE,			/* make them, unless the stored ones turn out to be right */
	BASELINES_KEEP,				/* leave the stored ones, which are right, as they are */
	BASELINES_SKIP				/* delete those that are stored */
} BaselinePlan;

typedef struct GeonnLastRun
{
	bool		exists;			/* the fields below are known, and the table has not changed since */
	const char *reason;			/* else: why not */
	bool		same[CACHE_SIDES];	/* the side has not changed since */
	int64		rows;
	uint64		seed[CACHE_SIDES][2];
	bool		has_baselines;	/* baselines of what the run read are stored */
	BaselinePlan plan;			/* of the present run */
	int			wasted;			/* runs in a row of which the next one could not use the baselines */
	int			pause;			/* runs that are to pass until baselines are made again */
} GeonnLastRun;

/* The labels of the join's sources, with the active snapshot. */
extern GeonnLabels geonn_labels_now(const GeonnJoin *join);

/* What the last run read.  same says of each side whether its label is still this one. */
extern GeonnLastRun *geonn_last_run_load(const GeonnCache *cache, const GeonnJoin *join,
										 GeonnLabels now, Snapshot snapshot);

/* Let the triggers notice changes of the table that this transaction has made. */
extern void geonn_last_run_create(const GeonnCache *cache);

/*
 * Called before anything is read: lets the triggers notice changes of the table by other sessions
 * from now on, if they do not yet.  May wait for other sessions' transactions.  If the
 * transaction's snapshot is older, changes stay unnoticed, and the next run is a full one.
 */
extern void geonn_last_run_begin(const GeonnCache *cache);

/*
 * Store the result of a run: the table has so many rows, and they are what the join returns for
 * these labels.  has_baselines says whether baselines of what the run read are stored.  Raises an error
 * if a side has got or lost a table, as a partition, since the labels were made.
 */
extern void geonn_last_run_store(const GeonnCache *cache, const GeonnJoin *join, GeonnLabels now,
								 int64 rows, const GeonnLastRun *last_run);

/* The baseline of a side, with the seed from last_run; its blocks are not read yet. */
extern GeonnBaseline *geonn_last_run_baseline(const GeonnCache *cache, const GeonnJoin *join,
											  const GeonnLastRun *last_run, CacheSide side);

/*
 * Begin to do what the plan says; before anything is read.  Returns the baseline of the observations,
 * which the search for all of them is to fill; NULL: none is made.
 */
extern BaselineBuild *geonn_last_run_begin_baselines(const GeonnCache *cache, const GeonnJoin *join,
													 GeonnLastRun *last_run);

/*
 * Write both baselines, or keep the stored ones if they are right.  The references are read with the
 * active snapshot.  NULL: does nothing.
 */
extern void geonn_last_run_end_baselines(const GeonnCache *cache, const GeonnJoin *join,
										 GeonnLastRun *last_run, BaselineBuild *build);

#endif							/* GEONN_CACHE_LAST_RUN_H */
