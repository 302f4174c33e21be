/*
 * full_search.h
 *		The search for all observations, the baselines that are made of what it reads, and how the table's
 *		rows differ from those that it finds.
 */
#ifndef GEONN_CACHE_FULL_SEARCH_H
#define GEONN_CACHE_FULL_SEARCH_H

#include "cache/last_run.h"
#include "cache/target.h"

typedef struct FullSearch
{
	const GeonnCache *cache;
	const GeonnJoin *join;
	TupleDesc	row_type;

	/* the baseline to which the search adds the observations; NULL: none is made */
	BaselineBuild *build;

	/*
	 * Returns whether rows of the observations with this id are wanted; NULL: all are.  If not NULL, the
	 * search has been made once before, and does not repeat its warnings.
	 */
	bool		(*wants) (void *state, Datum id);

	/* takes each row, whose values live until the call returns, as what it allocates does */
	void		(*consume) (void *state, const Datum *values, const bool *nulls);
	void	   *state;
} FullSearch;

/*
 * Search with the active snapshot.  Rows come about in the order in which observations are read.
 * Raises an error about a NULL id.  Returns the number of rows.
 */
extern uint64 geonn_full_search(const FullSearch *full);

/*
 * Search for all observations, and find how the table's rows differ from those that are found, with the
 * active snapshot.  The search adds the observations to build, unless that is NULL.  expects_many: most
 * rows are expected to differ.  Returns how many rows the table will have.
 */
extern int64 geonn_full_compare(const GeonnCache *cache, const GeonnJoin *join, TupleDesc row_type,
								BaselineBuild *build, bool expects_many,
								GeonnDifference *difference);

/*
 * Begin to do what last_run->plan says, before anything is read.  Returns the baseline of the observations,
 * to which the search for all of them adds what it reads; NULL: none is made.
 */
extern BaselineBuild *geonn_baselines_begin(const GeonnCache *cache, const GeonnJoin *join,
											GeonnLastRun *last_run);

/*
 * Write both baselines, or keep the stored ones if they are right.  The references are read with the
 * active snapshot.  NULL: does nothing.
 */
extern void geonn_baselines_end(const GeonnCache *cache, const GeonnJoin *join, GeonnLastRun *last_run,
								BaselineBuild *build);

#endif							/* GEONN_CACHE_FULL_SEARCH_H */
