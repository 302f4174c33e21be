/*
 * sql_fallback.c
 *		How a statement of PostGIS's goes on without the engine.
 *
 * A statement that PostgreSQL answers must not fail because the engine is gone for a moment.  So an error of the engine,
 * as a search begins, becomes a warning.  Where the node's session was begun for an earlier round, the engine may have been
 * started anew since: the search begins again at once, and sends the references again.
 *
 * If that fails, too, outer rows are answered one after the other.  PostgreSQL's own plan does so, if it has an index
 * (sql_own_plan.c); else the node compares each row with all references.  After a second the engine is asked again, in
 * the present round, too, or later where asking takes long: less than a tenth of the time goes into it.  Comparing ends
 * with an error beyond geonn.compared_pairs_limit: these are the pairs that all nodes have compared in this process since the
 * client sent its statement, not an estimate, so that no small statement fails.  At some two million pairs a second, the
 * default is about a minute.
 *
 * An engine that has no session free within geonn.admission_timeout is not gone.  Its queue says that the host
 * is busy, and statements that go on without it would make it busier: this stays an error, as for calls.  A shape that
 * asks and does not fit in geonn.session_memory_limit is an error, too, where no index has the references of a row: the
 * engine can be had, and comparing it with all references would take long.
 *
 * No subtransaction is needed: a search of rows and points that this process
 * has, holds nothing of PostgreSQL's but memory and files, which go when the search is ended.  Plans that have to be
 * executed meanwhile, as those of references that the engine does not keep, hold more, and their errors end the statement.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/memutils.h"

#include "base/settings.h"
#include "join/reference_memory.h"
#include "sql/sql_fallback.h"

/* milliseconds until the engine is asked again, and the least ratio of that to what asking took */
#define PAUSE 1000
#define PAUSE_RATIO 10

/*
 * Does this error say that the engine cannot be had, or cannot do what it is asked to?  An internal error, too: an
 * engine that was started anew does not know the references.  Others, as a cancellation, end the statement.
 * has_own: PostgreSQL's own plan can answer in its place.
 */
static bool
is_of_engine(const ErrorData *error, bool has_own)
{
	if (error->message_id != NULL && (strcmp(error->message_id, GEONN_ADMISSION_TIMED_OUT) == 0 ||
									  (strcmp(error->message_id, GEONN_SHAPES_NEED_MEMORY) == 0 && !has_own)))
		return false;
	switch (ERRCODE_TO_CATEGORY(error->sqlerrcode))
	{
		case ERRCODE_CONNECTION_EXCEPTION:
		case ERRCODE_FEATURE_NOT_SUPPORTED:
		case ERRCODE_INSUFFICIENT_RESOURCES:
		case ERRCODE_PROGRAM_LIMIT_EXCEEDED:
		case ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE:
		case ERRCODE_SYSTEM_ERROR:
		case ERRCODE_INTERNAL_ERROR:
			return true;
		default:
			return false;
	}
}

/*
 * Error context: note the code of an error that this process raises.  PostgreSQL raises those of parallel workers in
 * the context in which these were launched.
 */
static void
note_code(void *code)
{
	*(int *) code = geterrcode();
}

void
geonn_beside_search(void (*execute) (void *state), void *state)
{
	ErrorContextCallback *former = error_context_stack;

	/* an error whose code is not noted is raised, whatever it says */
	while (error_context_stack->callback != note_code)
		error_context_stack = error_context_stack->previous;
	*(int *) error_context_stack->arg = 0;	/* forget the code of an earlier message */
	error_context_stack = error_context_stack->previous;
	execute(state);
	error_context_stack = former;
}

/*
 * Begin a search.  Returns the engine's error, after all searches were abandoned; NULL: the search has begun.
 */
static ErrorData *
begin_search(const Fallback *fallback, LateralNode *lateral, void (*begin) (LateralNode *lateral))
{
	MemoryContext former = CurrentMemoryContext;
	ErrorData  *volatile error = NULL;
	volatile int own_code = 0;
	ErrorContextCallback noting = {
		.previous = error_context_stack,
		.callback = note_code,
		.arg = unvolatize(int *, &own_code)
	};

	PG_TRY();
	{
		error_context_stack = &noting;
		begin(lateral);
		error_context_stack = noting.previous;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(former);
		error = CopyErrorData();
		if (error->sqlerrcode != own_code || !is_of_engine(error, fallback->own != NULL))
			PG_RE_THROW();
		FlushErrorState();
	}
	PG_END_TRY();
	if (error != NULL)
		geonn_lateral_abandon_searches(lateral);
	return error;
}

/*
 * Warn of the first error, and keep its message.
 */
static void
note_error(Fallback *fallback, const ErrorData *error, EState *estate)
{
	bool		is_first = fallback->reason == NULL;

	if (!is_first)
		pfree(fallback->reason);
	fallback->reason = MemoryContextStrdup(estate->es_query_cxt, error->message);
	if (!is_first)
		return;
	ereport(WARNING,
			(errcode(error->sqlerrcode),
			 fallback->own != NULL ?
			 errmsg("PostgreSQL's own plan answers rows of a join, one after the other, as geonn's engine cannot search: %s",
					error->message) :
			 errmsg("geonn compares each row of a join with all references, as its engine cannot search: %s",
					error->message),
			 error->detail != NULL ? errdetail("%s", error->detail) : 0,
			 error->hint != NULL ? errhint("%s", error->hint) : 0));
}

bool
geonn_try_search(Fallback *fallback, LateralNode *lateral, void (*begin) (LateralNode *lateral))
{
	TimestampTz begun = GetCurrentTimestamp();
	bool		had_references = lateral->searches.has_references;
	ErrorData  *error = begin_search(fallback, lateral, begin);
	TimestampTz now;

	if (error != NULL && had_references)
	{
		FreeErrorData(error);
		error = begin_search(fallback, lateral, begin);
	}
	fallback->is_lost = error != NULL;
	if (error == NULL)
		return true;
	now = GetCurrentTimestamp();
	fallback->ask_at = now + Max(PAUSE * INT64CONST(1000), PAUSE_RATIO * (now - begun));
	note_error(fallback, error, lateral->node.custom.ss.ps.state);
	FreeErrorData(error);
	return false;
}

bool
geonn_may_ask(const Fallback *fallback)
{
	return !fallback->is_lost || GetCurrentTimestamp() >= fallback->ask_at;
}

bool
geonn_may_ask_again(const Fallback *fallback)
{
	return fallback->is_lost && geonn_may_ask(fallback);
}

void
geonn_count_compared(const Fallback *fallback, uint64 pairs, bool rereads)
{
	static TimestampTz statement;	/* when the client sent the statement whose pairs these are */
	static uint64 compared;

	if (statement != GetCurrentStatementStartTimestamp())
		compared = 0;
	statement = GetCurrentStatementStartTimestamp();
	compared += pairs;
	if (geonn_compared_pairs_limit < 0 || compared <= (uint64) geonn_compared_pairs_limit)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("geonn has compared more than %d pairs of rows one by one, in place of a search",
					geonn_compared_pairs_limit),
			 rereads ?
			 errdetail("The references need more memory than geonn.session_memory_limit, which is %d kB, leaves, and PostgreSQL has no index that finds those of a row.",
					   geonn_session_memory_limit) :
			 errdetail("The engine cannot search, and PostgreSQL has no index that finds the references of a row: %s",
					   fallback->reason),
			 errhint("Set geonn.enable_sql_joins to off for this statement, as PostgreSQL may have another plan, %s, or raise geonn.compared_pairs_limit.",
					 rereads ? "raise geonn.session_memory_limit" : "see to the engine")));
}
