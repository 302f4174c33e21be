/*
 * sorted_rows.h
 *		Rows of a cache's table in the order of its primary key.
 */
#ifndef GEONN_CACHE_SORTED_ROWS_H
#define GEONN_CACHE_SORTED_ROWS_H

#include "executor/tuptable.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "cache/target.h"

typedef struct SortedRows
{
	TupleDesc	row_type;
	Tuplesortstate *sort;
	SortSupportData order;		/* of observations' ids */
	TupleTableSlot *write_slot;
	TupleTableSlot *read_slot;
	bool		sorted;

	/* the present row, until the next one is asked for */
	const Datum *values;		/* [TARGET_COLUMNS] */
	const bool *nulls;
	ItemPointer tid;			/* in the table; NULL: the row is not from the table */
	bool		repeated;		/* it has the same key as the row before */

	/* the key of the row before */
	MemoryContext id_context;
	Datum		last_id;
	int32		last_rank;		/* 0: the present row is the first one */
} SortedRows;

/* Set up the btree order of a column's values. */
extern void geonn_order_of_column(Form_pg_attribute column, SortSupport order);

/*
 * No rows yet, in the current memory context.  Rows spill to disk when they take more than so many
 * kilobytes.
 */
extern SortedRows *geonn_sorted_rows_create(TupleDesc row_type, int memory);

/* Add a row, whose id is not NULL. tid is NULL if the row is not from the table. */
extern void geonn_sorted_rows_add(SortedRows *rows, ItemPointer tid, const Datum *values,
								  const bool *nulls);

/* Add all rows of the table that the active snapshot sees. */
extern void geonn_sorted_rows_add_table(SortedRows *rows, Oid target);

/* Go to the next row.  Returns false at the end.  After the first call no rows can be added. */
extern bool geonn_sorted_rows_next(SortedRows *rows);

/* Raise an error if an id is a duplicate. */
extern void geonn_sorted_rows_check(SortedRows *rows, const GeonnCache *cache);

extern void geonn_sorted_rows_end(SortedRows *rows);

/* rows that a search has found, and those that the table has of the same observations */
typedef struct RowMerge
{
	const GeonnCache *cache;
	SortedRows *found;
	SortedRows *in_table;
} RowMerge;

/* No rows yet, in the current memory context. */
extern RowMerge geonn_merge_begin(const GeonnCache *cache, TupleDesc row_type);

/*
 * Add the differences between both: a row that only the search has is inserted, a row that only the
 * table has is deleted, and one that both have, with other values, is updated.  Raises an error if the
 * search has found a key twice, for a duplicate id.  Ends the rows.
 */
extern void geonn_merge_end(RowMerge *merge, GeonnDifference *difference);

#endif							/* GEONN_CACHE_SORTED_ROWS_H */
