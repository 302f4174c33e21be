/*
 * replace.h
 *		A new table's files take the place of those of a cache's table.
 */
#ifndef GEONN_CACHE_REPLACE_H
#define GEONN_CACHE_REPLACE_H

#include "utils/rel.h"

#include "cache/baseline.h"

/* An index of the cache's table, and the index that was built like it. */
typedef struct IndexPair
{
	Oid			former;
	Oid			file;			/* the file that the former index had when `made` was built */
	Oid			made;
} IndexPair;

/* A new table, with indexes like those of the cache's table. */
typedef struct GeonnReplacement
{
	const GeonnCache *cache;
	const GeonnJoin *join;
	BaselineBuild *baselines;	/* the baseline to which the search adds the observations; NULL: none is made */
	GeonnReplace policy;
	bool		alone;			/* the refresh has a transaction of its own */
	Relation	target;
	Oid			file;			/* the file that the target had when the heap was made */
	Relation	heap;			/* the new table; NULL: not made yet, or dropped */
	int64		rows;
	int			count;
	IndexPair  *indexes;
} GeonnReplacement;

/*
 * Fill a new table with the rows that the search finds with the active snapshot, if this refresh is to
 * replace the cache's table.  The search adds the observations to the baseline (NULL: none is made).
 * most_differ: most rows are expected to differ.  alone: the refresh has a transaction of its own.  Returns
 * NULL, without a search, if the rows have to be updated instead; the hindrance is then added to the
 * result's reason.  If the cache's argument replace is 'always', a hindrance is an error.
 */
extern GeonnReplacement *geonn_replacement_build(const GeonnCache *cache, const GeonnJoin *join,
												 BaselineBuild *baselines, bool most_differ,
												 bool alone, GeonnRunResult *result);

/*
 * Swap the files of the new table with those of the cache's table, and count the rows into the result.  The caller does
 * so last, because readers of the table wait from here on until the transaction ends.  Returns false, with nothing done
 * but an addition to the result's reason, if the table's rows have to be updated after all.
 */
extern bool geonn_replacement_swap(GeonnReplacement *replacement, GeonnRunResult *result);

/* ---- cache/target.c ---- */

/*
 * Return the first hindrance to a replacement, as a clause like "it has a foreign key" (NULL: none);
 * *remedy becomes the beginning of the hint.  The session has opened the table once.
 */
extern const char *geonn_find_hindrance(const GeonnReplacement *replacement, const char **remedy);

#endif							/* GEONN_CACHE_REPLACE_H */
