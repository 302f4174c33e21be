/*
 * assign_test.c
 *		Assignments are those of the definition, in bytes: of any observations and references, with groups, windows, parties,
 *		radiuses and capacities, by any version of the loops, on any number of threads, with any room of batches, and wherever
 *		turns end.
 *
 * Usage: assign_test [SEED [SETS|sanitized]]
 *
 * The oracle sorts all pairs, and takes each whose observation is free and whose reference has room.
 *
 * rooms: engine/cpu/assign engine/cpu
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/assign/assign.h"
#include "engine/cpu/turn.h"
#include "engine/dataset/point_parties.h"
#include "engine/dataset/point_windows.h"
#include "../lib/pages.h"
#include "../lib/random.h"
#include "../lib/verdict.h"
#include "device_work.h"
#include "random_datasets.h"

static struct device machine;
static atomic_bool cancelled;

/* ---- points ---- */

/* Points with capacities, if the columns have a weight. */
static struct dataset *
make_dataset(size_t count, enum places places, enum geonn_metric metric, uint32_t columns, int64_t moments)
{
	struct dataset *made = make_points(count, places, metric, columns, moments);

	for (size_t i = 0; i < count && made->weight[0] != NULL; i++)
		made->weight[0][i] = random_below(4) == 0 ? 0 : random_below(6) / (1 + random_below(3));
	return made;
}

/* ---- the oracle ---- */

struct pair
{
	double		distance;
	uint32_t	observation;
	uint32_t	reference;
};

static int
compare_pairs(const void *a, const void *b)
{
	const struct pair *first = a;
	const struct pair *second = b;

	if (first->distance != second->distance)
		return first->distance < second->distance ? -1 : 1;
	if (first->observation != second->observation)
		return first->observation < second->observation ? -1 : 1;
	return first->reference < second->reference ? -1 : 1;
}

/* What is asked, and of which datasets. */
struct asked
{
	struct dataset *observations;
	struct dataset *references;
	double		max_distance;
	uint32_t	capacity;
};

static bool
is_candidate(const struct asked *asked, uint32_t observation, uint32_t reference, double *distance)
{
	const struct dataset *from = asked->observations;
	const struct dataset *to = asked->references;

	if (to->group != NULL && from->group[observation] != to->group[reference])
		return false;
	if (to->party[0] != NULL && from->party[0][observation] == to->party[0][reference])
		return false;
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (to->low[i] != NULL &&
			!geonn_windows_overlap(i, from->low[i][observation], from->high[i][observation], from->edges[observation],
								   to->low[i][reference], to->high[i][reference], to->edges[reference]))
			return false;
	*distance = geonn_metric_distance(to->metric, from->latitude[observation], from->longitude[observation],
									  to->latitude[reference], to->longitude[reference]);
	return *distance <= asked->max_distance &&
		(to->radius == NULL || (*distance <= to->radius[reference] && *distance <= from->radius[observation]));
}

/* Return the pairs by observation; those without a reference have NAN as their distance. */
static struct pair *
ask_oracle(const struct asked *asked)
{
	size_t		observations = asked->observations->count;
	size_t		references = asked->references->count;
	struct pair *pairs = calloc(observations * references, sizeof(struct pair));
	struct pair *answer = calloc(observations, sizeof(struct pair));
	double	   *room = calloc(references, sizeof(double));
	size_t		count = 0;

	for (uint32_t i = 0; i < observations; i++)
	{
		answer[i] = (struct pair) {NAN, i, 0};
		for (uint32_t j = 0; j < references; j++)
			if (is_candidate(asked, i, j, &pairs[count].distance))
			{
				pairs[count].observation = i;
				pairs[count++].reference = j;
			}
	}
	for (uint32_t j = 0; j < references; j++)
		room[j] = asked->references->weight[0] != NULL ? asked->references->weight[0][j] : asked->capacity;
	qsort(pairs, count, sizeof(struct pair), compare_pairs);
	for (size_t i = 0; i < count; i++)
		if (isnan(answer[pairs[i].observation].distance) && room[pairs[i].reference] >= 1)
		{
			answer[pairs[i].observation] = pairs[i];
			room[pairs[i].reference]--;
		}
	free(pairs);
	free(room);
	return answer;
}

/* ---- the engine ---- */

static struct search
ask(const struct asked *asked, uint32_t room)
{
	const struct dataset *from = asked->observations;
	struct search search = {
		.dataset = asked->references,
		.asking = from,
		.question = {
			.max_distance = asked->max_distance,.assigns = true,.capacity = asked->capacity,.algorithm = GEONN_ALGORITHM_INDEX
		},
		.algorithm = GEONN_ALGORITHM_INDEX,
		.rows = (uint32_t) from->count,
		.shapes = dataset_create(0, from->metric, 0),
		.cancelled = &cancelled,
		.columns = {
			.room = room,
			.latitude = from->latitude,
			.longitude = from->longitude,
			.tag = allocate_pages(room * sizeof(int64_t)),
			.distance = allocate_pages(room * sizeof(double)),
			.group = from->group,
			.radius = from->radius,
			.edges = from->edges
		}
	};

	memcpy(search.columns.low, from->low, sizeof(from->low));
	memcpy(search.columns.high, from->high, sizeof(from->high));
	memcpy(search.columns.party, from->party, sizeof(from->party));
	return search;
}

static void
forget(struct search *search)
{
	free(search->columns.tag);
	free(search->columns.distance);
	device_forget(&machine, search->shapes);
}

static bool
is_right_pair(const struct search *search, uint32_t number, struct pair right)
{
	const int64_t *tag = search->columns.tag + (size_t) 2 * number;
	const double *distance = search->columns.distance + (size_t) 2 * number;

	if (tag[0] != search->asking->tag[search->first + number])
		return false;
	if (isnan(right.distance))
		return isnan(distance[0]) && isnan(distance[1]);
	return distance[0] == right.distance && distance[1] == right.distance && tag[1] == search->dataset->tag[right.reference];
}

/* Does the device give these answers, batch by batch? */
static bool
is_right(struct search *search, const struct pair *right)
{
	struct failure failure;

	for (search->first = 0; search->first < search->rows; search->first += search->answered)
	{
		search->answered = search->pairs = 0;
		if (!device_work(&machine, search, &failure) || search->failed || search->answered == 0 || !search->one_each)
			return false;
		for (uint32_t i = 0; i < search->answered; i++)
			if (!is_right_pair(search, i, right[search->first + i]))
				return false;
	}
	return true;
}

/* Draw points and a question, and compare the answers.  Says what differs. */
static bool
set_is_right(int number, size_t most)
{
	static const char *const paths[] = {"portable", "avx2", "avx512"};
	static const uint64_t turns[] = {0, 1, CPU_TURN_MS};
	static const uint32_t columns[] = {
		0, 0, 0, GEONN_COLUMN_GROUP, GEONN_COLUMN_WINDOW, GEONN_COLUMN_PARTY, GEONN_COLUMN_RADIUS,
		GEONN_COLUMN_WINDOW << 1 | GEONN_COLUMN_GROUP | GEONN_COLUMN_PARTY | GEONN_COLUMN_RADIUS
	};
	struct failure failure;
	enum places places = (enum places) random_below(PLACES);
	enum places others = random_below(2) ? places : (enum places) random_below(PLACES);
	enum geonn_metric metric = random_below(16) == 0 ? GEONN_METRIC_SPHEROID : GEONN_METRIC_SPHERE;
	uint32_t	present = columns[random_below(8)];
	int64_t		moments = 2 + random_below(1000);
	size_t		count = 1 + (size_t) random_below((int) most);
	size_t		most_others = most > 1000 ? most / 16 : random_below(2) ? most : most / 8 + 1;
	struct asked asked = {
		make_dataset(count, places, metric, present, moments),
		make_dataset(1 + (size_t) random_below((int) most_others), others, metric,
					 present | (random_below(2) ? GEONN_COLUMN_WEIGHT : 0), moments),
		random_below(2) ? INFINITY : random_magnitude(1, 2e7), (uint32_t) random_below(random_below(2) ? 3 : 30)
	};
	struct pair *right = ask_oracle(&asked);
	struct search search = ask(&asked, 2 + (uint32_t) random_below(3 * (int) most));
	bool		same;

	if (!cpu_path_choose(paths[number % 3], &failure))
		cpu_path_choose(NULL, &failure);
	thread_pool_set_threads(1 + (uint64_t) number % 4);
	cpu_turn_set_ms(turns[random_below(3)]);
	same = is_right(&search, right);
	if (!same)
		printf("# set %d: %zu observations, places %d, %zu references, places %d, columns %u, metric %d, max_distance %.17g, capacity %u, path %s\n",
			   number, count, places, asked.references->count, others, asked.references->columns, metric, asked.max_distance,
			   asked.capacity, cpu_path->name);
	free(right);
	forget(&search);
	device_forget(&machine, asked.observations);
	device_forget(&machine, asked.references);
	return same;
}

/*
 * At one distance from each reference, which has room for one, two observations: number n north of it, and n + 16 south of it.
 * All others are too far away.  Turns end before all of them looked.
 */
static void
test_order(size_t count)
{
	struct asked asked = {
		make_dataset(count, EVERYWHERE, GEONN_METRIC_SPHERE, 0, 1),
		make_dataset(count / 2, EVERYWHERE, GEONN_METRIC_SPHERE, 0, 1), 50, 1
	};
	struct pair *right = calloc(count, sizeof(struct pair));
	struct search search = ask(&asked, (uint32_t) count);

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	reference = i / 32 * 16 + i % 16;
		double		longitude = 180.0 * reference / (double) count;
		double		distance = geonn_metric_distance(GEONN_METRIC_SPHERE, 0.0001, longitude, 0.0, longitude);

		asked.references->latitude[reference] = 0.0;
		asked.references->longitude[reference] = asked.observations->longitude[i] = longitude;
		asked.observations->latitude[i] = i & 16 ? -0.0001 : 0.0001;
		right[i] = (struct pair) {i & 16 ? NAN : distance, i, reference};
	}
	thread_pool_set_threads(2);
	cpu_turn_set_ms(1);
	report("of observations at one distance the first ones are assigned, wherever turns end", is_right(&search, right));
	free(right);
	forget(&search);
	device_forget(&machine, asked.observations);
	device_forget(&machine, asked.references);
}

/* ---- what is large ---- */

/* Assign as many as there are places, and return how many have one; says how long it took. */
static size_t
count_assigned(enum places from, enum places to, size_t observations, size_t references, uint32_t capacity)
{
	struct asked asked = {
		make_dataset(observations, from, GEONN_METRIC_SPHERE, 0, 1), make_dataset(references, to, GEONN_METRIC_SPHERE, 0, 1),
		INFINITY, capacity
	};
	struct search search = ask(&asked, (uint32_t) (2 * observations));
	int64_t		began_ms = now_ms();
	size_t		assigned = 0;

	for (; search.first < search.rows; search.first += search.answered)
	{
		search.answered = search.pairs = 0;
		if (!device_work(&machine, &search, &search.failure) || search.failed || search.answered == 0)
			break;
		for (uint32_t i = 0; i < search.answered; i++)
			assigned += !isnan(search.columns.distance[2 * i]);
	}
	printf("# %zu observations, places %d, %zu references, places %d: %lld ms\n", observations, from, references, to,
		   (long long) (now_ms() - began_ms));
	forget(&search);
	device_forget(&machine, asked.observations);
	device_forget(&machine, asked.references);
	return assigned;
}

static void
test_crowds(size_t count)
{
	static const enum places places[] = {IN_TOWN, COINCIDENT, IN_SPOTS};
	bool		all = true;

	cpu_turn_set_ms(CPU_TURN_MS);
	for (int from = 0; from < 3; from++)
		for (int to = 0; to < 3; to++)
			all = count_assigned(places[from], places[to], count, count / 10, 10) == count && all;
	report("crowds and coincident points all find room", all);
}

static void
test_memory(void)
{
	static const size_t counts[][2] = {{1, 1}, {1, 3000}, {5000, 1}, {5000, 3000}};
	bool		all = true;

	for (int i = 0; i < 4; i++)
	{
		struct asked asked = {
			make_dataset(counts[i][0], EVERYWHERE, GEONN_METRIC_SPHERE, 0, 1),
			make_dataset(counts[i][1], EVERYWHERE, GEONN_METRIC_SPHERE, 0, 1), INFINITY, 1
		};
		struct search search = ask(&asked, 2);

		all = device_work(&machine, &search, &search.failure) && search.answered == 1 && all;
		all = atomic_load(&search.shapes->built_bytes) <= GEONN_ASSIGN_BYTES * (counts[i][0] + counts[i][1]) + 2048 && all;
		forget(&search);
		device_forget(&machine, asked.observations);
		device_forget(&machine, asked.references);
	}
	report("an assignment keeps at most the bytes that the protocol says", all);
}

/* After as many µs as its argument says, cancel the search. */
static void *
cancel(void *argument)
{
	usleep(*(const useconds_t *) argument);
	atomic_store(&cancelled, true);
	return NULL;
}

static void
test_cancel(size_t count)
{
	struct asked asked = {
		make_dataset(count, IN_TOWN, GEONN_METRIC_SPHERE, 0, 1), make_dataset(count / 10, IN_TOWN, GEONN_METRIC_SPHERE, 0, 1),
		INFINITY, 10
	};
	struct search search = ask(&asked, (uint32_t) (2 * count));
	int			ended = 0;
	/* builds the index: a build that is cancelled fails */
	bool		all = device_work(&machine, &search, &search.failure) && search.answered == count;

	forget(&search);
	for (useconds_t us = 0; us < 200000; us = us * 2 + 100)
	{
		pthread_t	thread;

		search = ask(&asked, (uint32_t) (2 * count));
		cpu_turn_set_ms(us % 3 == 0 ? 0 : CPU_TURN_MS);
		if (us == 0)
			atomic_store(&cancelled, true);
		else
			pthread_create(&thread, NULL, cancel, &us);
		all = device_work(&machine, &search, &search.failure) && !search.failed && all;
		if (us > 0)
			pthread_join(thread, NULL);
		all = (search.answered == 0 || search.answered == count) && all;
		ended += search.answered == 0;
		forget(&search);
		atomic_store(&cancelled, false);
	}
	printf("# cancelled before the end: %d\n", ended);
	report("a search that is cancelled at any time ends without answers", all && ended > 0);
	device_forget(&machine, asked.observations);
	device_forget(&machine, asked.references);
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261130;
	bool		sanitized = argc > 2 && strcmp(argv[2], "sanitized") == 0;
	int			sets = sanitized ? 150 : argc > 2 ? atoi(argv[2]) : 300;
	long		failures = 0;
	struct failure failure;

	machine.operations = &cpu_device_operations;
	cpu_path_choose(NULL, &failure);
	machine.operations->probe(&machine, &failure);
	printf("# seed: %llu\n", (unsigned long long) seed);
	for (int i = 0; i < sets; i++)
	{
		random_state = seed + ((uint64_t) i << 32);
		failures += !set_is_right(i, i % 100 == 98 ? 6000 : i % 50 == 49 ? 1000 : i % 10 == 9 ? 300 : 60);
	}
	report_failures("assignments of random points that differ from the definition's", failures);
	test_order(sanitized ? 20000 : 200000);
	test_crowds(sanitized ? 2000 : 30000);
	test_memory();
	test_cancel(sanitized ? 5000 : 50000);
	machine.operations->close(&machine);
	return summed_up();
}
