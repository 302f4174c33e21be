/*
 * row_store.h
 *		Rows of a search that wait to be taken, with the numbers of their observations.
 */
#ifndef GEONN_ROW_STORE_H
#define GEONN_ROW_STORE_H

#include "executor/tuptable.h"
#include "utils/tuplestore.h"

typedef struct RowStore
{
	MemoryContext context;
	Tuplestorestate *rows;
	TupleDesc	descriptor;
	bool		is_numbered;
	bool		is_taken;		/* rows are taken from it one by one */
	TupleTableSlot *slot;		/* through which they come */
	uint64		waiting;		/* rows that were put and have not been taken */
	uint64		taken;			/* rows that were taken since the store was last empty */
	uint64	   *numbers;		/* of the taken and the waiting rows, in their order */
	uint64		room;			/* of these */
} RowStore;

/*
 * Begin a store of such rows in this tuplestore; is_numbered: each is put with a number.  What it allocates is
 * in the current memory context.
 */
extern void geonn_row_store_begin(RowStore *store, Tuplestorestate *rows, TupleDesc descriptor,
								  bool is_numbered);

/* From now on rows are taken, and room of rows that were taken is used again. */
extern void geonn_row_store_begin_taking(RowStore *store);

extern void geonn_row_store_put(RowStore *store, const Datum *values, const bool *nulls, uint64 number);

/* Take the next of the rows that wait, and return its number; 0 where rows have none. */
extern uint64 geonn_row_store_take(RowStore *store, Datum *values, bool *nulls);

/* End it, and the tuplestore. */
extern void geonn_row_store_end(RowStore *store);

#endif							/* GEONN_ROW_STORE_H */
