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
#include <unistd.h>

bool
client_try_connect(struct client *client, const struct engine *engine)
{
	pid_t		peer;

	memset(client, 0, sizeof(*client));
	client->descriptor = -1;
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		client->files[kind] = -1;
	client->socket = geonn_channel_connect(engine->socket_path, &peer);
	return client->socket >= 0;
}

void
client_connect(struct client *client, const struct engine *engine)
{
	if (!client_try_connect(client, engine))
		give_up("connect");
}

void
client_close(struct client *client)
{
	for (int i = 0; i < GEONN_RING_SLOTS; i++)
		if (client->slots[i].start != NULL)
			munmap(client->slots[i].start, client->slots[i].bytes);
	for (int kind = 0; kind < GEONN_FILE_KINDS; kind++)
		if (client->files[kind] >= 0)
			close(client->files[kind]);
	close(client->socket);
}

static void
send_with(struct client *client, int type, void *message, int descriptor)
{
	struct pollfd wait = {.fd = client->socket,.events = POLLOUT};

	while (geonn_channel_send(client->socket, type, message, descriptor) == GEONN_CHANNEL_AGAIN)
		poll(&wait, 1, 1000);
}

void
client_send(struct client *client, int type, void *message)
{
	send_with(client, type, message, -1);
}

void
client_leave(struct client *client, uint32_t kind, int descriptor)
{
	struct geonn_file leave = {.kind = kind};

	send_with(client, GEONN_LEAVE, &leave, descriptor);
}

int
text_file(const char *text, int seals)
{
	int			descriptor = memfd_create("text", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (descriptor < 0 || write(descriptor, text, strlen(text)) != (ssize_t) strlen(text) ||
		fcntl(descriptor, F_ADD_SEALS, seals) != 0)
		give_up("memfd");
	return descriptor;
}

int
client_receive(struct client *client, int timeout_ms)
{
	struct pollfd wait = {.fd = client->socket,.events = POLLIN};
	int			ends = 0;
	int			ready;

	for (;;)
	{
		switch (geonn_channel_receive(client->socket, &client->message, &client->descriptor))
		{
			case GEONN_CHANNEL_OK:
				return client->message.header.type;
			case GEONN_CHANNEL_AGAIN:
				break;
			case GEONN_CHANNEL_CLOSED:
				/* a reset is reported once, before what can be read */
				if (ends++ == 0)
					continue;
				return 0;
			default:
				return 0;
		}
		do
			ready = poll(&wait, 1, timeout_ms);
		while (ready < 0 && errno == EINTR);
		if (ready != 1)
			return -1;
	}
}

bool
client_expect(struct client *client, int type)
{
	return client_receive(client, PATIENCE_MS) == type;
}

bool
client_hello(struct client *client)
{
	struct geonn_hello hello = {.release = GEONN_VERSION};
	struct geonn_call call;

	client_send(client, GEONN_HELLO, &hello);
	if (!client_expect(client, GEONN_WELCOME))
		return false;
	if (client->call != NULL)
	{
		call = *client->call;
		client_send(client, GEONN_CALL, &call);
	}
	return true;
}

static bool
expect_opened(struct client *client)
{
	uint32_t	files;

	if (!client_expect(client, GEONN_OPENED))
		return false;
	client->dataset = client->message.opened.dataset;
	client->columns = client->message.opened.columns;
	client->references = client->message.opened.references;
	client->sealed = client->message.opened.sealed;
	memcpy(client->note, client->message.opened.note, sizeof(client->note));
	files = client->message.opened.files;
	for (uint32_t kind = 0; kind < GEONN_FILE_KINDS; kind++)
	{
		if (!(files & 1u << kind))
			continue;
		if (!client_expect(client, GEONN_FILE) || client->message.file.kind != kind)
			return false;
		client->files[kind] = client->descriptor;
	}
	return true;
}

bool
client_create(struct client *client, enum geonn_device_choice device,
			  enum geonn_metric metric, uint32_t columns)
{
	struct geonn_open open = {.device = device,.metric = metric,.columns = columns};

	if (!client_hello(client))
		return false;
	client_send(client, GEONN_OPEN, &open);
	return expect_opened(client);
}

bool
client_open_labelled(struct client *client, enum geonn_device_choice device,
					 const char *subject, const char *version)
{
	struct geonn_open open = {.device = device,.labels = 1};

	memcpy(open.label[0].subject, subject, strlen(subject));
	memcpy(open.label[0].version, version, strlen(version));
	memcpy(client->version, open.label[0].version, sizeof(client->version));
	if (!client_hello(client))
		return false;
	client_send(client, GEONN_OPEN, &open);
	return expect_opened(client);
}

bool
client_attach(struct client *client, enum geonn_device_choice device, uint64_t dataset)
{
	struct geonn_attach attach = {.device = device,.dataset = dataset};

	if (!client_hello(client))
		return false;
	client_send(client, GEONN_ATTACH, &attach);
	return expect_opened(client);
}

bool
client_open(struct client *client, enum geonn_device_choice device, uint64_t dataset)
{
	if (dataset != 0)
		return client_attach(client, device, dataset);
	return client_create(client, device, GEONN_METRIC_SPHERE, 0);
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
	slot->bytes = geonn_batch_layout(NULL, batch->rows, batch->room, client->columns,
									 &slot->columns);
	slot->start = geonn_batch_map(client->descriptor, slot->bytes);
	close(client->descriptor);
	if (slot->start == NULL)
		return false;
	geonn_batch_layout(slot->start, batch->rows, batch->room, client->columns,
					   &slot->columns);
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

/*
 * Copy points from place `from` on into a batch, as many as it holds; returns
 * how many those are.
 */
static uint32_t
fill_batch(struct client_slot *slot, const struct client_points *points, size_t from, bool shapes)
{
	struct geonn_batch_columns *columns = &slot->columns;
	size_t		rows = points->count - from;

	if (rows > columns->rows)
		rows = columns->rows;
	while (shapes && rows > 0 && from + rows < points->count && points->shape[from + rows] == points->shape[from + rows - 1])
		rows--;
	if (rows == 0)
		give_up("a batch for a shape");
	memcpy(columns->latitude, points->latitude + from, rows * sizeof(double));
	memcpy(columns->longitude, points->longitude + from, rows * sizeof(double));
	if (points->tag != NULL)
		memcpy(columns->tag, points->tag + from, rows * sizeof(int64_t));
	if (columns->group != NULL)
		memcpy(columns->group, points->group + from, rows * sizeof(int32_t));
	if (columns->excluded_first != NULL && points->excluded_first != NULL)
	{
		memcpy(columns->excluded_first, points->excluded_first + from, rows * sizeof(int64_t));
		memcpy(columns->excluded_last, points->excluded_last + from, rows * sizeof(int64_t));
	}
	if (columns->radius != NULL)
		memcpy(columns->radius, points->radius + from, rows * sizeof(double));
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (columns->low[i] != NULL)
		{
			memcpy(columns->low[i], points->low[i] + from, rows * sizeof(int64_t));
			memcpy(columns->high[i], points->high[i] + from, rows * sizeof(int64_t));
		}
	if (columns->edges != NULL)
		memcpy(columns->edges, points->edges + from, rows * sizeof(uint16_t));
	for (int i = 0; i < GEONN_WEIGHTS_MAX; i++)
		if (columns->weight[i] != NULL && points->weight[i] != NULL)
			memcpy(columns->weight[i], points->weight[i] + from, rows * sizeof(double));
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		if (columns->party[i] != NULL)
			memcpy(columns->party[i], points->party[i] + from, rows * sizeof(int32_t));
	if (columns->shape != NULL && points->shape != NULL)
	{
		memcpy(columns->end_latitude, points->end_latitude + from, rows * sizeof(double));
		memcpy(columns->end_longitude, points->end_longitude + from, rows * sizeof(double));
		memcpy(columns->shape, points->shape + from, rows * sizeof(int32_t));
		memcpy(columns->polygon, points->polygon + from, rows * sizeof(int32_t));
		for (size_t i = 0; shapes && i < rows; i++)
			columns->shape[i] -= points->shape[from];
	}
	slot->sent = true;
	return (uint32_t) rows;
}

bool
client_send_dataset(struct client *client, const struct client_points *references,
					bool order_by_tag)
{
	struct geonn_seal seal = {.order_by_tag = order_by_tag,.keep = client->keep};
	size_t		done = 0;

	memcpy(seal.version, client->version, sizeof(seal.version));
	memcpy(seal.note, client->note, sizeof(seal.note));

	while (done < references->count || any_sent(client))
	{
		int			number = free_slot(client);

		if (number >= 0 && done < references->count)
		{
			struct geonn_references message = {
				.slot = (uint32_t) number,
				.rows = fill_batch(&client->slots[number], references, done, false)
			};

			done += message.rows;
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

bool
client_send_references(struct client *client, size_t count, const double *latitude,
					   const double *longitude, const int64_t *tag, bool order_by_tag)
{
	struct client_points references = {
		.count = count,
		.latitude = latitude,
		.longitude = longitude,
		.tag = tag
	};

	return client_send_dataset(client, &references, order_by_tag);
}

static void
request_search(struct client *client, const struct client_question *question,
			   uint32_t number, bool resume)
{
	struct geonn_search message = {
		.slot = number,
		.first = client->slots[number].next,
		.rows = client->slots[number].rows,
		.k = question->k,
		.algorithm = question->algorithm,
		.flags = (question->ties ? GEONN_SEARCH_TIES : 0) |
		(resume ? GEONN_SEARCH_RESUME : 0) |
		(question->shapes ? GEONN_SEARCH_SHAPES : 0) |
		(question->places ? GEONN_SEARCH_PLACES : 0) |
		(question->extremes ? GEONN_SEARCH_EXTREMES : 0),
		.max_distance = question->max_distance,
		.radii = question->radii
	};

	memcpy(message.radius, question->radius, sizeof(message.radius));
	client_send(client, GEONN_SEARCH, &message);
}

/*
 * Hand out what results bring, and ask for the rest where the room ran out.
 * False where they do not fit the batch, or do not say what they must.
 */
static bool
take_results(struct client *client, const struct client_question *question,
			 client_take_part take, void *argument)
{
	const struct geonn_results results = client->message.results;
	bool		one_each = (results.flags & GEONN_RESULTS_ONE_EACH) != 0;
	bool		partial = (results.flags & GEONN_RESULTS_PARTIAL) != 0;
	uint32_t	counted = results.observations + partial;
	uint64_t	pairs = 0;
	enum geonn_device_kind kind;
	struct client_slot *slot;
	struct client_part part;

	if (results.slot >= GEONN_RING_SLOTS || !client->slots[results.slot].sent)
		return false;
	slot = &client->slots[results.slot];
	if (results.flags & ~(GEONN_RESULTS_ONE_EACH | GEONN_RESULTS_PARTIAL) ||
		results.first != slot->next || counted < 1 ||
		counted > slot->observations - slot->next ||
		results.pairs > slot->columns.room)
		return false;

	/* what was searched was searched in some way, and the CPU had a reason to */
	kind = results.device == 0 ? GEONN_KIND_CPU : GEONN_KIND_CUDA;
	if ((results.ways[kind] != 0) != (results.algorithm != GEONN_ALGORITHM_AUTO) ||
		(results.ways[GEONN_KIND_CPU] != 0) != (results.cpu_reason != GEONN_CPU_NONE))
		return false;

	part = (struct client_part) {
		.first = slot->offset + results.first,
		.observations = counted,
		.count = one_each ? NULL : slot->columns.count + results.first,
		.pairs = results.pairs,
		.tag = slot->columns.tag,
		.distance = slot->columns.distance,
		.places = {slot->columns.end_latitude, slot->columns.end_longitude, slot->columns.latitude, slot->columns.longitude,
		slot->columns.fraction}
	};
	for (uint32_t i = 0; i < counted; i++)
		pairs += one_each ? 1 : part.count[i];
	if (pairs != results.pairs || (partial && part.pairs == 0))
		return false;
	take(argument, &part);

	slot->next += results.observations;
	if (slot->next < slot->observations)
		request_search(client, question, results.slot, partial);
	else
		slot->sent = false;
	return true;
}

bool
client_ask(struct client *client, const struct client_question *question,
		   const struct client_points *observations,
		   client_take_part take, void *argument)
{
	size_t		done = 0;

	while (done < observations->count || any_sent(client))
	{
		int			number = free_slot(client);

		if (number >= 0 && done < observations->count)
		{
			struct client_slot *slot = &client->slots[number];

			slot->offset = question->shapes ? (size_t) observations->shape[done] : done;
			slot->next = 0;
			slot->rows = fill_batch(slot, observations, done, question->shapes);
			slot->observations = question->shapes ? (uint32_t) slot->columns.shape[slot->rows - 1] + 1 : slot->rows;
			done += slot->rows;
			request_search(client, question, (uint32_t) number, false);
			continue;
		}
		if (!client_expect(client, GEONN_RESULTS) ||
			!take_results(client, question, take, argument))
			return false;
	}
	return true;
}

/* pairs in the order in which they came, each with its observation */
struct collection
{
	size_t		pairs;
	size_t		room;
	size_t	   *observation;
	int64_t    *tag;
	double	   *distance;
	bool		has_places;
	double	   *places[CLIENT_PLACES];
	size_t	   *first;			/* of client_answers; first[i + 1] counts the
								 * pairs of observation i for now */
};

static void *
enlarge(void *array, size_t count, size_t size)
{
	array = realloc(array, count * size);
	if (array == NULL)
		give_up("realloc");
	return array;
}

static void
collect_part(void *argument, const struct client_part *part)
{
	struct collection *collection = argument;
	size_t		at = collection->pairs;

	collection->pairs += part->pairs;
	if (collection->pairs > collection->room)
	{
		collection->room = 2 * collection->pairs;
		collection->observation = enlarge(collection->observation, collection->room, sizeof(size_t));
		collection->tag = enlarge(collection->tag, collection->room, sizeof(int64_t));
		collection->distance = enlarge(collection->distance, collection->room, sizeof(double));
		for (int i = 0; collection->has_places && i < CLIENT_PLACES; i++)
			collection->places[i] = enlarge(collection->places[i], collection->room, sizeof(double));
	}
	if (part->pairs > 0)
	{
		memcpy(collection->tag + at, part->tag, part->pairs * sizeof(int64_t));
		memcpy(collection->distance + at, part->distance, part->pairs * sizeof(double));
		for (int i = 0; collection->has_places && i < CLIENT_PLACES; i++)
			memcpy(collection->places[i] + at, part->places[i], part->pairs * sizeof(double));
	}
	for (uint32_t i = 0; i < part->observations; i++)
	{
		uint32_t	count = part->count == NULL ? 1 : part->count[i];

		collection->first[part->first + i + 1] += count;
		for (uint32_t j = 0; j < count; j++)
			collection->observation[at++] = part->first + i;
	}
}

bool
client_collect(struct client *client, const struct client_question *question,
			   const struct client_points *observations, struct client_answers *answers)
{
	struct collection collection = {
		.has_places = question->places,
		.first = calloc(observations->count + 2, sizeof(size_t))
	};
	size_t	   *next;
	bool		sound;

	if (collection.first == NULL)
		give_up("calloc");
	sound = client_ask(client, question, observations, collect_part, &collection);

	/* an observation's parts came in order, so a stable sort keeps theirs */
	*answers = (struct client_answers) {
		.count = observations->count,
		.first = collection.first,
		.tag = enlarge(NULL, collection.pairs + 1, sizeof(int64_t)),
		.distance = enlarge(NULL, collection.pairs + 1, sizeof(double))
	};
	for (int i = 0; question->places && i < CLIENT_PLACES; i++)
		answers->places[i] = enlarge(NULL, collection.pairs + 1, sizeof(double));
	for (size_t i = 0; i < answers->count; i++)
		answers->first[i + 1] += answers->first[i];
	next = enlarge(NULL, answers->count + 1, sizeof(size_t));
	memcpy(next, answers->first, (answers->count + 1) * sizeof(size_t));
	for (size_t i = 0; i < collection.pairs; i++)
	{
		size_t		place = next[collection.observation[i]]++;

		answers->tag[place] = collection.tag[i];
		answers->distance[place] = collection.distance[i];
		for (int j = 0; question->places && j < CLIENT_PLACES; j++)
			answers->places[j][place] = collection.places[j][i];
	}
	free(next);
	free(collection.observation);
	free(collection.tag);
	free(collection.distance);
	for (int i = 0; i < CLIENT_PLACES; i++)
		free(collection.places[i]);
	if (!sound)
		client_free_answers(answers);
	return sound;
}

void
client_free_answers(struct client_answers *answers)
{
	for (int i = 0; i < CLIENT_PLACES; i++)
		free(answers->places[i]);
	free(answers->first);
	free(answers->tag);
	free(answers->distance);
	*answers = (struct client_answers) {0};
}

/* the nearest: each observation has one pair or none */
static void
take_nearest(void *argument, const struct client_part *part)
{
	struct answer *answers = (struct answer *) argument + part->first;
	uint32_t	pair = 0;

	for (uint32_t i = 0; i < part->observations; i++)
	{
		answers[i].count = part->count == NULL ? 1 : part->count[i];
		if (answers[i].count > 0)
		{
			answers[i].tag = part->tag[pair];
			answers[i].distance = part->distance[pair];
		}
		pair += answers[i].count;
	}
}

bool
client_search(struct client *client, size_t count, const double *latitude,
			  const double *longitude, struct answer *answers)
{
	struct client_question nearest = {.k = 1,.max_distance = INFINITY};
	struct client_points observations = {
		.count = count,
		.latitude = latitude,
		.longitude = longitude
	};

	return client_ask(client, &nearest, &observations, take_nearest, answers);
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
