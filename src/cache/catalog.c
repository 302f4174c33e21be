/*
 * catalog.c
 *		The caches that the extension has, and the log of their runs.
 *
 * A cache belongs to the owner of its target, as an index belongs to its table's owner; members of
 * that role use it.  geonn_cache_find checks this for each cache that a session names.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "cache/catalog.h"
#include "base/settings.h"

void
geonn_cache_check_primary(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_READ_ONLY_SQL_TRANSACTION),
				 errmsg("caches cannot be changed or refreshed during recovery"),
				 errdetail("This server is a standby, and replays what its primary writes."),
				 errhint("Call it on the primary, which replicates the rows to this server.")));
}

/* ---- caches ---- */

/* the columns of geonn_cache that a cache is read from */
enum
{
	CACHE_ID = 1,
	CACHE_NAME,
	CACHE_TARGET,
	CACHE_OBS,
	CACHE_REF,
	CACHE_ARGUMENTS
};

static const char cache_columns[] =
"id, name, target::pg_catalog.oid, obs::pg_catalog.oid, ref::pg_catalog.oid, arguments";

static Datum
required(HeapTuple row, int number)
{
	bool		is_null;
	Datum		value = SPI_getbinval(row, SPI_tuptable->tupdesc, number, &is_null);

	if (is_null)
		elog(ERROR, "column %d of geonn_cache is NULL", number);
	return value;
}

static GeonnCache *
read_cache(Oid schema, HeapTuple row, MemoryContext context)
{
	MemoryContext former = MemoryContextSwitchTo(context);
	GeonnCache *cache = palloc0(sizeof(GeonnCache));

	cache->schema = schema;
	cache->id = DatumGetInt32(required(row, CACHE_ID));
	cache->name = TextDatumGetCString(required(row, CACHE_NAME));
	cache->target = DatumGetObjectId(required(row, CACHE_TARGET));
	cache->owner = geonn_relation_owner(cache->target);
	cache->obs = DatumGetObjectId(required(row, CACHE_OBS));
	cache->ref = DatumGetObjectId(required(row, CACHE_REF));
	cache->arguments = DatumGetJsonbPCopy(required(row, CACHE_ARGUMENTS));
	MemoryContextSwitchTo(former);
	return cache;
}

/*
 * Members of the role that owns the table use a cache; members of the extension's owner use one
 * whose table was dropped.
 */
static void
check_role(const GeonnCache *cache)
{
	Oid			role = OidIsValid(cache->owner) ? cache->owner :
		geonn_relation_owner(geonn_cache_table(cache->schema));

	if (!has_privs_of_role(GetUserId(), role))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be owner of cache \"%s\"", cache->name),
				 errhint("Become a member of role \"%s\", which owns it, or call the function as that role.",
						 GetUserNameFromId(role, true))));
}

GeonnCache *
geonn_cache_find(Oid schema, const char *name)
{
	MemoryContext context = CurrentMemoryContext;
	Oid			type = TEXTOID;
	Datum		value = CStringGetTextDatum(name);
	GeonnCache *cache;

	geonn_cache_check_primary();
	SPI_connect();
	if (geonn_catalog_run(schema, psprintf("SELECT %s FROM $S.geonn_cache WHERE name OPERATOR(pg_catalog.=) $1",
										   cache_columns), NULL, 1, &type, &value, NULL) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("cache \"%s\" does not exist", name),
				 errhint("The view geonn_caches lists caches; geonn_cache_create makes one.")));
	cache = read_cache(schema, SPI_tuptable->vals[0], context);
	SPI_finish();
	check_role(cache);
	return cache;
}

void
geonn_cache_raise_missing(const GeonnCache *cache)
{
	ereport(ERROR,
			(errcode(ERRCODE_UNDEFINED_OBJECT),
			 errmsg("cache \"%s\" was renamed or dropped meanwhile", cache->name),
			 errhint("The view geonn_caches lists caches.")));
}

GeonnCache *
geonn_cache_find_again(const GeonnCache *cache)
{
	GeonnCache *found = geonn_cache_find(cache->schema, cache->name);

	if (found->id != cache->id)
		geonn_cache_raise_missing(cache);
	return found;
}

/*
 * How many runs of the cache a snapshot shows; NULL: the transaction's.
 */
static int64
runs_until(const GeonnCache *cache, Snapshot snapshot)
{
	Oid			type = INT4OID;
	Datum		id = Int32GetDatum(cache->id);
	int64		runs = 0;

	SPI_connect();
	if (geonn_catalog_run(cache->schema,
						  "SELECT runs OPERATOR(pg_catalog.+) failures FROM $S.geonn_cache_total"
						  " WHERE cache OPERATOR(pg_catalog.=) $1",
						  snapshot, 1, &type, &id, NULL) > 0)
		runs = DatumGetInt64(required(SPI_tuptable->vals[0], 1));
	SPI_finish();
	return runs;
}

void
geonn_cache_check_snapshot(const GeonnCache *cache)
{
	Snapshot	latest;
	int64		runs;

	if (!IsolationUsesXactSnapshot())
		return;
	latest = RegisterSnapshot(GetLatestSnapshot());
	runs = runs_until(cache, latest);
	UnregisterSnapshot(latest);
	if (runs != runs_until(cache, NULL))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("could not serialize access due to a concurrent refresh of cache \"%s\"",
						cache->name),
				 errdetail("Another session has refreshed the cache since this transaction took its snapshot."),
				 errhint("Run the transaction again.")));
}

List *
geonn_cache_names(Oid schema)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *names = NIL;

	SPI_connect();
	(void) geonn_catalog_run(schema, "SELECT name, target::pg_catalog.oid FROM $S.geonn_cache ORDER BY name",
							 NULL, 0, NULL, NULL, NULL);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		Oid			owner = geonn_relation_owner(DatumGetObjectId(required(row, 2)));

		if (OidIsValid(owner) && has_privs_of_role(GetUserId(), owner))
		{
			MemoryContext former = MemoryContextSwitchTo(context);

			names = lappend(names, TextDatumGetCString(required(row, 1)));
			MemoryContextSwitchTo(former);
		}
	}
	SPI_finish();
	return names;
}

/* ---- its table, and the table's owner ---- */

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

/*
 * Giving a table to another role takes a lock that conflicts with every other lock mode.
 */
void
geonn_cache_hold(const GeonnCache *cache, LOCKMODE mode)
{
	Oid			owner;

	geonn_cache_lock_table(cache, mode);
	owner = geonn_relation_owner(cache->target);
	if (owner != cache->owner)
	{
		(void) geonn_cache_target_name(cache);
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the owner of cache \"%s\" changed meanwhile", cache->name),
				 errdetail("Its table belonged to role \"%s\" and now belongs to role \"%s\".",
						   GetUserNameFromId(cache->owner, true), GetUserNameFromId(owner, true)),
				 errhint("Run the same command again, if you have the privileges of the new owner.")));
	}
	check_role(cache);
}

GeonnIdentity
geonn_become_owner(const GeonnCache *cache)
{
	GeonnIdentity former = {.level = NewGUCNestLevel()};

	/* raises an error where the table was dropped, and the cache has no owner */
	(void) geonn_cache_target_name(cache);
	GetUserIdAndSecContext(&former.user, &former.context);
	SetUserIdAndSecContext(cache->owner, former.context | SECURITY_RESTRICTED_OPERATION);
	geonn_set_search_path();
	(void) set_config_option("row_security", "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	return former;
}

void
geonn_become_former(GeonnIdentity former)
{
	AtEOXact_GUC(false, former.level);
	SetUserIdAndSecContext(former.user, former.context);
}

/* ---- the log ---- */

int64
geonn_cache_log_start(const GeonnCache *cache)
{
	Oid			types[] = {INT4OID, INT4OID};
	Datum		values[] = {Int32GetDatum(cache->id), Int32GetDatum(MyProcPid)};
	int64		run;

	SPI_connect();
	(void) geonn_catalog_run(cache->schema,
							 "INSERT INTO $S.geonn_cache_run (cache, started, status, pid)"
							 " VALUES ($1, pg_catalog.clock_timestamp(), 'running'::pg_catalog.text, $2)"
							 " RETURNING id",
							 NULL, 2, types, values, NULL);
	run = DatumGetInt64(required(SPI_tuptable->vals[0], 1));
	SPI_finish();
	return run;
}

void
geonn_cache_log_trim(const GeonnCache *cache, bool skipped_only)
{
	Oid			types[] = {INT4OID, INT4OID, BOOLOID};
	Datum		values[] = {
		Int32GetDatum(cache->id), Int32GetDatum(geonn_log_keep), BoolGetDatum(skipped_only)
	};

	/* a row that another session has deleted since the transaction's snapshot would be an error */
	if (skipped_only && IsolationUsesXactSnapshot())
		return;
	SPI_connect();
	(void) geonn_catalog_run(cache->schema,
							 "DELETE FROM $S.geonn_cache_run WHERE ctid OPERATOR(pg_catalog.=) ANY (ARRAY("
							 "SELECT ctid FROM $S.geonn_cache_run"
							 " WHERE cache OPERATOR(pg_catalog.=) $1"
							 " AND (NOT $3 OR status OPERATOR(pg_catalog.=) 'skipped'::pg_catalog.text)"
							 " AND id OPERATOR(pg_catalog.<=)"
							 " (SELECT id FROM $S.geonn_cache_run WHERE cache OPERATOR(pg_catalog.=) $1"
							 " ORDER BY id DESC LIMIT 1 OFFSET $2)"
							 " FOR UPDATE SKIP LOCKED))",
							 NULL, lengthof(types), types, values, NULL);
	SPI_finish();
}

/*
 * Count the run.
 */
static void
count_run(const GeonnCache *cache, const GeonnRunResult *result)
{
	Oid			types[] = {INT4OID, INT4OID, INT4OID};
	bool		failed = strcmp(result->status, "failed") == 0;
	Datum		values[] = {Int32GetDatum(cache->id), Int32GetDatum(!failed), Int32GetDatum(failed)};

	if (strcmp(result->status, "skipped") != 0)
		(void) geonn_catalog_run(cache->schema,
								 "INSERT INTO $S.geonn_cache_total AS t SELECT $1, $2, $3"
								 " WHERE EXISTS (SELECT FROM $S.geonn_cache c"
								 " WHERE c.id OPERATOR(pg_catalog.=) $1)"
								 " ON CONFLICT (cache) DO UPDATE SET"
								 " runs = t.runs OPERATOR(pg_catalog.+) excluded.runs,"
								 " failures = t.failures OPERATOR(pg_catalog.+) excluded.failures",
								 NULL, 3, types, values, NULL);
}

static Datum
text_or_null(const char *string, char *is_null)
{
	*is_null = string == NULL ? 'n' : ' ';
	return string == NULL ? (Datum) 0 : CStringGetTextDatum(string);
}

void
geonn_cache_log_finish(const GeonnCache *cache, int64 run, const GeonnRunResult *result)
{
	Oid			types[] = {INT8OID, TEXTOID, TEXTOID, TEXTOID, TEXTOID, INT8OID, INT8OID, INT8OID, INT8OID, INT8OID, INT4OID};
	Datum		values[lengthof(types)];
	char		nulls[lengthof(types)];

	SPI_connect();
	values[0] = Int64GetDatum(run);
	nulls[0] = ' ';
	values[1] = text_or_null(result->status, &nulls[1]);
	values[2] = text_or_null(result->mode, &nulls[2]);
	values[3] = text_or_null(result->reason, &nulls[3]);
	values[4] = text_or_null(result->error, &nulls[4]);
	values[5] = Int64GetDatum(result->rows);
	values[6] = Int64GetDatum(result->inserted);
	values[7] = Int64GetDatum(result->updated);
	values[8] = Int64GetDatum(result->deleted);
	memset(nulls + 5, result->counted ? ' ' : 'n', 4);
	values[9] = Int64GetDatum(result->searched);
	nulls[9] = result->counted && result->searched >= 0 ? ' ' : 'n';
	values[10] = Int32GetDatum(cache->id);
	nulls[10] = ' ';
	(void) geonn_catalog_run(cache->schema,
							 "UPDATE $S.geonn_cache_run SET finished = pg_catalog.clock_timestamp(),"
							 " status = $2, mode = $3, reason = $4, error = $5, rows = $6,"
							 " inserted = $7, updated = $8, deleted = $9, searched = $10"
							 " WHERE cache OPERATOR(pg_catalog.=) $11 AND id OPERATOR(pg_catalog.=) $1",
							 NULL, lengthof(types), types, values, nulls);
	count_run(cache, result);
	SPI_finish();
}
