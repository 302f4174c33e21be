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
 * which spills to disk, and one statement for each kind reads them from there as from
 * a table.  Rows are compared by their bytes: values that are equal but not the same,
 * as citext has them, differ.
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
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/queryenvironment.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"

#include "cache.h"

/* rows that are written into a new table at a time */
#define ROWS_A_FILL		1000

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

__attribute__((noreturn))
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
	GeonnReport report;
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
	report = geonn_search_report(search);
	geonn_search_log(search, &report);
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

/* a difference: the place of the row, and its values */
#define DIFFERENCE_COLUMNS (TARGET_COLUMNS + 1)

/*
 * What is kept of a difference, and the statement that writes all of a kind.  A scan by place
 * does not look again at the place of a row that somebody has changed meanwhile, when
 * he has committed: the second condition does, and such a row is passed over.
 */
static const struct
{
	int			first;			/* of a difference's columns, */
	int			count;			/* and how many */
	const char *statement;		/* of the table's name */
}			kinds[ROW_CHANGES] = {
	[ROW_DELETED] = {0, 1, "DELETE FROM %s AS t USING difference AS n"
	" WHERE t.ctid = n.place AND (t.ctid = n.place) IS TRUE"},
	[ROW_UPDATED] = {0, 5, "UPDATE %s AS t SET obs_id = n.obs_id, rank = n.rank, ref_id = n.ref_id,"
		" distance = n.distance FROM difference AS n"
	" WHERE t.ctid = n.place AND (t.ctid = n.place) IS TRUE"},
	[ROW_INSERTED] = {1, 4, "INSERT INTO %s (obs_id, rank, ref_id, distance)"
	" SELECT n.obs_id, n.rank, n.ref_id, n.distance FROM difference AS n"}
};

struct GeonnDifference
{
	const GeonnCache *cache;
	TupleDesc	row_type;
	TupleDesc	types[ROW_CHANGES];
	Tuplestorestate *stores[ROW_CHANGES];
	int64		counts[ROW_CHANGES];
	MemoryContext context;
};

static TupleDesc
type_of_kind(TupleDesc row_type, RowChange change)
{
	TupleDesc	type = CreateTemplateTupleDesc(kinds[change].count);

	for (int i = 0; i < kinds[change].count; i++)
	{
		int			column = kinds[change].first + i;

		if (column == 0)
			TupleDescInitEntry(type, 1, "place", TIDOID, -1, 0);
		else
			TupleDescCopyEntry(type, (AttrNumber) (i + 1), row_type, (AttrNumber) column);
	}
	return type;
}

GeonnDifference *
geonn_difference_create(const GeonnCache *cache, TupleDesc row_type)
{
	GeonnDifference *difference = palloc0(sizeof(GeonnDifference));

	difference->cache = cache;
	difference->row_type = row_type;
	for (int i = 0; i < ROW_CHANGES; i++)
	{
		difference->types[i] = type_of_kind(row_type, i);
		difference->stores[i] = tuplestore_begin_heap(false, false,
													  maintenance_work_mem / ROW_CHANGES);
	}
	difference->context = CurrentMemoryContext;
	return difference;
}

void
geonn_difference_add(GeonnDifference *difference, RowChange change, ItemPointer place,
					 const Datum *values, const bool *nulls)
{
	MemoryContext former = MemoryContextSwitchTo(difference->context);
	Datum		row[DIFFERENCE_COLUMNS] = {PointerGetDatum(place)};
	bool		row_nulls[DIFFERENCE_COLUMNS] = {false};
	int			first = kinds[change].first;

	if (change != ROW_DELETED)
	{
		memcpy(row + 1, values, TARGET_COLUMNS * sizeof(Datum));
		memcpy(row_nulls + 1, nulls, TARGET_COLUMNS * sizeof(bool));
	}
	tuplestore_putvalues(difference->stores[change], difference->types[change],
						 row + first, row_nulls + first);
	difference->counts[change]++;
	MemoryContextSwitchTo(former);
}

bool
geonn_same_rows(TupleDesc row_type, const Datum *values, const bool *nulls,
				const Datum *other_values, const bool *other_nulls)
{
	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		Form_pg_attribute column = TupleDescAttr(row_type, i);

		if (nulls[i] != other_nulls[i])
			return false;
		if (!nulls[i] &&
			!datum_image_eq(values[i], other_values[i], column->attbyval, column->attlen))
			return false;
	}
	return true;
}

bool
geonn_place_add(PlaceSet *set, ItemPointer place)
{
	uint64		number = (uint64) ItemPointerGetBlockNumber(place) * MaxHeapTuplesPerPage +
		ItemPointerGetOffsetNumber(place);
	uint64		byte = number / 8;
	uint8		bit = (uint8) (1 << number % 8);

	if (byte >= set->bytes)
	{
		uint64		bytes = Max(byte + BLCKSZ, set->bytes * 2);

		set->bits = set->bytes == 0 ? MemoryContextAllocHuge(CurrentMemoryContext, bytes) :
			repalloc_huge(set->bits, bytes);
		memset(set->bits + set->bytes, 0, bytes - set->bytes);
		set->bytes = bytes;
	}
	if (set->bits[byte] & bit)
		return false;
	set->bits[byte] |= bit;
	return true;
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
	MemoryContext context;
	PlaceSet	seen;			/* rows of the target that equal one of the search */
	int64		rows;
} Comparer;

static bool
compare_row(TupleTableSlot *slot, DestReceiver *receiver)
{
	Comparer   *comparer = (Comparer *) receiver;
	TupleDesc	row_type = comparer->difference->row_type;
	MemoryContext former;
	ItemPointer place;
	const Datum *target;
	const Datum *found;
	const bool *target_nulls;
	const bool *found_nulls;

	slot_getallattrs(slot);
	place = (ItemPointer) DatumGetPointer(slot->tts_values[COMPARED_PLACE]);
	target = slot->tts_values + COMPARED_TARGET;
	target_nulls = slot->tts_isnull + COMPARED_TARGET;
	found = slot->tts_values + COMPARED_SEARCH;
	found_nulls = slot->tts_isnull + COMPARED_SEARCH;
	if (found_nulls[TARGET_RANK])
	{
		geonn_difference_add(comparer->difference, ROW_DELETED, place, NULL, NULL);
		return true;
	}
	comparer->rows++;
	if (slot->tts_isnull[COMPARED_PLACE])
	{
		geonn_difference_add(comparer->difference, ROW_INSERTED, NULL, found, found_nulls);
		return true;
	}
	former = MemoryContextSwitchTo(comparer->context);
	if (!geonn_place_add(&comparer->seen, place))
		geonn_cache_raise_duplicate(comparer->difference->cache,
									TupleDescAttr(row_type, TARGET_OBSERVATION_ID)->atttypid,
									found[TARGET_OBSERVATION_ID]);
	MemoryContextSwitchTo(former);
	if (!geonn_same_rows(row_type, target, target_nulls, found, found_nulls))
		geonn_difference_add(comparer->difference, ROW_UPDATED, place, found, found_nulls);
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
		.difference = difference,
		.context = CurrentMemoryContext
	};
	SPIExecuteOptions options = {.read_only = true,.dest = &comparer.receiver};
	int			result;

	SPI_connect();
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

/*
 * Plan a statement so that it goes from one place of the table to the next: the planner would
 * rather read all of it, as it thinks of a disk.  The triggers that it fires are planned
 * as ever.
 */
static CachedPlan *
plan_by_place(SPIPlanPtr statement)
{
	int			level = NewGUCNestLevel();
	CachedPlan *plan;

	geonn_plan_by_index();
	plan = SPI_plan_get_cached_plan(statement);
	AtEOXact_GUC(true, level);
	return plan;
}

/*
 * Write the differences of one kind, which the statement reads as a relation.  A row that is
 * not as it was read is not changed.
 */
static void
write_rows(const GeonnDifference *difference, RowChange change, int64 *changed)
{
	EphemeralNamedRelationData relation = {
		.md = {
			.name = "difference",
			.tupdesc = difference->types[change],
			.enrtype = ENR_NAMED_TUPLESTORE,
			.enrtuples = (double) difference->counts[change]
		},
		.reldata = difference->stores[change]
	};
	char	   *statement = psprintf(kinds[change].statement,
									 geonn_cache_target_name(difference->cache));
	SPIPlanPtr	prepared;
	CachedPlan *plan;
	int			result;

	*changed = 0;
	if (difference->counts[change] == 0)
		return;
	SPI_register_relation(&relation);
	prepared = SPI_prepare(statement, 0, NULL);
	if (prepared == NULL)
		elog(ERROR, "could not prepare \"%s\": %s", statement, SPI_result_code_string(SPI_result));
	plan = plan_by_place(prepared);
	result = SPI_execute_plan(prepared, NULL, NULL, false, 0);
	if (result < 0)
		elog(ERROR, "could not write: %s", SPI_result_code_string(result));
	ReleaseCachedPlan(plan, NULL);
	SPI_unregister_relation(relation.md.name);
	*changed = (int64) SPI_processed;
	if (*changed != difference->counts[change])
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("the table of cache \"%s\" was changed by others during the refresh",
						difference->cache->name),
				 errhint("The next refresh looks at all of its rows.")));
}

void
geonn_difference_write(GeonnDifference *difference, GeonnRunResult *result)
{
	Oid			former = written_target;
	MemoryContext context;

	SPI_connect();
	written_target = difference->cache->target;
	context = CurrentMemoryContext;
	PG_TRY();
	{
		write_rows(difference, ROW_DELETED, &result->deleted);
		write_rows(difference, ROW_UPDATED, &result->updated);
		write_rows(difference, ROW_INSERTED, &result->inserted);
	}
	PG_CATCH();
	{
		written_target = former;
		geonn_cache_rethrow(difference->cache, context);
	}
	PG_END_TRY();
	written_target = former;
	result->counted = true;
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
								 " WHERE s.cache OPERATOR(pg_catalog.=) c.id"
								 " AND c.target::pg_catalog.oid OPERATOR(pg_catalog.=) $1",
								 NULL, 1, &type, &target, NULL);
		SPI_finish();
	}
	return PointerGetDatum(NULL);
}
