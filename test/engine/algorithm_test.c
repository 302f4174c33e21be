/*
 * algorithm_test.c
 *		Which algorithm auto means: the properties that its choices have, and
 *		what searches by either cost on the CPU of this machine.
 *
 * Usage: algorithm_test [timed|costs]
 *
 * "timed" also compares the time that each choice takes with that of the
 * faster algorithm; other work on the machine may spoil that.  "costs" prints
 * the times that the constants of cpu/cost.c were fitted to, beside what these
 * say.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../cuda/cost.cuh"
#include "engine/base/thread_pool.h"
#include "engine/cpu/cost.h"
#include "engine/cpu/path.h"
#include "engine/search/algorithm.h"
#include "../lib/pages.h"
#include "../lib/random.h"
#include "../lib/verdict.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- devices that build nothing ---- */

static bool built[3];			/* by enum geonn_algorithm */

static bool
is_built(const struct device *device, const struct search *search, enum geonn_algorithm algorithm)
{
	(void) device;
	(void) search;
	return built[algorithm];
}

static const struct device_operations models[] = {
	{.kind = GEONN_KIND_CPU,.cost = cpu_cost,.is_built = is_built},
	{.kind = GEONN_KIND_CUDA,.cost = cuda_cost,.is_built = is_built}
};

static const struct device cpu = {.operations = &models[0]};
static const struct device gpu = {.operations = &models[1],.number = 1};

static void
set_built(bool index, bool brute)
{
	built[GEONN_ALGORITHM_INDEX] = index;
	built[GEONN_ALGORITHM_BRUTE] = brute;
}

/* ---- searches without points ---- */

struct problem
{
	uint32_t	observations;
	uint32_t	references;
	uint32_t	k;
	uint32_t	columns;
	enum geonn_metric metric;
	bool		stays;
};

static struct dataset dataset;

/* What auto means for a problem, whose dataset has wasted nothing so far. */
static enum geonn_algorithm
chosen(const struct device *device, struct problem problem)
{
	struct search search = {
		.dataset = &dataset,
		.stays = problem.stays,
		.question = {.k = problem.k,.max_distance = INFINITY},
		.columns = {.room = UINT32_MAX},
		.rows = problem.observations
	};

	dataset = (struct dataset) {
		.count = problem.references,.columns = problem.columns,.metric = problem.metric
	};
	algorithm_choose(device, &search);
	return search.algorithm;
}

static const uint32_t observation_counts[] = {
	1, 2, 5, 16, 17, 40, 100, 126, 300, 400, 1000, 4096, 32768, 131072, 1 << 20, 1 << 24
};
static const uint32_t ks[] = {0, 1, 2, 10, 100, 1024};
static const uint32_t column_sets[] = {
	0, GEONN_COLUMN_GROUP, GEONN_COLUMN_IDENTITY, GEONN_COLUMN_RADIUS, GEONN_COLUMN_WINDOW
};

/*
 * Call a function with every problem, but for its references, in turn.
 */
static long
count_failures(long (*failures_of) (const struct device *device, struct problem problem))
{
	long		failures = 0;

	for (size_t n = 0; n < COUNT(observation_counts); n++)
		for (size_t k = 0; k < COUNT(ks); k++)
			for (size_t c = 0; c < COUNT(column_sets); c++)
				for (int rest = 0; rest < 8; rest++)
				{
					struct problem problem = {
						.observations = observation_counts[n],
						.k = ks[k],
						.columns = column_sets[c],
						.metric = rest & 1 ? GEONN_METRIC_SPHEROID : GEONN_METRIC_SPHERE,
						.stays = (rest & 2) != 0
					};

					failures += failures_of(rest & 4 ? &gpu : &cpu, problem);
				}
	return failures;
}

/* More references: the index is never given up for brute force. */
static long
not_monotone(const struct device *device, struct problem problem)
{
	long		failures = 0;

	for (int i = 0; i < 4; i++)
	{
		bool		indexed = false;

		set_built(i & 1, i & 2);
		for (double references = 1; references < 2e8; references = ceil(references * 1.2))
		{
			bool		index;

			problem.references = (uint32_t) references;
			index = chosen(device, problem) == GEONN_ALGORITHM_INDEX;
			failures += indexed && !index;
			indexed = index;
		}
	}
	return failures;
}

/* An index that is there is used wherever one would have been built. */
static long
not_sooner(const struct device *device, struct problem problem)
{
	long		failures = 0;

	for (double references = 1; references < 2e8; references = ceil(references * 1.2))
	{
		problem.references = (uint32_t) references;
		set_built(false, false);
		if (chosen(device, problem) == GEONN_ALGORITHM_BRUTE)
			continue;
		set_built(true, false);
		failures += chosen(device, problem) == GEONN_ALGORITHM_BRUTE;
	}
	return failures;
}

/* For a dataset with a label, it does not matter what has been built. */
static long
not_for_later(const struct device *device, struct problem problem)
{
	long		failures = 0;

	for (double references = 1; references < 2e8; references = ceil(references * 1.2))
	{
		enum geonn_algorithm first;

		problem.references = (uint32_t) references;
		problem.stays = true;
		set_built(false, false);
		first = chosen(device, problem);
		for (int i = 1; i < 4; i++)
		{
			set_built(i & 1, i & 2);
			failures += chosen(device, problem) != first;
		}
	}
	return failures;
}

static void
test_order(void)
{
	report_failures("more references: the index is not given up", count_failures(not_monotone));
	report_failures("an index that is there is used sooner", count_failures(not_sooner));
	report_failures("with a label, what is built does not matter", count_failures(not_for_later));
}

static void
test_forced(void)
{
	bool		kept = true;

	for (int algorithm = GEONN_ALGORITHM_INDEX; algorithm <= GEONN_ALGORITHM_BRUTE; algorithm++)
		for (uint32_t references = 1; references < 100000000; references *= 9)
		{
			struct search search = {.dataset = &dataset,.rows = 10,.columns = {.room = 10}};

			search.algorithm = (enum geonn_algorithm) algorithm;
			dataset.count = references;
			algorithm_choose(&cpu, &search);
			algorithm_choose(&gpu, &search);
			kept = kept && search.algorithm == (enum geonn_algorithm) algorithm;
		}
	report("an algorithm that the question names, or a device chose, stays", kept);
}

static void
test_examples(void)
{
	set_built(false, false);
	report("CPU: 50 references, a full batch: by index",
		   chosen(&cpu, (struct problem) {4096, 50, 1, 0, GEONN_METRIC_SPHERE, false}) ==
		   GEONN_ALGORITHM_INDEX);
	report("CPU: one observation, references without a label: by brute force",
		   chosen(&cpu, (struct problem) {1, 1 << 20, 1, 0, GEONN_METRIC_SPHERE, false}) ==
		   GEONN_ALGORITHM_BRUTE);
	report("CPU: the same with a label: by index",
		   chosen(&cpu, (struct problem) {1, 1 << 20, 1, 0, GEONN_METRIC_SPHERE, true}) ==
		   GEONN_ALGORITHM_INDEX);
	report("GPU: 2^16 x 2^13: by brute force",
		   chosen(&gpu, (struct problem) {1 << 16, 1 << 13, 1, 0, GEONN_METRIC_SPHERE, false}) ==
		   GEONN_ALGORITHM_BRUTE);
	report("GPU: 2^24 x 2^14, 2^20 x 2^16: by index",
		   chosen(&gpu, (struct problem) {1 << 24, 1 << 14, 1, 0, GEONN_METRIC_SPHERE, false}) ==
		   GEONN_ALGORITHM_INDEX &&
		   chosen(&gpu, (struct problem) {1 << 20, 1 << 16, 1, 0, GEONN_METRIC_SPHERE, false}) ==
		   GEONN_ALGORITHM_INDEX);
}

/*
 * Searches follow one another without an end.  Until the index is built, brute
 * force wastes no more than that costs.
 */
static void
test_waste(void)
{
	long		endless = 0;
	long		dear = 0;

	for (size_t n = 0; n < COUNT(observation_counts); n++)
		for (int d = 0; d < 2; d++)
			for (double references = 1; references < 2e7; references *= 7)
			{
				const struct device *device = d ? &gpu : &cpu;
				struct search search = {
					.dataset = &dataset,
					.question = {.k = 1,.max_distance = INFINITY},
					.columns = {.room = UINT32_MAX},
					.rows = observation_counts[n]
				};
				double		observations = search.rows;
				struct cost index;
				struct cost brute;
				double		wasted = 0;
				int			searches = 0;

				dataset = (struct dataset) {.count = (size_t) references};
				index = device->operations->cost(&search, GEONN_ALGORITHM_INDEX, observations);
				brute = device->operations->cost(&search, GEONN_ALGORITHM_BRUTE, observations);
				set_built(false, false);
				for (; searches < 100000; searches++)
				{
					search.algorithm = GEONN_ALGORITHM_AUTO;
					algorithm_choose(device, &search);
					if (search.algorithm == GEONN_ALGORITHM_INDEX)
						break;
					set_built(false, true);
					wasted += brute.search - index.search;
				}
				dear += wasted > index.build;
				endless += brute.search > 1.3 * index.search && searches == 100000;
			}
	report_failures("searches by brute force waste no more than the index costs", dear);
	report_failures("and in the end the index is built", endless);
}

static void
test_room(void)
{
	struct search search = {
		.dataset = &dataset,
		.question = {.k = 100,.max_distance = INFINITY},
		.columns = {.room = 100},
		.rows = 100000
	};

	set_built(false, false);
	dataset = (struct dataset) {.count = 2000};
	algorithm_choose(&cpu, &search);
	report("observations that the batch has no room for do not count",
		   search.algorithm == GEONN_ALGORITHM_BRUTE &&
		   chosen(&cpu, (struct problem) {100000, 2000, 100, 0, GEONN_METRIC_SPHERE, false}) ==
		   GEONN_ALGORITHM_INDEX);
}

/* ---- searches on this machine ---- */

static struct device machine = {.operations = &cpu_device_operations};
static atomic_bool cancelled;

/* nanoseconds, of the algorithms' fastest of some runs in turn */
struct measured
{
	struct cost index;
	struct cost brute;
};

static double
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

/* anywhere on the sphere alike; ten groups, windows of a thousandth of the time */
static void
draw_point(double *latitude, double *longitude, int32_t *group, int64_t *low, int64_t *high)
{
	*latitude = asin(random_between(-1, 1)) * 180 / M_PI;
	*longitude = random_between(-180, 180);
	if (group != NULL)
		*group = random_below(10);
	if (low != NULL)
		*high = 1 + (*low = random_below(1000));
}

static struct dataset *
make_dataset(const struct problem *problem)
{
	struct dataset *made = dataset_create(1, problem->metric, problem->columns);
	size_t		count = problem->references;

	made->count = count;
	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (dataset_columns[i].present == 0 || dataset_columns[i].present & problem->columns)
		{
			void	   *column = calloc(count, dataset_columns[i].width);

			memcpy((char *) made + dataset_columns[i].member, &column, sizeof(column));
		}
	for (size_t i = 0; i < count; i++)
	{
		draw_point(&made->latitude[i], &made->longitude[i],
				   made->group != NULL ? &made->group[i] : NULL,
				   made->low[0] != NULL ? &made->low[0][i] : NULL,
				   made->low[0] != NULL ? &made->high[0][i] : NULL);
		made->tag[i] = (int64_t) i;
		if (made->identity != NULL)
			made->identity[i] = (int32_t) i;
		if (made->radius != NULL)
			made->radius[i] = INFINITY;
	}
	return made;
}

/* Returns the batch's memory. */
static void *
make_search(const struct problem *problem, struct dataset *of, struct search *search)
{
	uint32_t	rows = problem->observations;
	uint32_t	room = rows * (problem->k > 0 ? problem->k : 1);
	size_t		bytes = geonn_batch_layout(NULL, rows, room, problem->columns, &search->columns);
	void	   *memory = allocate_pages(bytes);
	struct geonn_batch_columns *columns = &search->columns;

	memset(search, 0, sizeof(*search));
	geonn_batch_layout(memory, rows, room, problem->columns, columns);
	for (uint32_t i = 0; i < rows; i++)
	{
		draw_point(&columns->latitude[i], &columns->longitude[i],
				   columns->group != NULL ? &columns->group[i] : NULL,
				   columns->low[0] != NULL ? &columns->low[0][i] : NULL,
				   columns->low[0] != NULL ? &columns->high[0][i] : NULL);
		if (columns->identity != NULL)
			columns->identity[i] = (int32_t) i;
		if (columns->radius != NULL)
			columns->radius[i] = INFINITY;
	}
	search->dataset = of;
	search->stays = problem->stays;
	search->question = (struct question) {.k = problem->k,.max_distance = INFINITY};
	search->rows = rows;
	search->cancelled = &cancelled;
	return memory;
}

static void
discard(struct dataset *of)
{
	if (of->built[0] != NULL)
		cpu_device_operations.discard(&machine, of->built[0]);
	of->built[0] = NULL;
}

/* Answer a search once; the less of this time and the former. */
static void
time_search(struct search *search, enum geonn_algorithm algorithm, bool builds, struct cost *best)
{
	struct failure failure;
	double		begin = now_ns();
	double		end;

	search->algorithm = algorithm;
	if (!cpu_device_operations.build(&machine, search, &failure))
		printf("Bail out! %s\n", failure.message);
	end = now_ns();
	if (builds && end - begin < best->build)
		best->build = end - begin;

	search->answered = search->pairs = 0;
	search->one_each = false;
	search->device_state = 0;
	begin = now_ns();
	while (cpu_device_operations.turn(&machine, search) == DEVICE_YIELDED)
		continue;
	end = now_ns();
	if (end - begin < best->search)
		best->search = end - begin;
}

static struct measured
measure(const struct problem *problem)
{
	struct dataset *of = make_dataset(problem);
	struct measured best = {{INFINITY, INFINITY}, {INFINITY, INFINITY}};
	struct search search;
	void	   *memory = make_search(problem, of, &search);
	double		begin = now_ns();

	for (int i = 0; i < 20 && (i < 3 || now_ns() - begin < 1e8); i++)
	{
		bool		builds = i < 4;

		if (builds)
			discard(of);
		time_search(&search, GEONN_ALGORITHM_INDEX, builds, &best.index);
		time_search(&search, GEONN_ALGORITHM_BRUTE, builds, &best.brute);
	}
	discard(of);
	dataset_free(of);
	free(memory);
	return best;
}

static void
begin_machine(void)
{
	struct failure failure;

	cpu_path_choose(NULL, &failure);
	thread_pool_set_threads(1);
	cpu_device_operations.probe(&machine, &failure);
}

static const struct
{
	const char *name;
	uint32_t	k;
	uint32_t	columns;
	enum geonn_metric metric;
}			questions[] = {
	{"nearest", 1, 0, GEONN_METRIC_SPHERE},
	{"nearest, spheroid", 1, 0, GEONN_METRIC_SPHEROID},
	{"k = 10", 10, 0, GEONN_METRIC_SPHERE},
	{"k = 100", 100, 0, GEONN_METRIC_SPHERE},
	{"groups", 1, GEONN_COLUMN_GROUP, GEONN_METRIC_SPHERE},
	{"identities", 1, GEONN_COLUMN_IDENTITY, GEONN_METRIC_SPHERE},
	{"radiuses", 1, GEONN_COLUMN_RADIUS, GEONN_METRIC_SPHERE},
	{"windows", 1, GEONN_COLUMN_WINDOW, GEONN_METRIC_SPHERE}
};

/*
 * Call a function with every question, and numbers of observations and
 * references so that brute force ends soon.
 */
static void
for_each_problem(double pairs_most, uint32_t references_most,
				 void (*look) (size_t question, const struct problem *problem))
{
	static const uint32_t observations[] = {1, 16, 128, 1024, 32768};
	static const uint32_t references[] = {1, 8, 50, 200, 1000, 4096, 16384, 65536, 1 << 20};

	for (size_t q = 0; q < COUNT(questions); q++)
		for (size_t m = 0; m < COUNT(references); m++)
			for (size_t n = 0; n < COUNT(observations); n++)
			{
				struct problem problem = {
					observations[n], references[m], questions[q].k, questions[q].columns,
					questions[q].metric, false
				};

				if (references[m] <= references_most &&
					(double) observations[n] * references[m] * questions[q].k <= pairs_most)
					look(q, &problem);
			}
}

static void
print_costs(size_t question, const struct problem *problem)
{
	struct measured found = measure(problem);
	struct dataset of = {
		.count = problem->references,.columns = problem->columns,.metric = problem->metric
	};
	struct search search = {.dataset = &of,.question = {.k = problem->k,.max_distance = INFINITY}};
	struct cost index = cpu_cost(&search, GEONN_ALGORITHM_INDEX, problem->observations);
	struct cost brute = cpu_cost(&search, GEONN_ALGORITHM_BRUTE, problem->observations);

	printf("%-18s %7u x %7u  index %9.1f %9.1f (%9.1f %9.1f)  brute %9.1f %9.1f (%9.1f %9.1f)\n",
		   questions[question].name, problem->observations, problem->references,
		   found.index.build / 1e3, found.index.search / 1e3, index.build / 1e3, index.search / 1e3,
		   found.brute.build / 1e3, found.brute.search / 1e3, brute.build / 1e3, brute.search / 1e3);
	fflush(stdout);
}

static double worst;

/* how many times as long a choice takes as the other one would; what is over in 10 us counts as 10 us */
static double
times_as_long(const struct problem *problem, double index_ns, double brute_ns)
{
	bool		brute = chosen(&cpu, *problem) == GEONN_ALGORITHM_BRUTE;

	return ((brute ? brute_ns : index_ns) + 1e4) / ((brute ? index_ns : brute_ns) + 1e4);
}

static void
time_choices(size_t question, const struct problem *problem)
{
	struct measured found = measure(problem);
	double		first;
	double		later;

	set_built(false, false);
	first = times_as_long(problem, found.index.build + found.index.search,
						  found.brute.build + found.brute.search);
	set_built(true, true);
	later = times_as_long(problem, found.index.search, found.brute.search);
	if (first > 1.5 || later > 1.5)
		printf("# %s, %u x %u: %.2f times as long, %.2f with both built\n",
			   questions[question].name, problem->observations, problem->references, first, later);
	worst = fmax(worst, fmax(first, later));
}

int
main(int argument_count, char **words)
{
	const char *what = argument_count > 1 ? words[1] : "";

	if (strcmp(what, "costs") == 0)
	{
		begin_machine();
		printf("us to build and to search; in () as expected, without what both ways take alike\n");
		for_each_problem(1e8, UINT32_MAX, print_costs);
		return 0;
	}
	test_order();
	test_forced();
	test_examples();
	test_waste();
	test_room();
	if (strcmp(what, "timed") == 0)
	{
		begin_machine();
		for_each_problem(2e7, 65536, time_choices);
		report_measure("no choice takes more than twice as long as the other one would",
					   worst < 2, "at most", worst, "times");
	}
	return summed_up();
}
