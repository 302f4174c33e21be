/*
 * engine_test.c
 *		The engine over its own socket, without PostgreSQL.
 *
 * Usage: engine_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * "sanitized" leaves out what depends on hiding GPUs, which compute-sanitizer
 * shows all the same.  sharing_test has what depends on time.
 *
 * Answers are held against the definition itself, a loop over all references
 * with geodesy.h's distance, in order; nearest_oracle holds the same distances
 * against a higher precision.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/common/geodesy.h"
#include "../client/engine_client.h"
#include "../client/random.h"

static const char *engine_program;
static enum geonn_device_choice device = GEONN_DEVICE_CPU;
static int	passed;
static int	failed;

static void
report(const char *property, bool holds)
{
	printf("%s - %s\n", holds ? "ok" : "not ok", property);
	fflush(stdout);
	if (holds)
		passed++;
	else
		failed++;
}

/* points with tags */
struct points
{
	size_t		count;
	double	   *latitude;
	double	   *longitude;
	int64_t    *tag;
};

static struct points
points_create(size_t count)
{
	struct points points = {
		.count = count,
		.latitude = calloc(count + 1, sizeof(double)),
		.longitude = calloc(count + 1, sizeof(double)),
		.tag = calloc(count + 1, sizeof(int64_t))
	};

	if (!points.latitude || !points.longitude || !points.tag)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < count; i++)
		points.tag[i] = (int64_t) i;
	return points;
}

static void
points_free(struct points *points)
{
	free(points->latitude);
	free(points->longitude);
	free(points->tag);
}

static struct points
uniform_points(size_t count)
{
	struct points points = points_create(count);

	for (size_t i = 0; i < count; i++)
	{
		points.latitude[i] = asin(random_between(-1, 1)) * (180 / M_PI);
		points.longitude[i] = random_between(-180, 180);
	}
	return points;
}

/* clusters of points within metres of each other */
static struct points
clustered_points(size_t count, double degrees)
{
	struct points points = points_create(count);
	double		latitude = 0;
	double		longitude = 0;

	for (size_t i = 0; i < count; i++)
	{
		if (i % 200 == 0)
		{
			latitude = random_between(-89, 89);
			longitude = random_between(-179, 179);
		}
		points.latitude[i] = latitude + random_between(-degrees, degrees);
		points.longitude[i] = longitude + random_between(-degrees, degrees);
	}
	return points;
}

/* a grid of this step, poles and both ends of the longitudes included */
static struct points
grid_points(double step)
{
	size_t		rows = (size_t) (180 / step) + 1;
	size_t		columns = (size_t) (360 / step) + 1;
	struct points points = points_create(rows * columns);

	for (size_t i = 0; i < points.count; i++)
	{
		points.latitude[i] = -90 + step * (double) (i / columns);
		points.longitude[i] = -180 + step * (double) (i % columns);
	}
	return points;
}

static struct points
antipodes_of(const struct points *points)
{
	struct points antipodes = points_create(points->count);

	for (size_t i = 0; i < points->count; i++)
	{
		antipodes.latitude[i] = -points->latitude[i];
		antipodes.longitude[i] = points->longitude[i] + 180;
	}
	return antipodes;
}

/* some points many times over */
static struct points
repeated_points(size_t count, size_t different)
{
	struct points some = uniform_points(different);
	struct points points = points_create(count);

	for (size_t i = 0; i < count; i++)
	{
		size_t		source = random_bits() % different;

		points.latitude[i] = some.latitude[source];
		points.longitude[i] = some.longitude[source];
	}
	points_free(&some);
	return points;
}

static bool
bits_equal(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/*
 * Whether the answers to these observations are the definition's.  Only each
 * stride'th is looked at.
 */
static bool
answers_right(const struct points *references, const struct points *observations,
			  const struct answer *answers, size_t stride)
{
	struct geonn_vector *places = calloc(references->count + 1, sizeof(*places));
	bool		right = true;

	for (size_t i = 0; i < references->count; i++)
		places[i] = geonn_unit_vector(references->latitude[i], references->longitude[i]);
	for (size_t i = 0; i < observations->count && right; i += stride)
	{
		struct geonn_vector place = geonn_unit_vector(observations->latitude[i],
													  observations->longitude[i]);
		double		smallest = INFINITY;
		int64_t		tag = -1;

		for (size_t j = 0; j < references->count; j++)
		{
			double		distance = geonn_distance_of(place, places[j]);

			if (distance < smallest)
			{
				smallest = distance;
				tag = references->tag[j];
			}
		}
		right = answers[i].count == 1 && answers[i].tag == tag &&
			bits_equal(answers[i].distance, smallest);
		if (!right)
			printf("# observation %zu (%.17g, %.17g): tag %lld at %.17g m, expected %lld at %.17g m\n",
				   i, observations->latitude[i], observations->longitude[i],
				   (long long) answers[i].tag, answers[i].distance, (long long) tag, smallest);
	}
	free(places);
	return right;
}

/*
 * Send the references, search the observations, and say whether all answers
 * are right.
 */
static bool
search_right(const struct engine *engine, const struct points *references,
			 const struct points *observations, uint32_t rows, uint32_t room,
			 int slots, size_t stride)
{
	struct answer *answers = calloc(observations->count + 1, sizeof(*answers));
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, device, 0);
	for (int i = 0; right && i < slots; i++)
		right = client_allocate(&client, (uint32_t) i, rows, room);
	right = right &&
		client_send_references(&client, references->count, references->latitude,
							   references->longitude, references->tag, false) &&
		client_search(&client, observations->count, observations->latitude,
					  observations->longitude, answers) &&
		answers_right(references, observations, answers, stride);
	if (client.message.header.type == GEONN_ERROR)
		printf("# %s\n", client.message.error.message);
	client_close(&client);
	free(answers);
	return right;
}

static void
test_answers(const struct engine *engine)
{
	struct points uniform = uniform_points(3000);
	struct points observations = uniform_points(2000);
	struct points grid = grid_points(7.5);
	struct points fine_grid = grid_points(3.75);
	struct points antipodes = antipodes_of(&uniform);
	struct points dense = clustered_points(3000, 1e-5);
	struct points towns = clustered_points(3000, 0.05);
	struct points repeated = repeated_points(3000, 7);
	struct points one = uniform_points(1);
	static const size_t counts[] = {1, 2, 31, 63, 64, 65, 511, 512, 513, 1025, 2047};
	bool		right = true;

	report("uniform references: the nearest, bit for bit",
		   search_right(engine, &uniform, &observations, 512, 512, 3, 1));
	report("a grid searched from a grid: ties go to the first reference",
		   search_right(engine, &grid, &fine_grid, 1000, 1000, 2, 1));
	report("references antipodal to every observation",
		   search_right(engine, &antipodes, &uniform, 4096, 4096, 1, 1));
	report("an observation with all references near its antipode",
		   search_right(engine, &dense, &antipodes, 4096, 4096, 1, 1));
	report("references within metres of each other",
		   search_right(engine, &dense, &dense, 4096, 4096, 2, 1));
	report("references in towns, searched from afar and from within",
		   search_right(engine, &towns, &observations, 4096, 4096, 2, 1) &&
		   search_right(engine, &towns, &towns, 4096, 4096, 2, 1));
	report("coincident references: the first wins",
		   search_right(engine, &repeated, &observations, 4096, 4096, 1, 1) &&
		   search_right(engine, &repeated, &repeated, 4096, 4096, 1, 1));
	report("one reference, one observation",
		   search_right(engine, &one, &one, 1, 1, 1, 1) &&
		   search_right(engine, &one, &observations, 256, 256, 4, 1) &&
		   search_right(engine, &uniform, &one, 4096, 4096, 1, 1));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		struct points references = uniform_points(counts[i]);
		struct points few = uniform_points(counts[i]);

		right = right && search_right(engine, &references, &few, 700, 700, 2, 1);
		points_free(&references);
		points_free(&few);
	}
	report("numbers of references and observations around every tile's border", right);
	report("room for fewer pairs than rows: the search goes on where it stopped",
		   search_right(engine, &uniform, &observations, 1000, 300, 2, 1) &&
		   search_right(engine, &uniform, &observations, 999, 1, 1, 1));

	points_free(&uniform);
	points_free(&observations);
	points_free(&grid);
	points_free(&fine_grid);
	points_free(&antipodes);
	points_free(&dense);
	points_free(&towns);
	points_free(&repeated);
	points_free(&one);
}

/* more of everything, of which a sample is checked */
static void
test_large_answers(const struct engine *engine)
{
	struct points references = uniform_points(70000);
	struct points observations = uniform_points(100000);
	struct points cluster = repeated_points(1000000, 1);
	struct points few = uniform_points(50);

	report("70,000 references and 100,000 observations in batches",
		   search_right(engine, &references, &observations, 16384, 16384, 4, 1000));
	report("a million references at one point: the first wins",
		   search_right(engine, &cluster, &few, 65536, 65536, 2, 10));
	points_free(&references);
	points_free(&observations);
	points_free(&cluster);
	points_free(&few);
}

static void
test_order_by_tag(const struct engine *engine)
{
	struct points references = repeated_points(5000, 20);
	struct points sorted = points_create(references.count);
	struct points observations = uniform_points(200);
	struct answer answers[200];
	struct client client;
	bool		right;

	/* tags in disorder, negative ones too; then the same in order */
	for (size_t i = 0; i < references.count; i++)
		references.tag[i] = (int64_t) ((i * 7919) % references.count) - 2500;
	for (size_t i = 0; i < references.count; i++)
	{
		size_t		place = (size_t) (references.tag[i] + 2500);

		sorted.tag[place] = references.tag[i];
		sorted.latitude[place] = references.latitude[i];
		sorted.longitude[place] = references.longitude[i];
	}

	client_connect(&client, engine);
	right = client_open(&client, device, 0) &&
		client_allocate(&client, 0, 1024, 1024) &&
		client_send_references(&client, references.count, references.latitude,
							   references.longitude, references.tag, true) &&
		client_search(&client, observations.count, observations.latitude,
					  observations.longitude, answers) &&
		answers_right(&sorted, &observations, answers, 1);
	client_close(&client);
	report("sealed with order_by_tag, the smallest tag wins a tie", right);
	points_free(&references);
	points_free(&sorted);
	points_free(&observations);
}

static void
test_empty(const struct engine *engine)
{
	struct points observations = uniform_points(100);
	struct answer answers[100];
	struct client client;
	bool		right;

	memset(answers, 0xFF, sizeof(answers));
	client_connect(&client, engine);
	right = client_open(&client, device, 0) &&
		client_allocate(&client, 0, 256, 256) &&
		client_send_references(&client, 0, NULL, NULL, NULL, true) &&
		client_search(&client, 100, observations.latitude, observations.longitude, answers);
	for (int i = 0; i < 100; i++)
		right = right && answers[i].count == 0;
	client_close(&client);
	report("without references nobody has a neighbour", right);
	points_free(&observations);
}

static void
test_attach(const struct engine *engine)
{
	struct points references = uniform_points(500);
	struct points observations = uniform_points(300);
	struct answer answers[300];
	struct client leader;
	struct client worker;
	struct client late;
	struct geonn_engine_status status;
	uint64_t	dataset;
	bool		right;

	client_connect(&leader, engine);
	right = client_open(&leader, device, 0);
	dataset = leader.message.opened.dataset;

	/* not before it is sealed */
	client_connect(&worker, engine);
	right = right && !client_open(&worker, device, dataset) &&
		worker.message.header.type == GEONN_ERROR;
	client_close(&worker);

	right = right && client_allocate(&leader, 0, 500, 500) &&
		client_send_references(&leader, 500, references.latitude,
							   references.longitude, references.tag, false);
	client_connect(&worker, engine);
	right = right && client_open(&worker, device, dataset) &&
		engine_status(engine, &status, NULL, 0) && status.datasets == 1 && status.sessions == 2;
	client_close(&leader);
	right = right && client_allocate(&worker, 0, 300, 300) &&
		client_search(&worker, 300, observations.latitude, observations.longitude, answers) &&
		answers_right(&references, &observations, answers, 1);
	client_close(&worker);

	/* and no longer than somebody holds it */
	for (int i = 0; i < 100 && engine_status(engine, &status, NULL, 0) && status.datasets > 0; i++)
		usleep(10000);
	client_connect(&late, engine);
	right = right && status.datasets == 0 && !client_open(&late, device, dataset);
	client_close(&late);
	report("a dataset serves every session that attached to it, and goes with the last", right);
	points_free(&references);
	points_free(&observations);
}

static void
test_batch_memory(const struct engine *engine)
{
	struct geonn_allocate allocate = {.rows = 1000,.room = 1000};
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, device, 0);
	client_send(&client, GEONN_ALLOCATE, &allocate);
	right = right && client_expect(&client, GEONN_BATCH) && client.descriptor >= 0 &&
		ftruncate(client.descriptor, 0) != 0 && ftruncate(client.descriptor, 1 << 30) != 0 &&
		fcntl(client.descriptor, F_ADD_SEALS, F_SEAL_WRITE) != 0 &&
		geonn_batch_map(client.descriptor, 1 << 30) == NULL;
	close(client.descriptor);
	right = right && client_allocate(&client, 0, 5000, 5000) &&
		client_allocate(&client, 0, 100, 100) && client.slots[0].columns.rows == 100;
	client_close(&client);
	report("a batch's memory can't be resized, and is checked before it is mapped", right);
}

/*
 * A client whose session the engine ended has its batches mapped still, and
 * may write to them until it notices.
 */
static void
test_memory_of_failed_session(const struct engine *engine)
{
	struct geonn_references references = {.slot = 0,.rows = 1};
	struct client failed_client;
	struct client next;
	bool		right;

	client_connect(&failed_client, engine);
	right = client_open(&failed_client, device, 0) &&
		client_allocate(&failed_client, 0, 777, 777) && client_allocate(&failed_client, 1, 777, 777);
	failed_client.slots[0].columns.latitude[0] = 1000;
	client_send(&failed_client, GEONN_REFERENCES, &references);
	right = right && client_expect(&failed_client, GEONN_ERROR);

	client_connect(&next, engine);
	right = right && client_open(&next, device, 0) &&
		client_allocate(&next, 0, 777, 777) && client_allocate(&next, 1, 777, 777);
	for (int i = 0; right && i < 2; i++)
	{
		next.slots[0].columns.latitude[0] = next.slots[1].columns.latitude[0] = 0;
		failed_client.slots[i].columns.latitude[0] = 45;
		right = next.slots[0].columns.latitude[0] == 0 && next.slots[1].columns.latitude[0] == 0;
	}
	client_close(&failed_client);
	client_close(&next);
	report("what a failed session still writes reaches nobody else", right);
}

/*
 * Allocate until there is no more to be had, then search with that.
 */
static void
test_short_of_batches(void)
{
	struct points points = uniform_points(3000);
	struct answer answers[3000];
	struct engine engine;
	struct client client;
	bool		right;
	int			batches = 1;

	engine_start(&engine, engine_program, "--transfer-memory-limit", "45000");
	client_connect(&client, &engine);
	right = client_open(&client, GEONN_DEVICE_CPU, 0) && client_allocate(&client, 0, 1024, 1024);
	while (right && batches < GEONN_RING_SLOTS &&
		   client_allocate(&client, (uint32_t) batches, 1024, 1024))
		batches++;
	right = right && batches < GEONN_RING_SLOTS &&
		client.message.header.type == GEONN_BATCH && client.message.batch.rows == 0 &&
		client_send_references(&client, 3000, points.latitude, points.longitude,
							   points.tag, false) &&
		client_search(&client, 3000, points.latitude, points.longitude, answers) &&
		answers_right(&points, &points, answers, 10);
	client_close(&client);
	engine_stop(&engine);
	points_free(&points);
	report("a session that has batches goes on with them when there are no more", right);
}

static void
test_transfer_memory_limit(void)
{
	struct engine engine;
	struct client clients[8];
	struct geonn_engine_status status;
	bool		smaller = false;
	bool		refused = false;
	bool		right = true;

	engine_start(&engine, engine_program, "--transfer-memory-limit", "1000000");
	for (int i = 0; i < 8; i++)
	{
		client_connect(&clients[i], &engine);
		right = right && client_open(&clients[i], GEONN_DEVICE_CPU, 0);
		if (client_allocate(&clients[i], 0, 16384, 16384))
			smaller = smaller || clients[i].slots[0].columns.rows < 16384;
		else
			refused = refused || (clients[i].message.header.type == GEONN_ERROR &&
								  clients[i].message.error.code == GEONN_ERROR_LIMIT);
		right = right && engine_status(&engine, &status, NULL, 0) &&
			status.transfer_memory <= 1000000;
	}
	for (int i = 0; i < 8; i++)
		client_close(&clients[i]);
	report("short transfer memory makes batches smaller", right && smaller);
	report("with none left a session gets an error with both numbers", right && refused);
	engine_stop(&engine);
}

/*
 * Whether this last message of a client ends its session with such an error.
 */
static bool
refused(struct client *client, uint32_t code)
{
	bool		right = client_expect(client, GEONN_ERROR) &&
		client->message.error.code == code && client->message.error.message[0] != '\0' &&
		client_receive(client, 10000) == 0;

	client_close(client);
	return right;
}

static void
test_abuse(const struct engine *engine)
{
	struct geonn_hello hello = {.release = "0.0-other"};
	struct geonn_seal seal = {0};
	struct geonn_open open = {.device = 77};
	struct geonn_allocate allocate = {.slot = 9,.rows = 10,.room = 10};
	struct geonn_references references = {.slot = 0,.rows = 10};
	struct geonn_search search = {
		.slot = 0,
		.rows = 10,
		.neighbours = 1,
		.max_distance = INFINITY
	};
	struct client client;
	bool		right;

	client_connect(&client, engine);
	client_send(&client, GEONN_HELLO, &hello);
	report("a client of another version gets the version error",
		   refused(&client, GEONN_ERROR_VERSION));

	client_connect(&client, engine);
	hello.header.magic = GEONN_PROTOCOL_MAGIC;
	hello.header.version = GEONN_PROTOCOL_VERSION + 1;
	hello.header.type = GEONN_HELLO;
	right = send(client.socket, &hello, sizeof(hello), 0) == sizeof(hello);
	right = right && client_receive(&client, 10000) == GEONN_ERROR &&
		client.message.error.code == GEONN_ERROR_VERSION;
	client_close(&client);
	report("a client of another protocol version gets the version error", right);

	client_connect(&client, engine);
	client_send(&client, GEONN_SEAL, &seal);
	right = refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, device, 0);
	client_send(&client, GEONN_SEARCH, &search);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && !client_open(&client, device, 12345678) &&
		client.message.error.code == GEONN_ERROR_PROTOCOL;
	client_close(&client);
	report("messages out of turn end the session", right);

	client_connect(&client, engine);
	right = !client_open(&client, open.device, 0) &&
		client.message.error.code == GEONN_ERROR_PROTOCOL;
	client_close(&client);

	client_connect(&client, engine);
	right = right && client_open(&client, device, 0);
	client_send(&client, GEONN_ALLOCATE, &allocate);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, device, 0);
	allocate.slot = 0;
	allocate.rows = GEONN_BATCH_ROWS_MAX + 1;
	client_send(&client, GEONN_ALLOCATE, &allocate);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, device, 0);
	client_send(&client, GEONN_REFERENCES, &references);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);

	client_connect(&client, engine);
	right = right && client_open(&client, device, 0) && client_allocate(&client, 0, 9, 9);
	client_send(&client, GEONN_REFERENCES, &references);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	report("slots, rows and choices out of range end the session", right);

	client_connect(&client, engine);
	right = client_open(&client, device, 0) && client_allocate(&client, 0, 10, 10);
	for (int i = 0; i < 10; i++)
		client.slots[0].columns.latitude[i] = i == 7 ? NAN : 0;
	client_send(&client, GEONN_REFERENCES, &references);
	right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	report("a reference that is no place on Earth ends the session", right);

	for (int bad = 0; bad < 4; bad++)
	{
		static const double values[] = {NAN, INFINITY, 1e300, -90.5};
		double		zero[10] = {0};
		int64_t		tag[10] = {0};

		client_connect(&client, engine);
		right = right && client_open(&client, device, 0) && client_allocate(&client, 0, 10, 10) &&
			client_send_references(&client, 10, zero, zero, tag, false);
		for (int i = 0; i < 10; i++)
			client.slots[0].columns.latitude[i] = i == 7 ? values[bad] : 0;
		client_send(&client, GEONN_SEARCH, &search);
		right = right && refused(&client, GEONN_ERROR_PROTOCOL);
	}
	report("an observation that is no place on Earth ends the session", right);
}

/*
 * Questions that nobody may ask, and datasets that nobody may open.
 */
static void
test_abuse_of_questions(const struct engine *engine)
{
	static const struct
	{
		const char *what;
		struct geonn_search search;
	}			questions[] = {
		{"more than 1,024 neighbours",
		{.rows = 5,.neighbours = GEONN_NEIGHBOURS_MAX + 1,.max_distance = INFINITY}},
		{"a negative distance", {.rows = 5,.neighbours = 1,.max_distance = -1}},
		{"a distance that is no number", {.rows = 5,.neighbours = 1,.max_distance = NAN}},
		{"an algorithm that there is not",
		{.rows = 5,.neighbours = 1,.max_distance = INFINITY,.algorithm = GEONN_ALGORITHM_BRUTE + 1}},
		{"a flag that there is not",
		{.rows = 5,.neighbours = 1,.max_distance = INFINITY,.flags = 4}},
		{"to resume what was not begun",
		{.rows = 5,.neighbours = 0,.max_distance = INFINITY,.flags = GEONN_SEARCH_RESUME}},
		{"to begin past the rows",
		{.first = 5,.rows = 5,.neighbours = 1,.max_distance = INFINITY}},
		{"no rows", {.rows = 0,.neighbours = 1,.max_distance = INFINITY}},
		{"more rows than the batch has",
		{.rows = 11,.neighbours = 1,.max_distance = INFINITY}},
		{"a slot without a batch",
		{.slot = 1,.rows = 5,.neighbours = 1,.max_distance = INFINITY}},
		{"a slot out of range",
		{.slot = GEONN_RING_SLOTS,.rows = 5,.neighbours = 1,.max_distance = INFINITY}}
	};
	static const struct
	{
		const char *what;
		bool		cut_off;	/* a search is, at its first observation */
		uint32_t	neighbours; /* that were asked for */
		struct geonn_search search; /* to resume it */
	}			resumptions[] = {
		{"what was answered", false, 0,
		{.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"another observation", true, 0,
		{.first = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"all within by one neighbour", true, 0,
		{.neighbours = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"eight neighbours by nine", true, 8,
		{.neighbours = 9,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"eight neighbours by all within", true, 8,
		{.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"neighbours by neighbours with ties", true, 8,
		{.neighbours = 8,.flags = GEONN_SEARCH_TIES,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY}},
		{"any distance by some distance", true, 0,
		{.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = 1}},
		{"the index by brute force", true, 0,
		{.algorithm = GEONN_ALGORITHM_BRUTE,.max_distance = INFINITY}}
	};
	static const struct geonn_open datasets[] = {
		{.metric = GEONN_METRIC_SPHEROID + 1},
		{.columns = GEONN_COLUMNS_ALL + 1},
		{.columns = UINT32_MAX}
	};
	struct client_question all_within = {.max_distance = INFINITY};
	double		zero[10] = {0};
	int64_t		tag[10] = {0};
	struct client_points points = {
		.count = 10,
		.latitude = zero,
		.longitude = zero,
		.tag = tag
	};
	struct client_answers answers = {0};
	struct client client;
	bool		right = true;

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
	{
		struct geonn_search search = questions[i].search;
		bool		rejected;

		client_connect(&client, engine);
		rejected = client_open(&client, device, 0) && client_allocate(&client, 0, 10, 10) &&
			client_send_dataset(&client, &points, false);
		client_send(&client, GEONN_SEARCH, &search);
		rejected = rejected && refused(&client, GEONN_ERROR_PROTOCOL);
		if (!rejected)
			printf("# not refused: %s\n", questions[i].what);
		right = right && rejected;
	}
	report("questions out of range end the session", right);

	/* what was cut off is resumed once, from its own observation, as it was asked */
	for (size_t i = 0; i < sizeof(resumptions) / sizeof(resumptions[0]); i++)
	{
		struct geonn_search begin = {
			.rows = 10,
			.neighbours = resumptions[i].neighbours,
			.algorithm = GEONN_ALGORITHM_INDEX,
			.max_distance = INFINITY
		};
		struct geonn_search resume = resumptions[i].search;
		bool		rejected;

		client_connect(&client, engine);
		rejected = client_open(&client, device, 0) && client_allocate(&client, 0, 10, 4) &&
			client_send_dataset(&client, &points, false) &&
			client_collect(&client, &all_within, &points, &answers);
		client_free_answers(&answers);
		if (resumptions[i].cut_off)
		{
			client_send(&client, GEONN_SEARCH, &begin);
			rejected = rejected && client_expect(&client, GEONN_RESULTS) &&
				client.message.results.flags == GEONN_RESULTS_PARTIAL &&
				client.message.results.observations == 0 && client.message.results.pairs == 4;
		}
		resume.rows = 10;
		resume.flags |= GEONN_SEARCH_RESUME;
		client_send(&client, GEONN_SEARCH, &resume);
		rejected = rejected && refused(&client, GEONN_ERROR_PROTOCOL);
		if (!rejected)
			printf("# not refused: %s\n", resumptions[i].what);
		right = right && rejected;
	}
	report("only what was cut off can be resumed", right);

	right = true;
	for (size_t i = 0; i < sizeof(datasets) / sizeof(datasets[0]); i++)
	{
		client_connect(&client, engine);
		right = !client_create(&client, device, datasets[i].metric, datasets[i].columns) &&
			client.message.header.type == GEONN_ERROR &&
			client.message.error.code == GEONN_ERROR_PROTOCOL && right;
		client_close(&client);
	}
	report("metrics and columns that there are not open no dataset", right);
}

/*
 * Random messages of right and wrong sizes: whatever they say, the engine
 * lives and serves others.
 */
static void
test_noise(const struct engine *engine)
{
	struct points points = uniform_points(10);
	union geonn_message noise;

	for (int round = 0; round < 300; round++)
	{
		struct client client;

		client_connect(&client, engine);
		if (round % 2 == 1)
			client_open(&client, device, 0);
		for (int i = 0; i < 20; i++)
		{
			static const int types[] = {
				GEONN_HELLO, GEONN_STATUS, GEONN_OPEN, GEONN_ATTACH, GEONN_ALLOCATE,
				GEONN_REFERENCES, GEONN_SEAL, GEONN_SEARCH, GEONN_WELCOME, GEONN_PING
			};
			int			type = types[random_bits() % 10];
			size_t		size = geonn_message_size(type);
			unsigned char *bytes = (unsigned char *) &noise;

			for (size_t j = sizeof(struct geonn_header); j < sizeof(noise); j++)
				bytes[j] = random_bits() % 3 == 0 ? (unsigned char) random_bits() : 0;
			noise.header.magic = random_bits() % 10 ? GEONN_PROTOCOL_MAGIC : 1;
			noise.header.version = random_bits() % 10 ? GEONN_PROTOCOL_VERSION : 9;
			noise.header.type = (uint16_t) type;
			if (random_bits() % 10 == 0)
				size = 1 + random_bits() % sizeof(noise);
			if (send(client.socket, bytes, size, MSG_NOSIGNAL) < 0)
				break;
		}
		client_close(&client);
	}
	report("random messages do no harm",
		   search_right(engine, &points, &points, 10, 10, 1, 1));
	points_free(&points);
}

static void
test_many_sessions(const struct engine *engine)
{
	struct points points = uniform_points(400);
	bool		right = true;
	pid_t		children[8];

	/* processes, so that all wait at the same time */
	fflush(stdout);
	for (int i = 0; i < 8; i++)
	{
		children[i] = fork();
		if (children[i] == 0)
		{
			for (int round = 0; round < 5; round++)
				right = right && search_right(engine, &points, &points, 64, 64, 2, 1);
			_exit(right ? 0 : 1);
		}
	}
	for (int i = 0; i < 8; i++)
	{
		int			status;

		right = waitpid(children[i], &status, 0) == children[i] && status == 0 && right;
	}
	report("eight sessions at a time all get their own answers", right);
	points_free(&points);
}

static void
test_status(const struct engine *engine)
{
	struct geonn_engine_status status;
	struct geonn_device_status devices[2];
	bool		right = engine_status(engine, &status, devices, 2);

	report("the status tells pid, version, the CPU, and why there is no GPU",
		   right && status.pid == engine->pid && strcmp(status.release, GEONN_VERSION) == 0 &&
		   status.devices >= 1 && devices[0].kind == GEONN_KIND_CPU &&
		   devices[0].state == GEONN_DEVICE_READY && devices[0].threads >= 1 &&
		   devices[0].name[0] != '\0' && devices[0].memory_total > 0 &&
		   (status.devices > 1) == (status.no_gpu_reason[0] == '\0'));
}

static void
test_no_gpu(void)
{
	struct engine engine;
	struct client client;
	struct geonn_engine_status status;
	bool		right;

	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	engine_start(&engine, engine_program, NULL, NULL);
	unsetenv("CUDA_VISIBLE_DEVICES");
	client_connect(&client, &engine);
	right = !client_open(&client, GEONN_DEVICE_CUDA, 0) &&
		client.message.header.type == GEONN_ERROR &&
		client.message.error.code == GEONN_ERROR_NO_DEVICE &&
		client.message.error.hint[0] != '\0';
	client_close(&client);
	client_connect(&client, &engine);
	right = right && client_open(&client, GEONN_DEVICE_AUTO, 0) &&
		engine_status(&engine, &status, NULL, 0) && status.no_gpu_reason[0] != '\0';
	client_close(&client);
	engine_stop(&engine);
	report("without a GPU, cuda is an error with a hint and auto uses the CPU", right);
}

/* the message that the supervisor's end of the channel gets within a second */
static bool
pong(struct engine *engine, uint64_t number)
{
	struct pollfd wait = {.fd = engine->supervisor,.events = POLLIN};
	union geonn_message message;
	int			descriptor;

	return poll(&wait, 1, 1000) == 1 &&
		geonn_channel_receive(engine->supervisor, &message, &descriptor) == GEONN_CHANNEL_OK &&
		message.header.type == GEONN_PONG && message.ping.number == number;
}

/* the engine has new settings */
static bool
configured(struct engine *engine, struct geonn_configure *configure)
{
	static uint64_t number = 100;
	struct geonn_ping ping = {.number = ++number};

	return geonn_channel_send(engine->supervisor, GEONN_CONFIGURE, configure, -1) == GEONN_CHANNEL_OK &&
		geonn_channel_send(engine->supervisor, GEONN_PING, &ping, -1) == GEONN_CHANNEL_OK &&
		pong(engine, number);
}

/*
 * Whether a search on GPUs is refused for geonn.gpu_memory_limit, or not, as
 * expected; the CPU's never is.
 */
static bool
gpu_memory_allows(const struct engine *engine, bool expected)
{
	struct points points = uniform_points(20);
	struct answer answers[20];
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, device, 0) && client_allocate(&client, 0, 20, 20) &&
		client_send_references(&client, 20, points.latitude, points.longitude, points.tag, false);
	if (client_search(&client, 20, points.latitude, points.longitude, answers))
		right = right && (expected || device == GEONN_DEVICE_CPU) &&
			answers_right(&points, &points, answers, 1);
	else
		right = right && !expected && device == GEONN_DEVICE_CUDA &&
			client.message.header.type == GEONN_ERROR &&
			client.message.error.code == GEONN_ERROR_LIMIT;
	client_close(&client);
	points_free(&points);
	return right;
}

static void
test_supervisor(void)
{
	struct geonn_ping ping = {.number = 42};
	struct geonn_configure configure = {.cpu_threads = 3,.transfer_memory_limit = 123456789};
	struct geonn_engine_status status;
	struct geonn_device_status cpu;
	struct engine engine;
	int			exit_status;
	bool		right;

	engine_start(&engine, engine_program, "--cpu-threads", "1");
	right = engine_status(&engine, &status, &cpu, 1) && cpu.threads == 1;
	geonn_channel_send(engine.supervisor, GEONN_PING, &ping, -1);
	right = right && pong(&engine, 42);
	report("a ping is answered", right);

	right = configured(&engine, &configure) && engine_status(&engine, &status, &cpu, 1) &&
		cpu.threads == 3 && status.transfer_memory_limit == 123456789;
	configure.gpu_memory_limit = 1;
	right = right && configured(&engine, &configure) && gpu_memory_allows(&engine, false);
	configure.gpu_memory_limit = 0;
	right = right && configured(&engine, &configure) && gpu_memory_allows(&engine, true) &&
		status.pid == engine.pid;
	report("settings change without a restart", right);

	exit_status = engine_stop(&engine);
	report("the engine ends, and takes its socket along, when its supervisor does",
		   WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 0 &&
		   access(engine.socket_path, F_OK) != 0);
}

/*
 * A supervisor that is killed takes the engine with it, even one that it had
 * no time to say goodbye to.
 */
static void
test_supervisor_killed(void)
{
	int			pair[2];
	struct engine engine;
	pid_t		child;
	bool		gone = false;

	if (pipe(pair) != 0)
		exit(EXIT_FAILURE);
	fflush(stdout);
	child = fork();
	if (child == 0)
	{
		engine_start(&engine, engine_program, NULL, NULL);
		if (write(pair[1], &engine, sizeof(engine)) != sizeof(engine))
			_exit(1);
		pause();
	}
	if (read(pair[0], &engine, sizeof(engine)) == sizeof(engine))
	{
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		for (int i = 0; i < 200 && !gone; i++)
		{
			usleep(10000);
			gone = kill(engine.pid, 0) != 0;
		}
	}
	unlink(engine.socket_path);
	close(pair[0]);
	close(pair[1]);
	report("the engine dies with a supervisor that is killed", gone);
}

int
main(int argument_count, char **words)
{
	struct engine engine;
	bool		sanitized = argument_count > 4 && strcmp(words[4], "sanitized") == 0;

	if (argument_count < 2)
	{
		fprintf(stderr, "usage: %s ENGINE [cpu|cuda [SEED [sanitized]]]\n", words[0]);
		return EXIT_FAILURE;
	}
	engine_program = words[1];
	if (argument_count > 2 && strcmp(words[2], "cuda") == 0)
		device = GEONN_DEVICE_CUDA;
	if (argument_count > 3)
		random_state = strtoull(words[3], NULL, 10);
	printf("# seed %llu, device %s\n", (unsigned long long) random_state,
		   device == GEONN_DEVICE_CUDA ? "cuda" : "cpu");

	engine_start(&engine, engine_program, NULL, NULL);
	test_status(&engine);
	test_answers(&engine);
	test_large_answers(&engine);
	test_order_by_tag(&engine);
	test_empty(&engine);
	test_attach(&engine);
	test_batch_memory(&engine);
	test_memory_of_failed_session(&engine);
	test_abuse(&engine);
	test_abuse_of_questions(&engine);
	test_noise(&engine);
	test_many_sessions(&engine);
	engine_stop(&engine);
	test_short_of_batches();
	test_transfer_memory_limit();
	if (!sanitized)
		test_no_gpu();
	test_supervisor();
	test_supervisor_killed();

	printf("%d passed, %d failed\n", passed, failed);
	return failed == 0 && passed > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
