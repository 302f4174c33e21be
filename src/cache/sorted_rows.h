/*
 * sorted_rows.h
 *		Rows of a cache's table in the order of its primary key.
 */
#ifndef GEONN_CACHE_SORTED_ROWS_H
#define GEONN_CACHE_SORTED_ROWS_H

#include "executor/tuptable.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "cache/definition.h"

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
	ItemPointer tid;			/* in the table; NULL: it is not from there */
	bool		repeated;		/* it has the same key as the row before */

	/* the key of the row before */
	MemoryContext id_context;
	Datum		last_id;
	int32		last_rank;		/* 0: the present row is the first one */
} SortedRows;

/* The btree order of a column's values. */
extern void geonn_order_of_column(Form_pg_attribute column, SortSupport order);

/*
 * No rows yet, in the current memory context; as many more as have room in so many kilobytes
 * do not go to disk.
 */
extern SortedRows *geonn_sorted_rows_create(TupleDesc row_type, int memory);

/* Add a row, whose id is not NULL; tid is NULL where it is none of the table's. */
extern void geonn_sorted_rows_add(SortedRows *rows, ItemPointer tid, const Datum *values,
								  const bool *nulls);

/* Add all rows of the table that the active snapshot sees. */
extern void geonn_sorted_rows_add_table(SortedRows *rows, Oid target);

/* Go on to the next row, from which on no more can be added; false at the end. */
extern bool geonn_sorted_rows_next(SortedRows *rows);

/* Compare the keys of the present rows of two: negative where the first one comes before. */
extern int	geonn_sorted_rows_compare(const SortedRows *rows, const SortedRows *others);

/* Raise the error of an id that is there twice, if one is. */
extern void geonn_sorted_rows_check(SortedRows *rows, const GeonnCache *cache);

extern void geonn_sorted_rows_end(SortedRows *rows);

#endif							/* GEONN_CACHE_SORTED_ROWS_H */
