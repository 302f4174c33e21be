/*
 * cache_target.c
 *		The rows of a cache's table: its first fill, and the differences later.
 *
 * A new table is filled as COPY fills one, many rows at a time, and has its index made
 * afterwards.  Later only rows that differ are written, by ordinary statements: so
 * readers see the former rows until the end, triggers, publications and foreign keys
 * work as ever, and the WAL has the differences alone.
 *
 * Differences are collected first and written last.  They wait in a tuplestore,
 * which spills to disk, and are written in batches, each a statement that has the
 * batch as arrays.  Rows are compared by their bytes: values that are equal but
 * not the same, as citext has them, differ.
 */
#include "postgres.h"

#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "commands/trigger.h"
#include "executor/tuptable.h"
#include "miscadmin.h"
#include "tcop/dest.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "cache.h"

/* rows that are written at a time: into a new table, and of differences */
#define ROWS_A_FILL		1000
#define ROWS_A_BATCH	8192

PG_FUNCTION_INFO_V1(geonn_cache_changed);

/* the target that this backend is writing to */
static Oid	written_target = InvalidOid;

/* ---- names ---- */

char *
geonn_cache_target_name(const GeonnCache *cache)
{
	char	   *name = get_rel_name(cache->target);

	if (name == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_TABLE),
				 errmsg("the table of cache \"%s\" was dropped", cache->name),
				 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(cache->target)), name);
}

char *
geonn_cache_equality(Oid type)
{
	Oid			equality = lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;
	HeapTuple	row = SearchSysCache1(OPEROID, ObjectIdGetDatum(equality));
	Form_pg_operator form;
	char	   *name;

	if (!HeapTupleIsValid(row))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("type %s has no equality", format_type_be(type)),
				 errdetail("The primary key of a cache's table needs it.")));
	form = (Form_pg_operator) GETSTRUCT(row);
	name = psprintf("OPERATOR(%s.%s)", quote_identifier(get_namespace_name(form->oprnamespace)),
					NameStr(form->oprname));
	ReleaseSysCache(row);
	return name;
}

/* ---- ids that are there twice ---- */

pg_attribute_noreturn()
static void
raise_duplicate(const GeonnCache *cache, const char *detail)
{
	char	   *obs = get_rel_name(cache->obs);

	ereport(ERROR,
			(errcode(ERRCODE_UNIQUE_VIOLATION),
			 errmsg("ids of relation \"%s\" are not unique", obs != NULL ? obs : "obs"),
			 errdetail("%s", detail),
			 errhint("The table of cache \"%s\" has the primary key (obs_id, rank).", cache->name)));
}

void
geonn_cache_raise_duplicate(const GeonnCache *cache, Oid type, Datum id)
{
	Oid			output;
	bool		is_varlena;

	getTypeOutputInfo(type, &output, &is_varlena);
	raise_duplicate(cache, psprintf("Id %s is there more than once.",
									OidOutputFunctionCall(output, id)));
}

void
geonn_cache_rethrow(const GeonnCache *cache, MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	if (error->sqlerrcode != ERRCODE_UNIQUE_VIOLATION || error->detail == NULL)
		PG_RE_THROW();
	FlushErrorState();
	raise_duplicate(cache, error->detail);
}

/* ---- the first fill ---- */

typedef struct Filling
{
	Relation	table;
	BulkInsertState state;
	TupleTableSlot *slots[ROWS_A_FILL];
	int			count;
	uint64		rows;
} Filling;

static void
flush(Filling *filling)
{
	table_multi_insert(filling->table, filling->slots, filling->count,
					   GetCurrentCommandId(true), TABLE_INSERT_SKIP_FSM, filling->state);
	filling->rows += filling->count;
	for (int i = 0; i < filling->count; i++)
		ExecClearTuple(filling->slots[i]);
	filling->count = 0;
}

uint64
geonn_target_fill(const GeonnCache *cache)
{
	Filling    *filling = palloc0(sizeof(Filling));
	MemoryContext rows = AllocSetContextCreate(CurrentMemoryContext, "geonn rows",
											   ALLOCSET_DEFAULT_SIZES);
	GeonnJoin  *join = geonn_cache_join(cache);
	TupleDesc	type = geonn_cache_row_type(join);
	GeonnSearch *search = geonn_search_begin(join, type);
	Datum		values[TARGET_COLUMNS];
	bool		nulls[TARGET_COLUMNS];
	bool		by_value[TARGET_COLUMNS];

	filling->table = table_open(cache->target, RowExclusiveLock);
	filling->state = GetBulkInsertState();
	for (int i = 0; i < ROWS_A_FILL; i++)
		filling->slots[i] = table_slot_create(filling->table, NULL);
	for (int i = 0; i < TARGET_COLUMNS; i++)
		by_value[i] = TupleDescAttr(type, i)->attbyval;
	while (geonn_search_next(search, values, nulls))
	{
		TupleTableSlot *slot = filling->slots[filling->count++];
		MemoryContext former = MemoryContextSwitchTo(rows);

		for (int i = 0; i < TARGET_COLUMNS; i++)
		{
			slot->tts_isnull[i] = nulls[i];
			if (!nulls[i])
				slot->tts_values[i] = by_value[i] ? values[i] :
					datumCopy(values[i], false, TupleDescAttr(type, i)->attlen);
		}
		MemoryContextSwitchTo(former);
		ExecStoreVirtualTuple(slot);
		if (filling->count == ROWS_A_FILL)
		{
			flush(filling);
			MemoryContextReset(rows);
		}
	}
	if (filling->count > 0)
		flush(filling);
	geonn_search_end(search);
	table_finish_bulk_insert(filling->table, TABLE_INSERT_SKIP_FSM);
	for (int i = 0; i < ROWS_A_FILL; i++)
		ExecDropSingleTupleTableSlot(filling->slots[i]);
	FreeBulkInsertState(filling->state);
	table_close(filling->table, NoLock);
	MemoryContextDelete(rows);
	return filling->rows;
}

/* ---- differences ---- */

/* a difference: RowChange, then the row */
#define DIFFERENCE_COLUMNS (TARGET_COLUMNS + 1)

struct GeonnDifference
{
	const GeonnCache *cache;
	TupleDesc	row_type;
	TupleDesc	type;
	Tuplestorestate *store;
	MemoryContext context;
};

GeonnDifference *
geonn_difference_create(const GeonnCache *cache, TupleDesc row_type)
{
	GeonnDifference *difference = palloc0(sizeof(GeonnDifference));

	difference->cache = cache;
	difference->row_type = row_type;
	difference->type = CreateTemplateTupleDesc(DIFFERENCE_COLUMNS);
	TupleDescInitEntry(difference->type, 1, "change", INT4OID, -1, 0);
	for (int i = 0; i < TARGET_COLUMNS; i++)
		TupleDescCopyEntry(difference->type, (AttrNumber) (i + 2), row_type, (AttrNumber) (i + 1));
	difference->store = tuplestore_begin_heap(false, false, maintenance_work_mem);
	difference->context = CurrentMemoryContext;
	return difference;
}

void
geonn_difference_add(GeonnDifference *difference, RowChange change, const Datum *values,
					 const bool *nulls)
{
	MemoryContext former = MemoryContextSwitchTo(difference->context);
	Datum		row[DIFFERENCE_COLUMNS];
	bool		row_nulls[DIFFERENCE_COLUMNS];

	row[0] = Int32GetDatum(change);
	row_nulls[0] = false;
	memcpy(row + 1, values, TARGET_COLUMNS * sizeof(Datum));
	memcpy(row_nulls + 1, nulls, TARGET_COLUMNS * sizeof(bool));
	if (change == ROW_DELETED)
		row_nulls[1 + TARGET_REFERENCE_ID] = row_nulls[1 + TARGET_DISTANCE] = true;
	tuplestore_putvalues(difference->store, difference->type, row, row_nulls);
	MemoryContextSwitchTo(former);
}

/* ---- comparing all rows ---- */

/* columns of the query that compares */
enum
{
	COMPARED_PLACE,
	COMPARED_TARGET,
	COMPARED_SEARCH = COMPARED_TARGET + TARGET_COLUMNS,
	COMPARED_COLUMNS = COMPARED_SEARCH + TARGET_COLUMNS
};

typedef struct Comparer
{
	DestReceiver receiver;		/* first */
	GeonnDifference *difference;
	bool		by_value[TARGET_COLUMNS];
	int16		length[TARGET_COLUMNS];
	uint8	   *seen;			/* bits by the place of rows of the target that were matched */
	uint64		seen_bytes;
	int64		rows;
} Comparer;

/*
 * A row of the target that equals two of the search: an id is there twice.
 */
static void
see_once(Comparer *comparer, ItemPointer place, Datum observation)
{
	uint64		number = (uint64) ItemPointerGetBlockNumber(place) * MaxHeapTuplesPerPage +
		ItemPointerGetOffsetNumber(place);
	uint64		byte = number / 8;
	uint8		bit = (uint8) (1 << number % 8);

	if (byte >= comparer->seen_bytes)
	{
		uint64		bytes = Max(byte + 1, comparer->seen_bytes * 2);

		comparer->seen = repalloc_huge(comparer->seen, bytes);
		memset(comparer->seen + comparer->seen_bytes, 0, bytes - comparer->seen_bytes);
		comparer->seen_bytes = bytes;
	}
	if (comparer->seen[byte] & bit)
		geonn_cache_raise_duplicate(comparer->difference->cache,
									TupleDescAttr(comparer->difference->row_type, 0)->atttypid,
									observation);
	comparer->seen[byte] |= bit;
}

static bool
is_same(const Comparer *comparer, const Datum *target, const bool *target_nulls,
		const Datum *found, const bool *found_nulls)
{
	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		if (target_nulls[i] != found_nulls[i])
			return false;
		if (!found_nulls[i] &&
			!datum_image_eq(target[i], found[i], comparer->by_value[i], comparer->length[i]))
			return false;
	}
	return true;
}

static bool
compare_row(TupleTableSlot *slot, DestReceiver *receiver)
{
	Comparer   *comparer = (Comparer *) receiver;
	const Datum *target;
	const Datum *found;
	const bool *target_nulls;
	const bool *found_nulls;

	slot_getallattrs(slot);
	target = slot->tts_values + COMPARED_TARGET;
	target_nulls = slot->tts_isnull + COMPARED_TARGET;
	found = slot->tts_values + COMPARED_SEARCH;
	found_nulls = slot->tts_isnull + COMPARED_SEARCH;
	if (found_nulls[TARGET_RANK])
	{
		geonn_difference_add(comparer->difference, ROW_DELETED, target, target_nulls);
		return true;
	}
	comparer->rows++;
	if (slot->tts_isnull[COMPARED_PLACE])
	{
		geonn_difference_add(comparer->difference, ROW_INSERTED, found, found_nulls);
		return true;
	}
	see_once(comparer, (ItemPointer) DatumGetPointer(slot->tts_values[COMPARED_PLACE]),
			 found[TARGET_OBSERVATION_ID]);
	if (!is_same(comparer, target, target_nulls, found, found_nulls))
		geonn_difference_add(comparer->difference, ROW_UPDATED, found, found_nulls);
	return true;
}

static void
compare_startup(DestReceiver *receiver pg_attribute_unused(),
				int operation pg_attribute_unused(),
				TupleDesc descriptor pg_attribute_unused())
{
}

static void
compare_nothing(DestReceiver *receiver pg_attribute_unused())
{
}

int64
geonn_difference_find(GeonnDifference *difference)
{
	const GeonnCache *cache = difference->cache;
	Comparer	comparer = {
		.receiver = {compare_row, compare_startup, compare_nothing, compare_nothing, DestTuplestore},
		.difference = difference
	};
	SPIExecuteOptions options = {.read_only = true,.dest = &comparer.receiver};
	int			result;

	for (int i = 0; i < TARGET_COLUMNS; i++)
		get_typlenbyval(TupleDescAttr(difference->row_type, i)->atttypid,
						&comparer.length[i], &comparer.by_value[i]);
	SPI_connect();
	comparer.seen_bytes = BLCKSZ;
	comparer.seen = palloc0(comparer.seen_bytes);
	result = SPI_execute_extended(psprintf("SELECT t.ctid, t.obs_id, t.rank, t.ref_id, t.distance,"
										   " n.obs_id, n.rank, n.ref_id, n.distance"
										   " FROM %s AS t FULL JOIN %s"
										   " ON t.obs_id %s n.obs_id AND t.rank = n.rank",
										   geonn_cache_target_name(cache),
										   geonn_cache_call(cache, "n"),
										   geonn_cache_equality(TupleDescAttr(difference->row_type, 0)->atttypid)),
								  &options);
	if (result < 0)
		elog(ERROR, "could not compare: %s", SPI_result_code_string(result));
	SPI_finish();
	return comparer.rows;
}

/* ---- writing ---- */

typedef struct Batch
{
	SPIPlanPtr	plan;
	int			columns;		/* of the row that the statement takes */
	int			rows;
	Datum	   *values[TARGET_COLUMNS];	/* [ROWS_A_BATCH] */
	bool	   *nulls[TARGET_COLUMNS];
	int64		changed;
} Batch;

static Batch *
create_batch(const GeonnDifference *difference, RowChange change)
{
	char	   *name = geonn_cache_target_name(difference->cache);
	char	   *equality = geonn_cache_equality(TupleDescAttr(difference->row_type, 0)->atttypid);
	Batch	   *batch = palloc0(sizeof(Batch));
	Oid			types[TARGET_COLUMNS];
	char	   *statement;

	batch->columns = change == ROW_DELETED ? TARGET_RANK + 1 : TARGET_COLUMNS;
	for (int i = 0; i < batch->columns; i++)
	{
		Oid			type = TupleDescAttr(difference->row_type, i)->atttypid;

		types[i] = get_array_type(type);
		if (!OidIsValid(types[i]))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("type %s has no array type", format_type_be(type)),
					 errdetail("A cache needs one to write ids of this type.")));
		batch->values[i] = palloc(ROWS_A_BATCH * sizeof(Datum));
		batch->nulls[i] = palloc(ROWS_A_BATCH * sizeof(bool));
	}
	if (change == ROW_DELETED)
		statement = psprintf("DELETE FROM %s AS t USING ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2)) AS n(o, r)"
							 " WHERE t.obs_id %s n.o AND t.rank = n.r", name, equality);
	else if (change == ROW_UPDATED)
		statement = psprintf("UPDATE %s AS t SET obs_id = n.o, ref_id = n.f, distance = n.d"
							 " FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2),"
							 " pg_catalog.unnest($3), pg_catalog.unnest($4)) AS n(o, r, f, d)"
							 " WHERE t.obs_id %s n.o AND t.rank = n.r", name, equality);
	else
		statement = psprintf("INSERT INTO %s (obs_id, rank, ref_id, distance)"
							 " SELECT * FROM ROWS FROM (pg_catalog.unnest($1), pg_catalog.unnest($2),"
							 " pg_catalog.unnest($3), pg_catalog.unnest($4)) AS n", name);
	batch->plan = SPI_prepare(statement, batch->columns, types);
	if (batch->plan == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", statement, SPI_result_code_string(SPI_result));
	return batch;
}

static void
write_batch(const GeonnDifference *difference, Batch *batch, MemoryContext memory)
{
	MemoryContext former = MemoryContextSwitchTo(memory);
	Datum		arrays[TARGET_COLUMNS];
	int			result;

	for (int i = 0; i < batch->columns; i++)
	{
		Form_pg_attribute column = TupleDescAttr(difference->row_type, i);
		int16		length;
		bool		by_value;
		char		alignment;
		int			lower = 1;

		get_typlenbyvalalign(column->atttypid, &length, &by_value, &alignment);
		arrays[i] = PointerGetDatum(construct_md_array(batch->values[i], batch->nulls[i], 1,
													   &batch->rows, &lower, column->atttypid,
													   length, by_value, alignment));
	}
	result = SPI_execute_plan(batch->plan, arrays, NULL, false, 0);
	if (result < 0)
		elog(ERROR, "could not write: %s", SPI_result_code_string(result));
	batch->changed += (int64) SPI_processed;
	batch->rows = 0;
	MemoryContextSwitchTo(former);
	MemoryContextReset(memory);
}

static void
write_rows(GeonnDifference *difference, Batch **batches, RowChange change)
{
	TupleTableSlot *slot = MakeSingleTupleTableSlot(difference->type, &TTSOpsMinimalTuple);
	MemoryContext memory = AllocSetContextCreate(CurrentMemoryContext, "geonn batch",
												 ALLOCSET_DEFAULT_SIZES);
	MemoryContext rows = AllocSetContextCreate(CurrentMemoryContext, "geonn rows",
											   ALLOCSET_DEFAULT_SIZES);

	tuplestore_rescan(difference->store);
	while (tuplestore_gettupleslot(difference->store, true, false, slot))
	{
		Batch	   *batch = batches[change];
		MemoryContext former;

		slot_getallattrs(slot);
		if (DatumGetInt32(slot->tts_values[0]) != (int32) change)
			continue;
		former = MemoryContextSwitchTo(rows);
		for (int i = 0; i < batch->columns; i++)
		{
			Form_pg_attribute column = TupleDescAttr(difference->row_type, i);

			batch->nulls[i][batch->rows] = slot->tts_isnull[i + 1];
			batch->values[i][batch->rows] = slot->tts_isnull[i + 1] ? (Datum) 0 :
				datumCopy(slot->tts_values[i + 1], column->attbyval, column->attlen);
		}
		MemoryContextSwitchTo(former);
		if (++batch->rows == ROWS_A_BATCH)
		{
			write_batch(difference, batch, memory);
			MemoryContextReset(rows);
		}
	}
	if (batches[change]->rows > 0)
		write_batch(difference, batches[change], memory);
	ExecDropSingleTupleTableSlot(slot);
	MemoryContextDelete(memory);
	MemoryContextDelete(rows);
}

void
geonn_difference_write(GeonnDifference *difference, GeonnRunResult *result)
{
	Batch	   *batches[ROW_CHANGES];
	Oid			former = written_target;
	MemoryContext context;

	SPI_connect();
	written_target = difference->cache->target;
	context = CurrentMemoryContext;
	PG_TRY();
	{
		for (int change = 0; change < ROW_CHANGES; change++)
		{
			batches[change] = create_batch(difference, change);
			write_rows(difference, batches, change);
		}
	}
	PG_CATCH();
	{
		written_target = former;
		geonn_cache_rethrow(difference->cache, context);
	}
	PG_END_TRY();
	written_target = former;
	result->counted = true;
	result->deleted = batches[ROW_DELETED]->changed;
	result->updated = batches[ROW_UPDATED]->changed;
	result->inserted = batches[ROW_INSERTED]->changed;
	SPI_finish();
}

/* ---- changes by others ---- */

Datum
geonn_cache_changed(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Oid			type = OIDOID;
	Datum		target;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("geonn_cache_changed was not called as a trigger")));
	target = ObjectIdGetDatum(RelationGetRelid(trigger->tg_relation));
	if (DatumGetObjectId(target) != written_target)
	{
		SPI_connect();
		(void) geonn_catalog_run(geonn_cache_schema(fcinfo),
								 "DELETE FROM $S.geonn_cache_seen s USING $S.geonn_cache c"
								 " WHERE s.cache = c.id AND c.target = $1",
								 NULL, 1, &type, &target, NULL);
		SPI_finish();
	}
	return PointerGetDatum(NULL);
}
