/*
 * server.c
 *		The server's thread: lets clients in and handles events.
 *
 * One thread owns the listening socket, every session and all batch memory.
 * In event_loop.c it waits for clients, for the supervisor, for signals, and
 * for the event descriptor by which device threads and sealing threads report
 * finished work.  None of its steps takes longer than copying one batch of
 * references, so the engine can answer a ping at any time.  It does so unless
 * an operation of a device is overdue (search/overdue.c), and then as soon as that
 * is over.
 *
 * The engine ends when the supervisor closes its end, on SIGTERM or SIGINT,
 * and when a device is lost: then the state of the driver in this process
 * cannot be trusted.  So the running statements get an error, and the
 * supervisor starts another engine.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/server.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/thread_pool.h"
#include "engine/calls/calls.h"
#include "engine/search/backends.h"
#include "engine/server/admission.h"
#include "engine/server/datasets.h"
#include "engine/server/disposal.h"
#include "engine/server/engine_status.h"
#include "engine/server/event_loop.h"
#include "engine/server/session.h"

#define EXIT_DEVICE_LOST 3

/* batches may take this many bytes in an engine that is started by hand */
#define TRANSFER_BYTES (UINT64_C(1) << 30)

/* this many connections may wait to be accepted */
#define BACKLOG 128

/* when descriptors have run out, new connections wait this many ms */
#define ACCEPT_PAUSE_MS 100

/* The server tries again after this many ms to answer a ping that waits for a stuck device. */
#define PING_PAUSE_MS 250

/* The source of an event: one of these, or a session. */
enum source
{
	SOURCE_LISTENER,
	SOURCE_WAKE,
	SOURCE_SIGNAL,
	SOURCE_SUPERVISOR,
	SOURCE_COUNT
};

static struct
{
	int			listener;
	int			signals;
	int64_t		accept_at_ms;	/* when to watch the listener again, on the clock of now_ms(); 0: it is being watched */
	bool		out_of_descriptors; /* a lack of descriptors has been logged; false again when a client is accepted */
	bool		pinged;			/* the supervisor waits for the answer to `ping` */
	struct geonn_ping ping;
	bool		stuck;			/* a device's thread is stuck, and the answer to the ping waits for it */
	bool		welcomed;		/* devices are probed: from now on the server welcomes clients at once */
	bool		asked;			/* the supervisor waits for the status */
	bool		configured;		/* the engine has got its settings */
	bool		stopping;
	int			exit_status;
}			server;

/* The event loop's marks for sources; any other mark is the address of a session. */
static char source_marks[SOURCE_COUNT];

/*
 * Answer the sessions that wait for gauges, once the gauges are read or their
 * time has run out.
 */
static void
give_gauges(void)
{
	if (!engine_status_is_measured())
		return;
	for (struct session *session = session_first(); session != NULL; session = session->next)
		session_measured(session);
}

/*
 * Listen at a socket at this path, to which only processes of the same user
 * can connect.
 */
static bool
listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	mode_t		mask;
	bool		bound;

	if (strlen(path) >= sizeof(address.sun_path))
	{
		log_line(LOG_ERROR, "socket path \"%s\" has %zu bytes, and %zu are allowed",
				 path, strlen(path), sizeof(address.sun_path) - 1);
		return false;
	}
	strcpy(address.sun_path, path);

	server.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server.listener < 0)
	{
		log_line(LOG_ERROR, "could not create a socket: %s", strerror(errno));
		return false;
	}
	unlink(path);				/* an engine that was killed may have left its socket behind */
	mask = umask(0177);
	bound = bind(server.listener, (struct sockaddr *) &address, sizeof(address)) == 0;
	umask(mask);
	if (!bound || listen(server.listener, BACKLOG) != 0)
	{
		log_line(LOG_ERROR, "could not listen at \"%s\": %s", path, strerror(errno));
		return false;
	}
	return true;
}

/* Block the signals that end the engine, in this thread and all later ones, and read them from a descriptor. */
static bool
take_signals(void)
{
	sigset_t	set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0)
		return false;

	/* SIGINT and SIGTERM end the engine; SIGHUP is blocked but not read, so a hang-up does nothing. */
	sigdelset(&set, SIGHUP);
	server.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return server.signals >= 0;
}

/*
 * Free descriptors or memory when no client can be accepted: end an idle session or drop kept datasets; if
 * neither helps, let clients wait for a while.  Returns whether to try again at once.
 */
static bool
make_room_for_client(int reason)
{
	struct failure failure;

	if (reason != EMFILE && reason != ENFILE && reason != ENOMEM)
		return false;
	fail(&failure, GEONN_ERROR_MEMORY, "could not accept a client");
	fail_reason(&failure, reason);
	if (session_give_up_idle() || datasets_make_room(&failure))
		return true;
	if (!server.out_of_descriptors)
		log_line(LOG_WARNING, "could not accept a client, trying again: %s", strerror(reason));
	server.out_of_descriptors = true;
	event_loop_unwatch(server.listener);
	server.accept_at_ms = now_ms() + ACCEPT_PAUSE_MS;
	return false;
}

static void
handle_listener(void)
{
	for (;;)
	{
		int			socket = accept4(server.listener, NULL, NULL,
									 SOCK_CLOEXEC | SOCK_NONBLOCK);
		pid_t		peer;

		if (socket < 0)
		{
			if (make_room_for_client(errno))
				continue;
			return;
		}
		server.out_of_descriptors = false;
		datasets_note_descriptor(socket);
		batch_shares_note_descriptor(socket);
		if (!geonn_channel_peer_is_own_user(socket, &peer) ||
			session_create(socket) == NULL)
		{
			log_line(LOG_WARNING, "could not begin a session for a client: %s", strerror(errno));
			close(socket);
		}
	}
}

/*
 * Return whether no device's thread is stuck in its driver.  With a stuck thread, this engine
 * cannot be trusted to finish anything.
 */
static bool
devices_move(void)
{
	struct device *stuck = scheduler_stuck_device();

	if (stuck != NULL && !server.stuck)
		log_line(LOG_ERROR, "device %d (%s): an operation does not end",
				 stuck->number, stuck->name);
	if (stuck == NULL && server.stuck)
		log_line(LOG_NOTE, "the operation that did not end is over");
	server.stuck = stuck != NULL;
	return !server.stuck;
}

/*
 * Send the supervisor a pong.  If the system refuses that, end the engine: a supervisor that waits for a lost pong would
 * end the engine much later.
 */
static enum geonn_channel_status
send_pong(struct geonn_ping *ping)
{
	enum geonn_channel_status status = geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_PONG, ping, -1);

	if (status == GEONN_CHANNEL_FAILED)
	{
		log_line(LOG_ERROR, "could not send to the supervisor: %s", strerror(errno));
		server.stopping = true;
	}
	return status;
}

/* Answer the supervisor's ping.  While a device is stuck, the answer waits until the device moves again. */
static void
answer_ping(void)
{
	if (server.pinged && devices_move())
		server.pinged = send_pong(&server.ping) == GEONN_CHANNEL_AGAIN;
}

/*
 * The settings.  The supervisor sends them in the message configure when the engine starts, and again
 * when one of them changes.  Each field of that message (protocol.h) has a line here.
 */
static const struct
{
	const char *name;
	size_t		offset;			/* offset of the setting in struct geonn_configure */
	uint64_t	most;			/* the range is 0 ... most */
	void		(*use) (uint64_t value);
}			settings[] = {
#define SETTING(name, most, use) {#name, offsetof(struct geonn_configure, name), most, use}
	SETTING(cpu_threads, GEONN_CPU_THREADS_MAX, thread_pool_set_threads),
	SETTING(max_sessions, INT32_MAX, admission_set_limit),
	SETTING(transfer_memory_limit, INT64_MAX, batch_memory_set_limit),
	SETTING(idle_session_timeout, INT32_MAX, session_set_idle_timeout),
	SETTING(gpu_memory_limit, INT64_MAX, scheduler_set_gpu_memory_limit),
	SETTING(kept_memory_limit, INT64_MAX, datasets_set_kept_limit)
#undef SETTING
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

_Static_assert(sizeof(struct geonn_configure) ==
			   sizeof(struct geonn_header) + SETTINGS * sizeof(uint64_t),
			   "each setting of the message has a line of the table");

static uint64_t
value_of(const struct geonn_configure *configure, size_t setting)
{
	uint64_t	value;

	memcpy(&value, (const char *) configure + settings[setting].offset, sizeof(value));
	return value;
}

/* Use these settings from now on.  If one is out of range, use none of them, log its name, and return false. */
static bool
use_settings(const struct geonn_configure *configure)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (value_of(configure, i) > settings[i].most)
		{
			log_line(LOG_ERROR, "the supervisor sent %llu as %s, whose maximum is %llu",
					 (unsigned long long) value_of(configure, i), settings[i].name,
					 (unsigned long long) settings[i].most);
			return false;
		}
	for (size_t i = 0; i < SETTINGS; i++)
		settings[i].use(value_of(configure, i));
	return true;
}

/*
 * Handle one message of the supervisor's; the first one must have the settings.
 */
static void
handle_supervisor_message(const union geonn_message *message)
{
	if (!server.configured && message->header.type != GEONN_CONFIGURE)
		log_line(LOG_ERROR, "the supervisor's first message has no settings");
	switch (message->header.type)
	{
		case GEONN_PING:
			server.ping = message->ping;
			server.pinged = true;
			break;
		case GEONN_CONFIGURE:
			server.configured = use_settings(&message->configure);
			break;
		case GEONN_STATUS:
			server.asked = true;
			break;
	}
	if (!server.configured)
		server.stopping = true;
}

/*
 * Handle the supervisor's messages.  If the first one has another version of the protocol, send
 * pong: the supervisor reads the engine's version there, and ends the engine.
 */
static void
handle_supervisor(void)
{
	struct geonn_ping version = {.number = 0};

	while (!server.stopping)
	{
		union geonn_message message;
		enum geonn_channel_status status =
			geonn_channel_receive(GEONN_SUPERVISOR_DESCRIPTOR, &message, NULL);

		if (status == GEONN_CHANNEL_AGAIN)
			return;
		if (status == GEONN_CHANNEL_OK)
			handle_supervisor_message(&message);
		else if (status == GEONN_CHANNEL_OTHER_VERSION && !server.configured)
			(void) send_pong(&version);
		else
		{
			if (status == GEONN_CHANNEL_FAILED)
				log_line(LOG_ERROR, "could not receive from the supervisor: %s", strerror(errno));
			else if (status == GEONN_CHANNEL_MALFORMED)
				log_line(LOG_ERROR, "the supervisor sent a malformed message");
			server.stopping = true;
		}
	}
}

/*
 * Wait for the supervisor's settings and use them; an engine that is started by hand uses its own.
 * Returns false if the supervisor has ended or has sent something else; the log then says why.
 */
static bool
take_settings(bool supervised)
{
	static const struct geonn_configure by_hand = {.transfer_memory_limit = TRANSFER_BYTES};

	if (!supervised)
		return use_settings(&by_hand);
	while (!server.configured && !server.stopping)
	{
		struct pollfd wait = {.fd = GEONN_SUPERVISOR_DESCRIPTOR,.events = POLLIN};

		if (poll(&wait, 1, -1) < 0 && errno != EINTR)
		{
			log_line(LOG_ERROR, "could not wait for the supervisor: %s", strerror(errno));
			return false;
		}
		handle_supervisor();
	}
	return !server.stopping;
}

/* Handle the loss of a device: send an error to the sessions that have searches, and end the engine. */
static void
handle_lost_device(struct device *device)
{
	struct failure failure = device->lost;

	log_line(LOG_ERROR, "device %d (%s) is lost, the engine ends: %s%s%s",
			 device->number, device->name, failure.message,
			 failure.detail[0] ? ": " : "", failure.detail);
	for (struct session *session = session_first(); session != NULL; session = session->next)
		if (session->under_way > 0)
			session_fail(session, &failure);
	server.exit_status = EXIT_DEVICE_LOST;
	server.stopping = true;
}

static void
handle_wake(void)
{
	struct search *search;
	struct device *lost;

	event_loop_clear_wake();
	while ((search = scheduler_collect()) != NULL)
		session_search_finished(search);
	session_collect_sealed();
	lost = scheduler_lost_device();
	if (lost != NULL)
		handle_lost_device(lost);
}

static void
handle_event(void *mark)
{
	if (mark == &source_marks[SOURCE_LISTENER])
		handle_listener();
	else if (mark == &source_marks[SOURCE_WAKE])
		handle_wake();
	else if (mark == &source_marks[SOURCE_SUPERVISOR])
		handle_supervisor();
	else if (mark == &source_marks[SOURCE_SIGNAL])
		server.stopping = true;
	else
		session_receive(mark);
}

/*
 * Welcome the clients that came before the devices were probed.
 */
static void
welcome_clients(void)
{
	if (server.welcomed || !scheduler_ready())
		return;
	server.welcomed = true;
	engine_status_note_memory();
	for (struct session *session = session_first(); session != NULL; session = session->next)
		session_welcome(session);
}

/*
 * Send the supervisor the status that it asked for, once the devices are probed.  A supervisor that
 * does not read its messages gets no status.
 */
static void
answer_supervisor(void)
{
	if (!server.asked || !server.welcomed)
		return;
	server.asked = false;
	(void) engine_status_send(GEONN_SUPERVISOR_DESCRIPTOR);
}

static void
admit_sessions(void)
{
	struct session *session;

	while ((session = admission_next()) != NULL)
		session_admitted(session);
}

/* Return the milliseconds until something has to be done without an event, or -1. */
static int
time_to_wait(void)
{
	int			waits[] = {
		server.accept_at_ms != 0 ? ACCEPT_PAUSE_MS : -1,
		server.pinged ? PING_PAUSE_MS : -1,
		engine_status_measured_within_ms(),
		server.welcomed ? -1 : scheduler_ready_within_ms(),
		session_overdue_within_ms(),
		session_unsent_within_ms()
	};
	int			least = -1;

	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		if (waits[i] >= 0 && (least < 0 || waits[i] < least))
			least = waits[i];
	return least;
}

static void
serve(void)
{
	while (!server.stopping)
	{
		event_loop_run(time_to_wait(), handle_event);

		/* Free sessions only when all events of this round are handled: one of the events may be an ended session's. */
		session_free_ended();
		session_send_unsent();
		answer_ping();
		welcome_clients();
		answer_supervisor();
		admit_sessions();
		give_gauges();
		session_end_overdue();
		if (server.accept_at_ms != 0 && now_ms() >= server.accept_at_ms &&
			event_loop_watch(server.listener, &source_marks[SOURCE_LISTENER]))
			server.accept_at_ms = 0;
	}
}

static void
close_all(void)
{
	for (struct session *session = session_first(); session != NULL; session = session->next)
		session_end(session);
	datasets_set_kept_limit(0);
	disposal_close();
	scheduler_close();
	handle_wake();
	session_free_ended();
	calls_reset_statistics();
	batch_memory_close();
}

int
server_run(const char *socket_path, bool supervised)
{
	struct geonn_ping ready = {.number = 0};
	struct failure failure;

	if (!take_settings(supervised))
		return EXIT_FAILURE;
	backends_find();
	engine_status_open();
	calls_reset_statistics();

	if (!event_loop_open(&source_marks[SOURCE_WAKE]) || !take_signals())
	{
		log_line(LOG_ERROR, "could not start: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (!listen_at(socket_path))
		return EXIT_FAILURE;
	if (!scheduler_open(event_loop_wake, &failure))
	{
		log_line(LOG_ERROR, "%s: %s", failure.message, failure.detail);
		return EXIT_FAILURE;
	}
	disposal_open();
	if (!event_loop_watch(server.listener, &source_marks[SOURCE_LISTENER]) ||
		!event_loop_watch(server.signals, &source_marks[SOURCE_SIGNAL]) ||
		(supervised &&
		 !event_loop_watch(GEONN_SUPERVISOR_DESCRIPTOR, &source_marks[SOURCE_SUPERVISOR])))
	{
		log_line(LOG_ERROR, "could not wait for events: %s", strerror(errno));
		return EXIT_FAILURE;
	}

	/* From now on clients can connect; the pong tells the supervisor, which may tell backends. */
	if (supervised)
		(void) send_pong(&ready);
	serve();
	unlink(socket_path);
	close_all();
	return server.exit_status;
}
