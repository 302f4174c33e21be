/*
 * target_rows.h
 *		The rows that a cache's table has for some observations.
 */
#ifndef GEONN_CACHE_TARGET_ROWS_H
#define GEONN_CACHE_TARGET_ROWS_H

#include "cache/sorted_rows.h"

/* the ids of these observations */
typedef struct TargetRows TargetRows;

/* No ids yet, in the current memory context; about so many follow. */
extern TargetRows *geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type, uint64 expected);

/*
 * Add an id, which lives as long as the ids.  is_searched: an observation has this id now, for which
 * the search returns rows.  may_be_there: one had it before, so the table may have rows of it.
 */
extern void geonn_target_rows_expect(TargetRows *rows, Datum id, bool is_searched, bool may_be_there);

/*
 * Add all rows of these observations that the active snapshot sees.  Raises an error about a duplicate
 * id if one of them is of an id that two observations have now, or that none had before.
 */
extern void geonn_target_rows_read(TargetRows *rows, SortedRows *in_table);

#endif							/* GEONN_CACHE_TARGET_ROWS_H */
