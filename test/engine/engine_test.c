/*
 * engine_test.c
 *		The engine over its own socket, without PostgreSQL: its answers.
 *
 * Usage: engine_test ENGINE [cpu|cuda [SEED [sanitized]]]
 *
 * protocol_test has clients that break the protocol, lifetime_test what lives
 * how long, memory and settings, sharing_test what depends on time.
 *
 * rooms: engine/server engine/search engine/dataset cuda cuda/lane
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nearest.h"

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
	right = client_open(&client, request.device, 0) &&
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
	right = client_open(&client, request.device, 0) &&
		client_allocate(&client, 0, 256, 256) &&
		client_send_references(&client, 0, NULL, NULL, NULL, true) &&
		client_search(&client, 100, observations.latitude, observations.longitude, answers);
	for (int i = 0; i < 100; i++)
		right = right && answers[i].count == 0;
	client_close(&client);
	report("without references no observation has a neighbour", right);
	points_free(&observations);
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

int
main(int argument_count, char **words)
{
	struct engine engine;

	tests_begin(argument_count, words);
	engine_start(&engine, request.engine_program, NULL);
	test_answers(&engine);
	test_large_answers(&engine);
	test_order_by_tag(&engine);
	test_empty(&engine);
	test_many_sessions(&engine);
	engine_stop(&engine);
	return summed_up();
}
