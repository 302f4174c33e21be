/*
 * side_by_side.c
 *		See side_by_side.h.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../lib/random.h"
#include "side_by_side.h"

/* sessions of so many processes at a time, all attached to one dataset: do all find theirs right? */
static bool
sessions_right(struct test_case *test, int sessions, bool (*right) (struct test_case *, int))
{
	pid_t		children[8];
	bool		all_right = true;

	fflush(stdout);
	for (int i = 0; i < sessions; i++)
	{
		children[i] = fork();
		if (children[i] == 0)
		{
			bool		is_right;

			random_state += (uint64_t) i << 20;
			compare_seed(random_state);
			is_right = right(test, i);
			fflush(stdout);
			_exit(is_right ? 0 : 1);
		}
	}
	for (int i = 0; i < sessions; i++)
	{
		int			status;

		all_right = waitpid(children[i], &status, 0) == children[i] && status == 0 && all_right;
	}
	return all_right;
}

static bool
client_right(struct test_case *test, int session)
{
	bool		right = true;

	(void) session;
	for (int round = 0; round < 3; round++)
	{
		struct client_question question = {
			.k = (uint32_t) random_below(40),
			.ties = random_below(2) == 0,
			.max_distance = draw_distance(test, 60)
		};

		right = question_right(test, question) && right;
	}
	return right;
}

static bool
clients_right(struct test_case *test)
{
	return sessions_right(test, 6, client_right);
}

void
side_by_side_test_clients(begin_case_function begin, uint64_t seed)
{
	struct test_case test = begin("six clients of one dataset at a time", GEONN_METRIC_SPHERE,
								  1200, PLACES_CITIES, 300, false);

	random_state = seed;
	finish_case(&test, 2000, clients_right);
}

/* the sizes of batches that sessions send side by side, and how many */
static const struct
{
	uint32_t	rows;
	size_t		batches;
}			beside[] = {
	{1, 100}, {64, 100}, {4096, 8}, {32768, 4}, {1 << 17, 1}, {1 << 20, 1}
};

static bool
one_beside_right(struct test_case *test, int session)
{
	struct client_question questions[] = {
		{.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY},
		{.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = draw_distance(test, 3)},
		{.k = 1,.algorithm = GEONN_ALGORITHM_BRUTE,.max_distance = INFINITY},
		{.k = 2,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = draw_distance(test, 3)}
	};
	uint32_t	rows = beside[session].rows;
	struct shape shape = {.rows = rows,.room = rows,.slots = rows < 1 << 17 ? 4 : 1};
	size_t		most = rows * beside[session].batches;
	bool		right = true;

	/* the process has the case for itself */
	if (test->observations.count > most)
		test->observations.count = most;
	for (int setup = 0; setup < compare_setups(); setup++)
		for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
			right = ask_right(test, setup, &questions[i], &shape) && right;
	return right;
}

static bool
beside_right(struct test_case *test)
{
	return sessions_right(test, (int) (sizeof(beside) / sizeof(beside[0])), one_beside_right);
}

void
side_by_side_test(begin_case_function begin, uint64_t seed, size_t repeated)
{
	struct test_case test = begin("sessions side by side, with batches from 1 to 2^20",
								  GEONN_METRIC_SPHERE, 300, PLACES_CITIES, 256, false);

	random_state = seed;
	test.repeated = repeated;
	finish_case(&test, 1000, beside_right);
}
