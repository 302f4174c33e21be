/*
 * catalog.h
 *		The caches that the extension has, their locks, and the log of their runs.
 */
#ifndef GEONN_CACHE_CATALOG_H
#define GEONN_CACHE_CATALOG_H

#include "nodes/pg_list.h"
#include "storage/lockdefs.h"
#include "utils/jsonb.h"

#include "cache/sql.h"

/* a row of geonn_cache */
typedef struct GeonnCache
{
	Oid			schema;			/* the extension's */
	int32		id;				/* 0: the row has not been inserted yet */
	char	   *name;
	Oid			owner;			/* the target's owner; InvalidOid: the target has been dropped */
	Oid			target;
	Oid			obs;
	Oid			ref;
	Jsonb	   *arguments;		/* the cache's other arguments (definition.c) */
} GeonnCache;

/* Raise an error on a standby, where no cache can be changed or refreshed. */
extern void geonn_cache_check_primary(void);

/* Return a target's name with its schema, as SQL. */
extern char *geonn_cache_target_name(const GeonnCache *cache);

/*
 * Continue as the owner of the cache's table, in a security-restricted operation, until
 * geonn_become_former().  The caller has locked the table by geonn_cache_hold().
 */
extern GeonnIdentity geonn_become_owner(const GeonnCache *cache);

/*
 * Look up the cache of this name, in the current memory context, for a session that changes or refreshes it.  Raises an
 * error if no cache has the name, if the current user is not a member of the role that owns the cache, and on a standby.
 * A cache without a table belongs to the extension's owner.
 */
extern GeonnCache *geonn_cache_find(Oid schema, const char *name);

/* Read the cache again, after it was locked.  Raises an error if the cache was dropped or renamed meanwhile. */
extern GeonnCache *geonn_cache_find_again(const GeonnCache *cache);

/*
 * Raise a serialization failure if another session has refreshed the cache since the transaction's snapshot was taken, in
 * a transaction that keeps its first snapshot.  The caller has locked the cache.
 */
extern void geonn_cache_check_snapshot(const GeonnCache *cache);

/* Raise the error about a renamed or dropped cache. */
__attribute__((noreturn))
extern void geonn_cache_raise_missing(const GeonnCache *cache);

/*
 * Lock the cache's table until the transaction ends, so that it keeps its owner.  Raises an error if the
 * owner has changed since the cache was looked up, or if the current user no longer has that role's
 * privileges.
 */
extern void geonn_cache_hold(const GeonnCache *cache, LOCKMODE mode);

/* Return the names of all caches with a table whose owner's privileges the current user has. */
extern List *geonn_cache_names(Oid schema);

/*
 * Lock the cache, so that no other session refreshes or changes it until the transaction ends; with `session`, until
 * geonn_cache_unlock().  Without wait, returns false if another session has the lock.
 */
extern bool geonn_cache_lock(const GeonnCache *cache, bool wait, bool session);
extern void geonn_cache_unlock(const GeonnCache *cache);

/*
 * Lock the cache's table until the transaction ends.  If the session has to wait for a prepared
 * transaction, a NOTICE names that transaction, as geonn_cache_lock() does.
 */
extern void geonn_cache_lock_table(const GeonnCache *cache, LOCKMODE mode);

/*
 * Raise a NOTICE that names a prepared transaction that has written the cache's table, because a
 * refresh is going to wait for it.
 */
extern void geonn_cache_announce_writer(const GeonnCache *cache);

/* what holds the cache's lock */
typedef struct GeonnLocker
{
	char	   *prepared;		/* the prepared transaction that holds the lock; NULL: none does */
	int			pid;			/* the process that holds the lock; 0: not known */
} GeonnLocker;

extern GeonnLocker geonn_cache_locker(const GeonnCache *cache);

/* Give a hint that says how the prepared transaction of this name ends. */
extern int	geonn_hint_at_prepared(const char *prepared);

/* The result of a run, as geonn_cache_log shows it. */
typedef struct GeonnRunResult
{
	const char *status;			/* succeeded, failed, skipped */
	const char *mode;			/* or NULL */
	const char *reason;			/* or NULL */
	int64		searched;		/* how many observations were searched for; -1: none, or all */
	bool		counted;		/* the figures below are known */
	int64		rows;
	int64		inserted;
	int64		updated;
	int64		deleted;
	const char *error;			/* or NULL */
} GeonnRunResult;

/* Enter a run of this process into the log, and return the run's number; and enter the run's result when it ends. */
extern int64 geonn_cache_log_start(const GeonnCache *cache);
extern void geonn_cache_log_finish(const GeonnCache *cache, int64 run,
								   const GeonnRunResult *result);

/*
 * Delete the log's oldest entries beyond geonn.log_keep, except those that another transaction has locked.  A
 * run that has the cache's lock calls this at its start, because at its end readers may be waiting.  With
 * skipped_only, deletes only entries of skipped runs: the run at work then never waits for a row that a
 * skipped run's transaction has deleted and not yet committed.
 */
extern void geonn_cache_log_trim(const GeonnCache *cache, bool skipped_only);

#endif							/* GEONN_CACHE_CATALOG_H */
