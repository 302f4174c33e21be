/*
 * supervisor.c
 *		The background worker that owns the engine.
 *
 * The supervisor starts the engine, forwards its log lines to PostgreSQL's
 * log, checks that it answers, starts it again when it ends, and ends it when
 * the server stops.  It does nothing else: the crash of a PostgreSQL child
 * restarts the whole server, so nothing that can crash runs here.  It has no
 * database connection, so one serves every database, also of a standby.
 *
 * With geonn in shared_preload_libraries the postmaster starts it; otherwise
 * the first statement that needs the engine does (engine_start.c).  Only the
 * process that holds the lock (state.c) works as the supervisor.  If the lock
 * is taken, a supervisor that a statement launched exits; a preloaded one
 * waits and takes over when the lock becomes free, because the postmaster
 * would not start it again.
 *
 * The engine's life, as the supervisor sees it:
 *
 *	ABSENT		no process runs.  The supervisor starts one at retry_at, or when a
 *				backend asks for it (SIGUSR1).
 *	STARTING	the process runs and has been sent its settings; its first pong
 *				says that it listens.
 *	RUNNING		it answers pings.
 *	ENDING		it closed its channel, or was killed; the supervisor waits to reap it.
 *
 * Any of the last three becomes ABSENT when the process is reaped.  After the
 * first engine that ends the supervisor starts another at once; after each
 * further one with a short life it pauses, twice as long each time, up to a
 * minute.  Backends read the state from the state file.
 *
 * Nothing here waits, except the main loop for its event set: log and channel
 * are non-blocking.  The engine ends with its supervisor, by PR_SET_PDEATHSIG
 * and because its channel closes.  SIGTERM ends the engine in order.
 */
#include "postgres.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "libpq/pqsignal.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/latch.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/memutils.h"

#include "common/channel.h"
#include "compat.h"
#include "settings.h"
#include "supervisor/engine_process.h"
#include "supervisor/files.h"
#include "supervisor/state.h"
#include "supervisor/supervisor.h"
#include "wait_event.h"

#define SUPERVISOR_NAME "geonn supervisor"

/* in milliseconds */
#define SHORT_LIFE		10000	/* an engine that ends earlier counts as a failure */
#define LONGEST_PAUSE	60000	/* between two starts */
#define ENDING_PATIENCE 3000	/* from the channel's end or SIGTERM to SIGKILL */
#define KILL_PATIENCE	1000	/* from SIGKILL to giving up, on shutdown */
#define LOCK_POLL		1000	/* while another supervisor holds the lock */
#define UNSENT_POLL		250		/* while the channel has no room */

typedef enum EnginePhase
{
	PHASE_ABSENT,
	PHASE_STARTING,
	PHASE_RUNNING,
	PHASE_ENDING
} EnginePhase;

typedef struct Supervisor
{
	EnginePhase phase;
	EngineProcess engine;
	EngineReport report;		/* as last written to the state file */
	char		program[MAXPGPATH];

	/* times are monotonic milliseconds */
	int64		started_at;		/* when the present process was started */
	bool		was_ready;		/* the present process has answered */
	bool		was_silent;		/* the process was killed because it did not answer */
	bool		was_foreign;	/* the process was killed because it is of another version */
	int64		retry_at;		/* while absent */
	int64		kill_at;		/* while ending; 0 once killed */
	int			failures;		/* ends after a short life, in a row */

	/* one ping at a time: the next is sent after the last is answered */
	uint64		ping;			/* number of the last ping */
	int64		next_ping_at;
	int64		unanswered_since;	/* 0: it is answered */

	/* messages still to send, since the channel had no room for them */
	bool		ping_unsent;
	bool		settings_unsent;

	/* for the present descriptors; NULL after these changed */
	WaitEventSet *events;
} Supervisor;

bool		geonn_preloaded = false;

static volatile sig_atomic_t retry_requested = false;

/* ---- registration ---- */

static void
describe_worker(BackgroundWorker *worker, bool preloaded)
{
	memset(worker, 0, sizeof(*worker));
	strlcpy(worker->bgw_name, SUPERVISOR_NAME, sizeof(worker->bgw_name));
	strlcpy(worker->bgw_type, SUPERVISOR_NAME, sizeof(worker->bgw_type));
	worker->bgw_flags = BGWORKER_SHMEM_ACCESS;
	worker->bgw_start_time = BgWorkerStart_PostmasterStart;
	worker->bgw_restart_time = 1;
	strlcpy(worker->bgw_library_name, "geonn",
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

/* ---- small things ---- */

static void
request_retry(SIGNAL_ARGS)
{
	int			saved_errno = errno;

	(void) postgres_signal_arg;
	retry_requested = true;
	SetLatch(MyLatch);
	errno = saved_errno;
}

static void
notice_child(SIGNAL_ARGS)
{
	int			saved_errno = errno;

	(void) postgres_signal_arg;
	SetLatch(MyLatch);
	errno = saved_errno;
}

/*
 * Milliseconds of a clock that cannot be set and that stands still while the
 * machine sleeps.
 */
static int64
now_milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64
engine_timeout(void)
{
	return (int64) geonn_engine_timeout * 1000;
}

/*
 * Call this after closing a descriptor: the event set must forget it too.
 */
static void
drop_events(Supervisor *supervisor)
{
	if (supervisor->events != NULL)
		FreeWaitEventSet(supervisor->events);
	supervisor->events = NULL;
}

/*
 * Publish the engine's state.  If it is failed, the report's texts must be set
 * before.
 */
static void
publish(Supervisor *supervisor, EngineState state)
{
	EngineReport *report = &supervisor->report;

	report->state = state;
	report->engine_pid = supervisor->engine.pid;
	if (state != ENGINE_STATE_FAILED)
	{
		report->message[0] = '\0';
		report->detail[0] = '\0';
		report->hint[0] = '\0';
	}
	geonn_state_write(report);
}

/* ---- messages to the engine ---- */

/*
 * Send a message.  Returns false if the channel has no room.  An engine that
 * does not read its messages fills the channel; it then fails to answer a
 * ping.
 */
static bool
send_to_engine(Supervisor *supervisor, int type, void *message)
{
	return geonn_channel_send(supervisor->engine.channel, type, message,
							  -1) == GEONN_CHANNEL_OK;
}

static void
send_settings(Supervisor *supervisor)
{
	struct geonn_configure configure = {
		.cpu_threads = (uint64) geonn_cpu_threads,
		.max_sessions = (uint64) Max(geonn_max_sessions, 0),
		.transfer_memory_limit =
		(uint64) geonn_transfer_memory_limit * 1024 * 1024,
		.gpu_memory_limit = (uint64) geonn_gpu_memory_limit * 1024 * 1024,
		.kept_memory_limit = (uint64) geonn_kept_memory_limit * 1024 * 1024
	};

	supervisor->settings_unsent = !send_to_engine(supervisor, GEONN_CONFIGURE,
												  &configure);
}

static void
send_ping(Supervisor *supervisor)
{
	struct geonn_ping ping = {.number = supervisor->ping};

	supervisor->ping_unsent = !send_to_engine(supervisor, GEONN_PING, &ping);
}

/* ---- start and end ---- */

/*
 * The engine ended after a short life, or did not start.  After the first such
 * failure another is started at once, if that may help.
 */
static void
plan_retry(Supervisor *supervisor, bool may_help_at_once)
{
	int64		pause = 0;

	if (supervisor->failures > 0 || !may_help_at_once)
	{
		pause = (int64) 1000 << Min(Max(supervisor->failures - 1, 0), 6);
		pause = Min(pause, LONGEST_PAUSE);
		publish(supervisor, ENGINE_STATE_FAILED);
	}
	supervisor->failures++;
	supervisor->retry_at = now_milliseconds() + pause;
}

static void
start_engine(Supervisor *supervisor)
{
	EngineReport *report = &supervisor->report;
	const char *failed_step;

	retry_requested = false;
	report->attempt++;
	publish(supervisor, ENGINE_STATE_STARTING);

	if (!engine_process_start(&supervisor->engine, supervisor->program,
							  &failed_step))
	{
		int			reason = errno;

		snprintf(report->message, sizeof(report->message),
				 "could not start the geonn engine");
		errno = reason;
		if (failed_step == NULL)
		{
			snprintf(report->detail, sizeof(report->detail),
					 "Could not execute \"%s\": %m.", supervisor->program);
			snprintf(report->hint, sizeof(report->hint),
					 "\"make install\" or the geonn package puts that program beside the module; install geonn again.");
		}
		else
		{
			snprintf(report->detail, sizeof(report->detail),
					 "Could not %s: %m.", failed_step);
			snprintf(report->hint, sizeof(report->hint),
					 "Check the operating system's limits on processes and open files.");
		}
		ereport(LOG,
				(errmsg("%s", report->message),
				 errdetail("%s", report->detail),
				 errhint("%s", report->hint)));
		plan_retry(supervisor, false);
		return;
	}

	supervisor->phase = PHASE_STARTING;
	supervisor->started_at = now_milliseconds();
	supervisor->was_ready = false;
	supervisor->was_silent = false;
	supervisor->was_foreign = false;

	/* its first pong, number 0, comes when it listens */
	supervisor->ping = 0;
	supervisor->unanswered_since = supervisor->started_at;
	supervisor->ping_unsent = false;
	drop_events(supervisor);
	send_settings(supervisor);	/* the engine waits for them before it listens */
	publish(supervisor, ENGINE_STATE_STARTING);
}

/*
 * The error for statements: this supervisor cannot talk to the engine.
 */
static void
explain_other_version(EngineReport *report)
{
	snprintf(report->message, sizeof(report->message),
			 "the installed geonn engine is of another version than its supervisor");
	snprintf(report->detail, sizeof(report->detail),
			 "The supervisor is version %s and cannot talk to that engine.", GEONN_VERSION);
	if (geonn_preloaded)
		snprintf(report->hint, sizeof(report->hint),
				 "Restart the server: as geonn is in shared_preload_libraries, the supervisor has the module of the server's start.");
	else
		snprintf(report->hint, sizeof(report->hint),
				 "End the supervisor with \"kill %d\"; the next statement starts the installed one. If this error comes again, install geonn again.",
				 MyProcPid);
}

/*
 * The error for statements: the engine ended for any other reason.
 */
static void
explain_end(EngineReport *report, int64 lived, bool was_silent, const char *how)
{
	snprintf(report->message, sizeof(report->message),
			 "the geonn engine %s", how);
	if (was_silent)
		snprintf(report->detail, sizeof(report->detail),
				 "It had not answered for %d s.", geonn_engine_timeout);
	else
		snprintf(report->detail, sizeof(report->detail),
				 "It had run for " INT64_FORMAT ".%03d s.",
				 lived / 1000, (int) (lived % 1000));
	snprintf(report->hint, sizeof(report->hint),
			 "The server log has the engine's own messages. The next statement starts it again.");
}

/*
 * The process has ended: log it, and decide when to start the next.
 */
static void
note_end(Supervisor *supervisor, pid_t pid, const char *how)
{
	EngineReport *report = &supervisor->report;
	int64		lived = now_milliseconds() - supervisor->started_at;

	ereport(LOG,
			(errmsg("geonn engine (PID %d) %s", (int) pid, how)));

	if (supervisor->was_foreign)
		explain_other_version(report);
	else
		explain_end(report, lived, supervisor->was_silent, how);

	supervisor->phase = PHASE_ABSENT;
	drop_events(supervisor);
	if (supervisor->was_ready && lived >= SHORT_LIFE)
		supervisor->failures = 0;
	plan_retry(supervisor, !supervisor->was_foreign);
}

static void
kill_engine(Supervisor *supervisor)
{
	kill(supervisor->engine.pid, SIGKILL);
	supervisor->phase = PHASE_ENDING;
	supervisor->kill_at = 0;

	/* a driver may keep it from ending; no backend must wait at its socket then */
	unlink(GEONN_SOCKET_FILE);
}

/* ---- messages from the engine ---- */

static void
receive_pong(Supervisor *supervisor, const struct geonn_ping *pong)
{
	if (pong->number != supervisor->ping)
		return;
	supervisor->unanswered_since = 0;
	supervisor->next_ping_at = now_milliseconds() +
		Max(250, Min(5000, engine_timeout() / 4));

	if (supervisor->phase == PHASE_STARTING)
	{
		supervisor->phase = PHASE_RUNNING;
		supervisor->was_ready = true;
		ereport(LOG,
				(errmsg("geonn engine (PID %d) is ready",
						(int) supervisor->engine.pid)));
		publish(supervisor, ENGINE_STATE_RUNNING);
	}
}

static void
read_channel(Supervisor *supervisor)
{
	while (supervisor->engine.channel >= 0)
	{
		union geonn_message message;
		enum geonn_channel_status status;
		int			descriptor;

		status = geonn_channel_receive(supervisor->engine.channel, &message,
									   &descriptor);
		if (descriptor >= 0)
			close(descriptor);
		switch (status)
		{
			case GEONN_CHANNEL_AGAIN:
				return;

			case GEONN_CHANNEL_OK:
				if (message.header.type == GEONN_PONG)
				{
					receive_pong(supervisor, &message.pong);
					break;
				}
				/* FALLTHROUGH */

			case GEONN_CHANNEL_MALFORMED:
			case GEONN_CHANNEL_OTHER_VERSION:
			case GEONN_CHANNEL_FAILED:
				supervisor->was_foreign = status == GEONN_CHANNEL_OTHER_VERSION;
				ereport(LOG,
						(errmsg("geonn engine (PID %d) sent a message that its supervisor does not know",
								(int) supervisor->engine.pid)));
				engine_process_close_channel(&supervisor->engine);
				drop_events(supervisor);
				kill_engine(supervisor);
				return;

			case GEONN_CHANNEL_CLOSED:
				engine_process_close_channel(&supervisor->engine);
				drop_events(supervisor);
				if (supervisor->phase != PHASE_ENDING)
				{
					supervisor->phase = PHASE_ENDING;
					supervisor->kill_at = now_milliseconds() + ENDING_PATIENCE;
				}
				return;
		}
	}
}

/*
 * Send a ping when it is time; kill the engine when its answer is overdue.
 */
static void
check_pulse(Supervisor *supervisor, int64 now)
{
	if (supervisor->unanswered_since == 0)
	{
		if (now >= supervisor->next_ping_at)
		{
			if (access(GEONN_SOCKET_FILE, F_OK) != 0 && errno == ENOENT)
			{
				ereport(LOG,
						(errmsg("geonn engine (PID %d) has lost its socket \"%s\" and is started again",
								(int) supervisor->engine.pid, GEONN_SOCKET_FILE)));
				kill_engine(supervisor);
				return;
			}
			supervisor->ping++;
			supervisor->unanswered_since = now;
			send_ping(supervisor);
		}
	}
	else if (now - supervisor->unanswered_since >= engine_timeout())
	{
		ereport(LOG,
				(errmsg("geonn engine (PID %d) has not answered for %d s and is killed",
						(int) supervisor->engine.pid, geonn_engine_timeout)));
		supervisor->was_silent = true;
		kill_engine(supervisor);
		return;
	}

	if (supervisor->settings_unsent)
		send_settings(supervisor);
	if (supervisor->ping_unsent)
		send_ping(supervisor);
}

/* ---- the loop ---- */

/*
 * Milliseconds until something is due without an event, or -1.
 */
static long
time_to_wait(const Supervisor *supervisor)
{
	int64		next = 0;

	switch (supervisor->phase)
	{
		case PHASE_ABSENT:
			next = supervisor->retry_at;
			break;
		case PHASE_STARTING:
		case PHASE_RUNNING:
			if (supervisor->settings_unsent || supervisor->ping_unsent)
				return UNSENT_POLL;
			next = supervisor->unanswered_since == 0 ?
				supervisor->next_ping_at :
				supervisor->unanswered_since + engine_timeout();
			break;
		case PHASE_ENDING:
			if (supervisor->kill_at == 0)
				return -1;
			next = supervisor->kill_at;
			break;
	}
	return (long) Max(0, next - now_milliseconds());
}

static void
wait_for_events(Supervisor *supervisor, long timeout)
{
	WaitEvent	events[4];

	if (supervisor->events == NULL)
	{
		supervisor->events = geonn_create_wait_event_set(lengthof(events));
		AddWaitEventToSet(supervisor->events, WL_LATCH_SET, PGINVALID_SOCKET,
						  MyLatch, NULL);
		AddWaitEventToSet(supervisor->events, WL_EXIT_ON_PM_DEATH,
						  PGINVALID_SOCKET, NULL, NULL);
		if (supervisor->engine.log >= 0)
			AddWaitEventToSet(supervisor->events, WL_SOCKET_READABLE,
							  supervisor->engine.log, NULL, NULL);
		if (supervisor->engine.channel >= 0)
			AddWaitEventToSet(supervisor->events, WL_SOCKET_READABLE,
							  supervisor->engine.channel, NULL, NULL);
	}

	/* the callers try all descriptors, since no read waits; so the event itself is not needed */
	(void) WaitEventSetWait(supervisor->events, timeout, events,
							lengthof(events), geonn_wait_event(GEONN_WAIT_SUPERVISOR));
	ResetLatch(MyLatch);
}

/*
 * Read what the engine wrote and sent, and notice its end.
 */
static void
hear_engine(Supervisor *supervisor)
{
	pid_t		pid = supervisor->engine.pid;
	bool		had_log = supervisor->engine.log >= 0;
	char		how[256];

	if (pid == 0)
		return;
	engine_process_forward_log(&supervisor->engine);
	if (had_log && supervisor->engine.log < 0)
		drop_events(supervisor);
	read_channel(supervisor);
	if (engine_process_reap(&supervisor->engine, how, sizeof(how)))
		note_end(supervisor, pid, how);
}

static void
reload_configuration(Supervisor *supervisor)
{
	ConfigReloadPending = false;
	ProcessConfigFile(PGC_SIGHUP);
	if (supervisor->phase == PHASE_STARTING ||
		supervisor->phase == PHASE_RUNNING)
		send_settings(supervisor);
}

/*
 * Wait up to this many milliseconds for the engine's end.
 */
static bool
wait_for_end(Supervisor *supervisor, int64 patience)
{
	int64		until = now_milliseconds() + patience;
	pid_t		pid = supervisor->engine.pid;
	char		how[256];

	for (;;)
	{
		int64		now = now_milliseconds();

		engine_process_forward_log(&supervisor->engine);
		if (engine_process_reap(&supervisor->engine, how, sizeof(how)))
		{
			ereport(DEBUG1,
					(errmsg_internal("geonn engine (PID %d) %s", (int) pid,
									 how)));
			return true;
		}
		if (now >= until)
			return false;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(until - now, 100), geonn_wait_event(GEONN_WAIT_SUPERVISOR));
		ResetLatch(MyLatch);
	}
}

/*
 * End the engine: in order if possible, by SIGKILL otherwise.
 */
static void
shut_down(Supervisor *supervisor)
{
	if (supervisor->engine.pid != 0)
	{
		engine_process_close_channel(&supervisor->engine);
		kill(supervisor->engine.pid, SIGTERM);
		if (!wait_for_end(supervisor, ENDING_PATIENCE))
		{
			ereport(LOG,
					(errmsg("geonn engine (PID %d) has not ended within %d s and is killed",
							(int) supervisor->engine.pid,
							ENDING_PATIENCE / 1000)));
			kill(supervisor->engine.pid, SIGKILL);
			(void) wait_for_end(supervisor, KILL_PATIENCE);
		}
	}
	unlink(GEONN_SOCKET_FILE);
	geonn_state_remove();
}

/*
 * Become the supervisor.  Returns false if another process is and this one is
 * not to wait for its end, or if this one is asked to end.
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
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 LOCK_POLL, geonn_wait_event(GEONN_WAIT_SUPERVISOR));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return false;
}

void
geonn_supervisor_main(Datum main_arg)
{
	bool		preloaded = DatumGetBool(main_arg);
	Supervisor	supervisor;
	MemoryContext context;

	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, SignalHandlerForShutdownRequest);
	pqsignal(SIGUSR1, request_retry);
	pqsignal(SIGCHLD, notice_child);
	BackgroundWorkerUnblockSignals();

	/*
	 * The postmaster starts a worker again that exits with 1, and forgets one
	 * that exits with 0.
	 */
	if (!take_lock(preloaded))
		proc_exit(preloaded ? 1 : 0);

	memset(&supervisor, 0, sizeof(supervisor));
	engine_process_init(&supervisor.engine);
	supervisor.report.supervisor_pid = MyProcPid;
	snprintf(supervisor.program, sizeof(supervisor.program), "%s/%s",
			 pkglib_path, GEONN_ENGINE_PROGRAM);

	context = AllocSetContextCreate(TopMemoryContext, SUPERVISOR_NAME,
									ALLOCSET_SMALL_SIZES);
	MemoryContextSwitchTo(context);

	while (!ShutdownRequestPending)
	{
		int64		now;

		CHECK_FOR_INTERRUPTS();
		MemoryContextReset(context);
		if (ConfigReloadPending)
			reload_configuration(&supervisor);

		hear_engine(&supervisor);

		now = now_milliseconds();
		switch (supervisor.phase)
		{
			case PHASE_ABSENT:
				if (retry_requested || now >= supervisor.retry_at)
					start_engine(&supervisor);
				break;
			case PHASE_STARTING:
			case PHASE_RUNNING:
				check_pulse(&supervisor, now);
				break;
			case PHASE_ENDING:
				if (supervisor.kill_at != 0 && now >= supervisor.kill_at)
					kill_engine(&supervisor);
				break;
		}

		wait_for_events(&supervisor, time_to_wait(&supervisor));
	}

	shut_down(&supervisor);
	proc_exit(preloaded ? 1 : 0);
}
