/*
 * target_rows.c
 *		The rows that a cache's table has for some observations.
 *
 * For few observations, their rows are looked up by the primary key, one id after the other in the
 * key's order, so that a page with rows of several observations is read once.  For many, the whole
 * table is read, page by page, and each row's id is looked up among the given ids.  A lookup by the
 * key takes about as long as reading a page of rows, so "many" is more than the table has pages.  A
 * hash table has the given ids; before it, a filter with several bits for each id, small enough for
 * the processor's cache, rules out nearly all other rows.
 *
 * Both ways use the access methods, and compare ids by the functions of the type's operator class:
 * a statement would look for an operator by its name.
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
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "port/pg_bitutils.h"
#include "storage/bufmgr.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/typcache.h"

#include "cache/id_hash.h"
#include "cache/sorted_rows.h"
#include "cache/target_rows.h"
#include "base/compat.h"
#include "points/table_reader.h"
#include "base/value.h"

/* bits of the filter for each observation */
#define BITS_AN_ID		16

struct TargetRows
{
	const GeonnCache *cache;
	IdHash		id_hash;
	AttrNumber	attributes[TARGET_COLUMNS];
};

TargetRows *
geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type)
{
	TargetRows *rows = palloc0(sizeof(TargetRows));

	rows->cache = cache;
	rows->id_hash = geonn_id_hash_of(TupleDescAttr(row_type, TARGET_OBSERVATION_ID));
	geonn_target_attributes(cache->target, rows->attributes);
	return rows;
}

/* ---- by the primary key ---- */

/*
 * Open the primary key's index, or return NULL if ids cannot be looked up in it now: if the key was
 * made anew with its columns in another order, or so recently that it may lack rows that this
 * transaction sees.
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

typedef struct Lookup
{
	const Datum *ids;
	SortSupportData order;
} Lookup;

static int
by_id(const void *first, const void *second, void *state)
{
	Lookup	   *lookup = state;

	return ApplySortComparator(lookup->ids[*(const uint32 *) first], false,
							   lookup->ids[*(const uint32 *) second], false, &lookup->order);
}

/*
 * The numbers of the ids, in the order of the ids.
 */
static uint32 *
order_ids(const TargetRows *rows, const Datum *ids, uint32 count)
{
	uint32	   *numbers = MemoryContextAllocHuge(CurrentMemoryContext, count * sizeof(uint32));
	Lookup		lookup = {.ids = ids};

	for (uint32 i = 0; i < count; i++)
		numbers[i] = i;
	geonn_order_of_column(rows->id_hash.id, &lookup.order);
	qsort_arg(numbers, count, sizeof(uint32), by_id, &lookup);
	return numbers;
}

static void
take_slot(const TargetRows *rows, TupleTableSlot *slot, Datum *values, bool *nulls)
{
	for (int i = 0; i < TARGET_COLUMNS; i++)
		values[i] = slot_getattr(slot, rows->attributes[i], &nulls[i]);
}

static void
read_by_key(const TargetRows *rows, Relation table, Relation index, const Datum *ids, uint32 count,
			TargetRowConsumer consume, void *state)
{
	uint32	   *numbers = order_ids(rows, ids, count);
	TupleTableSlot *slot = table_slot_create(table, NULL);
	IndexScanDesc scan = geonn_index_beginscan(table, index, GetActiveSnapshot(), 1);
	Oid			type = index->rd_opcintype[0];
	Oid			equality = get_opfamily_member(index->rd_opfamily[0], type, type,
											   BTEqualStrategyNumber);

	for (uint32 i = 0; i < count; i++)
	{
		ScanKeyData key;

		CHECK_FOR_INTERRUPTS();
		ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, InvalidOid,
							   index->rd_indcollation[0], get_opcode(equality), ids[numbers[i]]);
		index_rescan(scan, &key, 1, NULL, 0);
		while (index_getnext_slot(scan, ForwardScanDirection, slot))
		{
			Datum		values[TARGET_COLUMNS];
			bool		nulls[TARGET_COLUMNS];

			take_slot(rows, slot, values, nulls);
			consume(state, numbers[i], &slot->tts_tid, values, nulls);
		}
	}
	index_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	pfree(numbers);
}

/* ---- all rows of the table ---- */

typedef struct IdTable
{
	const TargetRows *rows;
	const Datum *ids;
	uint64	   *filter;			/* a bit for each of filter_mask + 1 hashes */
	uint64		filter_mask;
	uint64	   *hashes;			/* [mask + 1], of the ids that */
	uint32	   *numbers;		/* [mask + 1] tells, from 1 on; 0: none */
	uint64		mask;
} IdTable;

static IdTable
make_id_table(const TargetRows *rows, const Datum *ids, uint32 count)
{
	IdTable		table = {
		.rows = rows,
		.ids = ids,
		.filter_mask = pg_nextpower2_64((uint64) count * BITS_AN_ID) - 1,
		.mask = pg_nextpower2_64((uint64) count * 2) - 1
	};

	table.filter = MemoryContextAllocExtended(CurrentMemoryContext,
											  Max((table.filter_mask + 1) / 8, sizeof(uint64)),
											  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	table.hashes = MemoryContextAllocHuge(CurrentMemoryContext, (table.mask + 1) * sizeof(uint64));
	table.numbers = MemoryContextAllocExtended(CurrentMemoryContext,
											   (table.mask + 1) * sizeof(uint32),
											   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	for (uint32 i = 0; i < count; i++)
	{
		uint64		hash = geonn_id_hash(&rows->id_hash, ids[i]);
		uint64		bit = hash & table.filter_mask;
		uint64		position = hash & table.mask;

		table.filter[bit / 64] |= UINT64CONST(1) << bit % 64;
		while (table.numbers[position] != 0)
			position = (position + 1) & table.mask;
		table.hashes[position] = hash;
		table.numbers[position] = i + 1;
	}
	return table;
}

/*
 * Find the next position, from this one on, of an id with this hash.  Returns false if the table
 * has none.
 */
static inline bool
find_hash(const IdTable *table, uint64 hash, uint64 *position)
{
	while (table->numbers[*position] != 0 && table->hashes[*position] != hash)
		*position = (*position + 1) & table->mask;
	return table->numbers[*position] != 0;
}

/*
 * Pass a row on for each of the ids that are equal to its own.  The first id with the same hash is
 * at this position.
 */
static void
match_row(const IdTable *table, uint64 hash, uint64 first, TupleTableSlot *slot,
		  TargetRowConsumer consume, void *state)
{
	const TargetRows *rows = table->rows;
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];

	take_slot(rows, slot, values, nulls);
	for (uint64 i = first; find_hash(table, hash, &i); i = (i + 1) & table->mask)
	{
		uint32		number = table->numbers[i] - 1;

		if (DatumGetBool(FunctionCall2Coll(&rows->id_hash.type->eq_opr_finfo,
										   rows->id_hash.id->attcollation,
										   values[TARGET_OBSERVATION_ID], table->ids[number])))
			consume(state, number, &slot->tts_tid, values, nulls);
	}
}

static void
read_all(TargetRows *rows, Relation relation, const Datum *ids, uint32 count,
		 TargetRowConsumer consume, void *state)
{
	IdTable		table = make_id_table(rows, ids, count);
	PlainTable	only_ids = {relation, &rows->attributes[TARGET_OBSERVATION_ID]};
	TableReader *reader;
	Datum	   *values;
	bool	   *nulls;
	int			found;

	reader = geonn_table_reader_begin(list_make1(&only_ids), 1, GetActiveSnapshot());
	while ((found = geonn_table_reader_next(reader, &values, &nulls)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < found; i++)
		{
			uint64		hash = nulls[i] ? 0 : geonn_id_hash(&rows->id_hash, values[i]);
			uint64		bit = hash & table.filter_mask;
			uint64		position = hash & table.mask;

			if (!nulls[i] && (table.filter[bit / 64] >> bit % 64 & 1) &&
				find_hash(&table, hash, &position))
				match_row(&table, hash, position, geonn_table_reader_slot(reader, i), consume, state);
		}
	}
	geonn_table_reader_end(reader);
	pfree(table.filter);
	pfree(table.hashes);
	pfree(table.numbers);
}

void
geonn_target_rows_of(TargetRows *rows, const Datum *ids, uint32 count,
					 TargetRowConsumer consume, void *state)
{
	Relation	relation;
	Relation	index;

	if (count == 0)
		return;
	relation = table_open(rows->cache->target, AccessShareLock);
	index = count > RelationGetNumberOfBlocks(relation) ? NULL : open_key(rows);
	if (index == NULL)
		read_all(rows, relation, ids, count, consume, state);
	else
	{
		read_by_key(rows, relation, index, ids, count, consume, state);
		index_close(index, NoLock);
	}
	table_close(relation, NoLock);
}
