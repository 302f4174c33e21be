/*
 * block_table.c
 *		The rows of geonn_cache_block, geonn_cache_directory and geonn_cache_page.
 *
 * A refresh reads and writes some thousands of these rows, each by its number, as PostgreSQL does with
 * rows of its catalogs: a statement for each would cost several times as much.
 *
 * Rows are found in the primary key, whose columns never change.  So an update leaves the index as it
 * is wherever the row's page has room for the next version: a page of geonn_cache_block, by its
 * fillfactor, has room for one, and a later refresh prunes the version before.
 *
 * As in statements, rows are read with a snapshot and the transaction's own changes.  The lock of the
 * cache keeps other refreshes away, and a transaction with an older snapshot than the last refresh is
 * refused before (geonn_cache_check_snapshot).
 *
 * The tables belong to the extension's owner, and only the module's code reaches this file: it checks
 * no privileges, and neither triggers nor row-level security apply.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/stratnum.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/indexing.h"
#include "catalog/pg_am_d.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/block_table.h"
#include "cache/sql.h"

/* The columns of these tables; the first three are the primary key. */
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
	Datum		side[BLOCK_NUMBER]; /* the first two key columns: id of the cache, and side */
	Snapshot	snapshot;
	MemoryContext context;		/* has the scan */
	SysScanDesc scan;			/* NULL: none yet */
	MemoryContext contents;		/* memory for the contents of the last row, if they had to be detoasted */
	CatalogIndexState indexes;
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
	if (relation->rd_rel->relam != HEAP_TABLE_AM_OID)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("table \"%s\" is of another access method than heap", RelationGetRelationName(relation)),
				 errhint("Run ALTER TABLE %s SET ACCESS METHOD heap.",
						 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(relation)),
													RelationGetRelationName(relation)))));
	if (RelationGetNumberOfAttributes(relation) != BLOCK_COLUMNS ||
		IndexRelationGetNumberOfKeyAttributes(key) != KEY_COLUMNS)
		elog(ERROR, "table %s is not what this version of geonn has made",
			 RelationGetRelationName(relation));
	return key;
}

/* Return the snapshot, extended by the changes that the transaction has made so far. */
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

BlockTable *
geonn_block_table_open(const GeonnCache *cache, int16 side, const char *name)
{
	BlockTable *table = palloc0(sizeof(BlockTable));

	table->relation = table_open(geonn_own_table(cache->schema, name), RowExclusiveLock);
	table->key = open_key(table->relation);
	table->side[BLOCK_CACHE] = Int32GetDatum(cache->id);
	table->side[BLOCK_SIDE] = Int16GetDatum(side);
	table->snapshot = with_own_changes(GetActiveSnapshot());
	table->context = CurrentMemoryContext;
	table->contents = AllocSetContextCreate(CurrentMemoryContext, "geonn contents",
											ALLOCSET_DEFAULT_SIZES);
	table->indexes = CatalogOpenIndexes(table->relation);
	return table;
}

void
geonn_block_table_close(BlockTable *table)
{
	if (table->scan != NULL)
		systable_endscan_ordered(table->scan);
	UnregisterSnapshot(table->snapshot);
	CatalogCloseIndexes(table->indexes);
	CommandCounterIncrement();
	index_close(table->key, NoLock);
	table_close(table->relation, NoLock);
	MemoryContextDelete(table->contents);
	pfree(table);
}

/* ---- reading ---- */

/* Go to the row with this number, or to the first row with this number or a greater one. */
static void
look_up(BlockTable *table, int64 number, StrategyNumber strategy)
{
	MemoryContext former = MemoryContextSwitchTo(table->context);
	ScanKeyData keys[KEY_COLUMNS];

	if (table->scan != NULL)
		systable_endscan_ordered(table->scan);
	ScanKeyInit(&keys[BLOCK_CACHE], BLOCK_CACHE + 1, BTEqualStrategyNumber, F_INT4EQ,
				table->side[BLOCK_CACHE]);
	ScanKeyInit(&keys[BLOCK_SIDE], BLOCK_SIDE + 1, BTEqualStrategyNumber, F_INT2EQ,
				table->side[BLOCK_SIDE]);
	ScanKeyInit(&keys[BLOCK_NUMBER], BLOCK_NUMBER + 1, strategy,
				strategy == BTEqualStrategyNumber ? F_INT8EQ : F_INT8GE, Int64GetDatum(number));
	table->scan = systable_beginscan_ordered(table->relation, table->key, table->snapshot, KEY_COLUMNS,
											 keys);
	MemoryContextSwitchTo(former);
}

/* Return the next row, valid until the next call; NULL after the last. */
static HeapTuple
next_row(BlockTable *table)
{
	MemoryContext former = MemoryContextSwitchTo(table->context);
	HeapTuple	row;

	Assert(table->scan != NULL);
	CHECK_FOR_INTERRUPTS();
	row = systable_getnext_ordered(table->scan, ForwardScanDirection);
	MemoryContextSwitchTo(former);
	return row;
}

static Datum
column_of(const BlockTable *table, HeapTuple row, int column)
{
	bool		is_null;

	return heap_getattr(row, column + 1, RelationGetDescr(table->relation), &is_null);
}

const bytea *
geonn_block_table_next(BlockTable *table)
{
	HeapTuple	row = next_row(table);
	MemoryContext former;
	const bytea *contents;

	if (row == NULL)
		return NULL;
	MemoryContextReset(table->contents);
	former = MemoryContextSwitchTo(table->contents);
	contents = DatumGetByteaPP(column_of(table, row, BLOCK_CONTENTS));
	MemoryContextSwitchTo(former);
	return contents;
}

const bytea *
geonn_block_table_find(BlockTable *table, int64 number)
{
	look_up(table, number, BTEqualStrategyNumber);
	return geonn_block_table_next(table);
}

void
geonn_block_table_rewind(BlockTable *table)
{
	look_up(table, PG_INT64_MIN, BTGreaterEqualStrategyNumber);
}

/* ---- writing ---- */

/*
 * Make a row with this number and these contents.
 */
static HeapTuple
make_row(const BlockTable *table, int64 number, const char *contents, Size length)
{
	bytea	   *value = palloc(length + VARHDRSZ);
	Datum		values[BLOCK_COLUMNS] = {
		table->side[BLOCK_CACHE], table->side[BLOCK_SIDE], Int64GetDatum(number),
		PointerGetDatum(value)
	};
	bool		nulls[BLOCK_COLUMNS] = {false};
	HeapTuple	row;

	SET_VARSIZE(value, length + VARHDRSZ);
	memcpy(VARDATA(value), contents, length);
	row = heap_form_tuple(RelationGetDescr(table->relation), values, nulls);
	pfree(value);
	return row;
}

void
geonn_block_table_write(BlockTable *table, bool is_there, int64 number, const char *contents, Size length)
{
	HeapTuple	row = make_row(table, number, contents, length);
	HeapTuple	former;

	CHECK_FOR_INTERRUPTS();
	if (!is_there)
		CatalogTupleInsertWithInfo(table->relation, row, table->indexes);
	else
	{
		look_up(table, number, BTEqualStrategyNumber);
		former = next_row(table);
		if (former == NULL)
			elog(ERROR, "row " INT64_FORMAT " of table %s is missing", number,
				 RelationGetRelationName(table->relation));
		CatalogTupleUpdateWithInfo(table->relation, &former->t_self, row, table->indexes);
	}
	heap_freetuple(row);
}

void
geonn_block_table_delete(BlockTable *table, int64 first, int64 last)
{
	HeapTuple	row;

	look_up(table, first, BTGreaterEqualStrategyNumber);
	while ((row = next_row(table)) != NULL && DatumGetInt64(column_of(table, row, BLOCK_NUMBER)) <= last)
		CatalogTupleDelete(table->relation, &row->t_self);
}

void
geonn_block_table_delete_all(BlockTable *table)
{
	Snapshot	former = table->snapshot;

	table->snapshot = with_own_changes(former);
	UnregisterSnapshot(former);
	geonn_block_table_delete(table, PG_INT64_MIN, PG_INT64_MAX);
}
