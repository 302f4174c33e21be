/*
 * engine_start.c
 *		Connect a backend to the engine, and start the engine if none runs.
 *
 * A socket without a listener means that no engine runs yet.  If no supervisor
 * runs either, this backend has one launched.  A running supervisor starts the
 * engine itself; if it pauses after a failure, this backend wakes it.  Then
 * this backend tries the socket again every few milliseconds, until it
 * connects or until an attempt fails that began after this backend did.  It
 * gives up after geonn.engine_timeout, in which a try counts as two intervals
 * at most: where this backend was not given the time to try, neither was the
 * engine to start.
 *
 * When many backends come at the same time only one launches a supervisor,
 * lest the supervisors take all background workers.  That is the backend that
 * holds the lock (flock) on the launch file, until a supervisor runs.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/file.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "replication/logicallauncher.h"
#include "storage/fd.h"
#include "utils/timestamp.h"

#include "client/engine_start.h"
#include "common/channel.h"
#include "base/settings.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"
#include "base/wait_event.h"

/* milliseconds between two attempts */
#define TRY_INTERVAL	20

/* A backend launches up to this many supervisors for one connection, each after the last one has exited. */
#define LAUNCHES_MAX	5

/* The state of a backend that waits for the engine. */
typedef struct Waiting
{
	/* the launch file, while this backend holds its lock; otherwise -1 */
	int			launch_file;

	/* the supervisor that this backend launched last, and how many supervisors it has launched */
	BackgroundWorkerHandle *launched;
	int			launches;

	/* the supervisor that holds the supervisor's lock; 0: none */
	pid_t		supervisor;

	/*
	 * the number of an attempt of `supervisor`: this backend raises the failure of this attempt, or
	 * of a later one; 0: not known yet
	 */
	uint64		first_attempt;

	/* number of the failed attempt after which this backend woke `supervisor` */
	uint64		woken_after;

	/* the engine that this backend saw end; 0: none */
	pid_t		ended;
} Waiting;

static void
raise_failure(const EngineReport *report)
{
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("%s", report->message),
			 report->detail[0] != '\0' ? errdetail("%s", report->detail) : 0,
			 report->hint[0] != '\0' ? errhint("%s", report->hint) : 0));
}

static void
release_launch_lock(Waiting *waiting)
{
	if (waiting->launch_file >= 0)
		CloseTransientFile(waiting->launch_file);
	waiting->launch_file = -1;
}

/*
 * Take the lock to launch a supervisor.  Returns false if another backend holds the lock, or has
 * held it and launched a supervisor.
 */
static bool
take_launch_lock(Waiting *waiting)
{
	if (waiting->launch_file >= 0)
		return true;

	geonn_state_make_directory();
	waiting->launch_file = OpenTransientFile(GEONN_LAUNCH_FILE,
											 O_RDWR | O_CREAT | O_CLOEXEC);
	if (waiting->launch_file < 0)
		geonn_state_raise("open file", GEONN_LAUNCH_FILE);
	if (flock(waiting->launch_file, LOCK_EX | LOCK_NB) == 0)
	{
		/* the last holder of the lock may have launched a supervisor just now */
		if (geonn_state_supervisor() == 0)
			return true;
		release_launch_lock(waiting);
		return false;
	}
	if (errno != EWOULDBLOCK)
		geonn_state_raise("lock file", GEONN_LAUNCH_FILE);
	release_launch_lock(waiting);
	return false;
}

/*
 * Raise the error that no background worker is free.  PostgreSQL's logical replication launcher takes the first background
 * worker, and preloaded libraries the next; only the rest can be used while the server runs.
 */
static void
raise_no_worker(void)
{
	int			launcher = max_logical_replication_workers > 0 ? 1 : 0;
	bool		none_left = geonn_preloaded || max_worker_processes <= launcher;
	int			enough = Max(max_worker_processes, launcher) + 1;

	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_RESOURCES),
			 errmsg("could not register the geonn supervisor as a background worker"),
			 errdetail("All background workers that max_worker_processes (%d) allows are in use.",
					   max_worker_processes),
			 none_left ?
			 errhint("Set max_worker_processes to %d or more and restart the server.", enough) :
			 errhint("Run the statement again when another background worker has ended. To have one kept for geonn, set max_worker_processes to %d or more, add geonn to shared_preload_libraries, and restart the server.",
					 enough)));
}

/* Have a supervisor launched, because none runs; but not if one that was launched is about to start. */
static void
launch_supervisor(Waiting *waiting)
{
	pid_t		pid;

	if (!take_launch_lock(waiting))
		return;
	if (waiting->launched != NULL &&
		GetBackgroundWorkerPid(waiting->launched, &pid) != BGWH_STOPPED)
		return;

	if (!IsUnderPostmaster)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("geonn does not work in single-user mode"),
				 errdetail("geonn needs a background worker, and this mode starts none."),
				 errhint("Start the server in the usual way.")));
	if (waiting->launches == LAUNCHES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("could not start the geonn supervisor"),
				 errdetail("The background worker ended each time it was started."),
				 errhint("The server log says why.")));

	waiting->launched = geonn_supervisor_launch();
	waiting->launches++;
	if (waiting->launched == NULL)
		raise_no_worker();
}

/*
 * Raise an error if geonn.enabled is off for the supervisor and this process may not know it: a backend reads the
 * configuration only at the statement's end, and a parallel worker never does.  Neither may start the engine again that was
 * just ended.
 */
static void
check_configuration(void)
{
	if (ConfigReloadPending || IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("geonn is switched off in the server's configuration"),
				 errdetail("Neither a statement that runs since before nor a parallel worker starts an engine then."),
				 errhint("Run the statement again if geonn.enabled is on for this database or role.")));
}

/*
 * Read the report of the running supervisor.  Raise the failure that it reports, if this backend waited for that attempt.
 * After an earlier failure, or if geonn is off for the supervisor, wake the supervisor.
 */
static void
consult_supervisor(Waiting *waiting)
{
	EngineReport report;

	if (!geonn_state_read(waiting->supervisor, &report))
		return;

	/*
	 * Wait for the present attempt if it is still under way, otherwise for the next one.  This
	 * backend may have seen an attempt's engine end before the report says so.
	 */
	if (waiting->first_attempt == 0)
		waiting->first_attempt = report.attempt +
			(report.state == ENGINE_STATE_STARTING &&
			 (waiting->ended == 0 || report.engine_pid != waiting->ended) ? 0 : 1);

	if (report.state != ENGINE_STATE_FAILED && report.state != ENGINE_STATE_OFF)
		return;
	if (report.state == ENGINE_STATE_OFF)
		check_configuration();
	else if (report.attempt >= waiting->first_attempt)
		raise_failure(&report);
	if (report.attempt != waiting->woken_after)
	{
		kill(waiting->supervisor, SIGUSR1);
		waiting->woken_after = report.attempt;
	}
}

/*
 * Connect.  An error may leave the launch file's lock in waiting.  Not inlined: inlined, changes to waiting could
 * be lost in an error.
 */
static pg_noinline int
connect_or_launch(Waiting *waiting, pid_t *engine_pid)
{
	TimestampTz tried_at = GetCurrentTimestamp();
	long		waited = 0;
	bool		first_try = true;

	for (;;)
	{
		int			socket = geonn_channel_connect(GEONN_SOCKET_FILE, engine_pid);
		pid_t		supervisor;
		TimestampTz now;

		if (socket >= 0)
			return socket;

		/* EAGAIN: more processes connect at once than the socket's backlog allows */
		if (errno != ENOENT && errno != ECONNREFUSED && errno != EAGAIN)
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_FAILURE),
					 errmsg("could not connect to the geonn engine at \"%s\": %m",
							GEONN_SOCKET_FILE),
					 geonn_state_hint()));

		supervisor = geonn_state_supervisor();
		if (supervisor != waiting->supervisor)
		{
			/* The supervisor started after the first try: raise the failure of any of its attempts. */
			waiting->first_attempt = first_try ? 0 : 1;
			waiting->supervisor = supervisor;
			waiting->woken_after = 0;
		}
		first_try = false;
		if (supervisor == 0)
			launch_supervisor(waiting);
		else
		{
			release_launch_lock(waiting);
			consult_supervisor(waiting);
		}

		now = GetCurrentTimestamp();
		waited += Min(TimestampDifferenceMilliseconds(tried_at, now), 2 * TRY_INTERVAL);
		tried_at = now;
		if (waited > geonn_engine_timeout * 1000L)
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_FAILURE),
					 errmsg("the geonn engine did not start within %d s",
							geonn_engine_timeout),
					 errdetail("geonn.engine_timeout gives the engine that time to start."),
					 errhint("The server log says how far it came.")));
		geonn_pause(GEONN_WAIT_START, TRY_INTERVAL);
	}
}

int
geonn_engine_connect(pid_t *engine_pid)
{
	Waiting		waiting = {.launch_file = -1,.ended = *engine_pid};
	volatile int socket = -1;

	PG_TRY();
	{
		socket = connect_or_launch(&waiting, engine_pid);
	}
	PG_CATCH();
	{
		release_launch_lock(&waiting);
		PG_RE_THROW();
	}
	PG_END_TRY();
	release_launch_lock(&waiting);
	return socket;
}
