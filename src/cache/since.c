/*
 * since.c
 *		Up to which time changed_since proves that the next refresh need not read a row.
 *
 * With changed_since a refresh reads only the rows whose column is not older than since, a time
 * that the refresh before it has stored.  A refresh misses a row if the row's transaction stamped
 * it, by now(), before since and committed after the former refresh took its snapshot S.  So since
 * must not be later than now() in any transaction that S does not see: those that run when S is
 * taken, and all that begin afterwards.
 *
 * The now() of a transaction need not be the time when it began.  A session reads the clock when a
 * message arrives from its client, and each transaction that begins while the session works on this
 * message has that time: after COMMIT AND CHAIN, or in a message of several statements, now() may
 * be hours older than the transaction.  Only a procedure that commits reads the clock anew.  So
 * knowing when transactions began is not enough.  What is known of each session is what it reports
 * of itself for pg_stat_activity: now() of its transaction and the time of its message.
 * track_activities can switch these reports off.  It cannot switch off that a session is listed,
 * that the list says whether it reports, and that a transaction has a local id in the session's
 * entry of shared memory.
 *
 * A refresh's transaction begins; the refresh reads the list of sessions, then the local ids of the
 * sessions that report no transaction, then the prepared transactions; then it takes S.  Let T be a
 * transaction of a session s that S does not see.  T has not ended when the refresh reads the entry
 * of s: if it had ended, S would see it, since a transaction's local id is removed when it becomes
 * visible, and its report later.
 *
 *	 - s is not in the list: it has connected since, and reads the clock later.
 *	 - s reports a transaction: this is T, or a transaction before T, and its now() is not later
 *	   than T's.  (The last report may be of a transaction that has ended.)
 *	 - s reports none, and has a local id: T may have begun while activities were not tracked, so
 *	   nothing is known.  Each transaction is also in this state for an instant when it begins,
 *	   which is why the refresh looks again.
 *	 - s reports none, has no local id and works on a message: T begins later, within this
 *	   message or a later one, and now() in T is not before the message's time.
 *	 - s reports none and waits for a message: T begins later, with the time of that message,
 *	   which is read later.
 *	 - s is not tracked: nothing is known, not even that it waits, as it may be between two
 *	   transactions of one message.
 *	 - s is not connected to a database, or is still starting, or is an autovacuum worker, or
 *	   sends WAL: it writes no rows.
 *	 - s is a background worker that reports neither message nor transaction: it is assumed to
 *	   read the clock before it begins a transaction, as PostgreSQL's own do.
 *	 - T is prepared.  The refresh finds it, as it is listed as prepared before its session's
 *	   report of it is removed, and nothing is known of its beginning.
 *
 * Where nothing is known, the next refresh compares all rows.  Otherwise since is the least of
 * these times and of now() of the refresh itself, whose transaction may go on to write, less a
 * margin, because a session reads the message's time some instructions before it reports that it
 * works.  Two cases remain: a session that is stopped for longer than the margin within these few
 * instructions, and a clock that is set back by more than the margin.
 *
 * Sessions of all databases count: obs may be a foreign table whose rows one of them writes.
 */
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/backend_status.h"
#include "utils/timestamp.h"

#include "cache/since.h"
#include "compat.h"

/* the longest time from a session's reading of a message's time to its report of it */
#define MARGIN	(10 * USECS_PER_SEC)

/*
 * how often the refresh looks at sessions that are just beginning a transaction, and the pause
 * between two looks
 */
#define LOOKS			10
#define PAUSE			1000L	/* microseconds */

/*
 * Is the session within a transaction that it has not reported?
 */
static bool
has_transaction(int pid)
{
	const volatile PGPROC *process = BackendPidGetProc(pid);

	return process != NULL && LocalTransactionIdIsValid(geonn_local_transaction(process));
}

/*
 * Does the session write no rows, whatever it reports?  A WAL sender works on one message for days.
 */
static bool
only_reads(const PgBackendStatus *session)
{
	static const char replication[] = "START_REPLICATION";

	return !OidIsValid(session->st_databaseid) || session->st_backendType == B_AUTOVAC_WORKER ||
		(session->st_backendType == B_BACKEND && session->st_state == STATE_UNDEFINED) ||
		(session->st_backendType == B_WAL_SENDER &&
		 pg_strncasecmp(session->st_activity_raw, replication, strlen(replication)) == 0);
}

/*
 * Lower since to the now() that transactions of a session may have if the snapshot will not see
 * them.  Returns false if that is not known.
 */
static bool
allow_for_session(const PgBackendStatus *session, TimestampTz *since)
{
	if (only_reads(session))
		return true;
	if (session->st_state == STATE_DISABLED)
		return false;
	if (session->st_xact_start_timestamp != 0)
		*since = Min(*since, session->st_xact_start_timestamp);
	else if (has_transaction(session->st_procpid))
		return false;
	else if (session->st_state == STATE_RUNNING || session->st_state == STATE_FASTPATH)
		*since = Min(*since, session->st_activity_start_timestamp);
	return true;
}

/*
 * Lower since for all sessions but this one.  Returns false if the time is not known of one of
 * them.
 */
static bool
allow_for_sessions(TimestampTz *since)
{
	int			count;

	pgstat_clear_backend_activity_snapshot();
	count = pgstat_fetch_stat_numbackends();
	for (int i = 1; i <= count; i++)
	{
		const PgBackendStatus *session = &pgstat_get_local_beentry_by_index(i)->backendStatus;

		if (session->st_procpid != MyProcPid && !allow_for_session(session, since))
			return false;
	}
	return true;
}

static bool
is_any_prepared(const GeonnCache *cache)
{
	bool		is_any;

	SPI_connect();
	is_any = geonn_catalog_run(cache->schema, "SELECT FROM pg_catalog.pg_prepared_xacts LIMIT 1",
							   NULL, 0, NULL, NULL, NULL) > 0;
	SPI_finish();
	return is_any;
}

TimestampTz
geonn_cache_since(const GeonnCache *cache)
{
	/* which transactions an older snapshot does not see is not known */
	if (cache->changed_since == NULL || IsolationUsesXactSnapshot())
		return 0;
	for (int look = 0; look < LOOKS; look++)
	{
		TimestampTz since = GetCurrentTransactionStartTimestamp();

		CHECK_FOR_INTERRUPTS();
		if (allow_for_sessions(&since))
			return is_any_prepared(cache) ? 0 : since - MARGIN;
		pg_usleep(PAUSE);
	}
	return 0;
}
