/*
 * table_reader.h
 *		Plain tables, read page by page.
 */
#ifndef GEONN_TABLE_READER_H
#define GEONN_TABLE_READER_H

#include "executor/execdesc.h"
#include "storage/shm_toc.h"

/* a table that is read as it is */
typedef struct PlainTable
{
	Relation	relation;		/* open */
	AttrNumber *attributes;		/* its columns that a row has, in their order */
} PlainTable;

typedef struct TableReader TableReader;

/* where several processes share the reading of tables; in shared memory */
typedef struct SharedTables SharedTables;

/*
 * The tables (PlainTable) that a query which has been started would read from
 * end to end, one after the other, with all rows and no more than their columns.
 * NIL: it would do anything else.  The relations are the executor's.
 */
extern List *geonn_plain_tables(const QueryDesc *description);

/* Read them alone; each row has so many columns.  Ends with the reader's end. */
extern TableReader *geonn_table_reader_begin(List *tables, int columns, Snapshot snapshot);

/* Bytes that sharing them takes, and how it begins, or begins again. */
extern Size geonn_shared_tables_size(List *tables, int columns, Snapshot snapshot);
extern void geonn_shared_tables_begin(SharedTables *shared, List *tables, int columns,
									  Snapshot snapshot);

/* Read what no other process reads of them. */
extern TableReader *geonn_table_reader_attach(SharedTables *shared);

/*
 * The next rows: returns how many, 0 at the end.  values and nulls are of the first
 * row's first column, those of the second row follow them; what they point to
 * lives until the next call.
 */
extern int	geonn_table_reader_next(TableReader *reader, Datum **values, bool **nulls);

/*
 * Where the rows are that came last: a number for each page, by table and block.  One
 * process reads pages in the order of these numbers, save where a scan began in the
 * middle of a table.
 */
extern uint64 geonn_table_reader_place(const TableReader *reader);

/* One of the rows that came last, counted from 0 on, with all of its columns and its place. */
extern TupleTableSlot *geonn_table_reader_slot(TableReader *reader, int row);

/* Read no more. */
extern void geonn_table_reader_end(TableReader *reader);

#endif							/* GEONN_TABLE_READER_H */
