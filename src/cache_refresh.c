/*
 * cache_refresh.c
 *		A cache's table is brought up to date.
 *
 * CALL geonn_refresh outside a transaction block makes three transactions of its own:
 * one that notes in the log that the run has begun, the work, and one that notes how
 * it ended, also where it failed.  Called within a transaction it does everything in
 * that one, and a failure leaves nothing, as failures there do.
 *
 * One process works at a cache at a time: it has a lock, for as long as it works, and
 * who finds it taken says by whom and does nothing.  All that the run reads, it reads
 * with one snapshot, as the owner of the table and in a security-restricted
 * operation, as REFRESH MATERIALIZED VIEW does.  Writing comes last.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/resowner.h"
#include "utils/snapmgr.h"

#include "cache.h"

PG_FUNCTION_INFO_V1(geonn_refresh);
PG_FUNCTION_INFO_V1(geonn_refresh_all);

typedef enum RefreshMode
{
	REFRESH_AUTO,
	REFRESH_FULL,
	REFRESH_INCREMENTAL
} RefreshMode;

static RefreshMode
read_mode(FunctionCallInfo fcinfo, int number)
{
	char	   *word;

	if (PG_ARGISNULL(number))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"mode\" of the refresh is NULL")));
	word = text_to_cstring(PG_GETARG_TEXT_PP(number));
	if (strcmp(word, "auto") == 0)
		return REFRESH_AUTO;
	if (strcmp(word, "full") == 0)
		return REFRESH_FULL;
	if (strcmp(word, "incremental") == 0)
		return REFRESH_INCREMENTAL;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown mode of a refresh: \"%s\"", word),
			 errhint("It is 'auto', 'full' or 'incremental'.")));
}

/* ---- the work ---- */

/*
 * The table must still have the columns that were made, for ids of these types.
 */
static void
check_target(const GeonnCache *cache, TupleDesc row_type)
{
	(void) geonn_cache_target_name(cache);
	for (int i = 0; i < TARGET_COLUMNS; i++)
	{
		Form_pg_attribute expected = TupleDescAttr(row_type, i);
		AttrNumber	number = get_attnum(cache->target, NameStr(expected->attname));
		Oid			type = number == InvalidAttrNumber ? InvalidOid :
			get_atttype(cache->target, number);

		if (type != expected->atttypid)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("the table of cache \"%s\" has no column %s of type %s", cache->name,
							NameStr(expected->attname), format_type_be(expected->atttypid)),
					 errdetail("It was altered, or the ids of a relation were, after the cache was made."),
					 errhint("Drop the cache with geonn_cache_drop, and create it again.")));
	}
}

static void
refresh_fully(const GeonnCache *cache, TupleDesc row_type, const char *reason,
			  GeonnRunResult *result)
{
	GeonnDifference *difference = geonn_difference_create(cache, row_type);

	result->mode = "full";
	result->reason = reason;
	result->rows = geonn_difference_find(difference);
	geonn_difference_write(difference, result);
}

/*
 * Do the work, with the owner's privileges.
 */
static void
refresh(const GeonnCache *cache, RefreshMode mode, GeonnRunResult *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn refresh",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	int			level = NewGUCNestLevel();
	Oid			user;
	int			security;
	TupleDesc	row_type;

	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(cache->owner, security | SECURITY_RESTRICTED_OPERATION);
	(void) set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	(void) set_config_option("row_security", "on", PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
	PushActiveSnapshot(GetTransactionSnapshot());
	row_type = geonn_cache_row_type(geonn_cache_join(cache));
	check_target(cache, row_type);
	refresh_fully(cache, row_type, mode == REFRESH_FULL ? NULL : "no copy", result);
	PopActiveSnapshot();
	AtEOXact_GUC(false, level);
	SetUserIdAndSecContext(user, security);
	result->status = "succeeded";
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}

/* ---- runs ---- */

/*
 * Another process is at it.
 */
static void
skip(const GeonnCache *cache)
{
	int			pid = geonn_cache_locker(cache);
	GeonnRunResult result = {.status = "skipped"};

	result.reason = pid == 0 ? "another process was at work on it" :
		psprintf("process %d was at work on it", pid);
	geonn_cache_log_finish(cache, geonn_cache_log_start(cache), &result);
	if (pid == 0)
		ereport(NOTICE,
				(errmsg("cache \"%s\" is not refreshed: another process is at work on it",
						cache->name)));
	else
		ereport(NOTICE,
				(errmsg("cache \"%s\" is not refreshed: process %d is at work on it",
						cache->name, pid)));
}

/*
 * Try the work.  Returns the error that it ended with, or NULL.
 */
static ErrorData *
try_refresh(const GeonnCache *cache, RefreshMode mode, int64 run)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	GeonnRunResult result = {0};

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		refresh(cache, mode, &result);
		geonn_cache_log_finish(cache, run, &result);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

static void
log_failure(const GeonnCache *cache, int64 run, const ErrorData *error)
{
	GeonnRunResult result = {
		.status = "failed",
		.error = error->message
	};

	geonn_cache_log_finish(cache, run, &result);
}

/*
 * In transactions of its own; the lock is the session's.  Returns the error that it ended
 * with, or NULL.
 */
static ErrorData *
refresh_alone(const GeonnCache *cache, RefreshMode mode)
{
	ErrorData  *volatile error = NULL;

	PG_TRY();
	{
		int64		run = geonn_cache_log_start(cache);

		SPI_commit();
		error = try_refresh(cache, mode, run);
		if (error != NULL)
			log_failure(cache, run, error);
		SPI_commit();
	}
	PG_CATCH();
	{
		geonn_cache_unlock(cache);
		PG_RE_THROW();
	}
	PG_END_TRY();
	geonn_cache_unlock(cache);
	return error;
}

/*
 * Refresh it, unless somebody else does.  Returns an error that is in the log, and raises
 * others.
 */
static ErrorData *
refresh_cache(const GeonnCache *cache, RefreshMode mode, bool atomic)
{
	if (!geonn_cache_lock(cache, false, !atomic))
		skip(cache);
	else if (!atomic)
		return refresh_alone(cache, mode);
	else
	{
		GeonnRunResult result = {0};
		int64		run = geonn_cache_log_start(cache);

		refresh(cache, mode, &result);
		geonn_cache_log_finish(cache, run, &result);
	}
	return NULL;
}

/*
 * May the procedure end transactions?
 */
static bool
is_atomic(FunctionCallInfo fcinfo)
{
	return fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic;
}

Datum
geonn_refresh(PG_FUNCTION_ARGS)
{
	bool		atomic = is_atomic(fcinfo);
	RefreshMode mode = read_mode(fcinfo, 1);
	ErrorData  *error;

	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"name\" of geonn_refresh is NULL")));
	SPI_connect_ext(atomic ? 0 : SPI_OPT_NONATOMIC);
	error = refresh_cache(geonn_cache_find(geonn_cache_schema(fcinfo),
										   text_to_cstring(PG_GETARG_TEXT_PP(0))),
						  mode, atomic);
	if (error != NULL)
		ReThrowError(error);
	SPI_finish();
	PG_RETURN_VOID();
}

/*
 * Within the caller's transaction, of which a failure takes nothing back but this.  Returns the
 * error, or NULL.
 */
static ErrorData *
refresh_within(const GeonnCache *cache, RefreshMode mode)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		(void) refresh_cache(cache, mode, true);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return error;
}

/*
 * One cache of all: its failure is told of, and others go on.
 */
static void
refresh_one(const GeonnCache *cache, RefreshMode mode, bool atomic)
{
	ErrorData  *error = atomic ? refresh_within(cache, mode) : refresh_cache(cache, mode, false);

	if (error == NULL)
		return;
	if (error->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(error);
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("cache \"%s\" was not refreshed: %s", cache->name, error->message),
			 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0,
			 error->hint != NULL ? errhint("%s", error->hint) : 0));
}

Datum
geonn_refresh_all(PG_FUNCTION_ARGS)
{
	bool		atomic = is_atomic(fcinfo);
	RefreshMode mode = read_mode(fcinfo, 0);
	Oid			schema = geonn_cache_schema(fcinfo);
	List	   *names;
	ListCell   *cell;

	SPI_connect_ext(atomic ? 0 : SPI_OPT_NONATOMIC);
	names = geonn_cache_names(schema);
	foreach(cell, names)
		refresh_one(geonn_cache_find(schema, lfirst(cell)), mode, atomic);
	SPI_finish();
	PG_RETURN_VOID();
}
