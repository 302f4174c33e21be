/*
 * sorted_rows.c
 *		Rows of a cache's table in the order of its primary key, and how they differ from a search's.
 *
 * The key is (obs_id, rank).  Ids are compared by the function of their type's btree operator
 * class, with the column's collation, as the key's index compares them.  The function is found by
 * the type, not by a name, so that no other function can take its place.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "cache/sorted_rows.h"
#include "base/compat.h"

/* columns of the sort: those of the target, and the TID */
#define SORTED_TID	TARGET_COLUMNS
#define SORTED_COLUMNS	(TARGET_COLUMNS + 1)

void
geonn_order_of_column(Form_pg_attribute column, SortSupport order)
{
	memset(order, 0, sizeof(*order));
	order->ssup_cxt = CurrentMemoryContext;
	order->ssup_collation = column->attcollation;
	order->ssup_attno = column->attnum;
	PrepareSortSupportFromOrderingOp(lookup_type_cache(column->atttypid, TYPECACHE_LT_OPR)->lt_opr,
									 order);
}

SortedRows *
geonn_sorted_rows_create(TupleDesc row_type, int memory)
{
	SortedRows *rows = palloc0(sizeof(SortedRows));
	Form_pg_attribute id = TupleDescAttr(row_type, TARGET_OBSERVATION_ID);
	TupleDesc	type = CreateTemplateTupleDesc(SORTED_COLUMNS);
	AttrNumber	columns[] = {TARGET_OBSERVATION_ID + 1, TARGET_RANK + 1};
	Oid			operators[] = {lookup_type_cache(id->atttypid, TYPECACHE_LT_OPR)->lt_opr,
	Int4LessOperator};
	Oid			collations[] = {id->attcollation, InvalidOid};
	bool		nulls_first[] = {false, false};

	for (int i = 0; i < TARGET_COLUMNS; i++)
		TupleDescCopyEntry(type, (AttrNumber) (i + 1), row_type, (AttrNumber) (i + 1));
	TupleDescInitEntry(type, SORTED_TID + 1, "tid", TIDOID, -1, 0);
	TupleDescFinalize(type);
	rows->row_type = row_type;
	geonn_order_of_column(id, &rows->order);
	rows->sort = tuplesort_begin_heap(type, lengthof(columns), columns, operators, collations,
									  nulls_first, memory, NULL, TUPLESORT_NONE);
	rows->write_slot = MakeSingleTupleTableSlot(type, &TTSOpsVirtual);
	rows->read_slot = MakeSingleTupleTableSlot(type, &TTSOpsMinimalTuple);
	rows->id_context = AllocSetContextCreate(CurrentMemoryContext, "geonn id",
											 ALLOCSET_SMALL_SIZES);
	return rows;
}

void
geonn_sorted_rows_add(SortedRows *rows, ItemPointer tid, const Datum *values, const bool *nulls)
{
	TupleTableSlot *slot = rows->write_slot;

	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, TARGET_COLUMNS * sizeof(Datum));
	memcpy(slot->tts_isnull, nulls, TARGET_COLUMNS * sizeof(bool));
	slot->tts_values[SORTED_TID] = PointerGetDatum(tid);
	slot->tts_isnull[SORTED_TID] = tid == NULL;
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(rows->sort, slot);
}

void
geonn_sorted_rows_add_table(SortedRows *rows, Oid target)
{
	Relation	table = table_open(target, AccessShareLock);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	TableScanDesc scan = geonn_table_beginscan(table, GetActiveSnapshot());
	AttrNumber	attributes[TARGET_COLUMNS];

	geonn_target_attributes(target, attributes);
	while (table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		Datum		values[TARGET_COLUMNS];
		bool		nulls[TARGET_COLUMNS];

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < TARGET_COLUMNS; i++)
			values[i] = slot_getattr(slot, attributes[i], &nulls[i]);
		geonn_sorted_rows_add(rows, &slot->tts_tid, values, nulls);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(table, NoLock);
}

static int
compare_keys(const SortedRows *rows, Datum id, int32 rank, Datum other_id, int32 other_rank)
{
	SortSupport order = unconstify(SortSupportData *, &rows->order);
	int			by_id = ApplySortComparator(id, false, other_id, false, order);

	return by_id != 0 ? by_id : rank < other_rank ? -1 : rank > other_rank;
}

static int32
rank_of(const SortedRows *rows)
{
	return DatumGetInt32(rows->values[TARGET_RANK]);
}

/*
 * Keep the present row's key for the comparison with the next row's.
 */
static void
keep_key(SortedRows *rows)
{
	Form_pg_attribute id = TupleDescAttr(rows->row_type, TARGET_OBSERVATION_ID);
	MemoryContext former = MemoryContextSwitchTo(rows->id_context);

	if (!id->attbyval)
		MemoryContextReset(rows->id_context);
	rows->last_id = datumCopy(rows->values[TARGET_OBSERVATION_ID], id->attbyval, id->attlen);
	rows->last_rank = rank_of(rows);
	MemoryContextSwitchTo(former);
}

bool
geonn_sorted_rows_next(SortedRows *rows)
{
	TupleTableSlot *slot = rows->read_slot;

	if (!rows->sorted)
		tuplesort_performsort(rows->sort);
	rows->sorted = true;
	if (rows->values != NULL)
		keep_key(rows);
	if (!tuplesort_gettupleslot(rows->sort, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	rows->values = slot->tts_values;
	rows->nulls = slot->tts_isnull;
	rows->tid = slot->tts_isnull[SORTED_TID] ? NULL :
		(ItemPointer) DatumGetPointer(slot->tts_values[SORTED_TID]);
	rows->repeated = rows->last_rank > 0 &&
		compare_keys(rows, rows->values[TARGET_OBSERVATION_ID], rank_of(rows),
					 rows->last_id, rows->last_rank) == 0;
	return true;
}

/*
 * Go to the next row, and raise an error if it has the same key as the row before.
 */
static bool
next_unique(SortedRows *rows, const GeonnCache *cache)
{
	CHECK_FOR_INTERRUPTS();
	if (!geonn_sorted_rows_next(rows))
		return false;
	if (rows->repeated)
		geonn_cache_raise_duplicate(cache,
									TupleDescAttr(rows->row_type, TARGET_OBSERVATION_ID)->atttypid,
									rows->values[TARGET_OBSERVATION_ID]);
	return true;
}

void
geonn_sorted_rows_check(SortedRows *rows, const GeonnCache *cache)
{
	while (next_unique(rows, cache))
		;
}

void
geonn_sorted_rows_end(SortedRows *rows)
{
	tuplesort_end(rows->sort);
	ExecDropSingleTupleTableSlot(rows->write_slot);
	ExecDropSingleTupleTableSlot(rows->read_slot);
	MemoryContextDelete(rows->id_context);
	pfree(rows);
}

/* ---- the merge ---- */

RowMerge
geonn_merge_begin(const GeonnCache *cache, TupleDesc row_type)
{
	int			memory = maintenance_work_mem / DIFFERENCE_SHARES;

	return (RowMerge)
	{
		cache, geonn_sorted_rows_create(row_type, memory), geonn_sorted_rows_create(row_type, memory)
	};
}

void
geonn_merge_end(RowMerge *merge, GeonnDifference *difference)
{
	SortedRows *found = merge->found;
	SortedRows *table = merge->in_table;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn row",
												  ALLOCSET_DEFAULT_SIZES);
	bool		has_found = next_unique(found, merge->cache);
	bool		has_table = geonn_sorted_rows_next(table);

	while (has_found || has_table)
	{
		MemoryContext former = MemoryContextSwitchTo(context);
		int			order = !has_found ? 1 : !has_table ? -1 :
			compare_keys(found, found->values[TARGET_OBSERVATION_ID], rank_of(found),
						 table->values[TARGET_OBSERVATION_ID], rank_of(table));

		if (order > 0)
			geonn_difference_add(difference, ROW_DELETED, table->tid, NULL, NULL);
		else if (order < 0)
			geonn_difference_add(difference, ROW_INSERTED, NULL, found->values, found->nulls);
		else if (!geonn_same_rows(found->row_type, table->values, table->nulls, found->values,
								  found->nulls))
			geonn_difference_add(difference, ROW_UPDATED, table->tid, found->values, found->nulls);
		if (order <= 0)
			has_found = next_unique(found, merge->cache);
		if (order >= 0)
			has_table = geonn_sorted_rows_next(table);
		MemoryContextSwitchTo(former);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
	geonn_sorted_rows_end(found);
	geonn_sorted_rows_end(table);
}
