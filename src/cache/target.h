/*
 * target.h
 *		The rows of a cache's table: its first fill, and the differences later.
 */
#ifndef GEONN_CACHE_TARGET_H
#define GEONN_CACHE_TARGET_H

#include "cache/baseline.h"

/*
 * Raise an error unless the table still has the columns that it was made with, for ids of these
 * types, and the primary key that identifies its rows.
 */
extern void geonn_target_check(const GeonnCache *cache, TupleDesc row_type);

/*
 * Fill a new table, which no other session sees yet, with the rows that the search returns now.  The
 * search adds the observations that it reads to the baseline, unless that is NULL.  Returns the number
 * of rows.
 */
extern uint64 geonn_target_fill(const GeonnCache *cache, const GeonnJoin *join, BaselineBuild *build);

/*
 * The same for any table that has the columns of the cache's, with these options of
 * table_multi_insert.
 */
extern uint64 geonn_target_fill_table(const GeonnCache *cache, const GeonnJoin *join,
									  BaselineBuild *build, Relation table, int options);

/* what to do about a target's row */
typedef enum RowChange
{
	ROW_DELETED,
	ROW_UPDATED,
	ROW_INSERTED
} RowChange;

#define ROW_CHANGES 3

/* shares of maintenance_work_mem: one for each kind of difference, two for sorting rows to find them */
#define DIFFERENCE_SHARES	(ROW_CHANGES + 2)

/* differences between a target's rows and those that it should have */
typedef struct GeonnDifference GeonnDifference;

/* No differences yet.  They live as long as the current memory context. */
extern GeonnDifference *geonn_difference_create(const GeonnCache *cache, TupleDesc row_type);

/*
 * Add a difference: of the row with this TID in the table (NULL: a new row), and the values that it
 * should have, unless it is deleted.
 */
extern void geonn_difference_add(GeonnDifference *difference, RowChange change,
								 ItemPointer tid, const Datum *values, const bool *nulls);

/* Write the differences, and count them into the result. */
extern void geonn_difference_write(GeonnDifference *difference, GeonnRunResult *result);

extern void geonn_difference_end(GeonnDifference *difference);

#endif							/* GEONN_CACHE_TARGET_H */
