/*
 * supervisor.c
 *		The background worker that owns the engine.
 *
 * The supervisor starts the engine, forwards its log lines to PostgreSQL's
 * log, checks that it answers, starts it again when it ends, and ends it when
 * the server stops (engine_life.c).  It does nothing else: the crash of a
 * PostgreSQL child restarts the whole server, so nothing that can crash runs
 * here.  It has no database connection, so one serves every database, also of
 * a standby.
 *
 * With geonn in shared_preload_libraries the postmaster starts it; otherwise
 * the first statement that needs the engine does (engine_start.c).  Only the
 * process that holds the lock (state.c) works as the supervisor.  If the lock
 * is taken, a supervisor that a statement launched exits; a preloaded one
 * waits and takes over when the lock becomes free, because the postmaster
 * would not start it again.
 *
 * While the server runs, the supervisor waits in its main loop alone, for its
 * event set.  The engine ends with its supervisor, by PR_SET_PDEATHSIG and
 * because its channel closes.  SIGTERM ends the engine in order.
 */
#include "postgres.h"

#include <signal.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/installed.h"
#include "supervisor/engine_life.h"
#include "supervisor/supervisor.h"
#include "base/wait_event.h"

#define SUPERVISOR_NAME "geonn supervisor"

#define LOCK_POLL		1000	/* milliseconds between attempts to get the lock, while another supervisor has it */

bool		geonn_preloaded = false;

/* ---- registration ---- */

/*
 * Describe the worker.  It loads the file that this process has loaded, by its path: the worker's own dynamic_library_path
 * may lead to another file, or to none.  If the path is too long, dynamic_library_path has to do.
 */
static void
describe_worker(BackgroundWorker *worker, bool preloaded)
{
	const char *module = geonn_module_file();

	memset(worker, 0, sizeof(*worker));
	strlcpy(worker->bgw_name, SUPERVISOR_NAME, sizeof(worker->bgw_name));
	strlcpy(worker->bgw_type, SUPERVISOR_NAME, sizeof(worker->bgw_type));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker->bgw_start_time = BgWorkerStart_PostmasterStart;
	worker->bgw_restart_time = 1;
	strlcpy(worker->bgw_library_name,
			strlen(module) < sizeof(worker->bgw_library_name) ? module : "geonn",
			sizeof(worker->bgw_library_name));
	strlcpy(worker->bgw_function_name, "geonn_supervisor_main",
			sizeof(worker->bgw_function_name));
	worker->bgw_main_arg = BoolGetDatum(preloaded);
}

void
geonn_supervisor_register(void)
{
	BackgroundWorker worker;

	geonn_preloaded = true;
	describe_worker(&worker, true);
	RegisterBackgroundWorker(&worker);
}

BackgroundWorkerHandle *
geonn_supervisor_launch(void)
{
	BackgroundWorker worker;
	BackgroundWorkerHandle *handle;

	describe_worker(&worker, false);
	worker.bgw_notify_pid = MyProcPid;
	return RegisterDynamicBackgroundWorker(&worker, &handle) ? handle : NULL;
}

/* ---- signals ---- */

/*
 * Handle a signal: a backend asks for the engine, or a child has ended.
 */
static void
wake_up(SIGNAL_ARGS)
{
	int			saved_errno = errno;

	if (postgres_signal_arg == SIGUSR1)
		engine_life_request_retry();
	SetLatch(MyLatch);
	errno = saved_errno;
}

/* ---- the loop ---- */

/*
 * Wait for an event, up to timeout milliseconds; -1: without limit.  *set has the engine's present
 * descriptors; it is made anew if it is NULL or the descriptors have changed.
 */
static void
wait_for_events(EngineLife *life, WaitEventSet **set, long timeout)
{
	WaitEvent	events[4];

	if (life->descriptors_changed && *set != NULL)
	{
		FreeWaitEventSet(*set);
		*set = NULL;
	}
	life->descriptors_changed = false;
	if (*set == NULL)
	{
		*set = geonn_create_wait_event_set(lengthof(events));
		AddWaitEventToSet(*set, WL_LATCH_SET, PGINVALID_SOCKET,
						  MyLatch, NULL);
		AddWaitEventToSet(*set, WL_EXIT_ON_PM_DEATH,
						  PGINVALID_SOCKET, NULL, NULL);
		if (life->engine.log >= 0)
			AddWaitEventToSet(*set, WL_SOCKET_READABLE,
							  life->engine.log, NULL, NULL);
		if (life->engine.channel >= 0)
			AddWaitEventToSet(*set, WL_SOCKET_READABLE,
							  life->engine.channel, NULL, NULL);
	}

	/* The event itself is not needed: the caller reads all descriptors, and no read waits. */
	(void) WaitEventSetWait(*set, timeout, events,
							lengthof(events), geonn_wait_event(GEONN_WAIT_SUPERVISOR));
	ResetLatch(MyLatch);
}

/*
 * Become the supervisor.  Returns false if this process is asked to end; without `wait`, also if
 * another process is the supervisor.
 */
static bool
take_lock(bool wait)
{
	while (!ShutdownRequestPending)
	{
		if (geonn_state_lock())
			return true;
		if (!wait)
			return false;
		geonn_pause(GEONN_WAIT_SUPERVISOR, LOCK_POLL);
	}
	return false;
}

void
geonn_supervisor_main(Datum main_arg)
{
	bool		preloaded = DatumGetBool(main_arg);
	EngineLife	life;
	WaitEventSet *set = NULL;
	MemoryContext context;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGUSR1, wake_up);
	pqsignal(SIGCHLD, wake_up);
	BackgroundWorkerUnblockSignals();

	/* The postmaster starts a worker that exits with 1 again, and forgets a worker that exits with 0. */
	if (!take_lock(preloaded))
		proc_exit(preloaded ? 1 : 0);

	engine_life_init(&life, geonn_preloaded, !preloaded);
	context = AllocSetContextCreate(TopMemoryContext, SUPERVISOR_NAME,
									ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(context);

	while (!ShutdownRequestPending)
	{
		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(context);
		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
			engine_life_configure(&life);
		}
		engine_life_hear(&life);
		engine_life_advance(&life);
		wait_for_events(&life, &set, engine_life_time_to_wait(&life));
	}

	engine_life_shut_down(&life);
	proc_exit(preloaded ? 1 : 0);
}
