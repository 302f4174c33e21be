/*
 * sql_fallback.c
 *		Searches without which a statement goes on, where the engine cannot be had.
 *
 * An error of the engine becomes a warning.  No subtransaction is needed: a search of rows and points that this process
 * has, holds nothing of PostgreSQL's but memory and files, which go when the search is ended.  Plans that have to be
 * executed meanwhile, as those of references that the engine does not keep, hold more, and their errors end the statement.
 */
#include "postgres.h"

#include "plan/sql_fallback.h"

/*
 * Does this error say that the engine cannot be had, or cannot do what it is asked to?  An internal error, too: an
 * engine that was started anew does not know the references.  Others, as a cancellation, end the statement.
 */
static bool
is_of_engine(const ErrorData *error)
{
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
	*(int *) error_context_stack->arg = 0;	/* that of an earlier message */
	error_context_stack = error_context_stack->previous;
	execute(state);
	error_context_stack = former;
}

bool
geonn_try_search(void (*begin) (void *state), void *state)
{
	MemoryContext former = CurrentMemoryContext;
	volatile bool has_begun = true;
	volatile int own_code = 0;
	ErrorContextCallback noting = {
		.previous = error_context_stack,
		.callback = note_code,
		.arg = unvolatize(int *, &own_code)
	};

	PG_TRY();
	{
		error_context_stack = &noting;
		begin(state);
		error_context_stack = noting.previous;
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(former);
		error = CopyErrorData();
		if (error->sqlerrcode != own_code || !is_of_engine(error))
			PG_RE_THROW();
		FlushErrorState();
		has_begun = false;
		ereport(WARNING,
				(errcode(error->sqlerrcode),
				 errmsg("geonn compares each row of a join with all references, as its engine cannot search: %s",
						error->message),
				 error->detail != NULL ? errdetail("%s", error->detail) : 0,
				 error->hint != NULL ? errhint("%s", error->hint) : 0));
		FreeErrorData(error);
	}
	PG_END_TRY();
	return has_begun;
}
