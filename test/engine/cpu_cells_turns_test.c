/*
 * cpu_cells_turns_test.c
 *		A dataset that is asked about many observations has a table of squares after a while, and
 *		answers by it with the same bytes: which searches that makes one, which it answers, and
 *		what becomes of those that it leaves to the index.
 *
 * Usage: cpu_cells_turns_test [seed [sanitized]].  "sanitized": fewer references.
 *
 * rooms: engine/cpu engine/cpu/squares
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "engine/cpu/built.h"
#include "engine/cpu/base/path.h"
#include "../lib/verdict.h"
#include "turns.h"

#define ROWS 16384

/* of the smallest search that has some of a table made (cpu/built.c) */
#define BUILDER_ROWS_MIN 4096

/* ---- when a table is made, and what it answers ---- */

static void
test_beginning(void)
{
	struct pair pair = make_pair(false, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	struct asked few = ask_nearest(&pair, EVERYWHERE, BUILDER_ROWS_MIN - 1);
	struct asked enough = ask_nearest(&pair, EVERYWHERE, BUILDER_ROWS_MIN);
	/* those of a larger search begin the table, on a host that is busy enough */
	bool		right = is_right(&few, &pair);
	uint64_t	rows;

	report("turns by the index add up their time", right && atomic_load(&built_of(&pair)->without_cells_us) > 0);
	set_time(&pair, FEW_US);
	enough.search.question.algorithm = enough.search.algorithm = GEONN_ALGORITHM_INDEX;
	right = !cpu_built_wants_cells(built_of(&pair), &enough.search);
	set_time(&pair, FEW_US + 1);
	report("a table is begun once they have taken 20 ms, and a microsecond for each reference",
		   right && cpu_built_wants_cells(built_of(&pair), &enough.search) && atomic_load(&tables_asked) == 0);
	set_time(&pair, MANY_US);
	report("a search of fewer than 4,096 makes none of it",
		   is_right(&few, &pair) && built_of(&pair)->cells_building == NULL && table_of(&pair) == NULL);
	right = ask_for_table(&pair, &enough);
	rows = rows_by_table(&pair);
	right = is_right(&enough, &pair) && right;
	report("one of 4,096 does, and once it is complete is answered by it with the same bytes",
		   right && rows_by_table(&pair) == rows + BUILDER_ROWS_MIN);
	rows = rows_by_table(&pair);
	report("bytes of the dataset count what the table uses",
		   table_of(&pair) != NULL &&
		   atomic_load(&pair.asked->squares_bytes) == table_of(&pair)->used);
	right = is_right(&few, &pair) && is_right(&asked, &pair);
	report("searches of any number of observations are answered by it, and none is left",
		   right && rows_by_table(&pair) == rows + ROWS + BUILDER_ROWS_MIN - 1 &&
		   atomic_load(&built_of(&pair)->cells_left) == 0 && atomic_load(&tables_asked) == 1);
	forget(&asked);
	forget(&few);
	forget(&enough);
	forget_pair(&pair);
}

/*
 * Bits of a table take no more time than turns have taken without it.
 */
static void
test_bits(void)
{
	struct pair pair = make_pair(true, GEONN_METRIC_SPHERE, 0);
	struct asked few = ask_nearest(&pair, EVERYWHERE, BUILDER_ROWS_MIN - 1);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, BUILDER_ROWS_MIN);
	struct cpu_built *built;
	bool		right = is_right(&few, &pair);
	uint64_t	taken = 0;
	uint64_t	most = cpu_cells_bytes((uint32_t) references);
	bool		counted = true;
	int			bits = 0;

	built = built_of(&pair);
	asked.search.dataset = pair.asked;
	asked.search.question.algorithm = asked.search.algorithm = GEONN_ALGORITHM_INDEX;
	asked.search.first = asked.search.answered = 0;
	asked.search.device_state = 0;
	set_time(&pair, FEW_US + 1);
	while (bits < SEARCHES_MAX && cpu_built_wants_cells(built, &asked.search))
	{
		right = right && taken <= FEW_US + 1;
		cpu_built_add_cells(built, &asked.search);
		taken = atomic_load(&built->cells_from_us);
		counted = counted && (built->cells_building == NULL ||
							  atomic_load(&pair.asked->squares_bytes) == most);
		bits++;
	}
	report("a table is made bit by bit, each while those before took no longer than turns without it",
		   right && bits > 0 && bits < SEARCHES_MAX);
	report("until it is complete, bytes of the dataset count the most that it can take", counted);
	set_time(&pair, MANY_US);
	report("and goes on where it was", ask_for_table(&pair, &asked) && atomic_load(&built->cells_from_us) == UINT64_MAX);
	forget(&few);
	forget(&asked);
	forget_pair(&pair);
}

/*
 * Tables of all datasets together take no more than they may.
 */
static void
test_room(void)
{
	struct pair pair = make_pair(false, GEONN_METRIC_SPHERE, 0);
	struct pair other = make_pair(false, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	struct asked of_other = ask_nearest(&other, EVERYWHERE, ROWS);
	uint64_t	least = atomic_load(&dataset_squares_bytes) + cpu_cells_bytes((uint32_t) references);
	int			before = atomic_load(&tables_asked);
	bool		right = ask_enough(&pair, &asked);

	right = ask_enough(&other, &of_other) && right;
	atomic_store(&dataset_squares_limit, least - 1);
	right = is_right(&asked, &pair) && right && built_of(&pair)->cells_building == NULL;
	report("a dataset has no table that is larger than what tables may take",
		   right && atomic_load(&tables_asked) == before);
	atomic_store(&dataset_squares_limit, least);
	set_time(&pair, 4 * MANY_US);
	report("and gets it once they may", ask_for_table(&pair, &asked));
	set_time(&other, 4 * MANY_US);
	right = is_right(&of_other, &other) && built_of(&other)->cells_building == NULL;
	report("another dataset has none beside it",
		   right && table_of(&other) == NULL && atomic_load(&tables_asked) == before + 1);
	dataset_give_squares(pair.asked, atomic_load(&pair.asked->squares_bytes));
	set_time(&other, 16 * MANY_US);
	report("and gets one when the first is gone", ask_for_table(&other, &of_other));
	dataset_give_squares(other.asked, atomic_load(&other.asked->squares_bytes));
	report("when both are gone nothing is taken",
		   atomic_load(&dataset_squares_bytes) == least - cpu_cells_bytes((uint32_t) references));
	atomic_store(&dataset_squares_limit, UINT64_MAX);
	forget(&asked);
	forget(&of_other);
	forget_pair(&pair);
	forget_pair(&other);
}

/*
 * Other questions do not go by the table that a dataset has.
 */
static void
test_other_questions(void)
{
	struct pair pair = make_pair(true, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	struct asked two = ask(&pair, EVERYWHERE, 5000, 10000, (struct question) {.k = 2,.max_distance = INFINITY});
	struct asked ties = ask(&pair, EVERYWHERE, 5000, 10000,
							(struct question) {.k = 1,.ties = true,.max_distance = INFINITY});
	struct asked near = ask(&pair, MOSTLY_ELSEWHERE, 5000, 200000, (struct question) {.k = 0,.max_distance = 0.01});
	bool		right = ask_enough(&pair, &asked) && ask_for_table(&pair, &asked);
	uint64_t	rows = rows_by_table(&pair);

	report("two nearest, ties and all within a distance do not go by a table",
		   right && is_right(&two, &pair) && is_right(&ties, &pair) && is_right(&near, &pair) &&
		   rows_by_table(&pair) == rows);
	report("nor does brute force",
		   is_right_on(&asked.search, &pair, &asked.right, GEONN_ALGORITHM_BRUTE, true) &&
		   rows_by_table(&pair) == rows);
	asked.search.cutoff = (struct cutoff) {.present = true,.distance = 1};
	asked.search.device_state = 0;
	asked.search.question.algorithm = asked.search.algorithm = GEONN_ALGORITHM_INDEX;
	right = cpu_built_cells(built_of(&pair), &asked.search) == NULL;
	asked.search.cutoff.present = false;
	right = right && cpu_built_cells(built_of(&pair), &asked.search) == table_of(&pair);
	asked.search.device_state = 100;
	report("nor a search that goes on after pairs that were cut off, or with what a turn left",
		   right && cpu_built_cells(built_of(&pair), &asked.search) == NULL);
	forget(&asked);
	forget(&two);
	forget(&ties);
	forget(&near);
	forget_pair(&pair);
}

/*
 * What is asked otherwise does not have a table made, however much the dataset has been asked before.
 */
static void
test_never(const char *what, enum geonn_metric metric, uint32_t columns, struct question question,
		   enum geonn_algorithm algorithm)
{
	struct pair pair = make_pair(false, metric, columns);
	uint32_t	rows = BUILDER_ROWS_MIN;
	struct asked asked = ask(&pair, EVERYWHERE, rows, rows * question.k, question);
	int			before = atomic_load(&tables_asked);
	bool		right = is_right_on(&asked.search, &pair, &asked.right, algorithm, true);

	set_time(&pair, MANY_US);
	right = is_right_on(&asked.search, &pair, &asked.right, algorithm, true) && right;
	report(what, right && table_of(&pair) == NULL && atomic_load(&tables_asked) == before);
	forget(&asked);
	forget_pair(&pair);
}

/*
 * What brute force takes is no time that a table would save.
 */
static void
test_brute_asks(void)
{
	struct pair pair = make_pair(false, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	bool		right = is_right(&asked, &pair);
	uint64_t	counted = atomic_load(&built_of(&pair)->without_cells_us);

	for (int i = 0; i < 3; i++)
		right = is_right_on(&asked.search, &pair, &asked.right, GEONN_ALGORITHM_BRUTE, true) && right;
	report("searches by brute force do not ask for a table",
		   right && atomic_load(&built_of(&pair)->without_cells_us) == counted);
	forget(&asked);
	forget_pair(&pair);
}

/* ---- what is left to the index ---- */

/*
 * Is the nearest reference right without and with max_distance, and by the table?
 */
static bool
limits_right(const struct pair *pair, enum places places, uint32_t rows, uint32_t room)
{
	static const double limits[] = {INFINITY, 300000, 0.05};
	bool		right = true;

	for (int i = places == EVERYWHERE ? 1 : 2; i >= 0; i--)
	{
		struct asked asked = ask(pair, places, rows, room,
								 (struct question) {.k = 1,.max_distance = limits[i]});
		uint64_t	before = rows_by_table(pair);

		/* batches of less room than rows begin again with rows that came before */
		right = is_right(&asked, pair) && rows_by_table(pair) >= before + rows &&
			(i == 0) == (asked.right.pairs == rows) && asked.right.pairs > 0 && right;
		forget(&asked);
	}
	return right;
}

static void
test_left(void)
{
	struct pair pair = make_pair(true, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, MOSTLY_ELSEWHERE, ROWS);
	bool		right = ask_enough(&pair, &asked) && ask_for_table(&pair, &asked);
	uint64_t	rows = rows_by_table(&pair);
	uint64_t	before = atomic_load(&built_of(&pair)->cells_left);
	uint64_t	left;

	right = is_right(&asked, &pair) && right;
	left = atomic_load(&built_of(&pair)->cells_left);
	report("observations in crowded squares come back in the same batch, answered by the index",
		   right && rows_by_table(&pair) == rows + ROWS && left - before > ROWS / 8 && left - before < ROWS / 4);
	report("with max_distance, pairs are packed in the order of rows",
		   limits_right(&pair, EVERYWHERE, 20000, 20000) && atomic_load(&built_of(&pair)->cells_left) == left);
	report("also where some were left to the index",
		   limits_right(&pair, MOSTLY_ELSEWHERE, 20000, 20000) && atomic_load(&built_of(&pair)->cells_left) > left);
	report("batches may have less room than rows",
		   limits_right(&pair, MOSTLY_ELSEWHERE, 5000, 4999) && limits_right(&pair, EVERYWHERE, 5000, 4096) &&
		   limits_right(&pair, MOSTLY_ELSEWHERE, 5000, 777) && limits_right(&pair, MOSTLY_ELSEWHERE, 1000, 20));
	forget(&asked);
	forget_pair(&pair);
}

/*
 * A table that leaves most is given up.
 */
static void
test_given_up(void)
{
	struct pair pair = make_pair(true, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, IN_CROWD, 16384);
	bool		right = ask_enough(&pair, &asked) && ask_for_table(&pair, &asked) && is_right(&asked, &pair) &&
		rows_by_table(&pair) > 0;
	uint64_t	rows;

	for (int i = 0; i < 10; i++)
		right = is_right(&asked, &pair) && right;
	rows = rows_by_table(&pair);
	for (int i = 0; i < 3; i++)
		right = is_right(&asked, &pair) && right;
	report("a table that leaves most observations is not used after a while, and not made again",
		   right && rows >= 65536 && rows <= 65536 + 16384 && rows_by_table(&pair) == rows &&
		   table_of(&pair) != NULL);
	forget(&asked);
	forget_pair(&pair);
}

/* ---- builds that fail ---- */

static void
test_memory(const char *what, int kind)
{
	struct pair pair = make_pair(false, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	int			before = atomic_load(&tables_asked);
	bool		right = ask_enough(&pair, &asked);
	char		line[200];

	memory_kind = kind;
	for (int i = 0; i < 10; i++)
		right = is_right(&asked, &pair) && right;
	snprintf(line, sizeof(line), "%s: searches go on, and do not try again at once", what);
	report(line, right && table_of(&pair) == NULL && atomic_load(&tables_asked) == before + 1 &&
		   atomic_load(&pair.asked->squares_bytes) == 0);

	/* after twice the time it tries once more; and then again when memory is free */
	set_time(&pair, 2 * MANY_US + (MANY_US >> 8));
	right = is_right(&asked, &pair) && is_right(&asked, &pair) && table_of(&pair) == NULL &&
		atomic_load(&tables_asked) == before + 2;
	memory_kind = MEMORY_THERE;
	right = is_right(&asked, &pair) && right && atomic_load(&tables_asked) == before + 2;
	set_time(&pair, 5 * MANY_US);
	right = ask_for_table(&pair, &asked) && right;
	snprintf(line, sizeof(line), "%s: a table is tried again each time that turns took twice as long", what);
	report(line, right && atomic_load(&tables_asked) == before + 3);
	forget(&asked);
	forget_pair(&pair);
}

static void
test_cancelled(void)
{
	struct pair pair = make_pair(false, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	struct answers none = no_answers(ROWS, ROWS);
	int			before = atomic_load(&tables_asked);
	bool		right = ask_enough(&pair, &asked);

	memory_kind = MEMORY_CANCELS;
	answer(&asked.search, pair.asked, GEONN_ALGORITHM_INDEX, true, &none);
	memory_kind = MEMORY_THERE;
	right = right && atomic_load(&cancelled) && !none.failed && atomic_load(&tables_asked) == before + 1;
	atomic_store(&cancelled, false);
	report("what a search that is cancelled has made of a table is not lost",
		   right && ask_for_table(&pair, &asked) && atomic_load(&tables_asked) == before + 1);
	forget_answers(&none);
	forget(&asked);
	forget_pair(&pair);
}

/*
 * Coordinates that are no point fail a search, wherever they are in a batch.
 */
static void
test_range(void)
{
	static const double bad[][2] = {{NAN, 0}, {0, NAN}, {90.5, 0}, {0, -180.5}, {INFINITY, 0}, {0, -INFINITY}};
	static const uint32_t at[] = {0, 255, 256, 2047, 2048, 4999};
	struct pair pair = make_pair(true, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	struct asked some = ask_nearest(&pair, MOSTLY_ELSEWHERE, 5000);
	struct geonn_batch_columns *batch = &some.search.columns;
	bool		right = ask_enough(&pair, &asked) && ask_for_table(&pair, &asked) && is_right(&some, &pair);
	struct answers by_table = no_answers(5000, 5000);
	struct answers by_brute = no_answers(5000, 5000);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		for (size_t j = 0; j < sizeof(at) / sizeof(at[0]); j++)
		{
			double		latitude = batch->latitude[at[j]];
			double		longitude = batch->longitude[at[j]];

			batch->latitude[at[j]] = bad[i][0];
			batch->longitude[at[j]] = bad[i][1];
			answer(&some.search, pair.asked, GEONN_ALGORITHM_INDEX, true, &by_table);
			answer(&some.search, pair.oracle, GEONN_ALGORITHM_BRUTE, true, &by_brute);
			right = right && by_table.failed && by_brute.failed &&
				by_table.failure.code == by_brute.failure.code &&
				strcmp(by_table.failure.message, by_brute.failure.message) == 0;
			batch->latitude[at[j]] = latitude;
			batch->longitude[at[j]] = longitude;
		}
	report("coordinates that are no point fail a search by the table as they fail others", right);
	report("and the next one is right", is_right(&some, &pair));
	forget_answers(&by_table);
	forget_answers(&by_brute);
	forget(&asked);
	forget(&some);
	forget_pair(&pair);
}

/* ---- several threads ---- */

struct searcher
{
	pthread_t	thread;
	const struct pair *pair;
	struct asked asked;
	atomic_bool *stops;			/* or NULL: it makes the table, and searches until it is made */
	bool		right;
	bool		went_by_table;
};

static void *
search_on(void *argument)
{
	struct searcher *searcher = argument;
	int			searches = 0;

	searcher->right = true;
	do
	{
		bool		had_table = table_of(searcher->pair) != NULL;

		searcher->right = is_right_on(&searcher->asked.search, searcher->pair, &searcher->asked.right,
									  GEONN_ALGORITHM_INDEX, searcher->stops == NULL) && searcher->right;
		searcher->went_by_table = had_table;
		searches += searcher->stops == NULL || atomic_load(searcher->stops);
	} while (searcher->stops == NULL ? !searcher->went_by_table && searches < SEARCHES_MAX : searches < 2);
	thread_pool_leave();
	return NULL;
}

/*
 * Two threads search while one makes the table, and go on by it.
 */
static void
test_threads(void)
{
	struct pair pair = make_pair(true, GEONN_METRIC_SPHERE, 0);
	struct asked asked = ask_nearest(&pair, EVERYWHERE, ROWS);
	bool		right = ask_enough(&pair, &asked);
	atomic_bool stops = false;
	struct searcher searchers[3];

	thread_pool_leave();
	for (int i = 0; i < 3; i++)
		searchers[i] = (struct searcher) {
			.pair = &pair,.asked = ask_nearest(&pair, MOSTLY_ELSEWHERE, 8192),.stops = i > 0 ? &stops : NULL
		};
	thread_pool_leave();
	for (int i = 2; i >= 0; i--)
		pthread_create(&searchers[i].thread, NULL, search_on, &searchers[i]);
	for (int i = 0; i < 3; i++)
	{
		pthread_join(searchers[i].thread, NULL);
		atomic_store(&stops, true);
		right = right && searchers[i].right && searchers[i].went_by_table;
		forget(&searchers[i].asked);
	}
	report("two threads search while one makes the table, and then by it", right && table_of(&pair) != NULL);
	forget(&asked);
	forget_pair(&pair);
}

int
main(int count, char **words)
{
	int			usual;
	struct question nearest = {.k = 1,.max_distance = INFINITY};
	struct failure failure;

	if (count > 1)
		random_state = strtoull(words[1], NULL, 10);
	if (count > 2 && strcmp(words[2], "sanitized") == 0)
		references = 400;
	printf("# seed %llu\n", (unsigned long long) random_state);
	machine.operations = &cpu_device_operations;
	cpu_path_choose(NULL, &failure);
	thread_pool_set_threads(3);
	machine.operations->probe(&machine, &failure);
	test_beginning();
	usual = references;
	references = 5 * usual;
	test_bits();
	references = usual;
	test_room();
	test_other_questions();
	test_never("two nearest never make a table", GEONN_METRIC_SPHERE, 0,
			   (struct question) {.k = 2,.max_distance = INFINITY}, GEONN_ALGORITHM_INDEX);
	test_never("nor do ties", GEONN_METRIC_SPHERE, 0,
			   (struct question) {.k = 1,.ties = true,.max_distance = INFINITY}, GEONN_ALGORITHM_INDEX);
	test_never("nor groups", GEONN_METRIC_SPHERE, GEONN_COLUMN_GROUP, nearest, GEONN_ALGORITHM_INDEX);
	test_never("nor windows", GEONN_METRIC_SPHERE, GEONN_COLUMN_WINDOW, nearest, GEONN_ALGORITHM_INDEX);
	test_never("nor radiuses", GEONN_METRIC_SPHERE, GEONN_COLUMN_RADIUS, nearest, GEONN_ALGORITHM_INDEX);
	test_never("nor does brute force", GEONN_METRIC_SPHERE, 0, nearest, GEONN_ALGORITHM_BRUTE);
	test_never("nor the spheroid", GEONN_METRIC_SPHEROID, 0, nearest, GEONN_ALGORITHM_INDEX);
	test_brute_asks();
	test_left();
	test_given_up();
	test_memory("no memory for a table", MEMORY_REFUSED);
	test_memory("nor for what makes it", MEMORY_SHORT);
	test_cancelled();
	test_range();
	test_threads();
	machine.operations->close(&machine);
	return summed_up();
}
