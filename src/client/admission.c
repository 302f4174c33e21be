/*
 * admission.c
 *		A session's wait for admission, while geonn.max_sessions is reached.
 *
 * The engine keeps the queue of waiting sessions (admission.c in src/engine/server/).
 * It cannot know which process waits for a lock of which other.  If processes with places wait
 * for locks that a queued process holds, geonn.admission_timeout ends the wait.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "storage/proc.h"
#include "utils/timestamp.h"

#include "client/admission.h"
#include "base/settings.h"

static void
raise_timeout(const struct geonn_queued *queued)
{
	ereport(ERROR,
			(errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
			 errmsg(GEONN_ADMISSION_TIMED_OUT, geonn_admission_timeout),
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
	bool		is_limited = geonn_admission_timeout > 0;

	if (log_lock_waits && !(is_limited && geonn_admission_timeout <= DeadlockTimeout))
	{
		if (geonn_connection_wait(connection, GEONN_WAIT_ADMISSION,
								  TimestampTzPlusMilliseconds(begun, DeadlockTimeout)))
			return;
		log_waiting(queued);
	}
	if (!geonn_connection_wait(connection, GEONN_WAIT_ADMISSION,
							   is_limited ? TimestampTzPlusMilliseconds(begun, geonn_admission_timeout) : 0))
		raise_timeout(queued);
}
