/*
 * admission.c
 *		Waiting for others to end, where there is a limit of sessions with the engine.
 *
 * The engine has the line of those who wait (admission.c in src/engine/, with the essay).
 * What it cannot know is who waits for this process: for a lock that it holds, maybe on a
 * table that a statement at work is about to read.  Such a circle goes through the engine,
 * so PostgreSQL's deadlock detector does not see it.  But each circle that this process is
 * part of has somebody who waits for a lock of its.  So after deadlock_timeout, and then
 * again and again, it looks whether there is anybody like that, and if so it does not wait
 * any longer.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include "admission.h"
#include "geonn.h"

/*
 * Does this process, or a worker of its, hold a lock that keeps the other one waiting?
 */
static bool
blocks(const LockInstanceData *held, const LockInstanceData *other)
{
	if (held->leaderPid != MyProcPid || other->leaderPid == MyProcPid ||
		memcmp(&held->locktag, &other->locktag, sizeof(LOCKTAG)) != 0)
		return false;
	for (LOCKMODE mode = 1; mode <= MaxLockMode; mode++)
	{
		if ((held->holdMask & LOCKBIT_ON(mode)) != 0 &&
			DoLockModesConflict(mode, other->waitLockMode))
			return true;
	}
	return false;
}

/*
 * Does anybody wait for a lock that this process holds?
 */
static bool
others_wait(void)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "geonn locks",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext former = MemoryContextSwitchTo(context);
	LockData   *all = GetLockStatusData();
	bool		found = false;

	for (int i = 0; i < all->nelements && !found; i++)
	{
		if (all->locks[i].waitLockMode == NoLock)
			continue;
		for (int held = 0; held < all->nelements && !found; held++)
			found = blocks(&all->locks[held], &all->locks[i]);
	}
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

void
geonn_await_admission(GeonnConnection *connection, const struct geonn_queued *queued)
{
	TimestampTz begun = GetCurrentTimestamp();
	TimestampTz timeout_at = geonn_admission_timeout > 0 ?
		TimestampTzPlusMilliseconds(begun, geonn_admission_timeout) : DT_NOEND;
	TimestampTz look_at = TimestampTzPlusMilliseconds(begun, DeadlockTimeout);

	while (!geonn_connection_wait(connection, GEONN_WAIT_ADMISSION, Min(timeout_at, look_at)))
	{
		struct geonn_urge urge = {0};

		if (GetCurrentTimestamp() >= timeout_at)
			raise_timeout(queued);
		look_at = TimestampTzPlusMilliseconds(GetCurrentTimestamp(), DeadlockTimeout);
		if (others_wait())
			geonn_connection_send(connection, GEONN_URGE, &urge);
	}
}
