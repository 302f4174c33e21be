/*
 * built_test.c
 *		Searches with windows of other lengths than those that the CPU's index of a
 *		dataset is cut for have an index of their own after a while, and give the
 *		same bytes by any of them.  Sums and extremes of weights are built when a
 *		search first asks for them.
 *
 * rooms: engine/cpu engine/cpu/index engine/cpu/counts
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/metric.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/built.h"
#include "engine/cpu/base/path.h"
#include "../lib/pages.h"
#include "../lib/random.h"
#include "../lib/verdict.h"
#include "device_work.h"

#define REFERENCES 60000
#define ROWS 1000
#define COLUMNS GEONN_COLUMN_WINDOW

/* references have the moments from 0 to this */
#define MOMENTS 1000000000

/* lengths of windows: few references are within the one, and many within the other */
#define SHORT_WINDOW 20000
#define LONG_WINDOW (MOMENTS / 3)

/* searches until an index should have been built */
#define SEARCHES_MAX 1000

static struct device machine;
static atomic_bool cancelled;

static void
draw_point(double *latitude, double *longitude, int64_t *low, int64_t *high, int length)
{
	*latitude = asin(random_between(-1, 1)) * 180 / M_PI;
	*longitude = random_between(-180, 180);
	*low = random_below(MOMENTS) - length / 2;
	*high = *low + length;
}

static struct dataset *
make_dataset(uint32_t present)
{
	struct dataset *made = dataset_create(1, GEONN_METRIC_SPHERE, present);

	made->count = REFERENCES;
	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (dataset_columns[i].present == 0 || dataset_columns[i].present & present)
		{
			void	   *column = calloc(REFERENCES, dataset_columns[i].width);

			memcpy((char *) made + dataset_columns[i].member, &column, sizeof(column));
		}
	for (int i = 0; i < REFERENCES; i++)
	{
		draw_point(&made->latitude[i], &made->longitude[i], &made->low[0][i], &made->high[0][i], 0);
		made->tag[i] = i;
		for (int weight = 0; weight < GEONN_WEIGHTS_MAX && made->weight[weight] != NULL; weight++)
			made->weight[weight][i] = random_between(-1, 1);
	}
	return made;
}

/* a search, and the pairs that brute force gives */
struct asked
{
	struct search search;
	uint32_t	pairs;
	int64_t    *tag;
	double	   *distance;
};

static void
answer(struct search *search, enum geonn_algorithm algorithm)
{
	struct failure failure;

	search->algorithm = algorithm;
	search->answered = search->pairs = 0;
	search->one_each = false;
	search->device_state = 0;
	if (!device_work(&machine, search, &failure))
		printf("Bail out! %s\n", failure.message);
}

static struct asked
ask(struct dataset *dataset, uint32_t rows, uint32_t k, int length)
{
	struct search search = {
		.dataset = dataset,
		.question = {.k = k,.max_distance = INFINITY},
		.rows = rows,
		.cancelled = &cancelled
	};
	size_t		bytes = geonn_batch_layout(NULL, rows, rows * k, COLUMNS, &search.columns);
	struct asked asked;

	geonn_batch_layout(allocate_pages(bytes), rows, rows * k, COLUMNS, &search.columns);
	for (uint32_t i = 0; i < rows; i++)
		draw_point(&search.columns.latitude[i], &search.columns.longitude[i],
				   &search.columns.low[0][i], &search.columns.high[0][i], length);
	answer(&search, GEONN_ALGORITHM_BRUTE);
	asked.search = search;
	asked.pairs = search.pairs;
	asked.tag = allocate_pages(search.pairs * sizeof(int64_t));
	asked.distance = allocate_pages(search.pairs * sizeof(double));
	memcpy(asked.tag, search.columns.tag, search.pairs * sizeof(int64_t));
	memcpy(asked.distance, search.columns.distance, search.pairs * sizeof(double));
	return asked;
}

static void
forget(struct asked *asked)
{
	free(asked->search.columns.latitude);
	free(asked->tag);
	free(asked->distance);
}

/*
 * Does the index give the bytes that brute force gives?
 */
static bool
is_right(struct asked *asked)
{
	struct search *search = &asked->search;

	answer(search, GEONN_ALGORITHM_INDEX);
	return search->answered == search->rows && search->pairs == asked->pairs && asked->pairs > 0 &&
		memcmp(asked->tag, search->columns.tag, asked->pairs * sizeof(int64_t)) == 0 &&
		memcmp(asked->distance, search->columns.distance, asked->pairs * sizeof(double)) == 0;
}

/* What answers it. */
static const struct cpu_built *
used(const struct asked *asked)
{
	bool		fits;

	return cpu_built_for(asked->search.dataset->built[0], &asked->search, &fits);
}

static int
indexes(const struct dataset *dataset)
{
	int			count = 0;

	for (struct cpu_built *built = dataset->built[0]; built != NULL; built = atomic_load(&built->next))
		count++;
	return count;
}

static void
report_of(const char *direction, const char *property, bool holds)
{
	char		name[100];

	snprintf(name, sizeof(name), "%s: %s", direction, property);
	report(name, holds);
}

/*
 * The index is first built for windows of one length, and then searched with those of another one.
 */
static void
test_lengths(const char *direction, int first_length, int length)
{
	struct dataset *dataset = make_dataset(COLUMNS);
	struct asked first = ask(dataset, ROWS, 1, first_length);
	struct asked few = ask(dataset, 20, 1, length);
	struct asked many = ask(dataset, ROWS, 1, length);
	struct asked several = ask(dataset, ROWS / 4, 3, length);
	bool		right = is_right(&first);
	const struct cpu_built *built = used(&first);
	uint64_t	bytes = atomic_load(&dataset->built_bytes);

	report_of(direction, "few searches go by the index for others, with the right answers",
			  is_right(&few) && used(&few) == built && indexes(dataset) == 1);
	for (int i = 0; i < SEARCHES_MAX && used(&many) == built; i++)
		right = is_right(&many) && is_right(&first) && right;
	report_of(direction, "many have one of their own, with the right answers before",
			  right && used(&many) != built && atomic_load(&dataset->built_bytes) > bytes);
	for (int i = 0; i < 50; i++)
		right = is_right(&many) && is_right(&several) && is_right(&few) && is_right(&first) && right;
	report_of(direction, "and after", right);
	report_of(direction, "others keep theirs, and no more are built",
			  used(&first) == built && used(&several) == used(&many) && indexes(dataset) == 2);

	machine.operations->discard(&machine, dataset->built[0]);
	dataset->built[0] = NULL;
	dataset_free(dataset);
	forget(&first);
	forget(&few);
	forget(&many);
	forget(&several);
}

/*
 * The scheduler lets one thread of the device build.  Another one's search can have been taken just before
 * a further index became wanted.
 */
static void
test_builder(void)
{
	struct dataset *dataset = make_dataset(COLUMNS);
	struct asked first = ask(dataset, ROWS, 1, SHORT_WINDOW);
	struct asked many = ask(dataset, ROWS, 1, LONG_WINDOW);
	bool		right = is_right(&first);
	struct cpu_built *built = dataset->built[0];
	struct failure failure;

	/* as if turns had taken long: a search whose turns do so, as on a busy host, has the index built before it ends */
	atomic_store(&built->misfit_us, UINT64_MAX);
	many.search.algorithm = GEONN_ALGORITHM_INDEX;
	right = cpu_built_wants_index(built, &many.search) && right;
	many.search.builds = false;
	report("a search that was taken as one with all that it needs builds nothing",
		   right && machine.operations->build(&machine, &many.search, &failure) &&
		   indexes(dataset) == 1);

	machine.operations->discard(&machine, dataset->built[0]);
	dataset->built[0] = NULL;
	dataset_free(dataset);
	forget(&first);
	forget(&many);
}

/* what a search counts of two weights: sums, then the least, then the greatest */
#define COUNTS_EACH 6

static struct search
counting(struct dataset *dataset, uint32_t rows, int length)
{
	struct search search = {
		.dataset = dataset,
		.question = {.max_distance = INFINITY,.radii = 1,.radius = {1000000}},
		.rows = rows,
		.cancelled = &cancelled
	};
	size_t		bytes = geonn_batch_layout(NULL, rows, rows * COUNTS_EACH, COLUMNS, &search.columns);

	geonn_batch_layout(allocate_pages(bytes), rows, rows * COUNTS_EACH, COLUMNS, &search.columns);
	for (uint32_t i = 0; i < rows; i++)
		draw_point(&search.columns.latitude[i], &search.columns.longitude[i],
				   &search.columns.low[0][i], &search.columns.high[0][i], length);
	return search;
}

/* weights are whole multiples of 1 / WEIGHT_UNITS */
#define WEIGHT_UNITS 0x1p53

/* Does a count, with extremes or without, give what a look at each reference gives? */
static bool
counts_right(struct search *search, bool extremes)
{
	const struct dataset *dataset = search->dataset;
	const struct geonn_batch_columns *columns = &search->columns;
	uint32_t	each = extremes ? COUNTS_EACH : 2;
	bool		right = true;

	search->question.extremes = extremes;
	answer(search, GEONN_ALGORITHM_INDEX);
	right = search->answered == search->rows && search->pairs == search->rows * each;
	for (uint32_t row = 0; row < search->rows && right; row++)
	{
		int64_t		count = 0;
		__int128	sum[2] = {0, 0};
		double		least[2] = {INFINITY, INFINITY};
		double		greatest[2] = {-INFINITY, -INFINITY};

		for (size_t i = 0; i < dataset->count; i++)
		{
			if (dataset->high[0][i] < columns->low[0][row] || dataset->low[0][i] > columns->high[0][row] ||
				geonn_metric_distance(GEONN_METRIC_SPHERE, columns->latitude[row], columns->longitude[row],
									  dataset->latitude[i], dataset->longitude[i]) > search->question.radius[0])
				continue;
			count++;
			for (int weight = 0; weight < 2; weight++)
			{
				sum[weight] += (__int128) (dataset->weight[weight][i] * WEIGHT_UNITS);
				least[weight] = fmin(least[weight], dataset->weight[weight][i]);
				greatest[weight] = fmax(greatest[weight], dataset->weight[weight][i]);
			}
		}
		right = columns->tag[row * each] == count;
		for (int weight = 0; weight < 2; weight++)
			right = right && columns->distance[row * each + weight] == (double) sum[weight] / WEIGHT_UNITS;
		for (int weight = 0; weight < 2 && extremes; weight++)
			right = right && columns->distance[row * each + 2 + weight] == least[weight] &&
				columns->distance[row * each + 4 + weight] == greatest[weight];
	}
	return right;
}

/* How many bytes the sums take, or the extremes, that a dataset has. */
static size_t
weights_bytes(const struct dataset *dataset, bool extremes)
{
	size_t		bytes = 0;

	for (const struct cpu_built *built = dataset->built[0]; built != NULL; built = atomic_load(&built->next))
		for (int i = 0; i < GEONN_WEIGHTS_MAX; i++)
			bytes += extremes ? built->extremes[i].bytes : built->sums[i].bytes;
	return bytes;
}

/*
 * More windows of another length get an index of their own, before extremes are asked for or after that.
 */
static void
test_weights(const char *when, bool late)
{
	struct dataset *dataset = make_dataset(COLUMNS | GEONN_COLUMN_WEIGHT | GEONN_COLUMN_WEIGHT << 1);
	struct asked nearest = ask(dataset, 20, 1, SHORT_WINDOW);
	struct search first = counting(dataset, 20, SHORT_WINDOW);
	struct search many = counting(dataset, ROWS, LONG_WINDOW);
	struct search some = counting(dataset, 20, LONG_WINDOW);
	bool		right = is_right(&nearest);
	uint64_t	before = atomic_load(&dataset->built_bytes);
	size_t		bytes;

	report_of(when, "a search that does not count builds no sums", right && weights_bytes(dataset, false) == 0);
	right = counts_right(&first, false);
	bytes = weights_bytes(dataset, false);
	report_of(when, "one that counts has them built, and counted as memory",
			  right && bytes > 0 && atomic_load(&dataset->built_bytes) == before + bytes);
	for (int i = 0; i < SEARCHES_MAX && late && indexes(dataset) == 1; i++)
		answer(&many, GEONN_ALGORITHM_INDEX);
	report_of(when, "a count that does not ask for extremes builds none",
			  right && counts_right(&some, false) && indexes(dataset) == 1 + late && weights_bytes(dataset, true) == 0);

	before = atomic_load(&dataset->built_bytes);
	right = counts_right(&first, true);
	bytes = weights_bytes(dataset, true);
	report_of(when, "one that asks has them built, and counted as memory",
			  right && bytes > 0 && atomic_load(&dataset->built_bytes) == before + bytes);
	for (int i = 0; i < SEARCHES_MAX && indexes(dataset) == 1; i++)
		answer(&many, GEONN_ALGORITHM_INDEX);
	report_of(when, "each index has them, and they are not built again",
			  indexes(dataset) == 2 && counts_right(&some, true) && counts_right(&first, true) &&
			  counts_right(&some, false) &&
			  (late ? weights_bytes(dataset, true) == bytes : weights_bytes(dataset, true) > bytes));

	machine.operations->discard(&machine, dataset->built[0]);
	dataset->built[0] = NULL;
	dataset_free(dataset);
	forget(&nearest);
	free(first.columns.latitude);
	free(many.columns.latitude);
	free(some.columns.latitude);
}

int
main(void)
{
	struct failure failure;

	machine.operations = &cpu_device_operations;
	cpu_path_choose(NULL, &failure);
	thread_pool_set_threads(1);
	machine.operations->probe(&machine, &failure);
	random_state = 20240229;
	test_lengths("longer windows", SHORT_WINDOW, LONG_WINDOW);
	test_lengths("shorter windows", LONG_WINDOW, SHORT_WINDOW);
	test_builder();
	test_weights("before a further index", false);
	test_weights("after a further index", true);
	machine.operations->close(&machine);
	return summed_up();
}
