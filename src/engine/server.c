/*
 * server.c
 *		The engine's event loop.
 *
 * One thread owns the listening socket, every session and all batch memory.
 * It waits in epoll for clients, for the supervisor, for signals, and for the
 * event descriptor through which device and sealing threads say that they
 * finished something.  It does nothing that takes longer than copying one
 * batch of references, so a ping is answered at any time, whatever the devices
 * do.
 *
 * The engine ends when the supervisor closes its end, on SIGTERM or SIGINT,
 * and when a device is lost: then nothing that the driver holds in this
 * process can be trusted, so the statements that were running get their error
 * and the supervisor starts another engine.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "admission.h"
#include "clock.h"
#include "datasets.h"
#include "disposal.h"
#include "engine_settings.h"
#include "gauges.h"
#include "host.h"
#include "log.h"
#include "session.h"
#include "statistics.h"
#include "thread_pool.h"

#define EXIT_DEVICE_LOST 3

/* connections that wait to be accepted */
#define BACKLOG 128

/* how long to leave new connections waiting when descriptors have run out */
#define ACCEPT_PAUSE_MS 100

/* how long to wait for GPUs' gauges, which are unknown then */
#define MEASURE_PATIENCE_MS 500

/* what epoll says is ready: one of these, or a session */
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
	const struct server_options *options;
	int64_t		started_at;		/* microseconds since 1970 */
	uint64_t	base_memory;	/* resident before the first session */
	int			epoll;
	int			wake;			/* eventfd; -1 until there is one */
	int			listener;
	int			signals;
	int64_t		accept_at_ms;	/* 0, or when to watch the listener again */
	bool		out_of_descriptors; /* said so, until a client is accepted */
	int64_t		measured_by_ms; /* 0, or when sessions get gauges, read or not */
	bool		stuck;			/* a device is; pings are not answered */
	bool		welcomed;		/* clients need not wait for probes any more */
	bool		stopping;
	int			exit_status;
	struct session *sessions;
}			server = {
	.wake = -1
};

/* epoll's data for a source; anything else is a session's address */
static char source_marks[SOURCE_COUNT];

void
server_wake(void)
{
	uint64_t	one = 1;
	ssize_t		written = write(server.wake, &one, sizeof(one));

	(void) written;				/* a full counter wakes as well */
}

bool
server_can_serve(enum geonn_device_choice choice, struct failure *failure)
{
	if (scheduler_can_serve(choice, failure))
		return true;
	if (choice == GEONN_DEVICE_CUDA)
	{
		fail_detail(failure, "%s", server.options->no_gpu.message);
		fail_hint(failure, "%s", server.options->no_gpu.hint[0] ?
				  server.options->no_gpu.hint :
				  "Set geonn.device to auto or cpu, or make a GPU available to the server.");
	}
	return false;
}

/*
 * Why no GPU is in use: there is none, or the first one's own reason.
 */
static void
no_gpu_reason(char *reason, size_t size)
{
	const struct server_options *options = server.options;
	struct failure why = options->no_gpu;

	reason[0] = '\0';
	for (int i = 0; i < options->device_count; i++)
	{
		const struct device *device = &options->devices[i];

		if (device->operations->kind != GEONN_KIND_CUDA)
			continue;
		if (atomic_load(&device->usable))
			return;
		why = scheduler_why_unusable(device);
	}
	if (why.detail[0])
		snprintf(reason, size, "%.120s: %.120s", why.message, why.detail);
	else
		snprintf(reason, size, "%s", why.message);
}

static bool
send_device_status(int socket, struct device *device)
{
	bool		usable = atomic_load(&device->usable);
	bool		is_cpu = device->operations->kind == GEONN_KIND_CPU;
	struct gauges gauges = gauges_of(device->number);
	struct geonn_device_status status = {
		.number = (uint32_t) device->number,
		.kind = device->operations->kind,
		.state = usable ? GEONN_DEVICE_READY : GEONN_DEVICE_FAILED,
		.in_use_by_auto = scheduler_auto_uses(device),
		.capability_major = device->capability_major,
		.capability_minor = device->capability_minor,
		.threads = is_cpu ? thread_pool_threads() : 0,
		.utilization = gauges.utilization,
		.temperature = gauges.temperature,
		.power = gauges.power,
		.memory_total = device->memory_total,
		.memory_free = usable ? device->operations->memory_free(device) : 0,
		.batches = atomic_load(&device->batches)
	};

	memcpy(status.name, device->name, sizeof(status.name));
	memcpy(status.uuid, device->uuid, sizeof(status.uuid));
	if (!usable)
	{
		struct failure why = scheduler_why_unusable(device);

		memcpy(status.reason, why.message, sizeof(status.reason));
	}
	return geonn_channel_send(socket, GEONN_DEVICE_STATUS, &status, -1) == GEONN_CHANNEL_OK;
}

bool
server_send_status(int socket)
{
	const struct server_options *options = server.options;
	struct geonn_engine_status status = {
		.pid = getpid(),
		.devices = (uint32_t) options->device_count,
		.datasets = datasets_count(),
		.kept = datasets_kept(),
		.queued = admission_waiting(),
		.kept_memory = datasets_kept_memory(),
		.base_memory = server.base_memory,
		.transfer_memory = batch_memory_in_use(),
		.transfer_memory_limit = batch_memory_limit(),
		.started_at = server.started_at,
		.release = GEONN_VERSION
	};

	for (struct session *session = server.sessions; session != NULL; session = session->next)
	{
		if (session->dataset != NULL)
			status.sessions++;
		for (int i = 0; i < GEONN_RING_SLOTS; i++)
			status.searches += session->slots[i].busy;
	}
	no_gpu_reason(status.no_gpu_reason, sizeof(status.no_gpu_reason));
	if (geonn_channel_send(socket, GEONN_ENGINE_STATUS, &status, -1) != GEONN_CHANNEL_OK)
		return false;
	for (int i = 0; i < options->device_count; i++)
		if (!send_device_status(socket, &options->devices[i]))
			return false;
	return true;
}

bool
server_measure(void)
{
	if (!gauges_begin_reading(server.options->devices, server.options->device_count,
							  server_wake))
		return false;
	if (server.measured_by_ms == 0)
		server.measured_by_ms = now_ms() + MEASURE_PATIENCE_MS;
	return true;
}

/*
 * Answer those who wait for gauges, once they are read or have had their time.
 */
static void
give_gauges(void)
{
	if (server.measured_by_ms == 0 ||
		!(gauges_are_read() || now_ms() >= server.measured_by_ms))
		return;
	server.measured_by_ms = 0;
	for (struct session *session = server.sessions; session != NULL; session = session->next)
		session_measured(session);
}

static bool
watch(int descriptor, void *mark)
{
	struct epoll_event event = {.events = EPOLLIN,.data.ptr = mark};

	return epoll_ctl(server.epoll, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

void
server_unwatch(int socket)
{
	epoll_ctl(server.epoll, EPOLL_CTL_DEL, socket, NULL);
}

/*
 * A socket of our own at this path, which nobody else can connect to.
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
	unlink(path);				/* of an engine that was killed */
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

/*
 * Block the signals that end the engine, for every thread to come, and read
 * them from a descriptor.
 */
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

	/* the terminal's and the operator's wish, but not a hang-up */
	sigdelset(&set, SIGHUP);
	server.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return server.signals >= 0;
}

/*
 * No client can be accepted now: have kept datasets make room, or leave clients waiting for a
 * while.  Returns whether to try again at once.
 */
static bool
make_room_for_client(int reason)
{
	struct failure failure;

	if (reason != EMFILE && reason != ENFILE && reason != ENOMEM)
		return false;
	fail(&failure, GEONN_ERROR_MEMORY, "could not accept a client");
	fail_reason(&failure, reason);
	if (datasets_make_room(&failure))
		return true;
	if (!server.out_of_descriptors)
		log_line(LOG_WARNING, "could not accept a client, trying again: %s", strerror(reason));
	server.out_of_descriptors = true;
	epoll_ctl(server.epoll, EPOLL_CTL_DEL, server.listener, NULL);
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
		struct session *session = NULL;
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
			(session = session_create(socket)) == NULL || !watch(socket, session))
		{
			log_line(LOG_WARNING, "could not take a client on: %s", strerror(errno));
			close(socket);
			free(session);
			continue;
		}
		session->next = server.sessions;
		server.sessions = session;
	}
}

/*
 * Whether no device's thread is stuck in its driver.  Where one is, this
 * engine can't be trusted to finish anything.
 */
static bool
devices_move(void)
{
	struct device *stuck = scheduler_stuck_device();

	if (stuck != NULL && !server.stuck)
		log_line(LOG_ERROR, "device %d (%s) does not come back from a call into its driver",
				 stuck->number, stuck->name);
	server.stuck = stuck != NULL;
	return !server.stuck;
}

static void
handle_supervisor(void)
{
	for (;;)
	{
		union geonn_message message;
		int			descriptor;
		enum geonn_channel_status status =
			geonn_channel_receive(GEONN_SUPERVISOR_DESCRIPTOR, &message, &descriptor);

		if (descriptor >= 0)
			close(descriptor);
		if (status == GEONN_CHANNEL_AGAIN)
			return;
		if (status != GEONN_CHANNEL_OK)
		{
			server.stopping = true;
			return;
		}
		switch (message.header.type)
		{
			case GEONN_PING:
				if (!devices_move())
					break;
				geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_PONG, &message, -1);
				break;
			case GEONN_CONFIGURE:
				if (!engine_settings_use(&message.configure))
					server.stopping = true;
				break;
		}
	}
}

/*
 * A device can't be trusted any more: tell those who had searches running, and
 * end.
 */
static void
handle_lost_device(struct device *device)
{
	struct failure failure = device->lost;

	log_line(LOG_ERROR, "device %d (%s) is lost, the engine ends: %s%s%s",
			 device->number, device->name, failure.message,
			 failure.detail[0] ? ": " : "", failure.detail);
	for (struct session *session = server.sessions; session != NULL; session = session->next)
		if (session->under_way > 0)
			session_fail(session, &failure);
	server.exit_status = EXIT_DEVICE_LOST;
	server.stopping = true;
}

/*
 * Devices or sealing threads finished something.
 */
static void
handle_wake(void)
{
	uint64_t	count;
	ssize_t		got = read(server.wake, &count, sizeof(count));
	struct search *search;
	struct device *lost;

	(void) got;
	while ((search = scheduler_collect()) != NULL)
		session_search_finished(search);
	session_collect_sealed();
	lost = scheduler_lost_device();
	if (lost != NULL)
		handle_lost_device(lost);
}

static void
free_ended_sessions(void)
{
	struct session **link = &server.sessions;

	while (*link != NULL)
	{
		struct session *session = *link;
		struct session *next = session->next;

		if (session_free_if_idle(session))
			*link = next;
		else
			link = &session->next;
	}
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
 * Let the clients in that came before the devices were probed.
 */
static void
welcome_clients(void)
{
	if (server.welcomed || !scheduler_ready())
		return;
	server.welcomed = true;
	server.base_memory = host_memory_resident();
	for (struct session *session = server.sessions; session != NULL; session = session->next)
		session_welcome(session);
}

/*
 * Let those in line have the places that have become free.
 */
static void
admit_sessions(void)
{
	struct session *session;

	while ((session = admission_next()) != NULL)
		session_admitted(session);
}

/*
 * Milliseconds until something has to be done without an event, or -1.
 */
static int
time_to_wait(void)
{
	if (server.accept_at_ms != 0)
		return ACCEPT_PAUSE_MS;
	if (server.measured_by_ms != 0)
	{
		int64_t		left = server.measured_by_ms - now_ms();

		return left > 0 ? (int) left : 0;
	}
	return server.welcomed ? -1 : scheduler_ready_within_ms();
}

static void
serve(void)
{
	while (!server.stopping)
	{
		struct epoll_event events[32];
		int			count = epoll_wait(server.epoll, events, 32, time_to_wait());

		for (int i = 0; i < count; i++)
			handle_event(events[i].data.ptr);

		/* not before: an event of this round may belong to one of them */
		free_ended_sessions();
		welcome_clients();
		admit_sessions();
		give_gauges();
		if (server.accept_at_ms != 0 && now_ms() >= server.accept_at_ms &&
			watch(server.listener, &source_marks[SOURCE_LISTENER]))
			server.accept_at_ms = 0;
	}
}

static void
close_all(void)
{
	for (struct session *session = server.sessions; session != NULL; session = session->next)
		session_end(session);
	datasets_set_kept_limit(0);
	disposal_close();
	scheduler_close();
	handle_wake();
	free_ended_sessions();
	statistics_reset();
	batch_memory_close();
}

int
server_run(const struct server_options *options)
{
	struct geonn_ping ready = {.number = 0};
	struct failure failure;

	server.options = options;
	server.started_at = unix_us();
	statistics_reset();
	batch_memory_open(options->devices, options->device_count);

	server.epoll = epoll_create1(EPOLL_CLOEXEC);
	server.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (server.epoll < 0 || server.wake < 0 || !take_signals())
	{
		log_line(LOG_ERROR, "could not start: %s", strerror(errno));
		return EXIT_FAILURE;
	}
	if (!listen_at(options->socket_path))
		return EXIT_FAILURE;
	if (!scheduler_open(options->devices, options->device_count, server_wake, &failure))
	{
		log_line(LOG_ERROR, "%s: %s", failure.message, failure.detail);
		return EXIT_FAILURE;
	}
	disposal_open();
	if (!watch(server.listener, &source_marks[SOURCE_LISTENER]) ||
		!watch(server.wake, &source_marks[SOURCE_WAKE]) ||
		!watch(server.signals, &source_marks[SOURCE_SIGNAL]) ||
		(options->supervised &&
		 !watch(GEONN_SUPERVISOR_DESCRIPTOR, &source_marks[SOURCE_SUPERVISOR])))
	{
		log_line(LOG_ERROR, "could not wait for events: %s", strerror(errno));
		return EXIT_FAILURE;
	}

	/* the supervisor may now send clients here */
	if (options->supervised)
		geonn_channel_send(GEONN_SUPERVISOR_DESCRIPTOR, GEONN_PONG, &ready, -1);
	serve();
	unlink(options->socket_path);
	close_all();
	return server.exit_status;
}
