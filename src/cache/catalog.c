/*
 * catalog.c
 *		The caches that the extension has, their locks, and the log of their runs.
 *
 * A cache belongs to the owner of its target, as an index belongs to its table's owner; members of
 * that role use it.  geonn_cache_find checks this for each cache that a session names.  Only the
 * extension's own functions write the table of caches.
 *
 * A process that holds a lock ends some time, and a session waits for it as PostgreSQL's own commands
 * do.  A prepared transaction has no process, and holds its locks until a client ends it: of such a
 * one a session learns by name before it waits.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/catalog.h"
#include "base/settings.h"

PG_FUNCTION_INFO_V1(geonn_cache_guard);

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

/*
 * Raise an error if the tables are still those of 0.1, whose last runs have other columns: after new files were
 * installed, and before ALTER EXTENSION UPDATE.
 */
static void
check_tables(Oid schema)
{
	if (get_attnum(geonn_own_table(schema, "geonn_cache_last_run"), "sides") == InvalidAttrNumber)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the extension's tables are of another version than its module"),
				 errdetail("Caches are made, refreshed and changed once both are of one version."),
				 errhint("Run ALTER EXTENSION geonn UPDATE.")));
}

/* ---- caches ---- */

static GeonnCache *
read_cache(Oid schema, const GeonnRows *rows)
{
	GeonnCache *cache = palloc0(sizeof(GeonnCache));

	cache->schema = schema;
	cache->id = DatumGetInt32(geonn_row_value(rows, 0, 1));
	cache->name = TextDatumGetCString(geonn_row_value(rows, 0, 2));
	cache->target = DatumGetObjectId(geonn_row_value(rows, 0, 3));
	cache->owner = geonn_relation_owner(cache->target);
	cache->obs = DatumGetObjectId(geonn_row_value(rows, 0, 4));
	cache->ref = DatumGetObjectId(geonn_row_value(rows, 0, 5));
	cache->arguments = DatumGetJsonbP(geonn_row_value(rows, 0, 6));
	return cache;
}

/*
 * Raise an error unless the role may use the cache: a member of the role that owns the table; without a
 * table, a member of the extension's owner.
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
	GeonnRows  *rows;
	GeonnCache *cache;

	geonn_cache_check_primary();
	check_tables(schema);
	rows = geonn_catalog_run(schema,
							 "SELECT id, name, target::pg_catalog.oid, obs::pg_catalog.oid,"
							 " ref::pg_catalog.oid, arguments"
							 " FROM $S.geonn_cache WHERE name OPERATOR(pg_catalog.=) $1",
							 NULL, GEONN_VALUES(GEONN_TEXT(name)));
	if (rows->count == 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("cache \"%s\" does not exist", name),
				 errhint("The view geonn_caches lists caches; geonn_cache_create makes one.")));
	cache = read_cache(schema, rows);
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

/* Count the runs of the cache that the snapshot sees (NULL: the transaction's snapshot). */
static int64
runs_until(const GeonnCache *cache, Snapshot snapshot)
{
	GeonnRows  *rows = geonn_catalog_run(cache->schema,
										 "SELECT runs OPERATOR(pg_catalog.+) failures"
										 " FROM $S.geonn_cache_total"
										 " WHERE cache OPERATOR(pg_catalog.=) $1",
										 snapshot, GEONN_VALUES(GEONN_INT4(cache->id)));

	return rows->count == 0 ? 0 : DatumGetInt64(geonn_row_value(rows, 0, 1));
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
	GeonnRows  *rows = geonn_catalog_run(schema,
										 "SELECT name, target::pg_catalog.oid"
										 " FROM $S.geonn_cache ORDER BY name",
										 NULL, GEONN_NO_VALUES);
	List	   *names = NIL;

	for (uint64 i = 0; i < rows->count; i++)
	{
		Oid			owner = geonn_relation_owner(DatumGetObjectId(geonn_row_value(rows, i, 2)));

		if (OidIsValid(owner) && has_privs_of_role(GetUserId(), owner))
			names = lappend(names, TextDatumGetCString(geonn_row_value(rows, i, 1)));
	}
	return names;
}

/* ---- a cache's table, and the table's owner ---- */

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

/* ALTER TABLE OWNER conflicts with every lock mode, so the owner of a locked table stays the same. */
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
	GeonnIdentity former;

	/* Raise an error if the table was dropped, because the cache then has no owner. */
	(void) geonn_cache_target_name(cache);
	former = geonn_become(cache->owner, SECURITY_RESTRICTED_OPERATION);
	geonn_set("row_security", "on");
	return former;
}

/* ---- locks ---- */

/* Return the tag of the cache's lock: an object lock, on the cache's row of geonn_cache. */
static LOCKTAG
lock_of(const GeonnCache *cache)
{
	LOCKTAG		tag;

	SET_LOCKTAG_OBJECT(tag, MyDatabaseId, geonn_cache_table(cache->schema), (Oid) cache->id, 0);
	return tag;
}

static LOCKTAG
lock_of_table(const GeonnCache *cache)
{
	LOCKTAG		tag;

	SET_LOCKTAG_RELATION(tag, MyDatabaseId, cache->target);
	return tag;
}

static bool
conflicts(const char *held, LOCKMODE mode)
{
	for (LOCKMODE i = AccessShareLock; i <= AccessExclusiveLock; i++)
	{
		if (strcmp(GetLockmodeName(DEFAULT_LOCKMETHOD, i), held) == 0)
			return DoLockModesConflict(i, mode);
	}
	return false;
}

/* Find the holder of this lock in a conflicting mode: a prepared transaction, if one holds it, otherwise a process. */
static GeonnLocker
find_locker(const GeonnCache *cache, LOCKTAG tag, LOCKMODE mode)
{
	const char *type = tag.locktag_type == LOCKTAG_RELATION ? "relation" : "object";
	GeonnRows  *rows;
	GeonnLocker locker = {0};

	rows = geonn_catalog_run(cache->schema,
							 "SELECT l.mode, COALESCE(l.pid, 0), p.gid FROM pg_catalog.pg_locks l"
							 " LEFT JOIN (pg_catalog.pg_locks x JOIN pg_catalog.pg_prepared_xacts p"
							 " ON p.transaction OPERATOR(pg_catalog.=) x.transactionid AND x.pid IS NULL)"
							 " ON l.pid IS NULL AND x.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction"
							 " WHERE l.granted AND l.database OPERATOR(pg_catalog.=) $1"
							 " AND l.locktype OPERATOR(pg_catalog.=) $2"
							 " AND COALESCE(l.relation, l.classid) OPERATOR(pg_catalog.=) $3"
							 " AND COALESCE(l.objid, 0::pg_catalog.oid) OPERATOR(pg_catalog.=) $4",
							 NULL, GEONN_VALUES(GEONN_OID(tag.locktag_field1), GEONN_TEXT(type),
												GEONN_OID(tag.locktag_field2),
												GEONN_OID(tag.locktag_field3)));
	for (uint64 i = 0; i < rows->count && locker.prepared == NULL; i++)
	{
		int			pid = DatumGetInt32(geonn_row_value(rows, i, 2));

		if (!conflicts(geonn_row_text(rows, i, 1), mode))
			continue;
		if (pid != 0)
			locker.pid = pid;
		locker.prepared = geonn_row_text(rows, i, 3);
	}
	return locker;
}

GeonnLocker
geonn_cache_locker(const GeonnCache *cache)
{
	return find_locker(cache, lock_of(cache), ExclusiveLock);
}

int
geonn_hint_at_prepared(const char *prepared)
{
	return errhint("The transaction ends when its role or a superuser runs COMMIT PREPARED %s or ROLLBACK PREPARED %s.",
				   quote_literal_cstr(prepared), quote_literal_cstr(prepared));
}

/* If a prepared transaction holds the lock, tell in a NOTICE that the session is about to wait for it. */
static void
announce_prepared(const GeonnCache *cache, LOCKTAG tag, LOCKMODE mode)
{
	GeonnLocker locker;

	if (max_prepared_xacts == 0)
		return;
	locker = find_locker(cache, tag, mode);
	if (locker.prepared != NULL)
		ereport(NOTICE,
				(errmsg("cache \"%s\" waits for prepared transaction \"%s\", which has locked %s",
						cache->name, locker.prepared,
						tag.locktag_type == LOCKTAG_RELATION ? "its table" : "it"),
				 geonn_hint_at_prepared(locker.prepared)));
}

bool
geonn_cache_lock(const GeonnCache *cache, bool wait, bool session)
{
	LOCKTAG		tag = lock_of(cache);

	if (LockAcquire(&tag, ExclusiveLock, session, true) != LOCKACQUIRE_NOT_AVAIL)
		return true;
	if (!wait)
		return false;
	announce_prepared(cache, tag, ExclusiveLock);
	(void) LockAcquire(&tag, ExclusiveLock, session, false);
	return true;
}

void
geonn_cache_unlock(const GeonnCache *cache)
{
	LOCKTAG		tag = lock_of(cache);

	(void) LockRelease(&tag, ExclusiveLock, true);
}

void
geonn_cache_lock_table(const GeonnCache *cache, LOCKMODE mode)
{
	if (ConditionalLockRelationOid(cache->target, mode))
		return;
	announce_prepared(cache, lock_of_table(cache), mode);
	LockRelationOid(cache->target, mode);
}

/*
 * Looks at the table's lock: a transaction that has written the table has also deleted the table's row
 * of geonn_cache_last_run, and a refresh waits for that row.
 */
void
geonn_cache_announce_writer(const GeonnCache *cache)
{
	announce_prepared(cache, lock_of_table(cache), ShareLock);
}

/* ---- the log ---- */

int64
geonn_cache_log_start(const GeonnCache *cache)
{
	GeonnRows  *rows = geonn_catalog_run(cache->schema,
										 "INSERT INTO $S.geonn_cache_run (cache, started, status, pid)"
										 " VALUES ($1, pg_catalog.clock_timestamp(),"
										 " 'running'::pg_catalog.text, $2) RETURNING id",
										 NULL, GEONN_VALUES(GEONN_INT4(cache->id),
															GEONN_INT4(MyProcPid)));

	return DatumGetInt64(geonn_row_value(rows, 0, 1));
}

void
geonn_cache_log_trim(const GeonnCache *cache, bool skipped_only)
{
	/* With a fixed snapshot, deleting a row that another session has deleted since is an error. */
	if (skipped_only && IsolationUsesXactSnapshot())
		return;
	(void) geonn_catalog_run(cache->schema,
							 "DELETE FROM $S.geonn_cache_run WHERE ctid OPERATOR(pg_catalog.=) ANY (ARRAY("
							 "SELECT ctid FROM $S.geonn_cache_run"
							 " WHERE cache OPERATOR(pg_catalog.=) $1"
							 " AND (NOT $3 OR status OPERATOR(pg_catalog.=) 'skipped'::pg_catalog.text)"
							 " AND id OPERATOR(pg_catalog.<=)"
							 " (SELECT id FROM $S.geonn_cache_run WHERE cache OPERATOR(pg_catalog.=) $1"
							 " ORDER BY id DESC LIMIT 1 OFFSET $2)"
							 " FOR UPDATE SKIP LOCKED))",
							 NULL, GEONN_VALUES(GEONN_INT4(cache->id), GEONN_INT4(geonn_log_keep),
												GEONN_BOOL(skipped_only)));
}

static void
count_run(const GeonnCache *cache, bool failed)
{
	(void) geonn_catalog_run(cache->schema,
							 "INSERT INTO $S.geonn_cache_total AS t SELECT $1, $2, $3"
							 " WHERE EXISTS (SELECT FROM $S.geonn_cache c"
							 " WHERE c.id OPERATOR(pg_catalog.=) $1)"
							 " ON CONFLICT (cache) DO UPDATE SET"
							 " runs = t.runs OPERATOR(pg_catalog.+) excluded.runs,"
							 " failures = t.failures OPERATOR(pg_catalog.+) excluded.failures",
							 NULL, GEONN_VALUES(GEONN_INT4(cache->id), GEONN_INT4(!failed),
												GEONN_INT4(failed)));
}

/* Return a figure of a result as a value for the log; NULL if the figure is not known. */
static GeonnValue
figure(const GeonnRunResult *result, int64 figure)
{
	return (GeonnValue) {INT8OID, !result->counted || figure < 0, Int64GetDatum(figure)};
}

void
geonn_cache_log_finish(const GeonnCache *cache, int64 run, const GeonnRunResult *result)
{
	(void) geonn_catalog_run(cache->schema,
							 "UPDATE $S.geonn_cache_run SET finished = pg_catalog.clock_timestamp(),"
							 " status = $2, mode = $3, reason = $4, error = $5, rows = $6,"
							 " inserted = $7, updated = $8, deleted = $9, searched = $10"
							 " WHERE cache OPERATOR(pg_catalog.=) $11 AND id OPERATOR(pg_catalog.=) $1",
							 NULL, GEONN_VALUES(GEONN_INT8(run), GEONN_TEXT(result->status),
												GEONN_TEXT_OR_NULL(result->mode),
												GEONN_TEXT_OR_NULL(result->reason),
												GEONN_TEXT_OR_NULL(result->error),
												figure(result, result->rows),
												figure(result, result->inserted),
												figure(result, result->updated),
												figure(result, result->deleted),
												figure(result, result->searched),
												GEONN_INT4(cache->id)));
	if (strcmp(result->status, "skipped") != 0)
		count_run(cache, strcmp(result->status, "failed") == 0);
}

/* ---- the guard of geonn_cache ---- */

/*
 * A row of geonn_cache says what a refresh reads and which table it writes, as the owner of that
 * table.  So a role that could write such rows would have the privileges of any role that has a
 * cache.  No role is granted that; but members of pg_write_all_data write all tables without a
 * grant.  Triggers of the table therefore refuse roles without the privileges of its owner.
 * geonn_catalog_run runs as that owner, and a superuser's pg_restore has its privileges.  One of
 * the triggers is for rows: a worker of logical replication, which writes with the privileges of a
 * subscription's owner, fires no triggers of statements.
 *
 * Row-level security, which the other tables have, would keep members of pg_read_all_data from
 * dumping the database.
 */
Datum
geonn_cache_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "geonn_cache_guard was not called as a trigger");
	if (!has_privs_of_role(GetUserId(), trigger->tg_relation->rd_rel->relowner))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for table %s",
						RelationGetRelationName(trigger->tg_relation)),
				 errdetail("Only geonn's own functions write it, and members of the role that owns it."),
				 errhint("Call geonn_cache_create, geonn_cache_alter or geonn_cache_drop.")));
	/* for a row: let the statement write it */
	if (TRIGGER_FIRED_FOR_ROW(trigger->tg_event))
		return PointerGetDatum(TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ? trigger->tg_newtuple :
							   trigger->tg_trigtuple);
	return PointerGetDatum(NULL);
}
