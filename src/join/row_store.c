/*
 * row_store.c
 *		Rows of a search that wait to be taken, with the numbers of their observations.
 *
 * Where observations are watched, a caller asks of each row which observation it belongs to.  A tuplestore has
 * no room for that beside the row's own columns, so the numbers are in an array, in the order of the rows.
 */
#include "postgres.h"

#include "utils/memutils.h"

#include "join/row_store.h"

/* of the array of numbers, at first */
#define FIRST_ROOM	1024

void
geonn_row_store_begin(RowStore *store, Tuplestorestate *rows, TupleDesc descriptor, bool is_numbered)
{
	*store = (RowStore)
	{
		.context = CurrentMemoryContext,
		.rows = rows,
		.descriptor = descriptor,
		.is_numbered = is_numbered
	};
}

void
geonn_row_store_begin_taking(RowStore *store)
{
	store->slot = MakeSingleTupleTableSlot(store->descriptor, &TTSOpsMinimalTuple);
	store->is_taken = true;
}

static void
put_number(RowStore *store, uint64 number)
{
	uint64		place = store->taken + store->waiting;

	if (place >= store->room)
	{
		store->room = Max(store->room * 2, FIRST_ROOM);
		store->numbers = store->numbers == NULL ?
			MemoryContextAllocHuge(store->context, store->room * sizeof(uint64)) :
			repalloc_huge(store->numbers, store->room * sizeof(uint64));
	}
	store->numbers[place] = number;
}

void
geonn_row_store_put(RowStore *store, const Datum *values, const bool *nulls, uint64 number)
{
	/* all rows put before have been taken */
	if (store->is_taken && store->waiting == 0)
	{
		tuplestore_clear(store->rows);
		store->taken = 0;
	}
	if (store->is_numbered)
		put_number(store, number);
	tuplestore_putvalues(store->rows, store->descriptor, unconstify(Datum *, values), unconstify(bool *, nulls));
	store->waiting++;
}

uint64
geonn_row_store_take(RowStore *store, Datum *values, bool *nulls)
{
	TupleTableSlot *slot = store->slot;
	uint64		number = store->is_numbered ? store->numbers[store->taken] : 0;

	(void) tuplestore_gettupleslot(store->rows, true, false, slot);
	slot_getallattrs(slot);
	memcpy(values, slot->tts_values, store->descriptor->natts * sizeof(Datum));
	memcpy(nulls, slot->tts_isnull, store->descriptor->natts * sizeof(bool));
	store->taken++;
	store->waiting--;
	return number;
}

void
geonn_row_store_end(RowStore *store)
{
	tuplestore_end(store->rows);
}
