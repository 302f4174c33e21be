/*
 * replace.h
 *		A new table's files take the place of those of a cache's table.
 */
#ifndef GEONN_CACHE_REPLACE_H
#define GEONN_CACHE_REPLACE_H

#include "utils/rel.h"

#include "cache/baseline.h"

/* an index of the cache's table, and the one that was built like it */
typedef struct IndexPair
{
	Oid			former;
	Oid			file;			/* the former index's file when the other one was built */
	Oid			made;
} IndexPair;

/* a new table, with indexes like those of the cache's table */
typedef struct GeonnReplacement
{
	const GeonnCache *cache;
	const GeonnJoin *join;
	BaselineBuild *baselines;	/* baseline for the observations of the search; NULL: none */
	GeonnReplace policy;
	bool		alone;			/* the refresh has a transaction of its own */
	Relation	target;
	Oid			file;			/* the target's file when the heap was made */
	Relation	heap;			/* the new table; NULL: it was not made yet, or was dropped */
	int64		rows;
	int			count;
	IndexPair  *indexes;
} GeonnReplacement;

/*
 * Fill a new table with the rows that the search finds with the active snapshot, if this refresh is to
 * replace the cache's table.  The search adds the observations to the baseline (NULL: none is made).
 * most_differ: most rows are expected to differ.  alone: the refresh has a transaction of its own.  Returns
 * NULL, without a search, if the rows have to be updated instead; a hindrance is added to the result's
 * reason.  If the cache's argument replace is 'always', a hindrance is an error.
 */
extern GeonnReplacement *geonn_replacement_build(const GeonnCache *cache, const GeonnJoin *join,
												 BaselineBuild *baselines, bool most_differ,
												 bool alone, GeonnRunResult *result);

/*
 * Swap the files of the new table with those of the cache's, and count the rows into the result.  Called
 * last: readers of the table wait from here on until the transaction ends.  Returns false, and has only
 * added to the result's reason, if the table's rows have to be updated after all.
 */
extern bool geonn_replacement_swap(GeonnReplacement *replacement, GeonnRunResult *result);

/* ---- cache/target.c ---- */

/*
 * The first hindrance to a replacement, as a clause like "it has a foreign key" (NULL: none); *remedy: the
 * beginning of the hint.  The session has opened the table once.
 */
extern const char *geonn_find_hindrance(const GeonnReplacement *replacement, const char **remedy);

#endif							/* GEONN_CACHE_REPLACE_H */
