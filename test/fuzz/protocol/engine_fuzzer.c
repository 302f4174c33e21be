/*
 * engine_fuzzer.c
 *		Hostile clients of the engine, under libFuzzer.
 *
 * The engine runs in this process: its event loop on a thread of its own, with the
 * CPU device, two threads of the pool, and a supervisor's channel, which is
 * sound.  A script (steps.h) moves a few clients that connect to its socket: each step
 * is a message of one of them, sound or spoiled, or something done to the memory of its
 * batches, also while the engine reads it.  The clients wait for answers, unless a step
 * says that they do not.
 *
 * When the script is over the clients go, and the engine has to be as it was before: it
 * answers within time, works for no session, has no dataset, no batch and no descriptor more
 * than at first, and gives others right answers.  What the sanitizers see ends the
 * program, too.
 *
 * rooms: engine/server engine/dataset
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine/base/thread_pool.h"
#include "engine/cpu/base/path.h"
#include "engine/server/batch_memory.h"
#include "engine/server/datasets.h"
#include "engine/server/server.h"
#include "../../lib/engine_client.h"
#include "hostile_client.h"

extern int	LLVMFuzzerInitialize(int *argument_count, char ***words);
extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CLIENTS			3
#define STEPS_MAX		96

/* what the engine may take while a script runs */
#define TRANSFER_BYTES	(2 << 20)
#define KEPT_BYTES		(1 << 20)

/* the engine is back to where it was after so long, or never */
#define QUIET_MS		20000

/* descriptors that are looked at */
#define DESCRIPTORS		1024

/* the action beyond those of clients: the operator changes the engine's limits */
#define ACT_CONFIGURE	HOSTILE_ACTIONS

const uint8_t steps_conversation[] = {
	HOSTILE_HELLO, HOSTILE_CALL, HOSTILE_OPEN, HOSTILE_ALLOCATE, HOSTILE_FILL,
	HOSTILE_REFERENCES, HOSTILE_LEAVE, HOSTILE_FILL, HOSTILE_REFERENCES, HOSTILE_SEAL, HOSTILE_FILL,
	HOSTILE_SEARCH, HOSTILE_ALLOCATE, HOSTILE_SCRIBBLE, HOSTILE_SEARCH, HOSTILE_RETURN, HOSTILE_FINISHED,
	HOSTILE_CALL, HOSTILE_OPEN, HOSTILE_SEAL, HOSTILE_FILL, HOSTILE_SEARCH, HOSTILE_CLOSE
};
const size_t steps_conversation_length = sizeof(steps_conversation);

static struct engine engine;
static struct hostile hostiles[CLIENTS];
static struct geonn_configure settings; /* that the supervisor sent last */
static bool descriptors_before[DESCRIPTORS];

/* ---- the engine ---- */

static void *
engine_main(void *argument)
{
	(void) argument;
	server_run(engine.socket_path, true);
	steps_broken("the engine does not end by itself");
}

static void
await_pong(void)
{
	struct pollfd wait = {.fd = engine.supervisor,.events = POLLIN};
	union geonn_message message;
	int			ready;

	do
		ready = poll(&wait, 1, QUIET_MS);
	while (ready < 0 && errno == EINTR);
	if (ready != 1 ||
		geonn_channel_receive(engine.supervisor, &message, NULL) != GEONN_CHANNEL_OK)
		steps_broken("the engine answers its supervisor");
}

/*
 * Say something as the supervisor, and wait until the engine has heard it.
 */
static void
configure(uint64_t transfer_bytes, uint64_t kept_bytes, uint32_t threads, uint32_t sessions)
{
	struct geonn_ping ping = {.number = 1};

	settings = (struct geonn_configure) {
		.cpu_threads = threads,
		/* a session stays idle until the end of the script */
		.idle_session_timeout = transfer_bytes > 0 ? 60000 : 0,
		.max_sessions = sessions,
		.transfer_memory_limit = transfer_bytes,
		.kept_memory_limit = kept_bytes
	};
	geonn_channel_send(engine.supervisor, GEONN_CONFIGURE, &settings, -1);
	geonn_channel_send(engine.supervisor, GEONN_PING, &ping, -1);
	await_pong();
}

static void
note_descriptors(bool *open)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		open[i] = fcntl(i, F_GETFD) >= 0;
}

/*
 * libFuzzer ends the process, and no engine with it that would remove its socket.
 */
static void
remove_socket(void)
{
	unlink(engine.socket_path);
}

int
LLVMFuzzerInitialize(int *argument_count, char ***words)
{
	int			pair[2];
	struct failure failure;
	pthread_t	thread;

	(void) argument_count;
	(void) words;
	signal(SIGPIPE, SIG_IGN);
	snprintf(engine.socket_path, sizeof(engine.socket_path), "/tmp/geonn-fuzz-%d.sock",
			 (int) getpid());
	atexit(remove_socket);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
		return 1;
	engine.supervisor = fcntl(pair[0], F_DUPFD_CLOEXEC, 10);
	close(pair[0]);
	if (pair[1] != GEONN_SUPERVISOR_DESCRIPTOR)
	{
		dup2(pair[1], GEONN_SUPERVISOR_DESCRIPTOR);
		close(pair[1]);
	}
	if (!cpu_path_choose(NULL, &failure))
		return 1;
	hostile_begin(hostiles, CLIENTS, engine.socket_path);
	geonn_channel_send(engine.supervisor, GEONN_CONFIGURE, &settings, -1);
	pthread_create(&thread, NULL, engine_main, NULL);
	await_pong();				/* it listens */
	return 0;
}

/* ---- what has to hold ---- */

/*
 * Other clients get right answers.
 */
static void
see_answers(void)
{
	static const double latitudes[] = {10, -20, 89, 0};
	static const double longitudes[] = {10, 170, 0, 359};
	static const int64_t tags[] = {40, 10, 30, 20};
	struct client client;
	struct answer answers[4];
	bool		right;

	client_connect(&client, &engine);
	right = client_open(&client, GEONN_DEVICE_CPU, 0) && client_allocate(&client, 0, 4, 4) &&
		client_send_references(&client, 4, latitudes, longitudes, tags, true) &&
		client_search(&client, 4, latitudes, longitudes, answers);
	for (int i = 0; i < 4 && right; i++)
		right = answers[i].count == 1 && answers[i].tag == tags[i] && answers[i].distance == 0;
	client_close(&client);
	if (!right)
		steps_broken("another client gets right answers");
}

/*
 * No client has changed a setting.
 */
static void
see_settings(void)
{
	struct geonn_engine_status status;
	struct geonn_device_status device;

	if (!engine_status(&engine, &status, &device, 1))
		steps_broken("the engine tells its status");
	if (status.transfer_memory_limit != settings.transfer_memory_limit ||
		device.threads != settings.cpu_threads)
		steps_broken("only the supervisor changes settings");
}

/*
 * The engine works for no session, and holds nothing of one.
 */
static void
see_quiet(void)
{
	struct geonn_engine_status status;
	struct geonn_device_status device;
	double		until = now_ms() + QUIET_MS;
	bool		open[DESCRIPTORS];
	unsigned	pause_us = 50;

	configure(0, 0, 2, 0);
	for (;;)
	{
		if (!engine_status(&engine, &status, &device, 1))
			steps_broken("the engine tells its status");
		/* the engine lets go of the session that asked for that, too, as soon as it gets a processor */
		usleep(pause_us);
		pause_us = pause_us < 50000 ? 2 * pause_us : pause_us;
		note_descriptors(open);
		if (status.sessions == 0 && status.queued == 0 && status.searches == 0 && status.datasets == 0 &&
			status.transfer_memory == 0 &&
			memcmp(open, descriptors_before, sizeof(open)) == 0)
			return;
		if (now_ms() > until)
			break;
	}
	fprintf(stderr, "sessions %u and %u queued, searches %u, datasets %u, bytes of batches %llu\n",
			status.sessions, status.queued, status.searches, status.datasets,
			(unsigned long long) status.transfer_memory);
	for (int i = 0; i < DESCRIPTORS; i++)
		if (open[i] != descriptors_before[i])
		{
			char		path[32];
			char		target[64] = "closed";

			snprintf(path, sizeof(path), "/proc/self/fd/%d", i);
			if (readlink(path, target, sizeof(target) - 1) < 0 && open[i])
				target[0] = '\0';
			fprintf(stderr, "descriptor %d is %s\n", i, target);
		}
	steps_broken("nothing is left of clients that are gone");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t		count = steps_count(size);

	if (count > STEPS_MAX)
		return -1;
	if (!descriptors_before[0])
	{
		note_descriptors(descriptors_before);
		see_quiet();
	}
	configure(TRANSFER_BYTES, KEPT_BYTES, 2, 1);
	for (size_t i = 0; i < count; i++)
	{
		struct step step = steps_get(data, i);

		if (step.action % (HOSTILE_ACTIONS + 1) == ACT_CONFIGURE)
			configure(step.numbers[0] % (2 * TRANSFER_BYTES),
					  step.numbers[1] % (2 * KEPT_BYTES), 1 + step.slot % 3,
					  step.peer % (CLIENTS + 1));
		else
		{
			step.action %= HOSTILE_ACTIONS + 1;
			hostile_act(&hostiles[step.peer % CLIENTS], &step);
		}
	}
	hostile_end(hostiles, CLIENTS);
	see_settings();
	see_quiet();
	configure(TRANSFER_BYTES, KEPT_BYTES, 2, 0);
	see_answers();
	return 0;
}
