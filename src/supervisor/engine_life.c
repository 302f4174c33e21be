/*
 * engine_life.c
 *		The engine's life: started, sent its settings, pinged, ended, started again.
 *
 * The supervisor sees the engine in one of four phases:
 *
 *	ABSENT		no process runs.  The supervisor starts one at retry_at, or when a
 *				backend asks for it (SIGUSR1).
 *	STARTING	the process runs and has been sent its settings; its first pong
 *				says that it listens.
 *	RUNNING		it answers pings.
 *	ENDING		it closed its channel, or was killed; the supervisor waits to reap it.
 *
 * Where geonn.enabled is off in the configuration, the supervisor starts an engine only when a backend asks for it: the
 * setting is on for that one.  A reload that switches it off ends the engine.
 *
 * Any of the last three becomes ABSENT when the process is reaped.  After the
 * first engine that ends the supervisor starts another at once; after each
 * further one with a short life it pauses, twice as long each time, up to a
 * minute.  Backends read the state from the state file.
 *
 * An engine whose answer is overdue is killed, and with it the statements of all
 * sessions.  Therefore its silence is not measured by the clock, which goes on
 * while the host stands still or has no CPU to spare, but by the time that the
 * engine was given (common/given_time.h).  The supervisor looks once a second;
 * what it could not see itself does not count.  The other times are the clock's,
 * as they end no statement: pauses between two starts, and the patience with an
 * engine that is ending.
 *
 * Log and channel are non-blocking, so that of these functions only
 * engine_life_shut_down waits.
 */
#include "postgres.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "miscadmin.h"

#include "common/channel.h"
#include "base/compat.h"
#include "base/installed.h"
#include "base/settings.h"
#include "supervisor/engine_life.h"
#include "base/wait_event.h"

/* in milliseconds */
#define SHORT_LIFE		10000	/* an engine that ends earlier counts as a failure */
#define FIRST_PAUSE		1000	/* the pause between two starts after failures; each failure doubles it */
#define LONGEST_PAUSE	60000	/* the longest pause between two starts */
#define ENDING_PATIENCE 3000	/* how long the engine may take to end after its channel is closed or SIGTERM is sent;
								 * then SIGKILL */
#define KILL_PATIENCE	1000	/* from SIGKILL to giving up, on shutdown */
#define UNSENT_POLL		250		/* the pause between attempts to send while the channel is full */
#define SILENCE_POLL	1000	/* the longest time between looks at an engine that owes an answer */
#define SILENCE_LEAST	100		/* the shortest time between two looks */
#define SILENCE_MOST	2000	/* a longer time between two looks counts as this */

#define NOT_BEFORE_ASKED (-1)	/* a value of retry_at: start the engine only when a backend asks for it */

static volatile sig_atomic_t retry_requested = false;

void
engine_life_request_retry(void)
{
	retry_requested = true;
}

/* Return milliseconds of the monotonic clock, which stands still while the machine sleeps. */
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

static void
set_error(EngineReport *report, const char *message, const char *detail, const char *hint)
{
	strlcpy(report->message, message, sizeof(report->message));
	strlcpy(report->detail, detail, sizeof(report->detail));
	strlcpy(report->hint, hint, sizeof(report->hint));
}

/* Publish the engine's state.  For ENGINE_STATE_FAILED, the caller must have set the error. */
static void
publish(EngineLife *life, EngineState state)
{
	Assert(state != ENGINE_STATE_FAILED || life->report.message[0] != '\0');
	Assert(state != ENGINE_STATE_RUNNING || life->phase == PHASE_RUNNING);
	life->report.state = state;
	life->report.engine_pid = life->engine.pid;
	if (state != ENGINE_STATE_FAILED)
		set_error(&life->report, "", "", "");
	geonn_state_write(&life->report);
}

/*
 * Start an engine at once; if geonn.enabled is off, only when a backend asks for one.  Even then this counts as an
 * attempt, because a backend wakes the supervisor once after each.  Earlier requests of backends are done with.
 */
static void
start_or_rest(EngineLife *life)
{
	life->retry_at = 0;
	if (geonn_enabled)
		return;
	retry_requested = false;
	life->report.attempt++;
	life->retry_at = NOT_BEFORE_ASKED;
	publish(life, ENGINE_STATE_OFF);
}

void
engine_life_init(EngineLife *life, bool preloaded, bool asked)
{
	memset(life, 0, sizeof(*life));
	life->engine.channel = -1;
	life->engine.log = -1;
	life->report.supervisor_pid = MyProcPid;
	life->preloaded = preloaded;
	life->enabled = geonn_enabled;
	if (!asked)
		start_or_rest(life);
}

/* ---- messages to the engine ---- */

/*
 * Send the unsent messages, as far as the channel has room.  An engine that does not read its
 * messages fills the channel, and then fails to answer a ping.
 */
static void
send_unsent(EngineLife *life)
{
	struct geonn_configure configure = {
		.cpu_threads = (uint64) geonn_cpu_threads,
		.idle_session_timeout = (uint64) geonn_idle_session_timeout,
		.max_sessions = (uint64) Max(geonn_max_sessions, 0),
		.transfer_memory_limit = (uint64) geonn_transfer_memory_limit * 1024 * 1024,
		.gpu_memory_limit = (uint64) geonn_gpu_memory_limit * 1024 * 1024,
		.kept_memory_limit = (uint64) geonn_kept_memory_limit * 1024 * 1024
	};
	struct geonn_status status = {0};
	struct geonn_ping ping = {.number = life->ping};
	const struct
	{
		int			type;
		void	   *message;
	}			messages[ENGINE_MESSAGES] = {
		[MESSAGE_SETTINGS] = {GEONN_CONFIGURE, &configure},
		[MESSAGE_STATUS] = {GEONN_STATUS, &status},
		[MESSAGE_PING] = {GEONN_PING, &ping}
	};

	Assert(life->engine.channel >= 0);
	for (int i = 0; i < ENGINE_MESSAGES; i++)
	{
		if (life->unsent[i])
			life->unsent[i] = geonn_channel_send(life->engine.channel, messages[i].type,
												 messages[i].message, -1) != GEONN_CHANNEL_OK;
	}
}

static void
send_to_engine(EngineLife *life, EngineMessage message)
{
	life->unsent[message] = true;
	send_unsent(life);
}

/* Begin to measure for how long the engine owes an answer. */
static void
begin_silence(EngineLife *life)
{
	Assert(life->engine.pid > 0);
	life->ping_unanswered = true;
	geonn_given_time_begin(&life->silence, life->engine.pid);
}

/* ---- start and end ---- */

/*
 * Decide when to start the next engine, after an engine that ended early or did not start.  After the first such failure,
 * start another one at once if that may help.  If geonn.enabled is off, backends get the failure, and start the next
 * engine.
 */
static void
plan_retry(EngineLife *life, bool may_help_at_once)
{
	int64		pause = 0;

	if (life->failures > 0 || !may_help_at_once || !geonn_enabled)
	{
		pause = (int64) FIRST_PAUSE << Min(Max(life->failures - 1, 0), 6);
		pause = Min(pause, LONGEST_PAUSE);
		publish(life, ENGINE_STATE_FAILED);
	}
	life->failures++;
	life->retry_at = geonn_enabled ? now_milliseconds() + pause : NOT_BEFORE_ASKED;
}

static void
start_engine(EngineLife *life)
{
	EngineReport *report = &life->report;
	const char *program = geonn_installed_file(GEONN_ENGINE_PROGRAM);
	const char *failed_step;

	Assert(life->phase == PHASE_ABSENT && life->engine.pid == 0 && life->engine.channel < 0 && life->engine.log < 0);
	retry_requested = false;
	report->attempt++;
	publish(life, ENGINE_STATE_STARTING);

	if (!engine_process_start(&life->engine, program, &failed_step))
	{
		set_error(report, "could not start the geonn engine",
				  failed_step == NULL ? psprintf("Could not execute \"%s\": %m.", program) :
				  psprintf("Could not %s: %m.", failed_step),
				  failed_step == NULL ?
				  "\"make install\" or the geonn package puts that program beside the module; install geonn again." :
				  "Check the operating system's limits on processes and open files.");
		ereport(LOG,
				(errmsg("%s", report->message),
				 errdetail("%s", report->detail),
				 errhint("%s", report->hint)));
		plan_retry(life, false);
		return;
	}

	life->phase = PHASE_STARTING;
	life->started_at = now_milliseconds();
	life->was_ready = false;
	life->was_silent = false;
	life->was_foreign = false;
	life->was_ended = false;

	/* The engine sends its first pong, number 0, when it listens. */
	life->ping = 0;
	begin_silence(life);
	memset(life->unsent, false, sizeof(life->unsent));
	known_devices_begin();
	life->descriptors_changed = true;
	send_to_engine(life, MESSAGE_SETTINGS); /* the engine waits for its settings before it listens */
	publish(life, ENGINE_STATE_STARTING);
}

/* Handle the end of the engine's process: log it, set the error for statements, and decide when to start the next one. */
static void
note_end(EngineLife *life, pid_t pid, const char *how)
{
	int64		lived = now_milliseconds() - life->started_at;

	Assert(life->phase != PHASE_ABSENT && life->engine.pid == 0);
	ereport(LOG,
			(errmsg("geonn engine (PID %d) %s", (int) pid, how)));

	life->phase = PHASE_ABSENT;
	life->descriptors_changed = true;
	if (life->was_ended)
	{
		start_or_rest(life);
		return;
	}
	if (life->was_foreign)
		set_error(&life->report, "the installed geonn engine is of another version than its supervisor",
				  "The supervisor is version " GEONN_VERSION " and cannot talk to that engine.",
				  life->preloaded ?
				  "Restart the server: as geonn is in shared_preload_libraries, the supervisor has the module of the server's start." :
				  psprintf("End the supervisor with \"kill %d\"; the next statement starts the installed one. If this error comes again, install geonn again.",
						   MyProcPid));
	else
		set_error(&life->report, psprintf("the geonn engine %s", how),
				  life->was_silent ?
				  psprintf("The engine had not answered for %d s.", geonn_engine_timeout) :
				  psprintf("The engine had run for " INT64_FORMAT ".%03d s.",
						   lived / 1000, (int) (lived % 1000)),
				  "The server log has the engine's own messages. The next statement starts it again.");

	if (life->was_ready && lived >= SHORT_LIFE)
		life->failures = 0;
	plan_retry(life, !life->was_foreign);
}

static void
kill_engine(EngineLife *life)
{
	Assert(life->phase != PHASE_ABSENT && life->engine.pid > 0);
	kill(life->engine.pid, SIGKILL);
	life->phase = PHASE_ENDING;
	life->kill_at = 0;

	/* A driver may delay the end of the process: remove the socket, so that no backend waits there meanwhile. */
	unlink(GEONN_SOCKET_FILE);
}

/* ---- messages from the engine ---- */

static void
receive_pong(EngineLife *life, const struct geonn_ping *pong)
{
	if (pong->number != life->ping)
		return;
	life->ping_unanswered = false;
	life->next_ping_at = now_milliseconds() +
		Max(250, Min(5000, engine_timeout() / 4));

	if (life->phase == PHASE_STARTING)
	{
		life->phase = PHASE_RUNNING;
		life->was_ready = true;
		ereport(LOG,
				(errmsg("geonn engine (PID %d) is ready",
						(int) life->engine.pid)));
		publish(life, ENGINE_STATE_RUNNING);
		send_to_engine(life, MESSAGE_STATUS);
	}
}

static void
close_channel(EngineLife *life)
{
	engine_process_close_channel(&life->engine);
	life->descriptors_changed = true;
}

static void
read_channel(EngineLife *life)
{
	while (life->engine.channel >= 0)
	{
		union geonn_message message;
		enum geonn_channel_status status = geonn_channel_receive(life->engine.channel, &message, NULL);

		if (status == GEONN_CHANNEL_AGAIN)
			return;
		if (status == GEONN_CHANNEL_OK && message.header.type == GEONN_PONG)
			receive_pong(life, &message.pong);
		else if (status == GEONN_CHANNEL_CLOSED)
		{
			close_channel(life);
			if (life->phase != PHASE_ENDING)
			{
				life->phase = PHASE_ENDING;
				life->kill_at = now_milliseconds() + ENDING_PATIENCE;
			}
		}
		else if (status != GEONN_CHANNEL_OK || !known_devices_receive(&message))
		{
			life->was_foreign = status == GEONN_CHANNEL_OTHER_VERSION;
			ereport(LOG,
					(errmsg("geonn engine (PID %d) sent its supervisor an unknown message",
							(int) life->engine.pid)));
			close_channel(life);
			kill_engine(life);
		}
	}
}

static void
check_pulse(EngineLife *life, int64 now)
{
	Assert(life->phase == PHASE_RUNNING || (life->phase == PHASE_STARTING && life->ping_unanswered && life->ping == 0));
	if (life->ping_unanswered)
	{
		geonn_given_time_look(&life->silence, life->engine.pid, SILENCE_MOST);
		if (life->silence.ms >= engine_timeout())
		{
			ereport(LOG,
					(errmsg("geonn engine (PID %d) has not answered for %d s and is killed",
							(int) life->engine.pid, geonn_engine_timeout)));
			life->was_silent = true;
			kill_engine(life);
			return;
		}
	}
	else if (now >= life->next_ping_at)
	{
		if (access(GEONN_SOCKET_FILE, F_OK) != 0 && errno == ENOENT)
		{
			ereport(LOG,
					(errmsg("geonn engine (PID %d) has lost its socket \"%s\" and is started again",
							(int) life->engine.pid, GEONN_SOCKET_FILE)));
			kill_engine(life);
			return;
		}
		life->ping++;
		begin_silence(life);
		life->unsent[MESSAGE_PING] = true;
	}
	send_unsent(life);
}

/* ---- step by step ---- */

void
engine_life_hear(EngineLife *life)
{
	pid_t		pid = life->engine.pid;
	bool		had_log = life->engine.log >= 0;
	char		how[256];

	if (pid == 0)
		return;
	engine_process_forward_log(&life->engine);
	if (had_log && life->engine.log < 0)
		life->descriptors_changed = true;
	read_channel(life);
	if (engine_process_reap(&life->engine, how, sizeof(how)))
		note_end(life, pid, how);
}

void
engine_life_advance(EngineLife *life)
{
	int64		now = now_milliseconds();

	switch (life->phase)
	{
		case PHASE_ABSENT:
			if (retry_requested || (life->retry_at != NOT_BEFORE_ASKED && now >= life->retry_at))
				start_engine(life);
			break;
		case PHASE_STARTING:
		case PHASE_RUNNING:
			check_pulse(life, now);
			break;
		case PHASE_ENDING:
			if (life->kill_at != 0 && now >= life->kill_at)
				kill_engine(life);
			break;
	}
}

long
engine_life_time_to_wait(const EngineLife *life)
{
	int64		next = life->next_ping_at;

	if (life->phase == PHASE_ABSENT)
	{
		if (life->retry_at == NOT_BEFORE_ASKED)
			return -1;
		next = life->retry_at;
	}
	else if (life->phase == PHASE_ENDING)
	{
		if (life->kill_at == 0)
			return -1;
		next = life->kill_at;
	}
	else if (memchr(life->unsent, true, sizeof(life->unsent)) != NULL)
		return UNSENT_POLL;
	else if (life->ping_unanswered)
		return (long) Max(SILENCE_LEAST, Min(SILENCE_POLL, engine_timeout() - life->silence.ms));
	return (long) Max(0, next - now_milliseconds());
}

/*
 * End the engine in order: sessions that are at work with it get an error.
 */
static void
end_engine(EngineLife *life)
{
	Assert(life->phase != PHASE_ABSENT && life->engine.pid > 0);
	ereport(LOG,
			(errmsg("geonn engine (PID %d) is ended: geonn.enabled is off", (int) life->engine.pid)));
	close_channel(life);
	unlink(GEONN_SOCKET_FILE);
	kill(life->engine.pid, SIGTERM);
	life->was_ended = true;
	life->phase = PHASE_ENDING;
	life->kill_at = now_milliseconds() + ENDING_PATIENCE;
}

void
engine_life_configure(EngineLife *life)
{
	bool		is_switched = geonn_enabled != life->enabled;

	life->enabled = geonn_enabled;
	if (is_switched && life->phase == PHASE_ABSENT)
		start_or_rest(life);
	else if (is_switched && !geonn_enabled && life->phase != PHASE_ENDING)
	{
		end_engine(life);
		return;
	}
	if (life->phase == PHASE_STARTING || life->phase == PHASE_RUNNING)
		send_to_engine(life, MESSAGE_SETTINGS);
	if (life->phase == PHASE_RUNNING)
		send_to_engine(life, MESSAGE_STATUS);	/* a setting may change the devices' figures, so ask for them again */
}

/* ---- the end with the server ---- */

static bool
wait_for_end(EngineLife *life, int64 patience)
{
	int64		until = now_milliseconds() + patience;
	pid_t		pid = life->engine.pid;
	char		how[256];

	for (;;)
	{
		int64		now = now_milliseconds();

		engine_process_forward_log(&life->engine);
		if (engine_process_reap(&life->engine, how, sizeof(how)))
		{
			ereport(DEBUG1,
					(errmsg_internal("geonn engine (PID %d) %s", (int) pid,
									 how)));
			return true;
		}
		if (now >= until)
			return false;
		geonn_pause(GEONN_WAIT_SUPERVISOR, Min(until - now, 100));
	}
}

void
engine_life_shut_down(EngineLife *life)
{
	if (life->engine.pid != 0)
	{
		engine_process_close_channel(&life->engine);
		kill(life->engine.pid, SIGTERM);
		if (!wait_for_end(life, ENDING_PATIENCE))
		{
			ereport(LOG,
					(errmsg("geonn engine (PID %d) has not ended within %d s and is killed",
							(int) life->engine.pid,
							ENDING_PATIENCE / 1000)));
			kill(life->engine.pid, SIGKILL);
			(void) wait_for_end(life, KILL_PATIENCE);
		}
	}
	unlink(GEONN_SOCKET_FILE);
	geonn_state_remove();
}
