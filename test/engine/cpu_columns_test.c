/*
 * cpu_columns_test.c
 *		Brute force over a dataset's columns gives the same bytes as brute force by
 *		vectors, for any question and any places.
 *
 * Usage: cpu_columns_test [SEED [SETS|sanitized]]
 *
 * rooms: engine/cpu/base engine/cpu/walk
 * check-all: minutes of brute force
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/window.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/base/path.h"
#include "../lib/pages.h"
#include "../lib/random.h"
#include "../lib/verdict.h"
#include "device_work.h"

#define ROWS 16

/* more than three samples of groups (src/engine/cpu/walk/brute.c) */
#define REFERENCES_MAX 12500
#define PAIRS_MAX ((size_t) ROWS * REFERENCES_MAX)

static struct device machine = {.operations = &cpu_device_operations};
static atomic_bool cancelled;

/* the pairs of a search's observations, one after the other */
struct answers
{
	uint32_t	count[ROWS];
	size_t		pairs;
	int64_t		tag[PAIRS_MAX];
	double		distance[PAIRS_MAX];
};

/* ---- what is asked ---- */

enum places
{
	EVERYWHERE,
	IN_TOWN,					/* within some kilometres */
	ON_PARALLEL,				/* of one latitude */
	AT_POLE,
	AT_EDGE,					/* of the longitudes, and of the equator */
	ON_GRID,					/* many coincide, and many are equally far */
	ANTIPODES,					/* of the others, for observations */
	PLACES
};

static void
draw_point(enum places places, double *latitude, double *longitude)
{
	*latitude = asin(random_between(-1, 1)) * (180 / M_PI);
	*longitude = random_between(-180, 180);
	switch (places)
	{
		case IN_TOWN:
			*latitude = 52.5 + random_between(-0.1, 0.1);
			*longitude = 13.4 + random_between(-0.1, 0.1);
			break;
		case ON_PARALLEL:
			*latitude = 60;
			break;
		case AT_POLE:
			*latitude = 90 - fabs(random_magnitude(1e-9, 10));
			break;
		case AT_EDGE:
			*latitude = random_below(4) ? random_magnitude(1e-9, 1) : 0;
			*longitude = random_below(2) ? 180 - fabs(random_magnitude(1e-9, 1)) : -180;
			break;
		case ON_GRID:
			*latitude = random_below(13) * 15 - 90;
			*longitude = random_below(24) * 15 - 180;
			break;
		case ANTIPODES:
			*latitude = -52.5 + random_between(-0.1, 0.1);
			*longitude = 13.4 - 180 + random_between(-0.1, 0.1);
			break;
		default:
			break;
	}
}

static uint32_t
draw_columns(void)
{
	static const uint32_t kinds[] = {
		GEONN_COLUMN_GROUP, GEONN_COLUMN_EXCLUDED, GEONN_COLUMN_RADIUS, GEONN_COLUMN_WINDOW, GEONN_COLUMN_PARTY
	};
	uint32_t	columns = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && random_below(2); i++)
		columns |= kinds[random_below(5)];
	return columns;
}

static double
draw_radius(void)
{
	return random_below(8) ? fabs(random_magnitude(1, 3e7)) : random_below(2) ? INFINITY : -1;
}

static struct dataset *
make_dataset(enum places places)
{
	struct dataset *made = dataset_create(1, (enum geonn_metric) (random_below(3) == 0), draw_columns());

	made->count = 1 + (size_t) random_below(random_below(32) == 0 ? REFERENCES_MAX : random_below(4) ? 1000 : 200);
	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (dataset_columns[i].present == 0 || dataset_columns[i].present & made->columns)
		{
			void	   *column = calloc(made->count, dataset_columns[i].width);

			memcpy((char *) made + dataset_columns[i].member, &column, sizeof(column));
		}
	for (size_t i = 0; i < made->count; i++)
	{
		draw_point(random_below(50) ? places : EVERYWHERE, &made->latitude[i], &made->longitude[i]);
		made->tag[i] = (int64_t) i * 3;
		if (made->group != NULL)
			made->group[i] = random_below(4);
		if (made->radius != NULL)
			made->radius[i] = draw_radius();
		if (made->party[0] != NULL)
			made->party[0][i] = random_below(3);
		if (made->low[0] != NULL)
		{
			made->low[0][i] = random_below(1000);
			made->high[0][i] = made->low[0][i] + random_below(100);
			made->edges[i] = geonn_edges_of(0, GEONN_EDGE_INCLUSIVE, (enum geonn_edge) random_below(3));
		}
	}
	return made;
}

static struct search
draw_search(struct dataset *dataset, enum places places)
{
	static const uint32_t ks[] = {0, 1, 1, 1, 2, 10, 200};
	struct search search = {
		.dataset = dataset,
		.question = {
			.k = ks[random_below(7)],
			.ties = random_below(3) == 0,
			.max_distance = random_below(2) ? INFINITY : fabs(random_magnitude(1, 3e7))
		},
		.rows = 1 + (uint32_t) random_below(ROWS),
		.cancelled = &cancelled
	};
	struct geonn_batch_columns *batch = &search.columns;
	uint32_t	room = random_below(2) ? 1 + (uint32_t) random_below(100) : PAIRS_MAX;
	size_t		bytes = geonn_batch_layout(NULL, search.rows, room, dataset->columns, batch);

	geonn_batch_layout(allocate_pages(bytes), search.rows, room, dataset->columns, batch);
	for (uint32_t i = 0; i < search.rows; i++)
	{
		int			same = random_below((int) dataset->count);

		draw_point(random_below(8) ? places : (enum places) random_below(PLACES), &batch->latitude[i], &batch->longitude[i]);
		if (random_below(8) == 0)
		{
			batch->latitude[i] = dataset->latitude[same];
			batch->longitude[i] = dataset->longitude[same];
		}
		if (batch->group != NULL)
			batch->group[i] = random_below(5);
		if (batch->radius != NULL)
			batch->radius[i] = draw_radius();
		if (batch->party[0] != NULL)
			batch->party[0][i] = random_below(4);
		if (batch->excluded_first != NULL)
		{
			batch->excluded_first[i] = random_below(1000) * 3;
			batch->excluded_last[i] = batch->excluded_first[i] + random_below(100);
		}
		if (batch->low[0] != NULL)
		{
			batch->low[0][i] = random_below(1000);
			batch->high[0][i] = batch->low[0][i] + random_below(1000);
		}
	}
	return search;
}

/* ---- answers ---- */

/*
 * Take what a search has written, as a session does: it goes on behind what has been answered, or within the first
 * observation.
 */
static void
take_results(struct search *search, struct answers *answers)
{
	for (uint32_t i = 0; i < search->answered + search->cutoff.present; i++)
		answers->count[search->first + i] += search->one_each ? 1 : search->columns.count[search->first + i];
	memcpy(answers->tag + answers->pairs, search->columns.tag, search->pairs * sizeof(int64_t));
	memcpy(answers->distance + answers->pairs, search->columns.distance, search->pairs * sizeof(double));
	answers->pairs += search->pairs;
	search->first += search->answered;
}

/*
 * auto means brute force over the columns.  False if a search fails, or does not get on.
 */
static bool
answer(struct search *search, enum geonn_algorithm named, struct answers *answers)
{
	struct failure failure;

	memset(answers->count, 0, sizeof(answers->count));
	answers->pairs = 0;
	search->question.algorithm = named;
	search->first = 0;
	search->cutoff.present = false;
	while (search->first < search->rows)
	{
		search->algorithm = GEONN_ALGORITHM_BRUTE;
		search->answered = search->pairs = 0;
		search->one_each = search->failed = false;
		search->device_state = 0;
		if (!device_work(&machine, search, &failure) || search->failed || search->answered + search->pairs == 0 ||
			answers->pairs + search->pairs > PAIRS_MAX)
			return false;
		take_results(search, answers);
	}
	return true;
}

static bool
same_answers(const struct answers *one, const struct answers *other, uint32_t rows)
{
	return one->pairs == other->pairs && memcmp(one->count, other->count, rows * sizeof(uint32_t)) == 0 &&
		memcmp(one->tag, other->tag, one->pairs * sizeof(int64_t)) == 0 &&
		memcmp(one->distance, other->distance, one->pairs * sizeof(double)) == 0;
}

static void
test_path(const char *path, long sets)
{
	static struct answers by_columns;
	static struct answers by_vectors;
	struct failure failure;
	char		name[100];
	long		wrong = 0;
	size_t		pairs = 0;

	if (!cpu_path_choose(path, &failure))
		return;
	for (long set = 0; set < sets; set++)
	{
		enum places places = (enum places) random_below(PLACES - 1);
		struct dataset *dataset = make_dataset(places);
		struct search search = draw_search(dataset, places);

		if (!answer(&search, GEONN_ALGORITHM_BRUTE, &by_vectors) || !answer(&search, GEONN_ALGORITHM_AUTO, &by_columns) ||
			!same_answers(&by_columns, &by_vectors, search.rows))
		{
			if (wrong++ < 5)
				printf("# set %ld: places %d, %zu references with columns %x, metric %d, k %u, %zu pairs in place of %zu\n",
					   set, (int) places, dataset->count, dataset->columns, (int) dataset->metric, search.question.k,
					   by_columns.pairs, by_vectors.pairs);
		}
		pairs += by_vectors.pairs;
		free(search.columns.latitude);
		device_forget(&machine, dataset);
	}
	snprintf(name, sizeof(name), "%s: brute force over columns gives the bytes of that by vectors", path);
	report_failures(name, wrong);
	snprintf(name, sizeof(name), "%s: there are pairs to compare", path);
	report(name, pairs > (size_t) sets);
}

/* Vectors are not made. */
static void
test_few(void)
{
	struct dataset *dataset = make_dataset(EVERYWHERE);
	struct search search = draw_search(dataset, EVERYWHERE);
	struct answers *answers = calloc(1, sizeof(*answers));

	report("few observations have nothing built", answer(&search, GEONN_ALGORITHM_AUTO, answers) &&
		   atomic_load(&dataset->built_bytes) == 0);
	free(answers);
	free(search.columns.latitude);
	device_forget(&machine, dataset);
}

int
main(int argc, char **argv)
{
	static const char *const paths[] = {"portable", "avx2", "avx512"};
	struct failure failure;
	long		sets = argc <= 2 ? 1000 : strcmp(argv[2], "sanitized") == 0 ? 100 : atol(argv[2]);

	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : random_state;
	printf("# seed %llu, %ld sets\n", (unsigned long long) random_state, sets);
	thread_pool_set_threads(2);
	cpu_path_choose(NULL, &failure);
	if (!machine.operations->probe(&machine, &failure))
		return EXIT_FAILURE;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		test_path(paths[i], sets);
	test_few();
	machine.operations->close(&machine);
	return summed_up();
}
