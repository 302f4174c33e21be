/*
 * refresh.c
 *		A cache's table is brought up to date.
 *
 * CALL geonn_refresh outside a transaction block runs transactions of its own: the first one logs
 * that the run has begun, the second one does the work and logs its result, and if it fails a third
 * one logs the failure.  Called within a transaction block it does everything in that transaction,
 * and a failure rolls everything back.
 *
 * One process at a time refreshes a cache.  It holds a lock for as long as it works; another
 * process that finds the lock taken reports which process holds it, and returns.  The process that
 * got the lock reads the definition again.  It reads all data with one snapshot, as the owner of
 * the table and in a security-restricted operation, as REFRESH MATERIALIZED VIEW does.  It checks
 * the owner after it has locked the table, and the table keeps its owner while it is locked.  It
 * writes to the table last; a new table that is to take its place is made before (cache/replace.c).
 *
 * geonn_refresh_all continues after any error of one cache, and stops if the whole statement is
 * cancelled.  Each step of a run is therefore a subtransaction, or a commit that may fail.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "storage/lmgr.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

#include "cache/affected.h"
#include "cache/full_search.h"
#include "cache/replace.h"
#include "base/attempt.h"
#include "base/extension.h"
#include "points/query.h"

PG_FUNCTION_INFO_V1(geonn_refresh);
PG_FUNCTION_INFO_V1(geonn_refresh_all);

/* Pauses grow until this many runs in a row have made baselines in vain. */
#define MOST_WASTED		5

typedef enum RefreshMode
{
	REFRESH_AUTO,
	REFRESH_FULL,
	REFRESH_INCREMENTAL
} RefreshMode;

static RefreshMode
read_mode(FunctionCallInfo fcinfo, int number)
{
	static const char *const modes[] = {
		[REFRESH_AUTO] = "auto",[REFRESH_FULL] = "full",[REFRESH_INCREMENTAL] = "incremental"
	};
	char	   *word = PG_ARGISNULL(number) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(number));

	for (int i = 0; i < (int) lengthof(modes); i++)
	{
		if (word != NULL && strcmp(word, modes[i]) == 0)
			return i;
	}
	ereport(ERROR,
			(errcode(word == NULL ? ERRCODE_NULL_VALUE_NOT_ALLOWED : ERRCODE_INVALID_PARAMETER_VALUE),
			 word == NULL ? errmsg("argument \"mode\" of the refresh is NULL") :
			 errmsg("unknown mode of a refresh: \"%s\"", word),
			 errhint("A mode is 'auto', 'full' or 'incremental'.")));
}

/* ---- one refresh ---- */

/* the state of a refresh */
typedef struct Refresh
{
	const GeonnCache *cache;
	RefreshMode mode;
	bool		alone;			/* the refresh has a transaction of its own */
	GeonnJoin  *join;
	TupleDesc	row_type;
	GeonnLastRun *last_run;
	bool		same;			/* by their labels, neither side has changed since the last run */
	GeonnRunResult *result;
} Refresh;

/* ---- by searching for everything ---- */

/* Return whether, by their labels, neither side has changed since the last run. */
static bool
has_same_labels(const GeonnLastRun *last_run)
{
	return last_run->same[SIDE_OBSERVATIONS] && last_run->same[SIDE_REFERENCES];
}

/*
 * Decide whether to make baselines, which pay only if the next run uses them.  Each time that too much has
 * changed for that (was_wasted), more runs pass before a run makes new baselines.
 */
static BaselinePlan
plan_baselines(const Refresh *refresh, bool was_wasted)
{
	GeonnLastRun *last_run = refresh->last_run;

	if (was_wasted)
	{
		last_run->wasted = Min(last_run->wasted + 1, MOST_WASTED);
		last_run->pause = (1 << last_run->wasted) - 1;
	}
	Assert(last_run->pause >= 0 && last_run->wasted <= MOST_WASTED);
	if (last_run->pause > 0 && refresh->mode == REFRESH_AUTO)
	{
		last_run->pause--;
		return BASELINES_SKIP;
	}
	if (!last_run->has_baselines)
		return BASELINES_MAKE;
	return has_same_labels(last_run) ? BASELINES_KEEP : BASELINES_COMPARE;
}

/*
 * Replace the table, or update its rows.  most_differ: most rows are expected to differ.
 */
static void
refresh_fully(Refresh *refresh, const char *reason, bool was_wasted, bool most_differ)
{
	GeonnRunResult *result = refresh->result;
	GeonnLastRun *last_run = refresh->last_run;
	BaselineBuild *build;
	GeonnReplacement *replacement;

	result->mode = "full";
	result->reason = reason;
	result->searched = -1;
	last_run->plan = plan_baselines(refresh, was_wasted);
	build = geonn_baselines_begin(refresh->cache, refresh->join, last_run);
	replacement = geonn_replacement_build(refresh->cache, refresh->join, build, most_differ,
										  refresh->alone, result);
	if (replacement == NULL)
		geonn_full_update(refresh->cache, refresh->join, refresh->row_type, build, most_differ, result);
	geonn_baselines_end(refresh->cache, refresh->join, last_run, build);
	/* the baselines are written already */
	if (replacement != NULL && !geonn_replacement_swap(replacement, result))
		geonn_full_update(refresh->cache, refresh->join, refresh->row_type, NULL, most_differ, result);
}

/* ---- by changes or fully ---- */

/* Return why a cache of such a join is always refreshed fully; NULL: it is not. */
static const char *
reason_of_no_baselines(const GeonnJoin *join)
{
	if (join->question.min_points > 0)
		return "clusters depend on all points";
	if (geonn_has_shapes(join->references))
		return "references are lines and polygons";
	return geonn_join_has_shapes(join) ? "observations are lines and polygons" : NULL;
}

static void
refresh_rows(Refresh *refresh)
{
	const GeonnJoin *join = refresh->join;
	bool		may_have_shapes = join->references->may_have_shapes || join->observations->may_have_shapes;
	GeonnLastRun *last_run = refresh->last_run;

	if (refresh->mode == REFRESH_FULL)
		refresh_fully(refresh, "asked for", false, false);
	else if (!last_run->exists)
		refresh_fully(refresh, last_run->reason, false, false);
	else if (has_same_labels(last_run))
	{
		refresh->same = true;
		refresh->result->mode = "unchanged";
		refresh->result->rows = last_run->rows;
	}
	else if (reason_of_no_baselines(join) != NULL)
		refresh_fully(refresh, reason_of_no_baselines(join), false, false);
	else if (!last_run->has_baselines)
	{
		refresh_fully(refresh, "the last run left no baselines", false, !may_have_shapes);
		if (geonn_join_has_shapes(join))
			refresh->result->reason = reason_of_no_baselines(join);
	}
	else if (!geonn_refresh_by_changes(refresh->cache, refresh->join, refresh->row_type, last_run,
									   refresh->mode == REFRESH_INCREMENTAL, refresh->result))
	{
		bool		met_shapes = geonn_join_has_shapes(join);

		refresh_fully(refresh, met_shapes ? reason_of_no_baselines(join) : "much has changed", true, !met_shapes);
	}
}

/*
 * Lock the sources before the snapshot is taken, as a SELECT does: an older snapshot sees no rows of a table
 * that another session has emptied and refilled since.  Planning a query also locks the tables of a view.
 */
static void
lock_relations(const GeonnCache *cache)
{
	const Oid	sources[] = {cache->obs, cache->ref};

	PushActiveSnapshot(GetTransactionSnapshot());
	for (int i = 0; i < (int) lengthof(sources); i++)
	{
		char	   *name = geonn_relation_name(sources[i]);

		if (name != NULL)
			(void) geonn_plan_query(psprintf("SELECT FROM %s", name), name, 0, sources[i], NIL);
	}
	PopActiveSnapshot();
}

/* Refresh with the privileges of the table's owner, who stays the owner until the transaction ends. */
static void
refresh_as_owner(const GeonnCache *cache, RefreshMode mode, bool alone, GeonnRunResult *result)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn refresh",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	Refresh		refresh = {.cache = cache,.mode = mode,.alone = alone,.result = result};
	GeonnIdentity caller;

	geonn_cache_hold(cache, AccessShareLock);
	caller = geonn_become_owner(cache);
	geonn_check_may_search();
	lock_relations(cache);
	PushActiveSnapshot(GetTransactionSnapshot());
	refresh.join = geonn_cache_join_again(cache);
	refresh.row_type = geonn_cache_row_type(refresh.join);
	geonn_target_check(cache, refresh.row_type);
	refresh.last_run = geonn_last_run_load(cache, refresh.join, GetActiveSnapshot());
	refresh_rows(&refresh);
	Assert(result->mode != NULL);
	/* If nothing has changed, the stored state of the last run still holds. */
	if (!refresh.same)
		geonn_last_run_store(cache, refresh.join, result->rows, refresh.last_run);
	PopActiveSnapshot();
	geonn_become_former(caller);
	result->status = "succeeded";
	result->counted = true;
	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
}

/* ---- runs ---- */

/* Log and report that another process, or a prepared transaction, has locked the cache, so that this run is skipped. */
static void
skip(const GeonnCache *cache)
{
	GeonnLocker locker = geonn_cache_locker(cache);
	char	   *holder = locker.prepared != NULL ?
		psprintf("prepared transaction \"%s\"", locker.prepared) :
		locker.pid != 0 ? psprintf("process %d", locker.pid) : "another process";
	GeonnRunResult result = {
		.status = "skipped",
		.reason = psprintf("%s was at work on it", holder)
	};

	geonn_cache_log_finish(cache, geonn_cache_log_start(cache), &result);
	geonn_cache_log_trim(cache, true);
	ereport(NOTICE,
			(errmsg("cache \"%s\" is not refreshed: %s is at work on it", cache->name, holder),
			 locker.prepared != NULL ? geonn_hint_at_prepared(locker.prepared) : 0));
}

/* The refresh of one cache; its name is looked up when the refresh begins. */
typedef struct Run
{
	Oid			schema;
	char	   *name;
	RefreshMode mode;
	bool		alone;			/* the run has transactions of its own, and the session holds the cache's lock */
	GeonnCache *cache;			/* the locked cache; NULL: it is not locked yet */
	int64		id;				/* the number of the run in the log */
	const ErrorData *error;		/* the error with which the run ended, or NULL */
} Run;

/* Lock the cache and log that the run has begun; do nothing if another process holds the lock. */
static void
begin_run(void *state)
{
	Run		   *run = state;
	GeonnCache *cache = geonn_cache_find(run->schema, run->name);

	if (!geonn_cache_lock(cache, false, run->alone))
	{
		skip(cache);
		return;
	}
	run->cache = cache;			/* from here on an error unlocks it */
	run->cache = geonn_cache_find_again(cache);
	if (!run->alone)
		geonn_cache_check_snapshot(run->cache);
	run->id = geonn_cache_log_start(run->cache);
	geonn_cache_log_trim(run->cache, false);
	geonn_last_run_begin(run->cache);
}

/* ids of the caches that this session is refreshing: several, if refreshes are nested */
static List *at_work = NIL;

/*
 * Refresh the cache of a run that has begun, and log the result.  Raises an error within another refresh of
 * the same cache: functions of views may call geonn_refresh, and a session's own lock does not stop it.
 */
static void
do_work(void *state)
{
	Run		   *run = state;
	GeonnRunResult result = {0};
	MemoryContext former;

	if (list_member_int(at_work, run->cache->id))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("this session is refreshing cache \"%s\" already", run->cache->name),
				 errhint("A function that the refresh calls, as of a view, refreshes the same cache.")));
	former = MemoryContextSwitchTo(TopMemoryContext);
	at_work = lappend_int(at_work, run->cache->id);
	MemoryContextSwitchTo(former);
	PG_TRY();
	{
		refresh_as_owner(run->cache, run->mode, run->alone, &result);
	}
	PG_FINALLY();
	{
		Assert(llast_int(at_work) == run->cache->id);
		at_work = list_delete_last(at_work);
	}
	PG_END_TRY();
	geonn_cache_log_finish(run->cache, run->id, &result);
}

static void
log_failure(void *state)
{
	Run		   *run = state;
	GeonnRunResult result = {
		.status = "failed",
		.error = run->error->message
	};

	geonn_cache_log_finish(run->cache, run->id, &result);
}

/*
 * Do the whole run within the caller's transaction.
 */
static void
refresh_within(void *state)
{
	Run		   *run = state;

	begin_run(run);
	if (run->cache != NULL)
		do_work(run);
}

/*
 * Commit the transaction and begin the next one.  Returns the error with which the commit failed,
 * or NULL.
 */
static ErrorData *
commit(void)
{
	MemoryContext context = CurrentMemoryContext;
	ErrorData  *volatile error = NULL;

	PG_TRY();
	{
		SPI_commit();
	}
	PG_CATCH();
	{
		error = geonn_take_error(context);
	}
	PG_END_TRY();
	return error;
}

static ErrorData *
attempt_and_commit(void (*step) (void *run), Run *run)
{
	ErrorData  *error = geonn_attempt(step, run);

	return error == NULL ? commit() : error;
}

/* Do the run in transactions of its own.  Returns the error with which the run ended, or NULL. */
static ErrorData *
run_steps(Run *run)
{
	ErrorData  *error = attempt_and_commit(begin_run, run);

	if (error != NULL || run->cache == NULL)
		return error;
	error = attempt_and_commit(do_work, run);
	run->error = error;
	if (error != NULL)
		(void) attempt_and_commit(log_failure, run);
	return error;
}

static ErrorData *
refresh_alone(Run *run)
{
	ErrorData  *volatile error = NULL;

	PG_TRY();
	{
		error = run_steps(run);
	}
	PG_CATCH();
	{
		if (run->cache != NULL)
			geonn_cache_unlock(run->cache);
		PG_RE_THROW();
	}
	PG_END_TRY();
	if (run->cache != NULL)
		geonn_cache_unlock(run->cache);
	return error;
}

/* Return whether the procedure was called where it may not end transactions. */
static bool
is_atomic(FunctionCallInfo fcinfo)
{
	return fcinfo->context == NULL || !IsA(fcinfo->context, CallContext) ||
		castNode(CallContext, fcinfo->context)->atomic;
}

Datum
geonn_refresh(PG_FUNCTION_ARGS)
{
	Run			run = {
		.schema = geonn_cache_schema(fcinfo),
		.mode = read_mode(fcinfo, 1),
		.alone = !is_atomic(fcinfo)
	};
	ErrorData  *error;

	geonn_check_may_search();
	if (PG_ARGISNULL(0))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"name\" of geonn_refresh is NULL"),
				 errhint("Give the name of a cache; the view geonn_caches lists them.")));
	SPI_connect_ext(run.alone ? SPI_OPT_NONATOMIC : 0);
	run.name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	if (!run.alone)
		refresh_within(&run);
	else if ((error = refresh_alone(&run)) != NULL)
		ReThrowError(error);
	SPI_finish();
	PG_RETURN_VOID();
}

/* ---- all caches ---- */

/*
 * Return whether the whole statement was cancelled, by a client, pg_cancel_backend() or statement_timeout.  Code of a
 * cache's owner can raise an error with the same SQLSTATE, but not from PostgreSQL's ProcessInterrupts().
 */
static bool
is_cancel(const ErrorData *error)
{
	return error->sqlerrcode == ERRCODE_QUERY_CANCELED && error->funcname != NULL &&
		strcmp(error->funcname, "ProcessInterrupts") == 0;
}

/*
 * Refresh one of all caches.  A failure becomes a warning, and the next caches follow, even if the wait for
 * a lock failed (lock_timeout, a deadlock): the next cache has another lock.
 */
static void
refresh_one(Run *run)
{
	ErrorData  *error = run->alone ? refresh_alone(run) : geonn_attempt(refresh_within, run);

	if (error == NULL)
		return;
	if (is_cancel(error))
		ReThrowError(error);
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 errmsg("cache \"%s\" was not refreshed: %s", run->name, error->message),
			 error->detail != NULL ? errdetail_internal("%s", error->detail) : 0,
			 error->hint != NULL ? errhint("%s", error->hint) : 0));
}

Datum
geonn_refresh_all(PG_FUNCTION_ARGS)
{
	Run			common = {
		.schema = geonn_cache_schema(fcinfo),
		.mode = read_mode(fcinfo, 0),
		.alone = !is_atomic(fcinfo)
	};
	List	   *names;
	ListCell   *cell;

	geonn_check_may_search();
	geonn_cache_check_primary();
	SPI_connect_ext(common.alone ? SPI_OPT_NONATOMIC : 0);
	names = geonn_cache_names(common.schema);
	foreach(cell, names)
	{
		Run			run = common;

		run.name = lfirst(cell);
		refresh_one(&run);
	}
	SPI_finish();
	PG_RETURN_VOID();
}
