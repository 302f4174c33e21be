/*
 * since.c
 *		How far back rows may be stamped that a refresh does not see.
 *
 * With changed_since a refresh reads only the rows whose column is not older than a moment that the
 * former refresh has left, since.  A row is lost if its transaction stamped it, by now(), before
 * since and committed after the former refresh took its snapshot S.  So since must not be later
 * than now() in any transaction that S does not see: those that run when S is taken, and all that
 * begin afterwards.
 *
 * A transaction's now() is no moment of its own.  A session reads the clock when a message comes
 * from its client, and each transaction that begins while it works on this message has that time:
 * after COMMIT AND CHAIN, or in a message of several statements, now() may be hours older
 * than the transaction.  Only in a procedure that commits is the clock read anew.  So it is
 * not enough to know when transactions began.  What is known of each session is what it reports of
 * itself for pg_stat_activity: now() of its transaction and the time of its message.
 * That can be switched off, by track_activities; what cannot is that a session is listed,
 * that it says so, and that a transaction has a local id in the session's entry of shared memory.
 *
 * A refresh's transaction begins; the refresh reads the list of sessions, then the local ids of
 * those that report no transaction, then the prepared transactions; then it takes S.  Let T be a transaction
 * of a session s that S does not see.  It has not ended when s is looked at; had it ended, S would
 * see it, as a transaction's local id goes when it becomes visible, and what it reports goes later.
 *
 *	 - s is not in the list: it has connected since, and reads the clock later.
 *	 - s reports a transaction: this one is T, or one before T, and has no later now() than T.
 *	   (What is reported last may be of a transaction that has ended.)
 *	 - s reports none, and has a local id: T may have begun while activities were not tracked.
 *	   Nothing is known.  It is also so for an instant of each transaction's beginning,
 *	   which is why this is looked at again.
 *	 - s reports none, has no local id and works on a message: T begins later, within this
 *	   message or a later one, and now() in T is not before the message's time.
 *	 - s reports none and waits for a message: T begins later, with the time of that message,
 *	   which is read later.
 *	 - s is not tracked: nothing is known, not even that it waits, as it may be between two
 *	   transactions of one message.
 *	 - s is not connected to a database or starts, or is autovacuum's, or sends WAL: it writes no
 *	   rows.
 *	 - s is a background worker that reports neither message nor transaction: it is taken to read
 *	   the clock before it begins a transaction, as PostgreSQL's own do.
 *	 - T is prepared.  It is seen, as it is listed as prepared before its session's report of it
 *	   goes, and nothing is known of its beginning.
 *
 * Where nothing is known the next refresh compares all rows.  Else since is the least of these
 * times and of now() of the refresh itself, whose transaction may go on to write, less
 * a margin: the message's time is read some instructions before s reports that it works.  So
 * what remains is a session that is stopped for longer than the margin within these
 * few instructions, and a clock that is set back by more than the margin.
 *
 * All databases' sessions count: obs may be a foreign table that is one of theirs.
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

/* from the moment when a message's time is read to the session's report of it, at most */
#define MARGIN	(10 * USECS_PER_SEC)

/* sessions that begin a transaction just now are looked at so often, with a pause in between */
#define LOOKS			10
#define PAUSE			1000L	/* microseconds */

/*
 * Is the session within a transaction, of which it has reported nothing?
 */
static bool
has_transaction(int pid)
{
	const volatile PGPROC *process = BackendPidGetProc(pid);

	return process != NULL && LocalTransactionIdIsValid(geonn_local_transaction(process));
}

/*
 * Does the session write no rows, whatever it reports?  One that sends WAL works on the same message
 * for days.
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
 * Have since no later than what the transactions of a session that are not seen will have as
 * now(); false: it is not known.
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
 * The same of all sessions but this one.
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
	/* without a new snapshot there is no telling what is not seen */
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
