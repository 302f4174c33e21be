/*
 * sharing_test.c
 *		Sessions that use one engine at a time: each gets its turn soon, and a
 *		small search sooner than large ones.
 *
 * Usage: sharing_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * The searches that others have to get along with take long in different ways:
 * brute force, and points that no index helps with.  A device that is too fast
 * to be caught at one says so ("was over"), and nothing was shown then.
 *
 * rooms: engine/search engine/server
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../lib/random.h"
#include "../lib/verdict.h"
#include "busy.h"

/* how soon a small search is answered beside a long one, and how soon a long
 * one is gone when its client is */
#define TURN_MS 2000
#define CANCEL_MS 1000

/* what a turn of a long search takes at least of each core that it has */
#define LONG_TURN_MS 40

/* how much slower a sanitizer may make all that */
static int	patience = 1;

/* of the CPU */
#define THREADS 3

/* small searches beside a polygon that is copied in dozens of pieces, however late the host lets their client ask */
#define ANSWERED_LEAST 10

static const char *engine_program;
static enum geonn_device_choice device = GEONN_DEVICE_CPU;

/* a verdict on what is asked of several things */
static void
report_of(const char *property, const char *of_what, bool holds)
{
	char		line[160];

	snprintf(line, sizeof(line), "%s: %s", property, of_what);
	report(line, holds);
}

/*
 * Whether a session of its own gets the answers to a small question.
 */
static bool
small_search_right(const struct engine *engine)
{
	struct points points = points_create(20, PLACES_UNIFORM);
	struct client_points sent = points_to_send(&points);
	struct client_question nearest = {.k = 1,.max_distance = INFINITY};
	struct definition definition = definition_create(&points, &points, GEONN_METRIC_SPHERE, 1);
	struct client_answers answers;
	struct client client;
	bool		right;

	client_connect(&client, engine);
	right = client_open(&client, device, 0) && client_allocate(&client, 0, 256, 256) &&
		client_send_dataset(&client, &sent, false) &&
		client_collect(&client, &nearest, &sent, &answers);
	if (right)
	{
		right = answers.first[points.count] == points.count;
		for (size_t i = 0; right && i < points.count; i++)
		{
			const struct neighbour *expected = definition.candidates[i].list;

			right = answers.first[i] == i && answers.tag[i] == points.tag[expected->place] &&
				memcmp(&answers.distance[i], &expected->distance, sizeof(double)) == 0;
		}
		client_free_answers(&answers);
	}
	client_close(&client);
	definition_free(&definition);
	points_free(&points);
	return right;
}

/*
 * What has taken so many ms, and the engine so much CPU time: on a busy host the engine, which is nice,
 * stands back behind others, so that the less of the two counts.  On a GPU the engine's threads only wait.
 */
static double
time_taken(double took, double worked)
{
	return device == GEONN_DEVICE_CPU && worked < took ? worked : took;
}

static void
test_long_search(const struct engine *engine, enum hardship hardship)
{
	struct hard_search hard = busy_hard_search(device, hardship);
	struct geonn_engine_status status;
	struct client client;
	double		begin;
	double		worked;
	double		took;
	bool		right;

	client_connect(&client, engine);
	right = busy_begin(&client, device, &hard);

	/* it is at work before the other one comes */
	usleep(300000);
	begin = now_ms();
	worked = cpu_ms_of(engine->pid);
	right = right && small_search_right(engine);
	took = now_ms() - begin;
	worked = cpu_ms_of(engine->pid) - worked;
	right = right && engine_status(engine, &status, NULL, 0);
	printf("# a small search took %.0f ms, %.0f ms of work%s\n", took, worked,
		   right && status.searches == 0 ? "; the long one was over" : "");

	report_of("a long search lets others have their turn", hard.name,
			  right && time_taken(took, worked) < TURN_MS * patience);

	client_close(&client);
	begin = now_ms();
	worked = cpu_ms_of(engine->pid);
	right = right && busy_await_no_session(engine);
	took = time_taken(now_ms() - begin, cpu_ms_of(engine->pid) - worked);
	printf("# a cancelled search was gone after %.0f ms\n", took);
	report_of("a client that goes away takes its searches with it within a second", hard.name,
		   right && took < CANCEL_MS * patience);
	points_free(&hard.references);
	points_free(&hard.observations);
}

/* the work that the engine does, in ms, until so many small searches are answered; -1: none */
static double
work_until_answered(const struct engine *engine, int searches)
{
	double		worked = cpu_ms_of(engine->pid);

	for (int i = 0; i < searches; i++)
		if (!small_search_right(engine))
			return -1;
	return cpu_ms_of(engine->pid) - worked;
}

/*
 * Sixteen long searches, one after the other in turns.  A small one that waited for a turn of each
 * would have the engine work for sixteen turns meanwhile, and for eight times as long as beside two.
 * Less than half of the one or of the other shows that it does not; a busy host makes both figures
 * uncertain.
 */
static void
test_many_long_searches(const struct engine *engine)
{
	enum
	{
		FEW = 2,
		MANY = 16,
		SMALL = 8
	};
	struct hard_search hard = busy_hard_search(device, BRUTE_FORCE);
	struct geonn_engine_status status;
	long		cores = sysconf(_SC_NPROCESSORS_ONLN);
	double		turn_ms = LONG_TURN_MS * patience * (double) (cores < THREADS ? cores : THREADS);
	struct client clients[MANY];
	double		beside_few = -1;
	double		beside_many = -1;
	bool		right;

	client_connect(&clients[0], engine);
	right = busy_begin(&clients[0], device, &hard);
	for (int i = 1; i < MANY; i++)
	{
		client_connect(&clients[i], engine);
		right = right && busy_join(&clients[i], device, clients[0].dataset, &hard);
		if (i + 1 == FEW)
		{
			usleep(500000);
			beside_few = right ? work_until_answered(engine, SMALL) : -1;
		}
	}
	usleep(500000);
	beside_many = right ? work_until_answered(engine, SMALL) : -1;
	right = right && engine_status(engine, &status, NULL, 0) && status.searches >= MANY;
	printf("# %d small searches: %.0f ms of work beside %d long ones, %.0f beside %d\n",
		   SMALL, beside_few, FEW, beside_many, MANY);
	report("a small search does not wait for a turn of each long one",
		   right && beside_few >= 0 && beside_many >= 0 &&
		   (beside_many < SMALL * MANY * turn_ms / 2 ||
			beside_many < beside_few * MANY / FEW / 2));
	for (int i = 0; i < MANY; i++)
		client_close(&clients[i]);
	report("and many that are cancelled are gone", busy_await_no_session(engine));
	points_free(&hard.references);
	points_free(&hard.observations);
}

/*
 * What is left of a sort is held against the work of a whole one, so that it
 * does not matter how busy the host is.
 */
static void
test_cancelled_sort(const struct engine *engine)
{
	const size_t count = (size_t) 1 << 22;
	struct geonn_seal seal = {.order_by_tag = 1};
	struct client client;
	double		whole = 0;
	double		left;
	bool		right;

	client_connect(&client, engine);
	right = busy_send_unsorted(&client, device, count);
	if (right)
	{
		whole = cpu_ms_of(engine->pid);
		client_send(&client, GEONN_SEAL, &seal);
		right = client_expect(&client, GEONN_SEALED);
		whole = cpu_ms_of(engine->pid) - whole;
	}
	client_close(&client);
	right = right && busy_await_no_session(engine);
	client_connect(&client, engine);
	right = right && busy_send_unsorted(&client, device, count);
	if (right)
	{
		client_send(&client, GEONN_SEAL, &seal);
		usleep(5000);
		left = cpu_ms_of(engine->pid);
		client_close(&client);
		right = busy_await_no_session(engine);
		left = cpu_ms_of(engine->pid) - left;
		printf("# a sort took %.0f ms of work, and %.0f ms more when its client had gone\n",
			   whole, left);
		right = right && left < whole / 2;
	}
	report("a client that goes away takes the sort of its references with it",
		   right && small_search_right(engine));
}

/* Fill a batch with the sides of a ring around 0, 0. */
static void
fill_ring(const struct geonn_batch_columns *columns, uint32_t sides)
{
	for (uint32_t i = 0; i < sides; i++)
	{
		double		turn = 2.0 * M_PI * i / sides;
		double		next = 2.0 * M_PI * ((i + 1) % sides) / sides;

		columns->latitude[i] = 20.0 * sin(turn);
		columns->longitude[i] = 20.0 * cos(turn);
		columns->end_latitude[i] = 20.0 * sin(next);
		columns->end_longitude[i] = 20.0 * cos(next);
		columns->shape[i] = 0;
		columns->polygon[i] = 1;
	}
}

/*
 * Return how many small searches of another session, one after the other, are answered while a polygon of millions of sides
 * asks, on one thread; -1: some answer is wrong.  Of a polygon that lacks its last side, the engine finds that at the end of
 * its copy; one that is whole is also prepared.
 */
static int
answered_beside_polygon(bool whole)
{
	const uint32_t sides = patience > 1 ? 1 << 19 : 1 << 21;
	static const double place[] = {60.0, 60.0};
	static const int64_t tag[] = {7};
	static const int32_t zero[] = {0};
	struct client_points line = {
		1, place, place, tag,.end_latitude = place + 1,.end_longitude = place + 1,.shape = zero,.polygon = zero
	};
	struct geonn_search search = {.rows = sides - !whole,.k = 1,.flags = GEONN_SEARCH_SHAPES};
	struct client large;
	struct client small;
	struct engine engine;
	struct answer answer;
	int			type = 0;
	int			answered = 0;
	bool		right;

	/* of the search itself no turn ends before the answer */
	engine_turn_ms = "100000";
	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = 1});
	client_connect(&large, &engine);
	client_connect(&small, &engine);
	right = client_create(&large, GEONN_DEVICE_CPU, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC) &&
		client_allocate(&large, 0, sides, 1) && client_send_dataset(&large, &line, false) &&
		client_open(&small, GEONN_DEVICE_CPU, 0) && client_allocate(&small, 0, 1, 1) &&
		client_send_references(&small, 1, place, place, tag, false);
	if (right)
	{
		fill_ring(&large.slots[0].columns, sides);
		client_send(&large, GEONN_SEARCH, &search);
		while (right && (type = client_receive(&large, 0)) == -1)
		{
			right = client_search(&small, 1, place, place, &answer) && answer.count == 1 && answer.tag == 7 &&
				answer.distance == 0.0;
			answered++;
		}
		right = right && (whole ? type == GEONN_RESULTS && large.message.results.observations == 1 :
						  type == GEONN_ERROR && strstr(large.message.error.message, "is not closed") != NULL);
	}
	client_close(&large);
	client_close(&small);
	engine_stop(&engine);
	engine_turn_ms = "50";
	printf("# %d small searches were answered\n", answered);
	return right ? answered : -1;
}

int
main(int argument_count, char **words)
{
	uint64_t	seed = 20240229;
	struct engine engine;

	if (argument_count < 2)
	{
		fprintf(stderr, "usage: %s ENGINE [cpu|cuda [SEED [sanitized]]]\n", words[0]);
		return EXIT_FAILURE;
	}
	engine_program = words[1];
	if (argument_count > 2 && strcmp(words[2], "cuda") == 0)
		device = GEONN_DEVICE_CUDA;
	if (argument_count > 3)
		seed = strtoull(words[3], NULL, 10);
	if (argument_count > 4 && strcmp(words[4], "sanitized") == 0)
		patience = 10;
	random_state = seed;
	points_seed(seed);
	printf("# seed %llu, device %s\n", (unsigned long long) seed,
		   device == GEONN_DEVICE_CUDA ? "cuda" : "cpu");

	engine_start(&engine, engine_program, &(struct geonn_configure) {.cpu_threads = THREADS});
	for (int hardship = 0; hardship < HARDSHIPS; hardship++)
		test_long_search(&engine, (enum hardship) hardship);
	if (device == GEONN_DEVICE_CPU)
		test_many_long_searches(&engine);
	test_cancelled_sort(&engine);
	engine_stop(&engine);
	if (device == GEONN_DEVICE_CPU)
	{
		report("small searches are answered while a polygon of millions of sides is copied",
			   answered_beside_polygon(false) >= ANSWERED_LEAST);
		report("and while it is copied and prepared", answered_beside_polygon(true) >= 2 * ANSWERED_LEAST);
	}

	return summed_up();
}
