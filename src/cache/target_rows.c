/*
 * target_rows.c
 *		The rows that a cache's table has for some observations.
 *
 * For few observations, their rows are looked up by the primary key, one id after the other in the
 * key's order, so that a page with rows of several observations is read once.  For many, the whole
 * table is read, page by page, and each row's id is looked up among the given ids.  A lookup by the
 * key takes about as long as reading a page of rows, so "many" is more than the table has pages.
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
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "base/compat.h"
#include "cache/id_hash.h"
#include "cache/target_rows.h"
#include "points/table_reader.h"

/* an id, and what the table may have of it */
typedef struct KnownId
{
	Datum		id;
	uint32		hash;
	bool		is_searched;
	bool		is_repeated;	/* two observations have it now */
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
	IdHash		id_hash;
	AttrNumber	attributes[TARGET_COLUMNS];
	ids_hash   *ids;
	SortedRows *in_table;		/* to which the rows are added */
};

TargetRows *
geonn_target_rows_create(const GeonnCache *cache, TupleDesc row_type, uint64 expected)
{
	TargetRows *rows = palloc0(sizeof(TargetRows));

	rows->cache = cache;
	rows->id_hash = geonn_id_hash_of(TupleDescAttr(row_type, TARGET_OBSERVATION_ID));
	geonn_target_attributes(cache->target, rows->attributes);
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
 * Add the row of the table in the slot, of this id.
 */
static void
take_row(const TargetRows *rows, const KnownId *known, TupleTableSlot *slot)
{
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];

	if (known->is_repeated || !known->may_be_there)
		geonn_cache_raise_duplicate(rows->cache, rows->id_hash.id->atttypid, known->id);
	for (int i = 0; i < TARGET_COLUMNS; i++)
		values[i] = slot_getattr(slot, rows->attributes[i], &nulls[i]);
	geonn_sorted_rows_add(rows->in_table, &slot->tts_tid, values, nulls);
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

static int
by_id(const void *first, const void *second, void *order)
{
	return ApplySortComparator((*(KnownId *const *) first)->id, false,
							   (*(KnownId *const *) second)->id, false, order);
}

/*
 * The ids in their order.
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
	geonn_order_of_column(rows->id_hash.id, &order);
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
read_all(TargetRows *rows, Relation relation)
{
	PlainTable	only_ids = {relation, &rows->attributes[TARGET_OBSERVATION_ID]};
	TableReader *reader = geonn_table_reader_begin(list_make1(&only_ids), 1, GetActiveSnapshot());
	Datum	   *values;
	bool	   *nulls;
	int			count;

	while ((count = geonn_table_reader_next(reader, &values, &nulls)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (int i = 0; i < count; i++)
		{
			KnownId    *known = nulls[i] ? NULL : ids_lookup(rows->ids, values[i]);

			if (known != NULL)
				take_row(rows, known, geonn_table_reader_slot(reader, i));
		}
	}
	geonn_table_reader_end(reader);
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
		read_all(rows, relation);
	else
	{
		read_by_key(rows, relation, index);
		index_close(index, NoLock);
	}
	table_close(relation, NoLock);
}
