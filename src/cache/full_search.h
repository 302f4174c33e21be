/*
 * full_search.h
 *		The rows that a cache's table should have: the search for all observations.
 */
#ifndef GEONN_CACHE_FULL_SEARCH_H
#define GEONN_CACHE_FULL_SEARCH_H

#include "cache/baseline.h"

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

	/* takes each row, whose values live until the call returns */
	void		(*consume) (void *state, const Datum *values, const bool *nulls);
	void	   *state;
} FullSearch;

/*
 * Search with the active snapshot.  Rows come about in the order in which observations are read.
 * Raises an error about a NULL id.  Returns the number of rows.
 */
extern uint64 geonn_full_search(const FullSearch *full);

#endif							/* GEONN_CACHE_FULL_SEARCH_H */
