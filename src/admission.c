/*
 * admission.c
 *		Waiting for others to end, where there is a limit of sessions with the engine.
 *
 * The engine has the line of those that wait (admission.c in src/engine/, with the essay).
 * What it cannot know is which process waits for a lock of which other.  A process that has a
 * place may wait for a lock that a process in line holds, and that one waits for the place:
 * a circle that goes through the engine, so PostgreSQL's deadlock detector does not see it.
 *
 * A process in line waits for any one place, so no circle holds it up while a single process
 * that has one can go on.  It asks the engine after deadlock_timeout, and then again and
 * again, which processes have places and which stand in line, and PostgreSQL which processes
 * keep each of the former waiting, directly or through others.  Only where all of these ways
 * lead to processes in line, and one of them leads here, does it tell the engine, which
 * lends a place or ends this session (admission_urge).
 *
 * The answers are of different moments, so a circle may be seen that has just been broken.
 * Nothing is lost by that: the engine lends one place at a time, and ends a session only
 * where the circle is seen twice and no process has come or gone between.
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

#include "admission.h"
#include "engine_list.h"
#include "settings.h"

/*
 * Add the processes that keep this one, or a worker of it, waiting for a lock.
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
 * Does this process wait for one in line, directly or through others?  Sets *for_this where
 * one of those is the present process.
 */
static bool
waits_for_line(int process, const List *line, bool *for_this)
{
	List	   *reached = list_make1_int(process);
	bool		found = false;

	for (int i = 0; i < list_length(reached); i++)
	{
		int			next = list_nth_int(reached, i);

		if (!list_member_int(line, next))
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
 * Does each process that has a place wait for processes in line, and one of them for this one?
 */
static bool
find_circle(void)
{
	struct geonn_listed listed = {0};
	struct geonn_call_status *calls = geonn_engine_list(GEONN_LIST_CALLS, sizeof(*calls), &listed);
	List	   *line = NIL;
	bool		for_this = false;

	for (uint64 i = 0; i < listed.entries; i++)
	{
		if (calls[i].phase == GEONN_PHASE_QUEUED)
			line = list_append_unique_int(line, calls[i].pid);
	}
	for (uint64 i = 0; i < listed.entries; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (calls[i].phase != GEONN_PHASE_QUEUED && !waits_for_line(calls[i].pid, line, &for_this))
			return false;
	}
	return for_this;
}

static bool
is_in_circle(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn locks",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	bool		found = find_circle();

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
			 errdetail("All %u that geonn.max_sessions allows were at work, and %u more waited before this one.",
					   queued->limit, queued->ahead),
			 errhint("Run fewer searches at a time, close cursors that are not read, or raise geonn.max_sessions or geonn.admission_timeout.")));
}

/*
 * As PostgreSQL logs those that wait for locks.
 */
static void
log_waiting(const struct geonn_queued *queued)
{
	ereport(LOG,
			(errmsg("process %d still waits for a session with the geonn engine after %d ms",
					MyProcPid, DeadlockTimeout),
			 errdetail("All %u that geonn.max_sessions allows were at work, and %u more waited before this one.",
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
		if (is_in_circle())
			geonn_connection_send(connection, GEONN_URGE, &urge);
		look_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), DeadlockTimeout);
	}
}
