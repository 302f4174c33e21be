/*
 * block_table.c
 *		The rows of geonn_cache_block, geonn_cache_directory and geonn_cache_page.
 *
 * A refresh reads and writes some thousands of these rows, each by its number.  It calls the access
 * methods: a statement would be planned, and the planner, before these tables were analyzed, knows
 * nothing of their rows.  The plan that suits an empty table reads all blocks for each of them.
 *
 * Rows are found in the primary key, whose columns never change.  So an update leaves the index as it
 * is wherever the row's page has room for the next version: a page of geonn_cache_block, by its
 * fillfactor, has room for one, and a later refresh prunes the version before.
 *
 * As in statements, rows are read with a snapshot and the transaction's own changes, and a row that a
 * transaction unknown to the snapshot has changed is an error.  The lock of the cache keeps other
 * refreshes away; only an older snapshot, that of a REPEATABLE READ transaction, meets such rows.
 *
 * The tables belong to the extension's owner, and only the module's code reaches this file: it checks
 * no privileges, and neither triggers nor row-level security apply.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/relscan.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/block_table.h"
#include "cache/sql.h"
#include "base/compat.h"

/* columns of these tables; the first three are their primary key */
enum
{
	BLOCK_CACHE,
	BLOCK_SIDE,
	BLOCK_NUMBER,
	BLOCK_CONTENTS,
	BLOCK_COLUMNS
};

#define KEY_COLUMNS		BLOCK_CONTENTS

struct BlockTable
{
	Relation	relation;
	Relation	key;			/* the primary key's index */
	Datum		side[BLOCK_NUMBER]; /* the cache and the side: of all rows */
	Snapshot	snapshot;
	MemoryContext context;		/* of the scan, which allocates whenever it is asked */
	IndexScanDesc scan;
	TupleTableSlot *read_slot;
	MemoryContext contents;		/* of the row that was read last, if they were stored apart */

	/* to write */
	EState	   *state;			/* NULL: opened to read */
	ResultRelInfo *result;
	TupleTableSlot *write_slot;
};

/* ---- open and close ---- */

/*
 * Open the primary key's index.
 */
static Relation
open_key(Relation relation)
{
	Relation	key;

	list_free(RelationGetIndexList(relation));
	if (!OidIsValid(relation->rd_pkindex))
		elog(ERROR, "table %s has no primary key", RelationGetRelationName(relation));
	key = index_open(relation->rd_pkindex, AccessShareLock);
	if (RelationGetNumberOfAttributes(relation) != BLOCK_COLUMNS ||
		IndexRelationGetNumberOfKeyAttributes(key) != KEY_COLUMNS)
		elog(ERROR, "table %s is not what this version of geonn has made",
			 RelationGetRelationName(relation));
	return key;
}

/*
 * The snapshot with the changes that the transaction has made so far.
 */
static Snapshot
with_own_changes(Snapshot snapshot)
{
	Snapshot	now;

	CommandCounterIncrement();
	PushCopiedSnapshot(snapshot);
	UpdateActiveSnapshotCommandId();
	now = RegisterSnapshot(GetActiveSnapshot());
	PopActiveSnapshot();
	return now;
}

static void
begin_to_write(BlockTable *table)
{
	table->state = CreateExecutorState();
	table->result = makeNode(ResultRelInfo);
	InitResultRelInfo(table->result, table->relation, 0, NULL, 0);
	ExecOpenIndices(table->result, false);
	table->write_slot = table_slot_create(table->relation, NULL);
}

BlockTable *
geonn_block_table_open(const GeonnCache *cache, int16 side, const char *name, LOCKMODE lock,
					   Snapshot snapshot)
{
	BlockTable *table = palloc0(sizeof(BlockTable));

	table->relation = table_open(geonn_own_table(cache->schema, name), lock);
	table->key = open_key(table->relation);
	table->side[BLOCK_CACHE] = Int32GetDatum(cache->id);
	table->side[BLOCK_SIDE] = Int16GetDatum(side);
	table->snapshot = with_own_changes(snapshot);
	table->context = CurrentMemoryContext;
	table->scan = geonn_index_beginscan(table->relation, table->key, table->snapshot, KEY_COLUMNS);
	table->read_slot = table_slot_create(table->relation, NULL);
	table->contents = AllocSetContextCreate(CurrentMemoryContext, "geonn contents",
											ALLOCSET_DEFAULT_SIZES);
	if (lock != AccessShareLock)
		begin_to_write(table);
	return table;
}

void
geonn_block_table_close(BlockTable *table)
{
	index_endscan(table->scan);
	ExecDropSingleTupleTableSlot(table->read_slot);
	UnregisterSnapshot(table->snapshot);
	if (table->state != NULL)
	{
		ExecDropSingleTupleTableSlot(table->write_slot);
		ExecCloseIndices(table->result);
		pfree(table->result);
		FreeExecutorState(table->state);
		CommandCounterIncrement();
	}
	index_close(table->key, NoLock);
	table_close(table->relation, NoLock);
	MemoryContextDelete(table->contents);
	pfree(table);
}

/* ---- reading ---- */

/*
 * Go to the row of this number, or to the first row with this number or a greater one.
 */
static void
look_up(BlockTable *table, int64 number, StrategyNumber strategy)
{
	MemoryContext former = MemoryContextSwitchTo(table->context);
	ScanKeyData keys[KEY_COLUMNS];

	ScanKeyInit(&keys[BLOCK_CACHE], BLOCK_CACHE + 1, BTEqualStrategyNumber, F_INT4EQ,
				table->side[BLOCK_CACHE]);
	ScanKeyInit(&keys[BLOCK_SIDE], BLOCK_SIDE + 1, BTEqualStrategyNumber, F_INT2EQ,
				table->side[BLOCK_SIDE]);
	ScanKeyInit(&keys[BLOCK_NUMBER], BLOCK_NUMBER + 1, strategy,
				strategy == BTEqualStrategyNumber ? F_INT8EQ : F_INT8GE, Int64GetDatum(number));
	index_rescan(table->scan, keys, KEY_COLUMNS, NULL, 0);
	MemoryContextSwitchTo(former);
}

static bool
next_row(BlockTable *table)
{
	MemoryContext former = MemoryContextSwitchTo(table->context);
	bool		found;

	CHECK_FOR_INTERRUPTS();
	found = index_getnext_slot(table->scan, ForwardScanDirection, table->read_slot);
	MemoryContextSwitchTo(former);
	return found;
}

static const bytea *
contents_of_row(BlockTable *table)
{
	MemoryContext former = MemoryContextSwitchTo(table->contents);
	bool		is_null;
	const bytea *contents;

	MemoryContextReset(table->contents);
	contents = DatumGetByteaPP(slot_getattr(table->read_slot, BLOCK_CONTENTS + 1, &is_null));
	MemoryContextSwitchTo(former);
	return contents;
}

const bytea *
geonn_block_table_find(BlockTable *table, int64 number)
{
	look_up(table, number, BTEqualStrategyNumber);
	return next_row(table) ? contents_of_row(table) : NULL;
}

void
geonn_block_table_rewind(BlockTable *table)
{
	look_up(table, PG_INT64_MIN, BTGreaterEqualStrategyNumber);
}

const bytea *
geonn_block_table_next(BlockTable *table)
{
	return next_row(table) ? contents_of_row(table) : NULL;
}

/* ---- writing ---- */

/*
 * Fill the slot with a row, in whose memory context the caller goes on until end_row.  The contents
 * are copied.
 */
static MemoryContext
begin_row(BlockTable *table, int64 number, const char *contents, Size length)
{
	TupleTableSlot *slot = table->write_slot;
	MemoryContext former = MemoryContextSwitchTo(GetPerTupleMemoryContext(table->state));
	bytea	   *value = palloc(length + VARHDRSZ);

	SET_VARSIZE(value, length + VARHDRSZ);
	memcpy(VARDATA(value), contents, length);
	memset(slot->tts_isnull, 0, BLOCK_COLUMNS * sizeof(bool));
	slot->tts_values[BLOCK_CACHE] = table->side[BLOCK_CACHE];
	slot->tts_values[BLOCK_SIDE] = table->side[BLOCK_SIDE];
	slot->tts_values[BLOCK_NUMBER] = Int64GetDatum(number);
	slot->tts_values[BLOCK_CONTENTS] = PointerGetDatum(value);
	ExecStoreVirtualTuple(slot);
	return former;
}

static void
end_row(BlockTable *table, MemoryContext former)
{
	ExecClearTuple(table->write_slot);
	MemoryContextSwitchTo(former);
	ResetPerTupleExprContext(table->state);
}

void
geonn_block_table_insert(BlockTable *table, int64 number, const char *contents, Size length)
{
	MemoryContext former = begin_row(table, number, contents, length);

	CHECK_FOR_INTERRUPTS();
	table_tuple_insert(table->relation, table->write_slot, GetCurrentCommandId(true), 0, NULL);
	geonn_insert_index_tuples(table->result, table->write_slot, table->state, false, TU_All);
	end_row(table, former);
}

static void
check_written(TM_Result result)
{
	if (result != TM_Ok)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 result == TM_Deleted ?
				 errmsg("could not serialize access due to concurrent delete") :
				 errmsg("could not serialize access due to concurrent update"),
				 errhint("Run the refresh again.")));
}

void
geonn_block_table_update(BlockTable *table, int64 number, const char *contents, Size length)
{
	MemoryContext former;
	TM_FailureData failure;
	LockTupleMode mode;
	TU_UpdateIndexes indexes;

	look_up(table, number, BTEqualStrategyNumber);
	if (!next_row(table))
		elog(ERROR, "row " INT64_FORMAT " of table %s is missing", number,
			 RelationGetRelationName(table->relation));
	former = begin_row(table, number, contents, length);
	check_written(geonn_table_tuple_update(table->relation, &table->read_slot->tts_tid,
										   table->write_slot, GetCurrentCommandId(true),
										   table->snapshot, &failure, &mode, &indexes));
	if (indexes != TU_None)
		geonn_insert_index_tuples(table->result, table->write_slot, table->state, true, indexes);
	end_row(table, former);
}

static int64
number_of_row(BlockTable *table)
{
	bool		is_null;

	return DatumGetInt64(slot_getattr(table->read_slot, BLOCK_NUMBER + 1, &is_null));
}

void
geonn_block_table_delete(BlockTable *table, int64 first, int64 last)
{
	TM_FailureData failure;

	look_up(table, first, BTGreaterEqualStrategyNumber);
	while (next_row(table) && number_of_row(table) <= last)
		check_written(geonn_table_tuple_delete(table->relation, &table->read_slot->tts_tid,
											   GetCurrentCommandId(true), table->snapshot,
											   &failure));
}

void
geonn_block_table_delete_all(BlockTable *table)
{
	geonn_block_table_delete(table, PG_INT64_MIN, PG_INT64_MAX);
}
