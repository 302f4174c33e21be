/*
 * commands.c
 *		Caches are made, altered and dropped: by name, or with their tables.
 *
 * A cache's table is an ordinary table of the role that made the cache.  Triggers on it notice when
 * anything but a refresh changes its rows (cache/last_run.c).  One transaction makes all of it: the
 * table, its rows, the entry in geonn_cache, and the baselines, which keep the points that were
 * read, so that the first refresh finds what has changed since, as any later one does.  Rows and
 * baselines are read with one snapshot.
 *
 * Privileges are checked when they are used: geonn_cache_alter reads the cache again after it has
 * locked it, checks the owner after it has locked the table, and checks the new definition as that
 * owner.
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

#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_namespace.h"
#include "commands/event_trigger.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

#include "cache/full_search.h"
#include "cache/schedule.h"
#include "cache/sorted_rows.h"
#include "cache/target.h"
#include "base/attempt.h"
#include "base/compat.h"
#include "base/extension.h"

PG_FUNCTION_INFO_V1(geonn_cache_create);
PG_FUNCTION_INFO_V1(geonn_cache_alter);
PG_FUNCTION_INFO_V1(geonn_cache_drop);
PG_FUNCTION_INFO_V1(geonn_cache_dropped);

/* ---- create ---- */

static void
check_name(const char *name)
{
	if (name[0] == '\0')
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("the name of a cache is empty"),
				 errhint("Give a name, as of a table.")));
}

__attribute__((noreturn))
static void
raise_name_taken(const char *name)
{
	ereport(ERROR,
			(errcode(ERRCODE_DUPLICATE_OBJECT),
			 errmsg("cache \"%s\" already exists", name),
			 errhint("Give another name; or change the cache with geonn_cache_alter, or drop it with geonn_cache_drop.")));
}

/* Raise two errors of CREATE TABLE before it does, worded for this call. */
static void
check_place(const char *name, const RangeVar *table, Oid schema)
{
	if (OidIsValid(get_relname_relid(table->relname, schema)))
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_TABLE),
				 errmsg("relation \"%s\" already exists in schema \"%s\"", table->relname,
						table->schemaname),
				 errhint("Give the table of the cache another name, as by target => 'another_name'.")));
	if (object_aclcheck(NamespaceRelationId, schema, GetUserId(), ACL_CREATE) != ACLCHECK_OK)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for schema %s", table->schemaname),
				 errdetail("The table of cache \"%s\" would be made there.", name),
				 errhint("Run, as the owner of the schema: GRANT CREATE ON SCHEMA %s TO %s; or name a table of another schema by the argument target.",
						 quote_identifier(table->schemaname),
						 quote_identifier(GetUserNameFromId(GetUserId(), false)))));
}

/* Return the name of the table to make, as SQL, with the schema in which CREATE TABLE will put it. */
static char *
new_table(const GeonnArguments *arguments)
{
	RangeVar   *name;
	Oid			schema;

	if (arguments->target == NULL)
	{
		if (strlen(arguments->name) >= NAMEDATALEN)
			ereport(ERROR,
					(errcode(ERRCODE_NAME_TOO_LONG),
					 errmsg("\"%s\" is too long for the name of a table", arguments->name),
					 errdetail("It has %zu bytes, and a name has at most %d.",
							   strlen(arguments->name), NAMEDATALEN - 1),
					 errhint("Name the table by the argument target.")));
		name = makeRangeVar(NULL, arguments->name, -1);
	}
	else
		name = makeRangeVarFromNameList(textToQualifiedNameList(cstring_to_text(arguments->target)));
	schema = RangeVarGetCreationNamespace(name);
	if (isTempNamespace(schema) || name->relpersistence == RELPERSISTENCE_TEMP)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("the table of a cache cannot be temporary"),
				 errhint("Name a table of a permanent schema by the argument target; for this session alone, use CREATE TEMPORARY TABLE ... AS SELECT * FROM geonn_nearest(...).")));
	name->schemaname = get_namespace_name(schema);
	check_place(arguments->name, name, schema);
	return quote_qualified_identifier(name->schemaname, name->relname);
}

/* Enter the cache into geonn_cache, and learn its number from there. */
static void
enter(GeonnCache *cache)
{
	GeonnRows  *rows = geonn_catalog_run(cache->schema,
										 "INSERT INTO $S.geonn_cache (name, target, obs, ref, arguments)"
										 " VALUES ($1, $2, $3, $4, $5)"
										 " ON CONFLICT (name) DO NOTHING RETURNING id",
										 NULL, GEONN_VALUES(GEONN_TEXT(cache->name),
															GEONN_OID(cache->target),
															GEONN_OID(cache->obs),
															GEONN_OID(cache->ref),
															GEONN_JSONB(cache->arguments)));

	if (rows->count == 0)
		raise_name_taken(cache->name);
	cache->id = DatumGetInt32(geonn_row_value(rows, 0, 1));
}

/*
 * Return whether each column of the table has the type of its values: the first fill stores rows without converting them.
 */
static bool
has_columns(TupleDesc table, TupleDesc row_type)
{
	if (table->natts != row_type->natts)
		return false;
	for (int i = 0; i < row_type->natts; i++)
	{
		if (TupleDescAttr(table, i)->atttypid != TupleDescAttr(row_type, i)->atttypid)
			return false;
	}
	return true;
}

/*
 * Open the table that this command has made, and check it: meanwhile another session may have renamed the
 * schema of the table or of a column's type, and event triggers may have altered the table.
 */
static Relation
open_made_table(const char *name, TupleDesc row_type)
{
	RangeVar   *range = makeRangeVarFromNameList(textToQualifiedNameList(cstring_to_text(name)));
	Relation	table = table_openrv(range, RowExclusiveLock);

	if (table->rd_createSubid != GetCurrentSubTransactionId())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s is not the one that was made for the cache", name),
				 errhint("Its schema was renamed meanwhile: run the same command again.")));
	if (!has_columns(RelationGetDescr(table), row_type))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("table %s does not have the columns that were made for the cache", name),
				 errhint("An event trigger altered it, or a schema was renamed meanwhile.")));
	return table;
}

/*
 * Raise an error that names the duplicate id because of which the primary key could not be made.  Takes a
 * new snapshot, which sees the table's rows.
 */
static void
find_duplicate(const GeonnCache *cache, TupleDesc row_type)
{
	CommandCounterIncrement();
	PushActiveSnapshot(GetLatestSnapshot());
	geonn_target_check_unique(cache, row_type);
	PopActiveSnapshot();
}

static void
run_step(void *command)
{
	geonn_run_command(command);
}

/*
 * Give the filled table its primary key, in a subtransaction: if ids are not unique, only that is rolled
 * back, and the table can still be searched for a duplicate.
 */
static void
add_key(const GeonnCache *cache, TupleDesc row_type)
{
	ErrorData  *error = geonn_attempt(run_step,
									  psprintf("ALTER TABLE %s ADD PRIMARY KEY %s",
											   geonn_cache_target_name(cache), geonn_target_key(row_type)));

	if (error == NULL)
		return;
	if (error->sqlerrcode == ERRCODE_UNIQUE_VIOLATION)
		find_duplicate(cache, row_type);
	ReThrowError(error);
}

Datum
geonn_cache_create(PG_FUNCTION_ARGS)
{
	NullableDatum *values;
	GeonnArguments *arguments;
	GeonnCache	cache = {.schema = geonn_cache_schema(fcinfo)};
	GeonnJoin  *join;
	char	   *name;
	Relation	table;
	GeonnRunResult result = {
		.status = "succeeded",
		.mode = "fill",
		.searched = -1,
		.counted = true
	};
	GeonnLastRun *last_run;
	BaselineBuild *build;
	int64		run;

	geonn_check_may_search();
	values = geonn_arguments_called(fcinfo, GEONN_CACHE_CREATE);
	geonn_cache_check_primary();
	arguments = geonn_arguments_read(GEONN_CACHE_CREATE, values);
	cache.name = arguments->name;
	cache.obs = arguments->obs;
	cache.ref = arguments->ref;
	cache.arguments = geonn_keep_arguments(values);
	check_name(cache.name);
	join = geonn_cache_join(&cache);
	/* an early check; enter() checks again */
	if (geonn_catalog_run(cache.schema, "SELECT FROM $S.geonn_cache WHERE name OPERATOR(pg_catalog.=) $1",
						  NULL, GEONN_VALUES(GEONN_TEXT(cache.name)))->count > 0)
		raise_name_taken(cache.name);
	name = new_table(arguments);
	geonn_cache_check_ids(join);
	geonn_run_command(psprintf("CREATE TABLE %s (%s) WITH (fillfactor = 90)", name,
							   geonn_cache_definitions(join)));
	table = open_made_table(name, geonn_cache_row_type(join));
	cache.target = RelationGetRelid(table);
	cache.owner = geonn_relation_owner(cache.target);
	enter(&cache);
	run = geonn_cache_log_start(&cache);
	PushActiveSnapshot(GetTransactionSnapshot());
	last_run = geonn_last_run_none(join);
	build = geonn_baselines_begin(&cache, join, last_run);
	result.rows = result.inserted = (int64) geonn_full_fill(&cache, join, build, table, 0);
	table_close(table, NoLock);
	geonn_baselines_end(&cache, join, last_run, build);
	geonn_last_run_create(&cache);
	add_key(&cache, geonn_cache_row_type(join));
	geonn_last_run_make_triggers(&cache);
	geonn_last_run_store(&cache, join, result.rows, last_run);
	PopActiveSnapshot();
	geonn_cache_log_finish(&cache, run, &result);
	PG_RETURN_OID(cache.target);
}

/* ---- alter ---- */

/* Lock the cache named by the first argument, and its table, for a command that changes the cache. */
static GeonnCache *
lock_cache(FunctionCallInfo fcinfo, LOCKMODE mode)
{
	GeonnCache *cache = geonn_cache_find(geonn_cache_schema(fcinfo),
										 text_to_cstring(PG_GETARG_TEXT_PP(0)));

	(void) geonn_cache_lock(cache, true, false);
	cache = geonn_cache_find_again(cache);
	geonn_cache_check_snapshot(cache);
	geonn_cache_hold(cache, mode);
	return cache;
}

Datum
geonn_cache_alter(PG_FUNCTION_ARGS)
{
	GeonnCache *cache = lock_cache(fcinfo, AccessShareLock);
	Oid			schema = cache->schema;
	Jsonb	   *changes = PG_GETARG_JSONB_P(1);
	Jsonb	   *arguments;
	GeonnRows  *rows;
	char	   *name;
	GeonnIdentity former;

	arguments = geonn_change_arguments(cache, changes);
	rows = geonn_catalog_run(schema, "SELECT FROM $S.geonn_cache WHERE name OPERATOR(pg_catalog.=)"
							 " ($2 OPERATOR(pg_catalog.->>) 'name'::pg_catalog.text)"
							 " AND id OPERATOR(pg_catalog.<>) $1",
							 NULL, GEONN_VALUES(GEONN_INT4(cache->id), GEONN_JSONB(changes)));
	if (rows->count > 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("a cache of the new name already exists"),
				 errhint("Give another name, or rename or drop that cache first.")));
	rows = geonn_catalog_run(schema,
							 "UPDATE $S.geonn_cache SET name = COALESCE($2 OPERATOR(pg_catalog.->>)"
							 " 'name'::pg_catalog.text, name), arguments = $3"
							 " WHERE id OPERATOR(pg_catalog.=) $1 RETURNING name",
							 NULL, GEONN_VALUES(GEONN_INT4(cache->id), GEONN_JSONB(changes),
												GEONN_JSONB(arguments)));
	if (rows->count != 1)
		elog(ERROR, "cache %d is missing", cache->id);
	name = geonn_row_text(rows, 0, 1);
	check_name(name);
	(void) geonn_catalog_run(schema, "DELETE FROM $S.geonn_cache_last_run"
							 " WHERE cache OPERATOR(pg_catalog.=) $1",
							 NULL, GEONN_VALUES(GEONN_INT4(cache->id)));
	if (strcmp(name, cache->name) != 0)
		geonn_cache_rename_jobs(cache, name);
	cache = geonn_cache_find(schema, name);
	/* Check the new definition, in the way in which a refresh is going to read it. */
	former = geonn_become_owner(cache);
	(void) geonn_cache_join(cache);
	geonn_become_former(former);
	PG_RETURN_VOID();
}

/* ---- drop ---- */

#define OR_OF_NO_CACHE \
	" OR NOT EXISTS (SELECT FROM $S.geonn_cache c WHERE c.id OPERATOR(pg_catalog.=) t.cache)"

/*
 * Delete all rows of a cache from the extension's tables, with this snapshot (or NULL).  Also deletes rows of
 * caches dropped earlier, because a refresh that waited for the table logs its failure after the drop.
 */
static void
forget(const GeonnCache *cache, Snapshot snapshot)
{
	static const char *const statements[] = {
		"DELETE FROM $S.geonn_cache WHERE id OPERATOR(pg_catalog.=) $1",
		"DELETE FROM $S.geonn_cache_total t WHERE t.cache OPERATOR(pg_catalog.=) $1" OR_OF_NO_CACHE,
		"DELETE FROM $S.geonn_cache_run t WHERE t.cache OPERATOR(pg_catalog.=) $1" OR_OF_NO_CACHE,
		"DELETE FROM $S.geonn_cache_last_run t WHERE t.cache OPERATOR(pg_catalog.=) $1" OR_OF_NO_CACHE,
		"DELETE FROM $S.geonn_cache_block WHERE cache OPERATOR(pg_catalog.=) $1",
		"DELETE FROM $S.geonn_cache_directory WHERE cache OPERATOR(pg_catalog.=) $1",
		"DELETE FROM $S.geonn_cache_page WHERE cache OPERATOR(pg_catalog.=) $1"
	};

	for (int i = 0; i < (int) lengthof(statements); i++)
		(void) geonn_catalog_run(cache->schema, statements[i], snapshot,
								 GEONN_VALUES(GEONN_INT4(cache->id)));
}

static void
hint_at_cascade(void *name)
{
	const char *quoted = quote_literal_cstr(name);

	if (geterrcode() == ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST)
		errhint("Call geonn_cache_drop(%s, cascade => true) to drop these as well, or geonn_cache_drop(%s, keep_table => true) to keep the table.",
				quoted, quoted);
}

/* Drop the table by an SQL command, so that event triggers fire. */
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
	GeonnCache *cache;
	bool		keep_table = PG_GETARG_BOOL(1);
	bool		cascade = PG_GETARG_BOOL(2);

	if (keep_table && cascade)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("keep_table and cascade exclude each other"),
				 errhint("With keep_table, what depends on the table stays as well.")));
	cache = lock_cache(fcinfo, AccessExclusiveLock);
	forget(cache, NULL);
	(void) geonn_cache_unschedule(cache);
	if (OidIsValid(cache->owner) && keep_table)
		drop_triggers(cache);
	else if (OidIsValid(cache->owner))
		drop_table(cache, cascade);
	PG_RETURN_VOID();
}

/* ---- caches end with their tables ---- */

/*
 * Return the caches without a table, with only schema, id and name set.  Each command that drops anything
 * calls this, so it scans geonn_cache directly, without a planned statement.
 */
static List *
caches_without_table(Oid schema, Oid caches, Snapshot snapshot)
{
	Relation	relation = table_open(caches, AccessShareLock);
	TupleDesc	type = RelationGetDescr(relation);
	SysScanDesc scan = systable_beginscan(relation, InvalidOid, false, snapshot, 0, NULL);
	List	   *found = NIL;
	HeapTuple	row;

	while (HeapTupleIsValid(row = systable_getnext(scan)))
	{
		bool		is_null;
		GeonnCache *cache;

		if (SearchSysCacheExists1(RELOID, heap_getattr(row, get_attnum(caches, "target"), type, &is_null)))
			continue;
		cache = palloc0(sizeof(GeonnCache));
		cache->schema = schema;
		cache->id = DatumGetInt32(heap_getattr(row, get_attnum(caches, "id"), type, &is_null));
		cache->name = TextDatumGetCString(heap_getattr(row, get_attnum(caches, "name"), type, &is_null));
		found = lappend(found, cache);
	}
	systable_endscan(scan);
	table_close(relation, AccessShareLock);
	return found;
}

/*
 * Uses the latest snapshot in any isolation level, so that a DROP TABLE does not fail because of
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
	/* The command has dropped the extension's own tables: there is nothing to do. */
	if (!OidIsValid(caches))
		PG_RETURN_NULL();
	snapshot = RegisterSnapshot(GetLatestSnapshot());
	foreach(cell, caches_without_table(schema, caches, snapshot))
	{
		forget(lfirst(cell), snapshot);
		(void) geonn_cache_unschedule(lfirst(cell));
	}
	UnregisterSnapshot(snapshot);
	PG_RETURN_NULL();
}
