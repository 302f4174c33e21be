/*
 * admission.c
 *		A session's wait for admission, while geonn.max_sessions is reached.
 *
 * The engine keeps the queue of waiting sessions (admission.c in src/engine/ has the essay).
 * It cannot know which process waits for a lock of which other.  A process with a place may
 * wait for a lock that a queued process holds, and the queued process waits for the place: a
 * deadlock that goes through the engine, so PostgreSQL's deadlock detector does not see it.
 *
 * A queued process waits for any one place, so no deadlock exists while even one process
 * with a place can go on.  After deadlock_timeout, and then at every further one, a queued
 * process asks the engine which processes have places and which are queued.  It asks
 * PostgreSQL which processes keep each process with a place waiting, directly or through
 * others.  If every process with a place waits for a queued process, and one of them waits
 * for this process, it tells the engine, which lends a place or ends this session
 * (admission_urge).
 *
 * The answers are of different moments, so the check may find a cycle that has just been
 * broken.  That does no harm: the engine lends one place at a time, and ends a session
 * only if the cycle is found twice and no process has come or gone in between.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/pg_list.h"
#include "storage/proc.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "client/admission.h"
#include "client/engine_list.h"
#include "base/settings.h"

/*
 * Add the processes that hold or await a lock which this process, or a
 * parallel worker of it, waits for.
 */
static List *
add_blockers(List *processes, int process)
{
	ArrayType  *blockers = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids,
																  Int32GetDatum(process)));
	const int32 *numbers = (const int32 *) ARR_DATA_PTR(blockers);
	int			count = ArrayGetNItems(ARR_NDIM(blockers), ARR_DIMS(blockers));

	for (int i = 0; i < count; i++)
		processes = list_append_unique_int(processes, numbers[i]);
	return processes;
}

/*
 * Does this process wait for a queued process, directly or through others?  Sets *for_this
 * if one of those is the current process.
 */
static bool
waits_for_queued(int process, const List *queued, bool *for_this)
{
	List	   *reached = list_make1_int(process);
	bool		found = false;

	for (int i = 0; i < list_length(reached); i++)
	{
		int			next = list_nth_int(reached, i);

		if (!list_member_int(queued, next))
			reached = add_blockers(reached, next);
		else
		{
			found = true;
			*for_this = *for_this || next == MyProcPid;
		}
	}
	return found;
}

/*
 * Does each process with a place wait for queued processes, and one of them for the current
 * process?
 */
static bool
find_cycle(void)
{
	struct geonn_listed listed = {0};
	struct geonn_call_status *calls = geonn_engine_list(GEONN_LIST_CALLS, sizeof(*calls), &listed);
	List	   *queued = NIL;
	bool		for_this = false;

	for (uint64 i = 0; i < listed.entries; i++)
	{
		if (calls[i].phase == GEONN_PHASE_QUEUED)
			queued = list_append_unique_int(queued, calls[i].pid);
	}
	for (uint64 i = 0; i < listed.entries; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (calls[i].phase != GEONN_PHASE_QUEUED && !waits_for_queued(calls[i].pid, queued, &for_this))
			return false;
	}
	return for_this;
}

static bool
is_in_cycle(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn locks",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	bool		found = find_cycle();

	MemoryContextSwitchTo(former);
	MemoryContextDelete(context);
	return found;
}

static void
raise_timeout(const struct geonn_queued *queued)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg("no session with the geonn engine became free within %d ms",
					geonn_admission_timeout),
			 errdetail("All %u processes that geonn.max_sessions allows had sessions, and %u more waited before this one.",
					   queued->limit, queued->ahead),
			 errhint("Run fewer searches at a time, close cursors that are not read, or raise geonn.max_sessions or geonn.admission_timeout.")));
}

/*
 * Log the wait, as PostgreSQL logs waits for locks.
 */
static void
log_waiting(const struct geonn_queued *queued)
{
	ereport(LOG,
			(errmsg("process %d still waits for a session with the geonn engine after %d ms",
					MyProcPid, DeadlockTimeout),
			 errdetail("All %u processes that geonn.max_sessions allows had sessions, and %u more waited before this one.",
					   queued->limit, queued->ahead),
			 errhint("geonn_stat_progress shows which processes have sessions; geonn.admission_timeout limits the wait.")));
}

void
geonn_await_admission(GeonnConnection *connection, const struct geonn_queued *queued)
{
	TimestampTz begun = GetCurrentTimestamp();
	TimestampTz timeout_at = geonn_admission_timeout > 0 ?
		TimestampTzPlusMilliseconds(begun, geonn_admission_timeout) : DT_NOEND;
	TimestampTz look_at = TimestampTzPlusMilliseconds(begun, DeadlockTimeout);
	bool		log_wait = log_lock_waits;

	while (!geonn_connection_wait(connection, GEONN_WAIT_ADMISSION, Min(timeout_at, look_at)))
	{
		struct geonn_urge urge = {0};

		if (GetCurrentTimestamp() >= timeout_at)
			raise_timeout(queued);
		if (log_wait)
			log_waiting(queued);
		log_wait = false;
		if (is_in_cycle())
			geonn_connection_send(connection, GEONN_URGE, &urge);
		look_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), DeadlockTimeout);
	}
}
