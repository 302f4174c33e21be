/*
 * compare.c
 *		Engines set up in different ways, held against the definition.
 *
 * All engines get a case's references.  Each is asked the same questions by
 * each algorithm, each time in batches of another shape, by a session that
 * attaches to the dataset.  The answers are compared row by row and bit by
 * bit; what differs is printed with all that is needed to see it again.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/random.h"
#include "../lib/verdict.h"

/* differing rows to print for a case */
#define MOST_COMPLAINTS 3

static uint64_t seed;
static enum extent extent;

void
compare_start(const char *program, bool gpu, uint64_t seed_wanted, enum extent extent_wanted)
{
	seed = seed_wanted;
	extent = extent_wanted;
	setups_start(program, gpu, extent == EXTENT_SANITIZED);
}

bool
compare_finish(void)
{
	setups_stop();
	return summed_up() == EXIT_SUCCESS;
}

int
compare_setups(void)
{
	return setup_count;
}

void
compare_seed(uint64_t state)
{
	random_state = state;
}

static const char *
algorithm_name(enum geonn_algorithm algorithm)
{
	switch (algorithm)
	{
		case GEONN_ALGORITHM_AUTO:
			return "auto";
		case GEONN_ALGORITHM_INDEX:
			return "index";
		case GEONN_ALGORITHM_BRUTE:
			return "brute";
	}
	return "?";
}

/*
 * Print the beginning of a complaint; false where the case has had enough.
 */
static bool
complain(struct test_case *test, int setup, const struct client_question *question,
		 const struct shape *shape)
{
	if (test->complaints++ >= MOST_COMPLAINTS)
		return false;
	printf("# seed %llu, %s (%zu references, %zu observations), %s, %s,"
		   " k %u%s, max_distance %.17g (%a), %u radii, rows %u, room %u, %d slots: ",
		   (unsigned long long) seed, test->name, test->references.count,
		   test->observations.count, setups[setup].name, algorithm_name(question->algorithm),
		   question->k, question->ties ? " with ties" : "", question->max_distance,
		   question->max_distance, question->radii, shape->rows, shape->room, shape->slots);
	return true;
}

/* a row of an answer by definition */
struct row
{
	int64_t		tag;			/* the reference's, or a count */
	double		distance;		/* metres; with a count a sum or an extreme of weights, or 0 */
	const struct neighbour *neighbour;	/* the reference; NULL with a count */
};

/* how many rows a count has of each radius */
static uint32_t
rows_of_radius(const struct test_case *test, const struct client_question *question)
{
	uint32_t	weights = (uint32_t) __builtin_popcount(test->columns & GEONN_COLUMNS_WEIGHTS);

	return weights == 0 ? 1 : question->extremes ? 3 * weights : weights;
}

/*
 * How many rows the answer for an observation has by definition.  Counts of a dataset without references have none.
 */
static size_t
rows_of(const struct test_case *test, size_t observation, const struct client_question *question)
{
	if (question->radii > 0)
		return test->references.count > 0 ? question->radii * rows_of_radius(test, question) : 0;
	return definition_answer(&test->definition, observation, question);
}

static struct row
row_of(const struct test_case *test, size_t observation, const struct client_question *question, size_t number)
{
	const struct definition *definition = &test->definition;
	const struct neighbour *neighbour = &definition->candidates[observation].list[number];

	if (question->radii > 0)
	{
		double		radius = question->radius[number / rows_of_radius(test, question)];
		size_t		weights = rows_of_radius(test, question) / (question->extremes ? 3 : 1);
		size_t		of_radius = number % rows_of_radius(test, question);
		const double *weight = weights > 0 ? test->references.weight[of_radius % weights] : NULL;

		return (struct row) {
			.tag = (int64_t) definition_count(definition, observation, radius),
			.distance = weight == NULL ? 0 :
			of_radius < weights ? definition_sum(definition, observation, radius, weight) :
			definition_extreme(definition, observation, radius, weight, of_radius >= 2 * weights)
		};
	}
	return (struct row) {test->references.tag[neighbour->place], neighbour->distance, neighbour};
}

/*
 * Are these the answers by definition?  The observations are those of the
 * definition, perhaps many times over.
 */
static bool
answers_right(struct test_case *test, int setup, const struct client_question *question,
			  const struct shape *shape, const struct client_answers *answers)
{
	const struct points *references = &test->references;

	for (size_t i = 0; i < test->observations.count; i++)
	{
		size_t		known = i % test->definition.observations;
		size_t		count = rows_of(test, known, question);
		size_t		first = answers->first[i];
		size_t		found = answers->first[i + 1] - first;

		for (size_t j = 0; j < count || j < found; j++)
		{
			struct row	expected = {0};

			if (j < count)
				expected = row_of(test, known, question, j);
			if (j < count && j < found && answers->tag[first + j] == expected.tag &&
				memcmp(&answers->distance[first + j], &expected.distance, sizeof(double)) == 0)
				continue;
			if (!complain(test, setup, question, shape))
				return false;
			printf("observation %zu (%.17g, %.17g), row %zu of %zu: ", i,
				   test->observations.latitude[i], test->observations.longitude[i], j, count);
			if (j < found)
				printf("tag %lld at %.17g m, ", (long long) answers->tag[first + j],
					   answers->distance[first + j]);
			else
				printf("nothing, ");
			if (j >= count)
				printf("expected nothing\n");
			else if (expected.neighbour == NULL)
				printf("expected count %lld, sum %.17g within %.17g m\n", (long long) expected.tag,
					   expected.distance, question->radius[j / rows_of_radius(test, question)]);
			else
				printf("expected tag %lld at %.17g m, reference %u (%.17g, %.17g)\n",
					   (long long) expected.tag, expected.distance, expected.neighbour->place,
					   references->latitude[expected.neighbour->place],
					   references->longitude[expected.neighbour->place]);
			return false;
		}
	}
	return true;
}

/*
 * Attach to the case's dataset, ask, and close the session.  Returns whether
 * answers came; if not, *error is the engine's.
 */
static bool
ask(struct test_case *test, int setup, const struct client_question *question,
	const struct shape *shape, struct client_answers *answers, struct geonn_error *error)
{
	struct client_points observations = points_to_send(&test->observations);
	struct client client;
	bool		answered;

	client_connect(&client, setups[setup].engine);
	answered = client_attach(&client, setups[setup].device, test->leader[setup].dataset);
	for (int i = 0; answered && i < shape->slots; i++)
		answered = client_allocate(&client, (uint32_t) i, shape->rows, shape->room);
	answered = answered && client_collect(&client, question, &observations, answers);
	memset(error, 0, sizeof(*error));
	if (!answered && client.message.header.type == GEONN_ERROR)
		*error = client.message.error;
	client_close(&client);
	return answered;
}

/*
 * The same with a complaint if no answers came.
 */
static bool
get_answers(struct test_case *test, int setup, const struct client_question *question,
			const struct shape *shape, struct client_answers *answers)
{
	struct geonn_error error;

	if (ask(test, setup, question, shape, answers, &error))
		return true;
	if (complain(test, setup, question, shape))
		printf("%s\n", error.code != 0 ? error.message : "results that do not fit");
	return false;
}

bool
ask_right(struct test_case *test, int setup, const struct client_question *question,
		  const struct shape *shape)
{
	struct client_answers answers;
	bool		right;

	if (!get_answers(test, setup, question, shape, &answers))
		return false;
	right = answers_right(test, setup, question, shape, &answers);
	client_free_answers(&answers);
	return right;
}

bool
ask_refused(struct test_case *test, int setup, const struct client_question *question,
			const struct shape *shape)
{
	struct client_answers answers;
	struct geonn_error error;

	if (ask(test, setup, question, shape, &answers, &error))
		client_free_answers(&answers);
	else if (error.code == GEONN_ERROR_PROTOCOL)
		return true;
	if (complain(test, setup, question, shape))
		printf("not refused, %s\n", error.code != 0 ? error.message : "but answered");
	return false;
}

/*
 * Are these the answers that another engine gave?
 */
static bool
answers_same(struct test_case *test, int setup, const struct client_question *question,
			 const struct shape *shape, const struct client_answers *answers,
			 const struct client_answers *others)
{
	size_t		pairs = others->first[others->count];
	size_t		row = 0;
	size_t		observation = 0;

	if (memcmp(answers->first, others->first, (others->count + 1) * sizeof(size_t)) == 0 &&
		memcmp(answers->tag, others->tag, pairs * sizeof(int64_t)) == 0 &&
		memcmp(answers->distance, others->distance, pairs * sizeof(double)) == 0)
		return true;
	if (!complain(test, setup, question, shape))
		return false;

	/* the first row that differs, or the first observation with more rows */
	while (answers->first[observation + 1] == others->first[observation + 1] &&
		   (row == others->first[observation + 1] ||
			(answers->tag[row] == others->tag[row] &&
			 memcmp(&answers->distance[row], &others->distance[row], sizeof(double)) == 0)))
	{
		if (row == others->first[observation + 1])
			observation++;
		else
			row++;
	}
	printf("observation %zu (%.17g, %.17g), ", observation,
		   test->observations.latitude[observation], test->observations.longitude[observation]);
	if (answers->first[observation + 1] != others->first[observation + 1])
		printf("%zu rows, by brute force %zu\n",
			   answers->first[observation + 1] - answers->first[observation],
			   others->first[observation + 1] - others->first[observation]);
	else
		printf("tag %lld at %.17g m, by brute force tag %lld at %.17g m\n",
			   (long long) answers->tag[row], answers->distance[row],
			   (long long) others->tag[row], others->distance[row]);
	return false;
}

bool
same_as_brute(struct test_case *test, struct client_question question,
			  const struct shape *shape, const struct shape *brute_shape)
{
	/* the fastest: the GPUs, or the widest vectors */
	int			brute = setups[0].device == GEONN_DEVICE_CUDA ? 0 : setup_count - 1;
	struct client_answers answers;
	struct client_answers expected;
	bool		right = true;

	question.algorithm = GEONN_ALGORITHM_BRUTE;
	if (!get_answers(test, brute, &question, brute_shape, &expected))
		return false;
	question.algorithm = GEONN_ALGORITHM_INDEX;
	for (int setup = 0; setup < setup_count; setup++)
	{
		if (!get_answers(test, setup, &question, shape, &answers))
		{
			right = false;
			continue;
		}
		right = answers_same(test, setup, &question, shape, &answers, &expected) && right;
		client_free_answers(&answers);
	}
	client_free_answers(&expected);
	return right;
}

/*
 * Rows and room at random, but not so small that messages take all the time.
 */
static struct shape
draw_shape(const struct test_case *test, const struct client_question *question)
{
	static const uint32_t rows[] = {1, 2, 63, 64, 65, 1000, 4096};
	const uint32_t rooms[] = {1, 7, 64, question->k, 1000, 4096};
	struct shape shape = {
		.rows = rows[random_below(7)],
		.room = rooms[random_below(6)],
		.slots = 1 + random_below(GEONN_RING_SLOTS)
	};
	size_t		pairs = 0;

	for (size_t i = 0; i < test->observations.count; i++)
		pairs += rows_of(test, i % test->definition.observations, question);
	while (test->observations.count / shape.rows > (extent == EXTENT_SANITIZED ? 8 : 100))
		shape.rows *= 8;
	if (shape.room == 0)
		shape.room = shape.rows;
	/* an observation's counts are never cut off */
	if (shape.room < question->radii * rows_of_radius(test, question))
		shape.room = question->radii * rows_of_radius(test, question);
	while (pairs / shape.room > (extent == EXTENT_SANITIZED ? 8 : 150))
		shape.room *= 8;
	return shape;
}

bool
question_right(struct test_case *test, struct client_question question)
{
	int			skipped = extent != EXTENT_ALL ? GEONN_ALGORITHM_INDEX + random_below(2) : -1;
	bool		right = true;

	for (int setup = 0; setup < setup_count; setup++)
		for (int algorithm = GEONN_ALGORITHM_AUTO; algorithm <= GEONN_ALGORITHM_BRUTE; algorithm++)
		{
			struct shape shape = draw_shape(test, &question);

			/* auto is one of the others, on the same path */
			if ((algorithm == GEONN_ALGORITHM_AUTO && random_below(6) != 0) || algorithm == skipped)
				continue;
			question.algorithm = (enum geonn_algorithm) algorithm;
			right = ask_right(test, setup, &question, &shape) && right;
		}
	return right;
}

double
draw_distance(const struct test_case *test, int limit)
{
	size_t		observations = test->definition.observations;

	for (int attempt = 0; attempt < 20 && observations > 0; attempt++)
	{
		const struct candidates *candidates =
			&test->definition.candidates[random_below((int) observations)];
		size_t		rank = (size_t) random_below(limit);

		if (rank < candidates->kept)
			return candidates->list[rank].distance;
	}
	return 0;
}

/* as many candidates are in reach of some observation as the definition has */
static bool
too_deep(const struct test_case *test, double max_distance)
{
	for (size_t i = 0; i < test->definition.observations; i++)
	{
		const struct candidates *candidates = &test->definition.candidates[i];

		if (candidates->kept < candidates->all &&
			candidates->list[candidates->kept - 1].distance <= max_distance)
			return true;
	}
	return false;
}

/* the cases together ask all questions even so */
static bool
is_left_out(void)
{
	return extent != EXTENT_ALL && random_below(4) != 0;
}

static int
compare_radii(const void *left, const void *right)
{
	double		a = *(const double *) left;
	double		b = *(const double *) right;

	return (a > b) - (a < b);
}

/*
 * A count within some radii, of which many are distances that occur.
 */
static struct client_question
draw_count(const struct test_case *test)
{
	uint32_t	wanted = 1 + (uint32_t) random_below(random_below(2) ? 3 : GEONN_RADII_MAX);
	struct client_question question = {.max_distance = INFINITY, .extremes = random_below(2)};
	double		drawn[GEONN_RADII_MAX];

	for (uint32_t i = 0; i < wanted; i++)
	{
		double		occurs = draw_distance(test, random_below(2) ? 10 : 2000);
		double		choices[] = {occurs, nextafter(occurs, 0), nextafter(occurs, INFINITY),
		fabs(random_magnitude(1e-3, 3e7)), 0, INFINITY};

		drawn[i] = choices[random_below(random_below(3) ? 4 : 6)];
	}
	qsort(drawn, wanted, sizeof(double), compare_radii);
	for (uint32_t i = 0; i < wanted; i++)
		if ((question.radii == 0 || drawn[i] > question.radius[question.radii - 1]) &&
			(drawn[i] == INFINITY || !too_deep(test, drawn[i])))
			question.radius[question.radii++] = drawn[i];
	return question;
}

/*
 * Are counts right?  An engine finds excluded references by tags that rise.
 */
bool
counts_right(struct test_case *test)
{
	bool		right = true;

	if ((test->columns & GEONN_COLUMN_EXCLUDED) && !test->order_by_tag)
		return true;
	for (int i = 0; i < 4; i++)
	{
		struct client_question question = draw_count(test);

		if (question.radii > 0 && !is_left_out())
			right = question_right(test, question) && right;
	}
	return right;
}

bool
questions_right(struct test_case *test)
{
	static const uint32_t k[] = {1, 2, 3, 10, 31, 32, 33, 100, 1000, 1024};
	double		occurs = draw_distance(test, 3);
	double		medium = draw_distance(test, 100);
	double		radii[] = {0, 1, occurs, nextafter(occurs, 0), medium, INFINITY};
	bool		right = counts_right(test);

	for (size_t i = 0; i < sizeof(k) / sizeof(k[0]); i++)
	{
		struct client_question question = {
			.k = k[i],
			.ties = random_below(4) == 0,
			.max_distance = INFINITY
		};

		if (is_left_out())
			continue;
		if (random_below(4) == 0)
			question.max_distance = radii[random_below(5)];
		if (question.ties && too_deep(test, question.max_distance))
			question.ties = false;
		right = question_right(test, question) && right;
	}
	for (size_t i = 0; i < sizeof(radii) / sizeof(radii[0]); i++)
	{
		struct client_question nearest = {.k = 1,.max_distance = radii[i]};
		struct client_question some = {
			.k = 1 + (uint32_t) random_below(60),
			.ties = random_below(2) == 0,
			.max_distance = radii[i]
		};
		struct client_question within = {.max_distance = radii[i]};

		if (too_deep(test, radii[i]))
			continue;
		if (isfinite(radii[i]) && !is_left_out())
			right = question_right(test, nearest) && right;
		if (!is_left_out())
			right = question_right(test, some) && right;
		if (!is_left_out())
			right = question_right(test, within) && right;
	}
	return right;
}

static bool
open_datasets(struct test_case *test)
{
	struct client_points references = points_to_send(&test->references);
	bool		right = true;

	for (int i = 0; i < setup_count; i++)
	{
		struct client *leader = &test->leader[i];
		uint32_t	rows = random_below(2) ? 65536 : 1 + (uint32_t) random_below(5000);

		client_connect(leader, setups[i].engine);
		if (!client_create(leader, setups[i].device, test->metric, test->columns) ||
			!client_allocate(leader, 0, rows, 1) || !client_allocate(leader, 1, rows, 1) ||
			!client_send_dataset(leader, &references, test->order_by_tag))
		{
			printf("# seed %llu, %s, %s: the references were not taken: %s\n",
				   (unsigned long long) seed, test->name, setups[i].name,
				   leader->message.header.type == GEONN_ERROR ? leader->message.error.message : "");
			right = false;
		}
	}
	return right;
}

void
case_draw_groups(struct test_case *test, uint32_t groups)
{
	if (groups == 0)
		return;
	points_draw_groups(&test->references, groups);
	points_draw_groups(&test->observations, groups + 1);
	test->columns |= GEONN_COLUMN_GROUP;
}

void
case_draw_excluded(struct test_case *test, uint32_t ranges)
{
	if (ranges == 0)
		return;
	points_draw_excluded(&test->observations, &test->references, ranges);
	test->columns |= GEONN_COLUMN_EXCLUDED;
}

void
finish_case(struct test_case *test, size_t depth, bool (*right) (struct test_case *))
{
	double		begin = now_ms();
	bool		holds = open_datasets(test);

	if (test->order_by_tag)
	{
		struct points sorted = points_sorted_by_tag(&test->references);

		points_free(&test->references);
		test->references = sorted;
	}
	test->definition = definition_create(&test->references, &test->observations,
										 test->metric, depth);
	if (test->repeated > 1)
	{
		struct points all = points_repeated(&test->observations, test->repeated);

		points_free(&test->observations);
		test->observations = all;
	}
	holds = holds && right(test);
	printf("# %.0f ms\n", now_ms() - begin);
	report(test->name, holds);
	for (int i = 0; i < setup_count; i++)
		client_close(&test->leader[i]);
	definition_free(&test->definition);
	points_free(&test->references);
	points_free(&test->observations);
}
