/*
 * sorted_rows.c
 *		Rows of a cache's table in the order of its primary key, and how they differ from a search's.
 *
 * The key is (obs_id, rank), or (id) of clusters, whose rows count as those of rank 1.  Ids are
 * compared by the function of their type's btree operator class, with the column's collation, as
 * the key's index compares them.  The function is found by the type, not by a name, so that no other
 * function can take its place.
 *
 * For few observations, their rows are looked up by the primary key, one id after the other in the
 * key's order, so that a page with rows of several observations is read once.  For many, the whole
 * table is read, page by page, and each row's id is looked up among the given ids.  A lookup by the
 * key takes about as long as reading a page of rows, so "many" is more than the table has pages.
 *
 * Both ways use the access methods, and compare ids by the functions of the type's operator class.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/transam.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/sortsupport.h"
#include "utils/tuplesort.h"

#include "base/compat.h"
#include "base/value.h"
#include "cache/sorted_rows.h"

struct SortedRows
{
	TupleDesc	row_type;
	bool		has_ranks;		/* the rank is part of the key */
	Tuplesortstate *sort;
	SortSupportData order;		/* the order of observations' ids */
	TupleTableSlot *write_slot;
	TupleTableSlot *read_slot;
	bool		sorted;

	/* The present row; valid until the next row is asked for. */
	const Datum *values;		/* [row_type->natts] */
	const bool *nulls;
	ItemPointer tid;			/* the row's TID in the table; NULL: the row is not from the table */
	MemoryContext id_context;	/* has the id of the row before */
};

IdHash
geonn_id_hash_of(Form_pg_attribute id)
{
	return (IdHash)
	{
		.id = id,
		.bits = geonn_integer_width(id->atttypid) * BITS_PER_BYTE,
		.type = lookup_type_cache(id->atttypid, TYPECACHE_EQ_OPR_FINFO |
								  TYPECACHE_HASH_EXTENDED_PROC_FINFO),
		.same_bytes = geonn_equal_is_same(getBaseType(id->atttypid), id->attcollation)
	};
}

/*
 * Hashes integers, which most ids are, without their type's hash function: to call that for each of a table's
 * rows would take longer than to read the rows.
 */
uint64
geonn_id_hash(const IdHash *hash, Datum id)
{
	if (hash->bits > 0)
	{
		/* Fibonacci hashing of the significant bits (Knuth, The Art of Computer Programming 6.4) */
		uint64		product = ((uint64) id << (64 - hash->bits)) * UINT64CONST(0x9E3779B97F4A7C15);

		return product ^ product >> 32;
	}
	if (OidIsValid(hash->type->hash_extended_proc))
		return DatumGetUInt64(FunctionCall2Coll(&hash->type->hash_extended_proc_finfo,
												hash->id->attcollation, id, Int64GetDatum(0)));
	return hash->same_bytes ? datum_image_hash(id, hash->id->attbyval, hash->id->attlen) : 0;
}

void
geonn_target_read(Oid target, TupleDesc row_type, int columns, TargetVisitor visit, void *state)
{
	Relation	relation = table_open(target, AccessShareLock);
	AttrNumber	attributes[TARGET_COLUMNS_MAX];
	PlainTable	table = {target, attributes};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn row",
												  ALLOCSET_DEFAULT_SIZES);
	TableReader *reader;
	Datum	   *values;
	bool	   *nulls;
	int			count;

	Assert(columns <= row_type->natts && row_type->natts <= TARGET_COLUMNS_MAX);
	geonn_target_attributes(target, row_type, attributes);
	reader = geonn_table_reader_begin(list_make1(&table), columns, GetActiveSnapshot());
	while ((count = geonn_table_reader_next(reader, &values, &nulls)) > 0)
	{
		MemoryContext former = MemoryContextSwitchTo(context);

		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < count; i++)
			visit(state, values + i * columns, nulls + i * columns, reader, i);
		MemoryContextSwitchTo(former);
		MemoryContextReset(context);
	}
	geonn_table_reader_end(reader);
	MemoryContextDelete(context);
	table_close(relation, NoLock);
}

/* Set up a column's sort order, by the btree operator class of its type. */
static void
order_of_column(Form_pg_attribute column, SortSupport order)
{
	memset(order, 0, sizeof(*order));
	order->ssup_cxt = CurrentMemoryContext;
	order->ssup_collation = column->attcollation;
	order->ssup_attno = column->attnum;
	PrepareSortSupportFromOrderingOp(lookup_type_cache(column->atttypid, TYPECACHE_LT_OPR)->lt_opr,
									 order);
}

/*
 * Create a sort without rows, in the current memory context.  Rows spill to disk when they take more than `memory`
 * kilobytes.
 */
static SortedRows *
create_sort(TupleDesc row_type, int memory)
{
	SortedRows *rows = palloc0(sizeof(SortedRows));
	Form_pg_attribute id = TupleDescAttr(row_type, TARGET_OBSERVATION_ID);
	TupleDesc	type = geonn_target_type(row_type);
	AttrNumber	columns[] = {TARGET_OBSERVATION_ID + 1, TARGET_RANK + 1};
	Oid			operators[] = {lookup_type_cache(id->atttypid, TYPECACHE_LT_OPR)->lt_opr,
	Int4LessOperator};
	Oid			collations[] = {id->attcollation, InvalidOid};
	bool		nulls_first[] = {false, false};

	rows->row_type = row_type;
	rows->has_ranks = geonn_target_is_key(row_type, TARGET_RANK);
	order_of_column(id, &rows->order);
	rows->sort = tuplesort_begin_heap(type, rows->has_ranks ? lengthof(columns) : 1, columns, operators, collations,
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
	int			columns = rows->row_type->natts;

	Assert(!rows->sorted && !nulls[TARGET_OBSERVATION_ID] && !(rows->has_ranks && nulls[TARGET_RANK]));
	ExecClearTuple(slot);
	memcpy(slot->tts_values, values, columns * sizeof(Datum));
	memcpy(slot->tts_isnull, nulls, columns * sizeof(bool));
	slot->tts_values[columns] = PointerGetDatum(tid);
	slot->tts_isnull[columns] = tid == NULL;
	ExecStoreVirtualTuple(slot);
	tuplesort_puttupleslot(rows->sort, slot);
}

static void
add_table_row(void *state, const Datum *values, const bool *nulls, TableReader *reader, int row)
{
	ItemPointerData tid = geonn_table_reader_tid(reader, row);

	geonn_sorted_rows_add(state, &tid, values, nulls);
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
	return rows->has_ranks ? DatumGetInt32(rows->values[TARGET_RANK]) : 1;
}

/*
 * Go to the next row.  Returns false at the end.
 */
static bool
next_row(SortedRows *rows)
{
	TupleTableSlot *slot = rows->read_slot;

	CHECK_FOR_INTERRUPTS();
	if (!rows->sorted)
		tuplesort_performsort(rows->sort);
	rows->sorted = true;
	if (!tuplesort_gettupleslot(rows->sort, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	rows->values = slot->tts_values;
	rows->nulls = slot->tts_isnull;
	rows->tid = slot->tts_isnull[rows->row_type->natts] ? NULL :
		(ItemPointer) DatumGetPointer(slot->tts_values[rows->row_type->natts]);
	return true;
}

/* Go to the next row, and raise an error if it has the same key as the row before.  Returns false at the end. */
static bool
next_unique(SortedRows *rows, const GeonnCache *cache)
{
	Form_pg_attribute id = TupleDescAttr(rows->row_type, TARGET_OBSERVATION_ID);
	MemoryContext former = MemoryContextSwitchTo(rows->id_context);
	Datum		last_id = 0;
	int32		last_rank = 0;	/* 0: no row came before */

	MemoryContextReset(rows->id_context);
	if (rows->values != NULL)
	{
		last_id = datumCopy(rows->values[TARGET_OBSERVATION_ID], id->attbyval, id->attlen);
		last_rank = rank_of(rows);
	}
	MemoryContextSwitchTo(former);
	if (!next_row(rows))
		return false;
	Assert(last_rank == 0 ||
		   compare_keys(rows, rows->values[TARGET_OBSERVATION_ID], rank_of(rows), last_id, last_rank) >= 0);
	if (last_rank > 0 &&
		compare_keys(rows, rows->values[TARGET_OBSERVATION_ID], rank_of(rows), last_id, last_rank) == 0)
		geonn_cache_raise_duplicate(cache, id->atttypid, rows->values[TARGET_OBSERVATION_ID]);
	return true;
}

static void
end_sort(SortedRows *rows)
{
	tuplesort_end(rows->sort);
	ExecDropSingleTupleTableSlot(rows->write_slot);
	ExecDropSingleTupleTableSlot(rows->read_slot);
	MemoryContextDelete(rows->id_context);
	pfree(rows);
}

void
geonn_target_check_unique(const GeonnCache *cache, TupleDesc row_type)
{
	SortedRows *rows = create_sort(row_type, maintenance_work_mem);

	geonn_target_read(cache->target, row_type, row_type->natts, add_table_row, rows);
	while (next_unique(rows, cache))
		;
	end_sort(rows);
}

/* ---- the merge ---- */

RowMerge
geonn_merge_begin(const GeonnCache *cache, TupleDesc row_type)
{
	int			memory = maintenance_work_mem / DIFFERENCE_SHARES;

	return (RowMerge)
	{
		cache, create_sort(row_type, memory), create_sort(row_type, memory)
	};
}

/* Return whether the present rows of both sorts have the same bytes. */
static bool
is_same_row(const SortedRows *rows, const SortedRows *others)
{
	for (int i = 0; i < rows->row_type->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(rows->row_type, i);

		if (rows->nulls[i] != others->nulls[i])
			return false;
		if (!rows->nulls[i] &&
			!datum_image_eq(rows->values[i], others->values[i], column->attbyval, column->attlen))
			return false;
	}
	return true;
}

void
geonn_merge_end(RowMerge *merge, GeonnRunResult *result)
{
	GeonnDifference *difference = geonn_difference_create(merge->cache, merge->found->row_type);
	SortedRows *found = merge->found;
	SortedRows *table = merge->in_table;
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn row",
												  ALLOCSET_DEFAULT_SIZES);
	bool		has_found = next_unique(found, merge->cache);
	bool		has_table = next_row(table);

	while (has_found || has_table)
	{
		MemoryContext former = MemoryContextSwitchTo(context);
		int			order = !has_found ? 1 : !has_table ? -1 :
			compare_keys(found, found->values[TARGET_OBSERVATION_ID], rank_of(found),
						 table->values[TARGET_OBSERVATION_ID], rank_of(table));

		Assert(!has_found || found->tid == NULL);
		Assert(!has_table || table->tid != NULL);
		if (order > 0)
			geonn_difference_add(difference, ROW_DELETED, table->tid, NULL, NULL);
		else if (order < 0)
			geonn_difference_add(difference, ROW_INSERTED, NULL, found->values, found->nulls);
		else if (!is_same_row(table, found))
			geonn_difference_add(difference, ROW_UPDATED, table->tid, found->values, found->nulls);
		if (order <= 0)
			has_found = next_unique(found, merge->cache);
		if (order >= 0)
			has_table = next_row(table);
		MemoryContextSwitchTo(former);
		MemoryContextReset(context);
	}
	MemoryContextDelete(context);
	end_sort(found);
	end_sort(table);
	geonn_difference_write(difference, result);
}

/* ---- the table's rows of some observations ---- */

/* An id, and whether the table may have rows of it. */
typedef struct KnownId
{
	Datum		id;
	uint32		hash;
	bool		is_searched;
	bool		is_repeated;	/* two observations have the id now */
	bool		may_be_there;
	char		status;
} KnownId;

static inline bool
has_same_id(const IdHash *hash, Datum id, Datum other)
{
	return hash->bits > 0 ? (id ^ other) << (64 - hash->bits) == 0 :
		DatumGetBool(FunctionCall2Coll(&hash->type->eq_opr_finfo, hash->id->attcollation, id, other));
}

#define SH_PREFIX ids
#define SH_ELEMENT_TYPE KnownId
#define SH_KEY_TYPE Datum
#define SH_KEY id
#define SH_STORE_HASH
#define SH_GET_HASH(table, entry) (entry)->hash
#define SH_HASH_KEY(table, key) ((uint32) geonn_id_hash((table)->private_data, key))
#define SH_EQUAL(table, a, b) has_same_id((table)->private_data, a, b)
#define SH_SCOPE static inline
#define SH_DECLARE
#define SH_DEFINE
#include "lib/simplehash.h"

struct TargetRows
{
	const GeonnCache *cache;
	TupleDesc	row_type;
	IdHash		id_hash;
	AttrNumber	attributes[TARGET_COLUMNS_MAX];
	ids_hash   *ids;
	SortedRows *in_table;		/* gets the rows that are found */
};

TargetRows *
geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type, uint64 expected)
{
	TargetRows *rows = palloc0(sizeof(TargetRows));

	rows->cache = cache;
	rows->row_type = row_type;
	rows->id_hash = geonn_id_hash_of(TupleDescAttr(row_type, TARGET_OBSERVATION_ID));
	geonn_target_attributes(cache->target, row_type, rows->attributes);
	rows->ids = ids_create(CurrentMemoryContext, (uint32) Min(expected, PG_INT32_MAX), &rows->id_hash);
	return rows;
}

void
geonn_target_rows_expect(TargetRows *rows, Datum id, bool is_searched, bool may_be_there)
{
	bool		found;
	KnownId    *known = ids_insert(rows->ids, id, &found);

	if (!found)
		known->is_searched = known->is_repeated = known->may_be_there = false;
	known->is_repeated |= known->is_searched && is_searched;
	known->is_searched |= is_searched;
	known->may_be_there |= may_be_there;
}

/*
 * Add a row of the table that has this id.
 */
static void
take_row(const TargetRows *rows, const KnownId *known, TupleTableSlot *slot)
{
	Datum		values[TARGET_COLUMNS_MAX];
	bool		nulls[TARGET_COLUMNS_MAX];

	if (known->is_repeated || !known->may_be_there)
		geonn_cache_raise_duplicate(rows->cache, rows->id_hash.id->atttypid, known->id);
	for (int i = 0; i < rows->row_type->natts; i++)
		values[i] = slot_getattr(slot, rows->attributes[i], &nulls[i]);
	geonn_sorted_rows_add(rows->in_table, &slot->tts_tid, values, nulls);
}

/* ---- by the primary key ---- */

/*
 * Open the primary key's index.  Returns NULL if ids cannot be looked up in it now: if the key was made anew with its
 * columns in another order, or so recently that it may lack rows that this transaction sees.
 */
static Relation
open_key(const TargetRows *rows)
{
	Oid			constraint;
	Relation	index;

	bms_free(get_primary_key_attnos(rows->cache->target, false, &constraint));
	index = index_open(get_constraint_index(constraint), AccessShareLock);
	if (index->rd_index->indkey.values[0] == rows->attributes[TARGET_OBSERVATION_ID] &&
		index->rd_index->indisvalid &&
		(!index->rd_index->indcheckxmin ||
		 TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							   TransactionXmin)))
		return index;
	index_close(index, NoLock);
	return NULL;
}

static int
by_id(const void *first, const void *second, void *order)
{
	return ApplySortComparator((*(KnownId *const *) first)->id, false,
							   (*(KnownId *const *) second)->id, false, order);
}

/*
 * Sort the ids.
 */
static KnownId **
sorted_ids(const TargetRows *rows)
{
	KnownId   **ids = MemoryContextAllocHuge(CurrentMemoryContext, rows->ids->members * sizeof(KnownId *));
	SortSupportData order;
	ids_iterator iterator;
	uint32		count = 0;

	ids_start_iterate(rows->ids, &iterator);
	while (count < rows->ids->members)
		ids[count++] = ids_iterate(rows->ids, &iterator);
	order_of_column(rows->id_hash.id, &order);
	qsort_arg(ids, count, sizeof(KnownId *), by_id, &order);
	return ids;
}

static void
read_by_key(const TargetRows *rows, Relation table, Relation index)
{
	KnownId   **ids = sorted_ids(rows);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	IndexScanDesc scan = geonn_index_beginscan(table, index, GetActiveSnapshot(), 1);
	Oid			type = index->rd_opcintype[0];
	Oid			equality = get_opfamily_member(index->rd_opfamily[0], type, type,
											   BTEqualStrategyNumber);

	for (uint32 i = 0; i < rows->ids->members; i++)
	{
		ScanKeyData key;

		CHECK_FOR_INTERRUPTS();
		ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, InvalidOid,
							   index->rd_indcollation[0], get_opcode(equality), ids[i]->id);
		index_rescan(scan, &key, 1, NULL, 0);
		while (index_getnext_slot(scan, ForwardScanDirection, slot))
			take_row(rows, ids[i], slot);
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	pfree(ids);
}

/* ---- all rows of the table ---- */

static void
look_up_row(void *state, const Datum *values, const bool *nulls pg_attribute_unused(), TableReader *reader,
			int row)
{
	TargetRows *rows = state;
	KnownId    *known = ids_lookup(rows->ids, values[TARGET_OBSERVATION_ID]);

	if (known != NULL)
		take_row(rows, known, geonn_table_reader_slot(reader, row));
}

void
geonn_target_rows_read(TargetRows *rows, SortedRows *in_table)
{
	Relation	relation;
	Relation	index;

	if (rows->ids->members == 0)
		return;
	rows->in_table = in_table;
	relation = table_open(rows->cache->target, AccessShareLock);
	index = rows->ids->members > RelationGetNumberOfBlocks(relation) ? NULL : open_key(rows);
	if (index == NULL)
		geonn_target_read(rows->cache->target, rows->row_type, TARGET_OBSERVATION_ID + 1, look_up_row, rows);
	else
	{
		read_by_key(rows, relation, index);
		index_close(index, NoLock);
	}
	table_close(relation, NoLock);
}
