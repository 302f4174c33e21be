/*
 * locks.c
 *		The locks of caches and their tables, and what holds them.
 *
 * A process that holds a lock ends some time, and a session waits for it as PostgreSQL's own commands
 * do.  A prepared transaction has no process, and holds its locks until a client ends it: of such a
 * one a session learns by name before it waits.
 */
#include "postgres.h"

#include "access/twophase.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/lmgr.h"
#include "storage/lock.h"
#include "utils/builtins.h"

#include "cache/catalog.h"

/*
 * The lock of an object of the database: the cache's row of geonn_cache.
 */
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

/* ---- what holds a lock ---- */

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

/*
 * The transaction or process that holds this lock in a conflicting mode; of several a prepared
 * transaction.
 */
static GeonnLocker
find_locker(const GeonnCache *cache, LOCKTAG tag, LOCKMODE mode)
{
	MemoryContext context = CurrentMemoryContext;
	bool		is_relation = tag.locktag_type == LOCKTAG_RELATION;
	Oid			types[] = {OIDOID, TEXTOID, OIDOID, OIDOID};
	Datum		values[] = {
		ObjectIdGetDatum(tag.locktag_field1),
		CStringGetTextDatum(is_relation ? "relation" : "object"),
		ObjectIdGetDatum(tag.locktag_field2), ObjectIdGetDatum(tag.locktag_field3)
	};
	GeonnLocker locker = {0};

	SPI_connect();
	(void) geonn_catalog_run(cache->schema,
							 "SELECT l.mode, l.pid, p.gid FROM pg_catalog.pg_locks l"
							 " LEFT JOIN (pg_catalog.pg_locks x JOIN pg_catalog.pg_prepared_xacts p"
							 " ON p.transaction OPERATOR(pg_catalog.=) x.transactionid AND x.pid IS NULL)"
							 " ON l.pid IS NULL AND x.virtualtransaction OPERATOR(pg_catalog.=) l.virtualtransaction"
							 " WHERE l.granted AND l.database OPERATOR(pg_catalog.=) $1"
							 " AND l.locktype OPERATOR(pg_catalog.=) $2"
							 " AND COALESCE(l.relation, l.classid) OPERATOR(pg_catalog.=) $3"
							 " AND COALESCE(l.objid, 0::pg_catalog.oid) OPERATOR(pg_catalog.=) $4",
							 NULL, lengthof(types), types, values, NULL);
	for (uint64 i = 0; i < SPI_processed && locker.prepared == NULL; i++)
	{
		HeapTuple	row = SPI_tuptable->vals[i];
		char	   *gid = SPI_getvalue(row, SPI_tuptable->tupdesc, 3);
		bool		is_null;
		Datum		pid = SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &is_null);

		if (!conflicts(SPI_getvalue(row, SPI_tuptable->tupdesc, 1), mode))
			continue;
		if (!is_null)
			locker.pid = DatumGetInt32(pid);
		if (gid != NULL)
			locker.prepared = MemoryContextStrdup(context, gid);
	}
	SPI_finish();
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

/*
 * Say which prepared transaction the session is about to wait for, if any.
 */
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

/* ---- locks ---- */

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
 * A transaction that writes the table also deletes the row of the last run, which the refresh is going
 * to change.
 */
void
geonn_cache_announce_writer(const GeonnCache *cache)
{
	announce_prepared(cache, lock_of_table(cache), ShareLock);
}
