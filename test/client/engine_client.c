/*
 * engine_client.c
 *		A client of the engine for tests and benchmarks.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine_client.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define START_TIMEOUT_MS 60000
#define ANSWER_TIMEOUT_MS 120000

static void
give_up(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

double
now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e3 + (double) now.tv_nsec * 1e-6;
}

void
engine_start(struct engine *engine, const char *program, const char *option,
			 const char *value)
{
	static int	started;
	int			pair[2];
	struct pollfd wait;
	union geonn_message message;
	int			descriptor;

	snprintf(engine->socket_path, sizeof(engine->socket_path),
			 "/tmp/geonn-test-%d-%d.sock", (int) getpid(), started++);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		give_up("socketpair");
	engine->pid = fork();
	if (engine->pid < 0)
		give_up("fork");
	if (engine->pid == 0)
	{
		/* dup2 onto itself would keep close-on-exec */
		int			other = fcntl(pair[1], F_DUPFD, GEONN_SUPERVISOR_DESCRIPTOR + 1);

		dup2(other, GEONN_SUPERVISOR_DESCRIPTOR);
		close(other);
		execl(program, "geonn-engine", "--socket", engine->socket_path, option,
			  value, (char *) NULL);
		give_up(program);
	}
	close(pair[1]);
	engine->supervisor = pair[0];

	/* pong 0 unasked: it listens */
	wait = (struct pollfd) {.fd = engine->supervisor,.events = POLLIN};
	if (poll(&wait, 1, START_TIMEOUT_MS) != 1 ||
		geonn_channel_receive(engine->supervisor, &message, &descriptor) != GEONN_CHANNEL_OK ||
		message.header.type != GEONN_PONG)
	{
		fprintf(stderr, "%s did not start\n", program);
		exit(EXIT_FAILURE);
	}
}

int
engine_stop(struct engine *engine)
{
	int			status;

	close(engine->supervisor);
	if (waitpid(engine->pid, &status, 0) != engine->pid)
		give_up("waitpid");
	return status;
}

void
client_connect(struct client *client, const struct engine *engine)
{
	pid_t		peer;

	memset(client, 0, sizeof(*client));
	client->descriptor = -1;
	client->socket = geonn_channel_connect(engine->socket_path, &peer);
	if (client->socket < 0)
		give_up("connect");
}

void
client_close(struct client *client)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (client->slots[i].start != NULL)
			munmap(client->slots[i].start, client->slots[i].bytes);
	close(client->socket);
}

void
client_send(struct client *client, int type, void *message)
{
	struct pollfd wait = {.fd = client->socket,.events = POLLOUT};

	while (geonn_channel_send(client->socket, type, message, -1) == GEONN_CHANNEL_AGAIN)
		poll(&wait, 1, 1000);
}

int
client_receive(struct client *client, int timeout_ms)
{
	struct pollfd wait = {.fd = client->socket,.events = POLLIN};

	for (;;)
	{
		switch (geonn_channel_receive(client->socket, &client->message, &client->descriptor))
		{
			case GEONN_CHANNEL_OK:
				return client->message.header.type;
			case GEONN_CHANNEL_AGAIN:
				break;
			default:
				return 0;
		}
		if (poll(&wait, 1, timeout_ms) != 1)
			return -1;
	}
}

bool
client_expect(struct client *client, int type)
{
	return client_receive(client, ANSWER_TIMEOUT_MS) == type;
}

static bool
client_hello(struct client *client)
{
	struct geonn_hello hello = {.release = GEONN_VERSION};

	client_send(client, GEONN_HELLO, &hello);
	return client_expect(client, GEONN_WELCOME);
}

bool
client_open(struct client *client, enum geonn_device_choice device, uint64_t dataset)
{
	struct geonn_open open = {.device = device};
	struct geonn_attach attach = {.device = device,.dataset = dataset};

	if (!client_hello(client))
		return false;
	if (dataset == 0)
		client_send(client, GEONN_OPEN, &open);
	else
		client_send(client, GEONN_ATTACH, &attach);
	return client_expect(client, GEONN_OPENED);
}

bool
client_allocate(struct client *client, uint32_t number, uint32_t rows, uint32_t room)
{
	struct geonn_allocate allocate = {.slot = number,.rows = rows,.room = room};
	struct client_slot *slot = &client->slots[number];
	const struct geonn_batch *batch = &client->message.batch;

	if (slot->start != NULL)
		munmap(slot->start, slot->bytes);
	slot->start = NULL;
	client_send(client, GEONN_ALLOCATE, &allocate);
	if (!client_expect(client, GEONN_BATCH) || batch->rows == 0)
		return false;
	slot->bytes = geonn_batch_layout(NULL, batch->rows, batch->room, 0, &slot->columns);
	slot->start = geonn_batch_map(client->descriptor, slot->bytes);
	close(client->descriptor);
	if (slot->start == NULL)
		return false;
	geonn_batch_layout(slot->start, batch->rows, batch->room, 0, &slot->columns);
	return true;
}

/*
 * An allocated slot with nothing under way, or -1.
 */
static int
free_slot(const struct client *client)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (client->slots[i].start != NULL && !client->slots[i].sent)
			return i;
	return -1;
}

static bool
any_sent(const struct client *client)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (client->slots[i].sent)
			return true;
	return false;
}

bool
client_send_references(struct client *client, size_t count, const double *latitude,
					   const double *longitude, const int64_t *tag, bool order_by_tag)
{
	struct geonn_seal seal = {.order_by_tag = order_by_tag};
	size_t		done = 0;

	while (done < count || any_sent(client))
	{
		int			number = free_slot(client);

		if (number >= 0 && done < count)
		{
			struct client_slot *slot = &client->slots[number];
			struct geonn_references message = {.slot = (uint32_t) number};
			size_t		rows = count - done;

			if (rows > slot->columns.rows)
				rows = slot->columns.rows;
			memcpy(slot->columns.latitude, latitude + done, rows * sizeof(double));
			memcpy(slot->columns.longitude, longitude + done, rows * sizeof(double));
			memcpy(slot->columns.tag, tag + done, rows * sizeof(int64_t));
			message.rows = (uint32_t) rows;
			slot->sent = true;
			done += rows;
			client_send(client, GEONN_REFERENCES, &message);
			continue;
		}
		if (!client_expect(client, GEONN_RELEASED))
			return false;
		client->slots[client->message.released.slot].sent = false;
	}
	client_send(client, GEONN_SEAL, &seal);
	return client_expect(client, GEONN_SEALED);
}

static void
request_search(struct client *client, uint32_t number, uint32_t first)
{
	struct geonn_search message = {
		.slot = number,
		.first = first,
		.rows = client->slots[number].rows,
		.neighbours = 1,
		.algorithm = GEONN_ALGORITHM_BRUTE,
		.max_distance = INFINITY
	};

	client_send(client, GEONN_SEARCH, &message);
}

/*
 * Take the results out of a batch; ask for the rest where its room ran out.
 */
static bool
take_results(struct client *client, struct answer *answers)
{
	struct geonn_results results = client->message.results;
	struct client_slot *slot = &client->slots[results.slot];
	uint32_t	pairs = 0;

	if (results.observations == 0 ||
		results.first + results.observations > slot->rows ||
		results.pairs > slot->columns.room)
		return false;
	for (uint32_t i = results.first; i < results.first + results.observations; i++)
	{
		struct answer *answer = &answers[slot->offset + i];

		answer->count = results.flags & GEONN_RESULTS_ONE_EACH ? 1 : slot->columns.count[i];
		if (answer->count > 0)
		{
			answer->tag = slot->columns.tag[pairs];
			answer->distance = slot->columns.distance[pairs];
		}
		pairs += answer->count;
	}
	if (pairs != results.pairs)
		return false;
	if (results.first + results.observations < slot->rows)
		request_search(client, results.slot, results.first + results.observations);
	else
		slot->sent = false;
	return true;
}

bool
client_search(struct client *client, size_t count, const double *latitude,
			  const double *longitude, struct answer *answers)
{
	size_t		done = 0;

	while (done < count || any_sent(client))
	{
		int			number = free_slot(client);

		if (number >= 0 && done < count)
		{
			struct client_slot *slot = &client->slots[number];
			size_t		rows = count - done;

			if (rows > slot->columns.rows)
				rows = slot->columns.rows;
			memcpy(slot->columns.latitude, latitude + done, rows * sizeof(double));
			memcpy(slot->columns.longitude, longitude + done, rows * sizeof(double));
			slot->rows = (uint32_t) rows;
			slot->offset = done;
			slot->sent = true;
			done += rows;
			request_search(client, (uint32_t) number, 0);
			continue;
		}
		if (!client_expect(client, GEONN_RESULTS) || !take_results(client, answers))
			return false;
	}
	return true;
}

bool
engine_status(const struct engine *engine, struct geonn_engine_status *status,
			  struct geonn_device_status *devices, int devices_max)
{
	struct geonn_status request = {0};
	struct client client;
	bool		sound;

	client_connect(&client, engine);
	sound = client_hello(&client);
	if (sound)
	{
		client_send(&client, GEONN_STATUS, &request);
		sound = client_expect(&client, GEONN_ENGINE_STATUS);
		*status = client.message.engine_status;
		for (uint32_t i = 0; sound && i < status->devices; i++)
		{
			sound = client_expect(&client, GEONN_DEVICE_STATUS);
			if ((int) i < devices_max)
				devices[i] = client.message.device_status;
		}
	}
	client_close(&client);
	return sound;
}
