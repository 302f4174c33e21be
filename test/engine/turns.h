/*
 * turns.h
 *		What cpu_cells_turns_test.c asks with: datasets, batches, the right answers, and memory that
 *		can be refused for tables.
 *
 * It does what the scheduler does with a device that works by turns.  Brute force on a dataset of its
 * own says what is right.
 */
#ifndef GEONN_TEST_TURNS_H
#define GEONN_TEST_TURNS_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/memory_block.h"
#include "engine/cpu/built.h"
#include "../lib/pages.h"
#include "../lib/random.h"

#define DEGREES 57.295779513082323

/* of each dataset */
static int	references = 2000;

/* how long turns have taken without a table before it is begun, and for as long as it takes to be made */
#define FEW_US (20000 + (uint64_t) references - 1)
#define MANY_US (INT64_C(1) << 40)

/* searches until a table is complete */
#define SEARCHES_MAX 1000

static struct device machine;
static atomic_bool cancelled;

/* ---- memory for tables, or none ---- */

static enum
{
	MEMORY_THERE,
	MEMORY_REFUSED,				/* for the table */
	MEMORY_SHORT,				/* for what a build needs beside it */
	MEMORY_CANCELS				/* the search is cancelled as the build begins */
}			memory_kind;

static atomic_int tables_asked; /* blocks of memory for tables */
static _Thread_local bool next_fails;

extern void *__real_memory_block_allocate(size_t bytes, struct failure *failure, const char *purpose,...);
extern void *__wrap_memory_block_allocate(size_t bytes, struct failure *failure, const char *purpose,...);
extern void *__real_malloc(size_t bytes);
extern void *__wrap_malloc(size_t bytes);

void *
__wrap_memory_block_allocate(size_t bytes, struct failure *failure, const char *purpose,...)
{
	char		words[200];
	va_list		arguments;

	va_start(arguments, purpose);
	vsnprintf(words, sizeof(words), purpose, arguments);
	va_end(arguments);
	if (strncmp(words, "a table of squares", 18) == 0)
	{
		atomic_fetch_add(&tables_asked, 1);
		if (memory_kind == MEMORY_REFUSED)
		{
			fail(failure, GEONN_ERROR_MEMORY, "refused: %s", words);
			return NULL;
		}
		next_fails = memory_kind == MEMORY_SHORT;
		if (memory_kind == MEMORY_CANCELS)
			atomic_store(&cancelled, true);
	}
	return __real_memory_block_allocate(bytes, failure, "%s", words);
}

void *
__wrap_malloc(size_t bytes)
{
	bool		fails = next_fails;

	next_fails = false;
	return fails ? NULL : __real_malloc(bytes);
}

/* ---- points ---- */

enum places
{
	EVERYWHERE,
	IN_CROWD,					/* within a metre */
	MOSTLY_ELSEWHERE			/* a fifth in the crowd */
};

static void
draw_point(enum places places, double *latitude, double *longitude)
{
	if (places == IN_CROWD || (places == MOSTLY_ELSEWHERE && random_below(5) == 0))
	{
		*latitude = 47 + random_between(-5e-6, 5e-6);
		*longitude = 11 + random_between(-5e-6, 5e-6);
	}
	else
	{
		*latitude = asin(random_between(-1, 1)) * DEGREES;
		*longitude = random_between(-180, 180);
	}
}

/* a dataset, and one of the same references for brute force alone */
struct pair
{
	struct dataset *asked;
	struct dataset *oracle;
};

static struct dataset *
allocate_dataset(enum geonn_metric metric, uint32_t columns)
{
	struct dataset *made = dataset_create(1, metric, columns);

	made->count = (size_t) references;
	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (dataset_columns[i].present == 0 || dataset_columns[i].present & columns)
		{
			void	   *column = calloc((size_t) references, dataset_columns[i].width);

			memcpy((char *) made + dataset_columns[i].member, &column, sizeof(column));
		}
	return made;
}

/* half of the references in the crowd, or none */
static struct pair
make_pair(bool has_crowd, enum geonn_metric metric, uint32_t columns)
{
	struct pair pair = {allocate_dataset(metric, columns), allocate_dataset(metric, columns)};

	for (int i = 0; i < references; i++)
	{
		draw_point(has_crowd && i % 2 ? IN_CROWD : EVERYWHERE, &pair.asked->latitude[i],
				   &pair.asked->longitude[i]);
		pair.asked->tag[i] = 5000 - 3 * i;
		if (columns & GEONN_COLUMN_GROUP)
			pair.asked->group[i] = i % 3;
		if (columns & GEONN_COLUMN_RADIUS)
			pair.asked->radius[i] = i % 2 ? INFINITY : 1e6;
		if (columns & GEONN_COLUMN_WINDOW)
			pair.asked->high[0][i] = i;
	}
	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (dataset_column_of(pair.asked, i) != NULL)
			memcpy(dataset_column_of(pair.oracle, i), dataset_column_of(pair.asked, i),
				   (size_t) references * dataset_columns[i].width);
	return pair;
}

static struct cpu_built *
built_of(const struct pair *pair)
{
	return pair->asked->built[0];
}

static const struct cpu_cells *
table_of(const struct pair *pair)
{
	return built_of(pair) == NULL ? NULL : atomic_load(&built_of(pair)->cells);
}

static uint64_t
rows_by_table(const struct pair *pair)
{
	return atomic_load(&built_of(pair)->cells_rows);
}

static void
forget_pair(struct pair *pair)
{
	struct dataset *datasets[] = {pair->asked, pair->oracle};

	for (int i = 0; i < 2; i++)
	{
		if (datasets[i]->built[0] != NULL)
			machine.operations->discard(&machine, datasets[i]->built[0]);
		dataset_free(datasets[i]);
	}
}

/* ---- searches ---- */

/* the pairs of all observations of a search, however many batches they took */
struct answers
{
	uint32_t	rows;
	uint64_t	pairs;
	uint64_t	capacity;
	uint32_t   *count;			/* [rows] */
	int64_t    *tag;			/* [pairs] */
	double	   *distance;
	bool		failed;
	struct failure failure;
};

/* a batch of observations, and the right answers */
struct asked
{
	struct search search;
	struct answers right;
};

static struct answers
no_answers(uint32_t rows, uint64_t capacity)
{
	return (struct answers) {
		.rows = rows,.capacity = capacity,.count = allocate_pages(rows * sizeof(uint32_t)),
		.tag = allocate_pages(capacity * sizeof(int64_t)),
		.distance = allocate_pages(capacity * sizeof(double))
	};
}

static void
forget_answers(struct answers *answers)
{
	free(answers->count);
	free(answers->tag);
	free(answers->distance);
}

/*
 * Take the results of a batch out of its columns.
 */
static void
take_results(const struct search *search, struct answers *answers)
{
	if (answers->pairs + search->pairs > answers->capacity)
	{
		printf("Bail out! more pairs than expected\n");
		exit(EXIT_FAILURE);
	}
	for (uint32_t i = 0; i < search->answered; i++)
		answers->count[search->first + i] = search->one_each ? 1 : search->columns.count[search->first + i];
	memcpy(answers->tag + answers->pairs, search->columns.tag, search->pairs * sizeof(int64_t));
	memcpy(answers->distance + answers->pairs, search->columns.distance, search->pairs * sizeof(double));
	answers->pairs += search->pairs;
}

/*
 * Answer a batch as the scheduler and a session do: turn by turn, what is needed is built before each
 * one, and batch by batch where the room is small.  may_build: no other thread of the device builds.
 */
static void
answer(struct search *search, struct dataset *dataset, enum geonn_algorithm algorithm, bool may_build,
	   struct answers *answers)
{
	search->dataset = dataset;
	search->question.algorithm = search->algorithm = algorithm;
	search->first = 0;
	search->failed = false;
	answers->pairs = 0;
	memset(answers->count, 0xff, answers->rows * sizeof(uint32_t));
	while (search->first < search->rows)
	{
		enum device_progress progress = DEVICE_YIELDED;

		search->answered = search->pairs = 0;
		search->one_each = false;
		search->device_state = 0;
		while (progress == DEVICE_YIELDED && !search->failed && !atomic_load(search->cancelled))
		{
			search->builds = may_build && !machine.operations->is_built(&machine, search, algorithm) ? dataset : NULL;
			search->failed = !machine.operations->build(&machine, search, &search->failure);
			if (!search->failed && !atomic_load(search->cancelled))
				progress = machine.operations->turn(&machine, search);
		}
		answers->failed = search->failed;
		answers->failure = search->failure;
		if (search->failed || atomic_load(search->cancelled))
			return;
		take_results(search, answers);
		search->first += search->answered;
	}
}

static struct asked
ask(const struct pair *pair, enum places places, uint32_t rows, uint32_t room, struct question question)
{
	uint32_t	columns = pair->asked->columns;
	uint64_t	capacity = (uint64_t) rows * (question.k > 1 ? question.k : 1) + (question.ties ? rows : 0);
	struct asked asked = {
		.search = {.question = question,.rows = rows,.cancelled = &cancelled},
		.right = no_answers(rows, capacity)
	};
	struct geonn_batch_columns *batch = &asked.search.columns;
	size_t		bytes = geonn_batch_layout(NULL, rows, room, columns, batch);

	geonn_batch_layout(allocate_pages(bytes), rows, room, columns, batch);
	for (uint32_t i = 0; i < rows; i++)
	{
		draw_point(places, &batch->latitude[i], &batch->longitude[i]);
		if (columns & GEONN_COLUMN_GROUP)
			batch->group[i] = random_below(4);
		if (columns & GEONN_COLUMN_RADIUS)
			batch->radius[i] = INFINITY;
		if (columns & GEONN_COLUMN_WINDOW)
			batch->low[0][i] = batch->high[0][i] = random_below(references);
	}
	answer(&asked.search, pair->oracle, GEONN_ALGORITHM_BRUTE, true, &asked.right);
	return asked;
}

static struct asked
ask_nearest(const struct pair *pair, enum places places, uint32_t rows)
{
	return ask(pair, places, rows, rows, (struct question) {.k = 1,.max_distance = INFINITY});
}

static void
forget(struct asked *asked)
{
	free(asked->search.columns.latitude);
	forget_answers(&asked->right);
}

/*
 * Does the dataset give the bytes that brute force gives?
 */
static bool
is_right_on(struct search *search, const struct pair *pair, const struct answers *right,
			enum geonn_algorithm algorithm, bool may_build)
{
	struct answers answers = no_answers(right->rows, right->capacity);
	bool		same;

	answer(search, pair->asked, algorithm, may_build, &answers);
	same = !answers.failed && answers.pairs == right->pairs &&
		memcmp(answers.count, right->count, right->rows * sizeof(uint32_t)) == 0 &&
		memcmp(answers.tag, right->tag, right->pairs * sizeof(int64_t)) == 0 &&
		memcmp(answers.distance, right->distance, right->pairs * sizeof(double)) == 0;
	forget_answers(&answers);
	return same;
}

static bool
is_right(struct asked *asked, const struct pair *pair)
{
	return is_right_on(&asked->search, pair, &asked->right, GEONN_ALGORITHM_INDEX, true);
}

/* say how long turns of a dataset have taken without a table */
static void
set_time(const struct pair *pair, uint64_t us)
{
	atomic_store(&built_of(pair)->without_cells_us, us);
}

/* ask once, which builds the index, and let the next search begin a table */
static bool
ask_enough(const struct pair *pair, struct asked *asked)
{
	uint64_t	limit = atomic_load(&dataset_squares_limit);
	bool		right;

	/* on a busy host the first search may take long enough for a table, and begin one in its second turn */
	atomic_store(&dataset_squares_limit, 0);
	right = is_right(asked, pair) && table_of(pair) == NULL;
	atomic_store(&dataset_squares_limit, limit);
	set_time(pair, MANY_US);
	return right;
}

/* ask until the table is complete; the last search went by it, unless its first turn had ended before, on a busy machine */
static bool
ask_for_table(const struct pair *pair, struct asked *asked)
{
	bool		right = true;

	for (int i = 0; i < SEARCHES_MAX && table_of(pair) == NULL; i++)
		right = is_right(asked, pair) && right;
	return right && table_of(pair) != NULL;
}

#endif							/* GEONN_TEST_TURNS_H */
