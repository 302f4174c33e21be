/*
 * sort_test.c
 *		The order of a dataset's references, be they in disorder or all but in
 *		order.
 *
 * Usage: sort_test [SEED]
 *
 * rooms: engine/dataset
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "engine/dataset/dataset.h"
#include "../lib/random.h"
#include "../lib/verdict.h"

#define SETS 200
#define REFERENCES_MAX 100000
#define FEW_SETS 12
#define MANY_REFERENCES_MAX 5000000

/* a reference, and its number before the sort */
struct reference
{
	int64_t		tag;
	double		latitude;
	double		longitude;
	size_t		number;
};

static int
compare(const void *left, const void *right)
{
	const struct reference *a = left;
	const struct reference *b = right;

	if (a->tag != b->tag)
		return a->tag < b->tag ? -1 : 1;
	if (a->latitude != b->latitude)
		return a->latitude < b->latitude ? -1 : 1;
	if (a->longitude != b->longitude)
		return a->longitude < b->longitude ? -1 : 1;
	return a->number < b->number ? -1 : 1;
}

/*
 * Move some references, one at a time or several that follow each other, to another place.
 */
static void
move_some(struct reference *references, size_t count, int moves)
{
	struct reference *kept = malloc(count * sizeof(*kept));

	for (int i = 0; i < moves; i++)
	{
		size_t		most = count < 40 || random_below(2) ? 1 : 1 + (size_t) random_below(random_below(4) ? 5 : 40);
		size_t		from = (size_t) random_below((int) (count - most + 1));
		size_t		to = random_below(3) ? count - most : (size_t) random_below((int) (count - most + 1));

		/* a row that was updated in its page lies near its old place */
		if (random_below(3) == 0)
			to = from + (size_t) random_below(100);
		to = to > count - most ? count - most : to;
		memcpy(kept, references + from, most * sizeof(*kept));
		memmove(references + from, references + from + most, (count - from - most) * sizeof(*kept));
		memmove(references + to + most, references + to, (count - to - most) * sizeof(*kept));
		memcpy(references + to, kept, most * sizeof(*kept));
	}
	free(kept);
}

enum disorder
{
	SOME_MOVED,
	SOME_MOVED_AND_EQUAL,
	ALL
};

/*
 * References with these in disorder.
 */
static struct reference *
make_references(size_t count, enum disorder disorder)
{
	struct reference *made = calloc(count, sizeof(*made));
	int64_t		first = (int64_t) random_bits() / 4;
	bool		equal_in_place = disorder == SOME_MOVED_AND_EQUAL && random_below(2);

	for (size_t i = 0; i < count; i++)
		made[i] = (struct reference) {
			disorder == ALL ? (int64_t) random_bits() >> random_below(60) : first + (int64_t) i * 3,
			random_below(20), random_below(20), 0
		};
	if (equal_in_place)
		for (int i = 0; i < 3; i++)
			made[random_below((int) count)].tag = made[random_below((int) count)].tag;
	if (disorder != ALL)
		move_some(made, count, random_below(random_below(2) ? 4 : 100));

	/* two that are equal may both be out of place, as those at the end most often are */
	if (disorder == SOME_MOVED_AND_EQUAL && !equal_in_place && count > 5)
		made[count - 1 - (size_t) random_below(5)].tag = made[count - 1 - (size_t) random_below(5)].tag;
	for (size_t i = 0; i < count; i++)
		made[i].number = i;
	return made;
}

/*
 * A dataset of these references; the columns of groups and edges have their numbers.
 */
static struct dataset *
make_dataset(const struct reference *references, size_t count)
{
	struct dataset *dataset = dataset_create(1, GEONN_METRIC_SPHERE, GEONN_COLUMN_GROUP | GEONN_COLUMNS_WINDOWS);

	dataset->count = count;
	dataset->tag = calloc(count, sizeof(int64_t));
	dataset->latitude = calloc(count, sizeof(double));
	dataset->longitude = calloc(count, sizeof(double));
	dataset->group = calloc(count, sizeof(int32_t));
	dataset->edges = calloc(count, sizeof(uint16_t));
	for (size_t i = 0; i < count; i++)
	{
		dataset->tag[i] = references[i].tag;
		dataset->latitude[i] = references[i].latitude;
		dataset->longitude[i] = references[i].longitude;
		dataset->group[i] = (int32_t) references[i].number;
		dataset->edges[i] = (uint16_t) references[i].number;
	}
	return dataset;
}

/*
 * Does a dataset have these references in their order?
 */
static bool
has_order(const struct dataset *dataset, const struct reference *references)
{
	bool		right = true;

	for (size_t i = 0; i < dataset->count; i++)
		right = right && dataset->tag[i] == references[i].tag && dataset->latitude[i] == references[i].latitude &&
			dataset->longitude[i] == references[i].longitude && dataset->group[i] == (int32_t) references[i].number &&
			dataset->edges[i] == (uint16_t) references[i].number;
	return right;
}

static bool
is_sorted_right(struct reference *references, size_t count)
{
	static atomic_bool cancelled;
	struct dataset *dataset = make_dataset(references, count);
	struct failure failure;
	bool		right = dataset_sort(dataset, &cancelled, &failure);

	qsort(references, count, sizeof(*references), compare);
	right = right && has_order(dataset, references);
	dataset_free(dataset);
	return right;
}

static void
test_cancelled(void)
{
	static atomic_bool cancelled = true;
	struct reference *references = make_references(REFERENCES_MAX, SOME_MOVED);
	struct dataset *dataset = make_dataset(references, REFERENCES_MAX);
	struct failure failure;

	report_failures("a cancelled sort ends", dataset_sort(dataset, &cancelled, &failure));
	dataset_free(dataset);
	free(references);
}

static void
test_disorder(const char *name, enum disorder disorder, int sets, int most)
{
	long		wrong = 0;

	for (int set = 0; set < sets; set++)
	{
		size_t		count = set == 0 ? (size_t) most : 1 + (size_t) random_below(random_below(8) ? most / 32 : most);
		struct reference *references = make_references(count, disorder);

		wrong += !is_sorted_right(references, count);
		free(references);
	}
	report_failures(name, wrong);
}

int
main(int argc, char **argv)
{
	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : random_state;
	printf("# seed %llu\n", (unsigned long long) random_state);
	thread_pool_set_threads(2);
	test_disorder("references of which some are out of place are sorted", SOME_MOVED, SETS, REFERENCES_MAX);
	test_disorder("also many, which are sorted in several jobs", SOME_MOVED, FEW_SETS, MANY_REFERENCES_MAX);
	test_disorder("also where a tag occurs twice", SOME_MOVED_AND_EQUAL, SETS, REFERENCES_MAX);
	test_disorder("references in disorder are sorted", ALL, SETS, REFERENCES_MAX);
	test_cancelled();
	thread_pool_close();
	return summed_up();
}
