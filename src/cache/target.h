/*
 * target.h
 *		The table of a cache: what it must have for a refresh, and the differences that are written to its
 *		rows.
 */
#ifndef GEONN_CACHE_TARGET_H
#define GEONN_CACHE_TARGET_H

#include "cache/baseline.h"

/*
 * Raise an error unless the table still has the columns with which it was made, for ids of these
 * types, and the primary key that identifies its rows.
 */
extern void geonn_target_check(const GeonnCache *cache, TupleDesc row_type);

/* Return the type of a row with its TID as the last column. */
extern TupleDesc geonn_target_type(TupleDesc row_type);

/* what is done to a row of a target */
typedef enum RowChange
{
	ROW_DELETED,
	ROW_UPDATED,
	ROW_INSERTED
} RowChange;

#define ROW_CHANGES 3

/* maintenance_work_mem is divided into shares: one for each kind of difference, and two for sorts of rows */
#define DIFFERENCE_SHARES	(ROW_CHANGES + 2)

/* The differences between a target's rows and the rows that it should have. */
typedef struct GeonnDifference GeonnDifference;

/* Create an empty set of differences, which lives as long as the current memory context. */
extern GeonnDifference *geonn_difference_create(const GeonnCache *cache, TupleDesc row_type);

/* Add a difference: the row with this TID in the table (NULL: a new row) is to have these values, or is to be deleted. */
extern void geonn_difference_add(GeonnDifference *difference, RowChange change,
								 ItemPointer tid, const Datum *values, const bool *nulls);

/* Write the differences, count them into the result, and end the set. */
extern void geonn_difference_write(GeonnDifference *difference, GeonnRunResult *result);

#endif							/* GEONN_CACHE_TARGET_H */
