/*
 * attempt.c
 *		Steps whose errors do not end the statement.
 */
#include "postgres.h"

#include "access/xact.h"
#include "utils/resowner.h"

#include "base/attempt.h"

/* Copies the names in the error as well: those in a parallel worker's error do not outlive it. */
ErrorData *
geonn_take_error(MemoryContext context)
{
	ErrorData  *error;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	error->filename = error->filename == NULL ? NULL : pstrdup(error->filename);
	error->funcname = error->funcname == NULL ? NULL : pstrdup(error->funcname);
	FlushErrorState();
	return error;
}

ErrorData *
geonn_attempt(void (*step) (void *state), void *state)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	ErrorData  *volatile error = NULL;
	int			level PG_USED_FOR_ASSERTS_ONLY = GetCurrentTransactionNestLevel();

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		step(state);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		error = geonn_take_error(context);
		RollbackAndReleaseCurrentSubTransaction();
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	Assert(GetCurrentTransactionNestLevel() == level);
	CurrentResourceOwner = owner;
	return error;
}
