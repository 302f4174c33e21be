/*
 * table_reader.h
 *		Plain tables, read page by page.
 */
#ifndef GEONN_TABLE_READER_H
#define GEONN_TABLE_READER_H

#include "executor/execdesc.h"
#include "nodes/execnodes.h"
#include "storage/shm_toc.h"

/* A table whose rows are read as they are.  This transaction holds a lock on it. */
typedef struct PlainTable
{
	Oid			table;
	AttrNumber *attributes;		/* the table's columns that a row has, in the row's order */
} PlainTable;

typedef struct TableReader TableReader;

/* A range of a table's pages, first and last included. */
typedef struct PageRange
{
	BlockNumber first;
	BlockNumber last;
} PageRange;

/* pages of a table that are to be read */
typedef struct TablePages
{
	Oid			table;
	const PageRange *ranges;	/* ascending; [count] */
	int			count;			/* 0: no page of the table */
} TablePages;

/* The state by which several processes divide the reading of tables.  It is in shared memory. */
typedef struct SharedTables SharedTables;

/*
 * Return the tables (PlainTable) that a started query reads from end to end, one after the other:
 * all rows, and only columns of the table.  NIL if the query does anything else.
 */
extern List *geonn_plain_tables(const QueryDesc *description);

/* Read the tables, in this process alone; each row has this many columns. */
extern TableReader *geonn_table_reader_begin(List *tables, int columns, Snapshot snapshot);

/*
 * Limit a reader, before it begins, to these pages; pages has an element for each of the reader's tables, in their order.
 */
extern void geonn_table_reader_limit(TableReader *reader, const TablePages *pages);

/* How many workers to use for all of these tables (PlainTable), by the planner's rules; 0: none is useful, or can read them. */
extern int	geonn_table_workers(List *tables);

/*
 * Begin, or begin again, to share these tables (PlainTable); each row has this many columns.  Returns the
 * bytes of shared memory that they take.  With NULL as shared, only compute the bytes.
 */
extern Size geonn_share_tables(SharedTables *shared, List *tables, int columns, Snapshot snapshot);

/* Take part in reading shared tables; one process reads each page. */
extern TableReader *geonn_table_reader_attach(SharedTables *shared);

/*
 * Read the rows of a started plan in place of the executor, with the columns of its target list that have these numbers.
 * The scan remains the plan's, which ends it.  Returns NULL if the plan does anything but read one table from end to end,
 * or if it rechecks rows (EvalPlanQual).
 */
extern TableReader *geonn_table_reader_of_plan(PlanState *plan, const AttrNumber *numbers, int columns);

/*
 * Get the next rows.  Returns their number, 0 at the end.  values and nulls begin with the first row's columns; the second
 * row's follow, and so on.  What the values point to lives until the next call.
 */
extern int	geonn_table_reader_next(TableReader *reader, Datum **values, bool **nulls);

/* Return the table of the last rows, or their page. */
extern Oid	geonn_table_reader_table(const TableReader *reader);
extern BlockNumber geonn_table_reader_block(const TableReader *reader);

/* Return the ctid of one of the last rows, counted from 0. */
extern ItemPointerData geonn_table_reader_tid(const TableReader *reader, int row);

/* Return one of the last rows, counted from 0, as a slot with all of the table's columns and its ctid. */
extern TupleTableSlot *geonn_table_reader_slot(TableReader *reader, int row);

/* End the reading. */
extern void geonn_table_reader_end(TableReader *reader);

#endif							/* GEONN_TABLE_READER_H */
