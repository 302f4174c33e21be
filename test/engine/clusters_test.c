/*
 * clusters_test.c
 *		Clusters and thinnings are those of the definition, in bytes: of any references, with groups and windows, by any version
 *		of the loops, on any number of threads, with any room of batches, and wherever turns end.
 *
 * Usage: clusters_test [SEED [SETS|sanitized]]
 *
 * The oracle compares each pair by its distance, and has a union-find of its own.
 *
 * rooms: engine/cpu/clusters engine/cpu
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
#include "engine/base/thread_pool.h"
#include "engine/cpu/clusters/clusters.h"
#include "engine/cpu/turn.h"
#include "engine/search/candidates.h"
#include "../lib/pages.h"
#include "../lib/random.h"
#include "../lib/verdict.h"
#include "device_work.h"
#include "random_datasets.h"

/* searches answer at most so many references at once (cpu/turn_clusters.c) */
#define ANSWERS_MOST 131072

/* so often another thread works while clusters are found, on a busy host */
#define SEATS_LEAST 20

static struct device machine;
static atomic_bool cancelled;

/* ---- references ---- */

/* Points with priorities, if the columns have a weight. */
static struct dataset *
make_dataset(size_t count, enum places places, enum geonn_metric metric, uint32_t columns, int64_t moments)
{
	struct dataset *made = make_points(count, places, metric, columns, moments);

	for (size_t i = 0; i < count && made->weight[0] != NULL; i++)
		made->weight[0][i] = random_below(5) == 0 ? NAN : (random_below(9) - 4) * 0.5 * (random_below(2) ? 1 : -1);
	return made;
}

/* ---- the oracle ---- */

struct oracle
{
	const struct dataset *dataset;
	double		radius;
	uint32_t   *order;			/* places, by latitude */
	uint32_t   *neighbours;
	uint32_t   *parent;
	struct candidate *nearest;	/* the nearest core reference of each */
	double	   *answer;
	uint32_t	min_points;
};

static const double *sorted_latitude;
static const double *sorted_weight;

static int
compare_latitudes(const void *a, const void *b)
{
	double		first = sorted_latitude[*(const uint32_t *) a];
	double		second = sorted_latitude[*(const uint32_t *) b];

	return first < second ? -1 : first > second;
}

static uint32_t
oracle_root(const struct oracle *oracle, uint32_t place)
{
	while (oracle->parent[place] != place)
		place = oracle->parent[place] = oracle->parent[oracle->parent[place]];
	return place;
}

static bool
are_neighbours(const struct oracle *oracle, uint32_t a, uint32_t b, double *distance)
{
	const struct dataset *dataset = oracle->dataset;

	if (dataset->group != NULL && dataset->group[a] != dataset->group[b])
		return false;
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (dataset->low[i] != NULL &&
			!geonn_windows_overlap(i, dataset->low[i][a], dataset->high[i][a], dataset->edges[a],
								   dataset->low[i][b], dataset->high[i][b], dataset->edges[b]))
			return false;
	if (a > b)
		return are_neighbours(oracle, b, a, distance);
	*distance = geonn_metric_distance(dataset->metric, dataset->latitude[a], dataset->longitude[a],
									  dataset->latitude[b], dataset->longitude[b]);
	return *distance <= oracle->radius;
}

static void
count_pair(struct oracle *oracle, uint32_t a, uint32_t b, double distance)
{
	(void) distance;
	oracle->neighbours[a]++;
	oracle->neighbours[b] += a != b;
}

static void
unite_pair(struct oracle *oracle, uint32_t a, uint32_t b, double distance)
{
	bool		is_core[2] = {oracle->neighbours[a] >= oracle->min_points, oracle->neighbours[b] >= oracle->min_points};

	if (is_core[0] && is_core[1])
		oracle->parent[oracle_root(oracle, a)] = oracle_root(oracle, b);
	else if (is_core[0] && candidate_before((struct candidate) {distance, a, 0}, oracle->nearest[b]))
		oracle->nearest[b] = (struct candidate) {distance, a, 0};
	else if (is_core[1] && candidate_before((struct candidate) {distance, b, 0}, oracle->nearest[a]))
		oracle->nearest[a] = (struct candidate) {distance, b, 0};
}

/* Call a function for all pairs of neighbours, once for each pair. */
static void
go_through_pairs(struct oracle *oracle, void (*take) (struct oracle *oracle, uint32_t a, uint32_t b, double distance))
{
	const struct dataset *dataset = oracle->dataset;
	double		reach = geonn_metric_latitudes(dataset->metric, oracle->radius);

	for (size_t i = 0; i < dataset->count; i++)
		for (size_t j = i; j < dataset->count; j++)
		{
			double		distance;

			if (dataset->latitude[oracle->order[j]] - dataset->latitude[oracle->order[i]] > reach)
				break;
			if (are_neighbours(oracle, oracle->order[i], oracle->order[j], &distance))
				take(oracle, oracle->order[i], oracle->order[j], distance);
		}
}

/* Return what the pairs' column of distances should have, [count]. */
static double *
ask_oracle(const struct dataset *dataset, double radius, uint32_t min_points)
{
	size_t		count = dataset->count;
	struct oracle oracle = {
		dataset, radius, calloc(count, sizeof(uint32_t)), calloc(count, sizeof(uint32_t)), calloc(count, sizeof(uint32_t)),
		calloc(count, sizeof(struct candidate)), calloc(count, sizeof(double)), min_points
	};
	uint32_t   *number = calloc(count, sizeof(uint32_t));
	uint32_t	numbers = 0;

	for (uint32_t i = 0; i < count; i++)
	{
		oracle.order[i] = oracle.parent[i] = i;
		oracle.nearest[i] = (struct candidate) {INFINITY, UINT32_MAX, 0};
	}
	sorted_latitude = dataset->latitude;
	qsort(oracle.order, count, sizeof(uint32_t), compare_latitudes);
	go_through_pairs(&oracle, count_pair);
	go_through_pairs(&oracle, unite_pair);
	for (uint32_t i = 0; i < count; i++)
		if (oracle.neighbours[i] >= min_points && number[oracle_root(&oracle, i)] == 0)
			number[oracle_root(&oracle, i)] = ++numbers;
	for (uint32_t i = 0; i < count; i++)
		oracle.answer[i] = oracle.neighbours[i] >= min_points ? number[oracle_root(&oracle, i)] :
			oracle.nearest[i].place == UINT32_MAX ? 0.0 : -(double) number[oracle_root(&oracle, oracle.nearest[i].place)];
	free(oracle.order);
	free(oracle.neighbours);
	free(oracle.parent);
	free(oracle.nearest);
	free(number);
	return oracle.answer;
}

static int
compare_ranks(const void *a, const void *b)
{
	uint32_t	first = *(const uint32_t *) a;
	uint32_t	second = *(const uint32_t *) b;
	double		weights[2] = {0, 0};

	if (sorted_weight != NULL)
	{
		weights[0] = isnan(sorted_weight[first]) ? -INFINITY : sorted_weight[first];
		weights[1] = isnan(sorted_weight[second]) ? -INFINITY : sorted_weight[second];
	}
	if (weights[0] != weights[1])
		return weights[0] > weights[1] ? -1 : 1;
	return first < second ? -1 : first > second;
}

/* Return the nearest of the first `count` places in an order that is a neighbour of a place; UINT32_MAX: none is. */
static uint32_t
nearest_of(const struct oracle *oracle, uint32_t place, uint32_t count)
{
	const struct dataset *dataset = oracle->dataset;
	double		reach = geonn_metric_latitudes(dataset->metric, oracle->radius);
	double		least = INFINITY;
	uint32_t	nearest = UINT32_MAX;

	for (uint32_t i = 0; i < count; i++)
	{
		double		distance;

		if (fabs(dataset->latitude[oracle->order[i]] - dataset->latitude[place]) <= reach &&
			are_neighbours(oracle, place, oracle->order[i], &distance) && distance < least)
		{
			least = distance;
			nearest = oracle->order[i];
		}
	}
	return nearest;
}

/* Return what the pairs' column of distances should have for a thinning, [count]. */
static double *
thin_by_oracle(const struct dataset *dataset, double radius)
{
	struct oracle oracle = {.dataset = dataset,.radius = radius,.order = calloc(dataset->count, sizeof(uint32_t))};
	uint32_t   *by_rank = calloc(dataset->count, sizeof(uint32_t));
	double	   *answer = calloc(dataset->count, sizeof(double));
	uint32_t	kept = 0;

	for (uint32_t i = 0; i < dataset->count; i++)
		by_rank[i] = i;
	sorted_weight = dataset->weight[0];
	qsort(by_rank, dataset->count, sizeof(uint32_t), compare_ranks);
	for (uint32_t i = 0; i < dataset->count; i++)
		if (nearest_of(&oracle, by_rank[i], kept) == UINT32_MAX)
			oracle.order[kept++] = by_rank[i];
	for (uint32_t i = 0; i < dataset->count; i++)
		memcpy(&answer[i], &dataset->tag[nearest_of(&oracle, i, kept)], sizeof(double));
	free(oracle.order);
	free(by_rank);
	return answer;
}

/* ---- the engine ---- */

static struct search
ask(struct dataset *dataset, double radius, uint32_t min_points, uint32_t room)
{
	struct search search = {
		.dataset = dataset,
		.question = {.max_distance = radius,.min_points = min_points,.algorithm = GEONN_ALGORITHM_INDEX},
		.algorithm = GEONN_ALGORITHM_INDEX,
		.rows = (uint32_t) dataset->count,
		.shapes = dataset_create(0, dataset->metric, 0),
		.cancelled = &cancelled,
		.columns = {
			.room = room,
			.latitude = dataset->latitude,
			.longitude = dataset->longitude,
			.tag = allocate_pages(room * sizeof(int64_t)),
			.distance = allocate_pages(room * sizeof(double)),
			.group = dataset->group,
			.edges = dataset->edges
		}
	};

	memcpy(search.columns.low, dataset->low, sizeof(dataset->low));
	memcpy(search.columns.high, dataset->high, sizeof(dataset->high));
	return search;
}

static void
forget(struct search *search)
{
	free(search->columns.tag);
	free(search->columns.distance);
	device_forget(&machine, search->shapes);
}

/* Does the device give these answers, batch by batch? */
static bool
is_right(struct search *search, const double *right)
{
	struct failure failure;

	for (search->first = 0; search->first < search->rows; search->first += search->answered)
	{
		search->answered = search->pairs = 0;
		if (!device_work(&machine, search, &failure) || search->failed || search->answered == 0 || !search->one_each ||
			memcmp(search->columns.distance, right + search->first, search->answered * sizeof(double)) != 0 ||
			memcmp(search->columns.tag, search->dataset->tag + search->first, search->answered * sizeof(int64_t)) != 0)
			return false;
	}
	return true;
}

/* Draw the distance of two references, within which about a tenth to a third of all are; sometimes any radius. */
static double
draw_radius(const struct dataset *dataset)
{
	uint32_t	a = (uint32_t) random_below((int) dataset->count);
	uint32_t	b = (uint32_t) random_below((int) dataset->count);

	if (random_below(8) == 0)
		return fabs(random_magnitude(1e-3, 2e7));
	for (int i = 0; i < 3 + random_below(20); i++)
	{
		uint32_t	other = (uint32_t) random_below((int) dataset->count);

		if (geonn_metric_distance(dataset->metric, dataset->latitude[a], dataset->longitude[a], dataset->latitude[other],
								  dataset->longitude[other]) <
			geonn_metric_distance(dataset->metric, dataset->latitude[a], dataset->longitude[a], dataset->latitude[b],
								  dataset->longitude[b]))
			b = other;
	}
	if (a > b)
	{
		uint32_t	first = b;

		b = a;
		a = first;
	}
	return geonn_metric_distance(dataset->metric, dataset->latitude[a], dataset->longitude[a], dataset->latitude[b],
								 dataset->longitude[b]);
}

/* Draw references and a question, and compare the answers.  Says what differs. */
static bool
set_is_right(int number, size_t most, bool thins)
{
	static const char *const paths[] = {"portable", "avx2", "avx512"};
	static const uint32_t columns[] = {
		0, 0, GEONN_COLUMN_GROUP, GEONN_COLUMN_WINDOW, GEONN_COLUMN_WINDOW << 1 | GEONN_COLUMN_GROUP, GEONN_COLUMN_WINDOW * 3
	};
	struct failure failure;
	enum places places = (enum places) random_below(PLACES);
	enum geonn_metric metric = random_below(16) == 0 ? GEONN_METRIC_SPHEROID : GEONN_METRIC_SPHERE;
	size_t		count = 1 + (size_t) random_below((int) most);
	uint32_t	weight = thins && random_below(2) ? GEONN_COLUMN_WEIGHT : 0;
	struct dataset *dataset = make_dataset(count, places, metric, columns[random_below(6)] | weight, 2 + random_below(1000));
	double		radius = draw_radius(dataset);
	uint32_t	min_points = random_below(3) == 0 ? 1 + (uint32_t) random_below(3) : 1 + (uint32_t) random_below(20);
	double	   *right = thins ? thin_by_oracle(dataset, radius) : ask_oracle(dataset, radius, min_points);
	struct search search = ask(dataset, radius, thins ? 1 : min_points, 1 + (uint32_t) random_below(2 * (int) most));
	bool		same;

	search.question.thins = thins;

	if (!cpu_path_choose(paths[number % 3], &failure))
		cpu_path_choose(NULL, &failure);
	thread_pool_set_threads(1 + (uint64_t) number % 4);
	/* turns of one item; of a piece by some of the threads; or of all */
	cpu_turn_set_ms(number % 7 < 2 ? 0 : number % 7 < 4 ? 1 : CPU_TURN_MS);
	same = is_right(&search, right);
	if (!same)
		printf("# %s %d: %zu references, places %d, columns %u, metric %d, radius %.17g, min_points %u, path %s\n", thins ? "thinning" : "set", number, count,
			   places, dataset->columns, metric, radius, min_points, cpu_path->name);
	free(right);
	forget(&search);
	device_forget(&machine, dataset);
	return same;
}

/* ---- what is large ---- */

/* Are all references of one cluster, all core, if they need so many neighbours? */
static bool
are_one(struct dataset *dataset, double radius, uint32_t min_points)
{
	struct search search = ask(dataset, radius, min_points, (uint32_t) dataset->count);
	double	   *right = calloc(dataset->count, sizeof(double));
	bool		same;

	for (size_t i = 0; i < dataset->count; i++)
		right[i] = 1;
	same = is_right(&search, right);
	free(right);
	forget(&search);
	return same;
}

static void
test_crowds(size_t count)
{
	struct dataset *dataset = make_dataset(count, COINCIDENT, GEONN_METRIC_SPHERE, 0, 1);
	struct dataset *chain = make_dataset(count, COINCIDENT, GEONN_METRIC_SPHERE, 0, 1);

	report("coincident references are one cluster", are_one(dataset, 1, (uint32_t) count));
	device_forget(&machine, dataset);
	dataset = make_dataset(count, IN_TOWN, GEONN_METRIC_SPHERE, 0, 1);
	report("references that are all near all are one cluster", are_one(dataset, 1e5, (uint32_t) count));
	for (size_t i = 0; i < count; i++)
		chain->latitude[i] = (double) i * (89.0 / (double) count);
	report("a chain is one cluster", are_one(chain, 89.1 / (double) count * 111195, 2));
	device_forget(&machine, chain);
	device_forget(&machine, dataset);
}

/* Does a thinning keep every `step`-th reference alone, each of which keeps those behind it? */
static bool
keeps_each(struct dataset *dataset, double spacing, size_t step)
{
	struct search search = ask(dataset, spacing, 1, (uint32_t) dataset->count);
	double	   *right = calloc(dataset->count, sizeof(double));
	bool		same;

	search.question.thins = true;
	for (size_t i = 0; i < dataset->count; i++)
		memcpy(&right[i], &dataset->tag[i - i % step], sizeof(double));
	same = is_right(&search, right);
	free(right);
	forget(&search);
	return same;
}

static void
test_thinning(size_t count)
{
	struct dataset *dataset = make_dataset(count, COINCIDENT, GEONN_METRIC_SPHERE, 0, 1);
	struct search search;

	report("of coincident references the first is kept", keeps_each(dataset, 1, count));
	dataset->tag[count / 2] = dataset->tag[0];
	search = ask(dataset, 1, 1, (uint32_t) count);
	search.question.thins = true;
	report("a keeper with the same tag is an error", device_work(&machine, &search, &search.failure) && search.failed &&
		   search.failure.code == GEONN_ERROR_SAME_TAG);
	forget(&search);
	device_forget(&machine, dataset);
	dataset = make_dataset(count, IN_TOWN, GEONN_METRIC_SPHERE, GEONN_COLUMN_WEIGHT, 1);
	for (size_t i = 0; i < count; i++)
		dataset->weight[0][i] = -(double) i;
	report("of references that are all near all the first is kept", keeps_each(dataset, 1e5, count));
	search = ask(dataset, 1e5, 1, 1);
	search.question.thins = true;
	(void) device_work(&machine, &search, &search.failure);
	report("a thinning takes at most 24 bytes a reference, and 512 more",
		   atomic_load(&search.shapes->built_bytes) <= GEONN_THIN_BYTES * dataset->count + 512);
	forget(&search);
	device_forget(&machine, dataset);
	dataset = make_dataset(count, COINCIDENT, GEONN_METRIC_SPHERE, 0, 1);
	for (size_t i = 0; i < count; i++)
		dataset->latitude[i] = ((double) i - (i % 2) * 0.1) * (89.0 / (double) count);
	report("of a chain, in its order, every other one is kept", keeps_each(dataset, 1.2 * 89 / (double) count * 111195, 2));
	device_forget(&machine, dataset);
}

static void
test_memory(void)
{
	struct dataset *dataset = make_dataset(5000, EVERYWHERE, GEONN_METRIC_SPHERE, 0, 1);
	struct search search = ask(dataset, 1e5, 3, 1);

	(void) device_work(&machine, &search, &search.failure);
	report("clusters take at most 13 bytes a reference, and 512 more",
		   atomic_load(&search.shapes->built_bytes) <= GEONN_CLUSTER_BYTES * dataset->count + 512);
	forget(&search);
	search = ask(dataset, 1e5, 3, 1);
	atomic_store(&cancelled, true);
	report("a search that is cancelled ends without answers",
		   device_work(&machine, &search, &search.failure) && search.answered == 0 && !search.failed);
	atomic_store(&cancelled, false);
	forget(&search);
	device_forget(&machine, dataset);
}

/* ---- turns ---- */

/* Return in how many turns of 0 ms the clusters of so many references are found on four threads. */
static uint32_t
turns_of(size_t count, uint32_t columns, enum geonn_metric metric)
{
	struct dataset *dataset = make_dataset(count, EVERYWHERE, metric, columns, 1000);
	struct search search = ask(dataset, 1e5, 2, (uint32_t) count);
	uint32_t	turns = 0;

	thread_pool_set_threads(4);
	cpu_turn_set_ms(0);
	do
	{
		turns++;
	} while (device_build(&machine, &search, &search.failure) &&
			 machine.operations->turn(&machine, &search) == DEVICE_YIELDED);
	printf("# %zu references, columns %u, metric %d: %u turns\n", count, columns, metric, turns);
	forget(&search);
	device_forget(&machine, dataset);
	return turns;
}

/* a thread that works now and then while others find clusters */
struct other
{
	atomic_bool over;
	int			seats;
};

static void *
take_seats(void *context)
{
	struct other *other = context;

	while (!atomic_load(&other->over))
	{
		thread_pool_enter();
		if (++other->seats == SEATS_LEAST)
			atomic_store(&cancelled, true);
		thread_pool_leave();
		usleep(1000);
	}
	return NULL;
}

/* Have another thread work while clusters are found that take long: each reference is compared with each. */
static void
test_seats(size_t count)
{
	struct dataset *dataset = make_dataset(count, IN_TOWN, GEONN_METRIC_SPHERE, GEONN_COLUMN_WINDOW, 2);
	struct search search = ask(dataset, 1e5, (uint32_t) count, (uint32_t) count);
	struct other other = {false, 0};
	pthread_t	thread;

	for (size_t i = 0; i < count; i++)
		dataset->high[0][i] = 10;
	thread_pool_set_threads(2);
	cpu_turn_set_ms(1000000);
	/* the index, and the clusters */
	if (!device_build(&machine, &search, &search.failure) || !device_build(&machine, &search, &search.failure) ||
		pthread_create(&thread, NULL, take_seats, &other) != 0)
		exit(EXIT_FAILURE);
	while (machine.operations->turn(&machine, &search) == DEVICE_YIELDED)
		;
	thread_pool_leave();
	atomic_store(&other.over, true);
	pthread_join(thread, NULL);
	printf("# another thread had a seat %d times\n", other.seats);
	report("others work while clusters are found", other.seats >= SEATS_LEAST && search.answered == 0);
	atomic_store(&cancelled, false);
	forget(&search);
	device_forget(&machine, dataset);
}

static void
test_turns(void)
{
	/* at the end of a phase a turn goes on with the next one; there are some 20 */
	report("a turn whose time is over works on one leaf, however many threads there are",
		   turns_of(2000, 0, GEONN_METRIC_SPHERE) >= 5 * 2000 / INDEX_WIDTH - 20);
	report("and on four references alone, if each may need 5,000 geodesics",
		   turns_of(5000, 0, GEONN_METRIC_SPHEROID) >= 4 * 5000 / 4 - 20);
}

/* Clusters by an index that is cut for windows of another length. */
static void
test_index_of_others(void)
{
	struct dataset *dataset = make_dataset(3000, IN_TOWN, GEONN_METRIC_SPHERE, GEONN_COLUMN_WINDOW, 1000);
	struct search other = ask(dataset, 1e5, 0, 3000);
	struct search search = ask(dataset, 300, 3, 3000);
	double	   *right = ask_oracle(dataset, 300, 3);
	const struct cpu_built *built;
	bool		same;

	dataset_free(other.shapes);
	other.shapes = NULL;
	other.question.k = 1;
	other.columns.count = calloc(other.rows, sizeof(uint32_t));
	other.columns.low[0] = calloc(other.rows, sizeof(int64_t));
	other.columns.high[0] = calloc(other.rows, sizeof(int64_t));
	for (uint32_t i = 0; i < other.rows; i++)
		other.columns.high[0][i] = INT64_C(1) << 40;
	same = device_work(&machine, &other, &other.failure) && is_right(&search, right);
	built = dataset->built[CPU_NUMBER];
	report("clusters go by an index for windows of another length, and have no other one built",
		   same && built->index->slabs != NULL && atomic_load(&built->next) == NULL && atomic_load(&built->misfit_us) == 0);
	free(other.columns.count);
	free(other.columns.low[0]);
	free(other.columns.high[0]);
	free(other.columns.tag);
	free(other.columns.distance);
	free(right);
	forget(&search);
	device_forget(&machine, dataset);
}

static void
test_answers_at_once(void)
{
	const size_t count = ANSWERS_MOST + 1000;
	struct dataset *dataset = make_dataset(count, COINCIDENT, GEONN_METRIC_SPHERE, 0, 1);
	struct search search = ask(dataset, 1, 1, (uint32_t) count);

	report("a turn writes some of the answers, however many the batch has room for",
		   device_work(&machine, &search, &search.failure) && search.answered == ANSWERS_MOST);
	forget(&search);
	report("and later searches the others", are_one(dataset, 1, 1));
	device_forget(&machine, dataset);
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20261130;
	bool		sanitized = argc > 2 && strcmp(argv[2], "sanitized") == 0;
	int			sets = sanitized ? 150 : argc > 2 ? atoi(argv[2]) : 600;
	long		failures = 0;
	struct failure failure;

	machine.operations = &cpu_device_operations;
	cpu_path_choose(NULL, &failure);
	machine.operations->probe(&machine, &failure);
	printf("# seed: %llu\n", (unsigned long long) seed);
	for (int i = 0; i < sets; i++)
	{
		random_state = seed + ((uint64_t) i << 32);
		failures += !set_is_right(i, i % 50 == 49 ? 6000 : i % 10 == 9 ? 1500 : 200, false);
	}
	report_failures("clusters of random references that differ from the definition's", failures);
	failures = 0;
	for (int i = 0; i < sets; i++)
	{
		random_state = seed + ((uint64_t) i << 32);
		failures += !set_is_right(i, i % 50 == 49 ? 6000 : i % 10 == 9 ? 1500 : 200, true);
	}
	report_failures("thinnings of random references that differ from the definition's", failures);
	test_thinning(sanitized ? 3000 : 100000);
	test_crowds(sanitized ? 3000 : 100000);
	test_memory();
	test_index_of_others();
	test_answers_at_once();
	test_turns();
	test_seats(sanitized ? 100000 : 200000);
	machine.operations->close(&machine);
	return summed_up();
}
