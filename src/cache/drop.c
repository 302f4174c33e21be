/*
 * drop.c
 *		Caches are dropped, by name or with their tables.
 *
 * Whichever command drops a cache's table also drops the cache when it ends: an event trigger of
 * the extension looks for caches without a table.  The trigger is ENABLE ALWAYS, so that it also
 * fires in restores and in replication, and the role that drops the table needs no privileges for
 * it: the extension's owner deletes the entries.
 *
 * Where the trigger does not fire (in single-user mode, with event_triggers off), a cache outlives
 * its table until the next command that drops anything.  Until then only members of the role that
 * owns the extension may use it.  A cache whose obs or ref was dropped stays: its rows are there,
 * and its refresh says what is missing.
 */
#include "postgres.h"

#include "access/table.h"
#include "access/tableam.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "executor/executor.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include "cache/schedule.h"
#include "base/compat.h"

PG_FUNCTION_INFO_V1(geonn_cache_drop);
PG_FUNCTION_INFO_V1(geonn_cache_dropped);

/*
 * Delete all that the extension's tables have of a cache, with that snapshot or NULL.  A refresh
 * that was waiting for the table logs its failure afterwards, so what such sessions have left of
 * caches dropped earlier is deleted, too.
 */
static void
forget(const GeonnCache *cache, Snapshot snapshot)
{
	static const char *const noted[] = {"total", "run", "last_run"};
	static const char *const baselines[] = {"block", "directory", "page"};
	Oid			type = INT4OID;
	Datum		id = Int32GetDatum(cache->id);

	(void) geonn_catalog_run(cache->schema,
							 "DELETE FROM $S.geonn_cache WHERE id OPERATOR(pg_catalog.=) $1",
							 snapshot, 1, &type, &id, NULL);
	for (int i = 0; i < (int) lengthof(noted); i++)
		(void) geonn_catalog_run(cache->schema,
								 psprintf("DELETE FROM $S.geonn_cache_%s t"
										  " WHERE t.cache OPERATOR(pg_catalog.=) $1"
										  " OR NOT EXISTS (SELECT FROM $S.geonn_cache c"
										  " WHERE c.id OPERATOR(pg_catalog.=) t.cache)", noted[i]),
								 snapshot, 1, &type, &id, NULL);
	for (int i = 0; i < (int) lengthof(baselines); i++)
		(void) geonn_catalog_run(cache->schema,
								 psprintf("DELETE FROM $S.geonn_cache_%s"
										  " WHERE cache OPERATOR(pg_catalog.=) $1", baselines[i]),
								 snapshot, 1, &type, &id, NULL);
}

static void
hint_at_cascade(void *name)
{
	const char *quoted = quote_literal_cstr(name);

	if (geterrcode() == ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST)
		errhint("Call geonn_cache_drop(%s, cascade => true) to drop these as well, or geonn_cache_drop(%s, keep_table => true) to keep the table.",
				quoted, quoted);
}

/*
 * Drop the table by a command, for which event triggers fire.
 */
static void
drop_table(const GeonnCache *cache, bool cascade)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = hint_at_cascade,
		.arg = cache->name
	};

	error_context_stack = &context;
	geonn_run_command(psprintf("DROP TABLE %s%s", geonn_cache_target_name(cache),
							   cascade ? " CASCADE" : ""));
	error_context_stack = context.previous;
	if (SearchSysCacheExists1(RELOID, ObjectIdGetDatum(cache->target)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the table of cache \"%s\" was not dropped", cache->name),
				 errhint("Its schema was renamed meanwhile: run the same command again.")));
}

static void
drop_triggers(const GeonnCache *cache)
{
	const char *table = geonn_cache_target_name(cache);

	geonn_run_command(psprintf("DROP TRIGGER IF EXISTS geonn_cache_changed ON %s;"
							   " DROP TRIGGER IF EXISTS geonn_cache_truncated ON %s", table, table));
}

Datum
geonn_cache_drop(PG_FUNCTION_ARGS)
{
	GeonnCache *cache = geonn_cache_find(geonn_cache_schema(fcinfo),
										 text_to_cstring(PG_GETARG_TEXT_PP(0)));
	bool		keep_table = PG_GETARG_BOOL(1);
	bool		cascade = PG_GETARG_BOOL(2);

	if (keep_table && cascade)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("keep_table and cascade exclude each other"),
				 errhint("With keep_table, what depends on the table stays as well.")));
	(void) geonn_cache_lock(cache, true, false);
	cache = geonn_cache_find_again(cache);
	geonn_cache_check_snapshot(cache);
	geonn_cache_hold(cache, AccessExclusiveLock);
	SPI_connect();
	forget(cache, NULL);
	(void) geonn_cache_unschedule(cache);
	if (OidIsValid(cache->owner) && keep_table)
		drop_triggers(cache);
	else if (OidIsValid(cache->owner))
		drop_table(cache, cascade);
	SPI_finish();
	PG_RETURN_VOID();
}

/* ---- with the table ---- */

/*
 * Does a cache have no table?  This is asked after each command that drops anything, and hardly any
 * of them drops a cache's table: so the answer needs no planned statement.
 */
static bool
some_table_is_missing(Oid caches, Snapshot snapshot)
{
	Relation	relation = table_open(caches, AccessShareLock);
	AttrNumber	target = get_attnum(caches, "target");
	TupleTableSlot *slot = table_slot_create(relation, NULL);
	TableScanDesc scan = geonn_table_beginscan(relation, snapshot);
	bool		found = false;

	while (!found && table_scan_getnextslot(scan, ForwardScanDirection, slot))
	{
		bool		is_null;
		Datum		value = slot_getattr(slot, target, &is_null);

		found = !SearchSysCacheExists1(RELOID, value);
	}
	table_endscan(scan);
	ExecDropSingleTupleTableSlot(slot);
	table_close(relation, AccessShareLock);
	return found;
}

static List *
caches_without_table(Oid schema, Snapshot snapshot)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *caches = NIL;

	SPI_connect();
	(void) geonn_catalog_run(schema,
							 "SELECT c.id, c.name FROM $S.geonn_cache c WHERE NOT EXISTS"
							 " (SELECT FROM pg_catalog.pg_class t"
							 " WHERE t.oid OPERATOR(pg_catalog.=) c.target::pg_catalog.oid)",
							 snapshot, 0, NULL, NULL, NULL);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		MemoryContext former = MemoryContextSwitchTo(context);
		GeonnCache *cache = palloc0(sizeof(GeonnCache));
		bool		is_null;

		cache->schema = schema;
		cache->id = DatumGetInt32(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &is_null));
		cache->name = SPI_getvalue(row, SPI_tuptable->tupdesc, 2);
		caches = lappend(caches, cache);
		MemoryContextSwitchTo(former);
	}
	SPI_finish();
	return caches;
}

/*
 * The snapshot is the latest in any isolation level, so that a DROP TABLE does not fail because of
 * refreshes that its transaction does not see.
 */
Datum
geonn_cache_dropped(PG_FUNCTION_ARGS)
{
	Oid			schema = geonn_cache_schema(fcinfo);
	Oid			caches;
	Snapshot	snapshot;
	ListCell   *cell;

	if (!CALLED_AS_EVENT_TRIGGER(fcinfo))
		elog(ERROR, "geonn_cache_dropped was not called as an event trigger");
	caches = get_relname_relid("geonn_cache", schema);
	/* the command has dropped the extension's own tables */
	if (!OidIsValid(caches))
		PG_RETURN_NULL();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	if (some_table_is_missing(caches, snapshot))
	{
		SPI_connect();
		foreach(cell, caches_without_table(schema, snapshot))
		{
			const GeonnCache *cache = lfirst(cell);

			forget(cache, snapshot);
			(void) geonn_cache_unschedule(cache);
		}
		SPI_finish();
	}
	UnregisterSnapshot(snapshot);
	PG_RETURN_NULL();
}
