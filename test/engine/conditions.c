/*
 * conditions.c
 *		Cases of windows and radiuses, for search_test.
 */
#include "conditions.h"

#include <math.h>
#include <stdio.h>

#include "../lib/random.h"

/* what the points of a case have */
struct conditions
{
	const char *name;
	enum places places;
	int			windows;		/* windows of each point */
	enum spans	references;		/* the first window; the others are wide */
	enum spans	observations;
	bool		all_edges;
	double		radius;			/* metres; 0: no radiuses */
	uint32_t	groups;
	uint32_t	excluded;
	size_t		count;			/* references; 0: as many as most cases have */
};

static struct test_case
begin_conditions(begin_case_function begin, const struct conditions *conditions,
				 enum geonn_metric metric)
{
	bool		spheroid = metric == GEONN_METRIC_SPHEROID;
	size_t		count = conditions->count > 0 ? conditions->count : spheroid ? 300 : 1200;
	char		name[96];
	struct test_case test;

	snprintf(name, sizeof(name), "%s%s", spheroid ? "spheroid: " : "", conditions->name);
	test = begin(name, metric, count, conditions->places, spheroid ? 80 : 150, false);
	for (int window = 0; window < conditions->windows; window++)
	{
		points_draw_windows(&test.references, window, window == 0 ? conditions->references :
							SPANS_WIDE, conditions->all_edges);
		points_draw_windows(&test.observations, window, window == 0 ? conditions->observations :
							SPANS_WIDE, conditions->all_edges);
		test.columns |= GEONN_COLUMN_WINDOW << window;
	}
	if (conditions->radius > 0)
	{
		points_draw_radiuses(&test.references, conditions->radius);
		points_draw_radiuses(&test.observations, conditions->radius);
		test.columns |= GEONN_COLUMN_RADIUS;
	}
	case_draw_groups(&test, conditions->groups);
	case_draw_excluded(&test, conditions->excluded);
	return test;
}

/*
 * Windows and radiuses, alone and with all other columns.
 */
static void
test_columns(begin_case_function begin, enum geonn_metric metric)
{
	static const struct conditions cases[] = {
		{"steps, and observations of one step", PLACES_UNIFORM, 1, SPANS_STEPS, SPANS_STEPS, false, 0, 0, 0, 0},
		{"steps with all edges", PLACES_CITIES, 1, SPANS_STEPS, SPANS_STEPS, true, 0, 0, 0, 0},
		{"many steps of few references", PLACES_UNIFORM, 1, SPANS_INSTANTS, SPANS_INSTANTS, false, 0, 0, 0, 0},
		{"narrow windows", PLACES_UNIFORM, 1, SPANS_NARROW, SPANS_NARROW, true, 0, 0, 0, 6000},
		{"wide windows, narrow references", PLACES_UNIFORM, 1, SPANS_NARROW, SPANS_WIDE, true, 0, 0, 0, 0},
		{"narrow windows, wide references", PLACES_CITIES, 1, SPANS_WIDE, SPANS_NARROW, true, 0, 0, 0, 0},
		{"windows of all lengths", PLACES_UNIFORM, 1, SPANS_MIXED, SPANS_MIXED, true, 0, 0, 0, 6000},
		{"bounds that are equal", PLACES_HEAPS, 1, SPANS_SMALL, SPANS_SMALL, true, 0, 0, 0, 0},
		{"unbounded windows", PLACES_UNIFORM, 1, SPANS_UNBOUNDED, SPANS_UNBOUNDED, true, 0, 0, 0, 0},
		{"windows of references at one point", PLACES_COINCIDENT, 1, SPANS_MIXED, SPANS_NARROW, true, 0, 0, 0, 0},
		{"instants of a track", PLACES_TRACK, 1, SPANS_INSTANTS, SPANS_SMALL, true, 0, 0, 0, 0},
		{"three windows", PLACES_UNIFORM, 3, SPANS_MIXED, SPANS_WIDE, true, 0, 0, 0, 0},
		{"two windows of one point", PLACES_COINCIDENT, 2, SPANS_SMALL, SPANS_SMALL, true, 0, 0, 0, 0},
		{"windows of groups", PLACES_UNIFORM, 1, SPANS_NARROW, SPANS_WIDE, true, 0, 20, 0, 6000},
		{"windows of many groups", PLACES_CITIES, 1, SPANS_MIXED, SPANS_WIDE, true, 0, 1000, 0, 0},
		{"windows and excluded tags", PLACES_UNIFORM, 1, SPANS_WIDE, SPANS_WIDE, true, 0, 0, 300, 0},
		{"radiuses", PLACES_UNIFORM, 0, SPANS_STEPS, SPANS_STEPS, false, 1e6, 0, 0, 0},
		{"radiuses in cities", PLACES_CITIES, 0, SPANS_STEPS, SPANS_STEPS, false, 1e3, 0, 0, 0},
		{"radiuses at one point", PLACES_COINCIDENT, 0, SPANS_STEPS, SPANS_STEPS, false, 1, 0, 0, 0},
		{"radiuses on a grid", PLACES_GRID, 0, SPANS_STEPS, SPANS_STEPS, false, 1e6, 0, 0, 0},
		{"radiuses and windows of groups, and excluded tags", PLACES_UNIFORM, 2, SPANS_WIDE, SPANS_WIDE, true, 5e6, 4, 50, 0}
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct test_case test;

		if (metric == GEONN_METRIC_SPHEROID && i % 3 != 1)
			continue;
		test = begin_conditions(begin, &cases[i], metric);
		finish_case(&test, 6000, questions_right);
	}
}

/*
 * Questions for the nearest, whichever way they go, of many references and
 * neighbouring observations.
 */
static bool
nearest_right(struct test_case *test)
{
	static const struct shape shapes[] = {
		{.rows = 4096,.room = 4096,.slots = 4},
		{.rows = 1 << 16,.room = 1 << 16,.slots = 1}
	};
	struct client_question questions[] = {
		{.k = 1,.max_distance = INFINITY},
		{.k = 1,.max_distance = draw_distance(test, 5)},
		{.k = 1,.max_distance = draw_distance(test, 1)},
		{.k = 2,.max_distance = INFINITY},
		{.k = 7,.max_distance = INFINITY}
	};
	bool		right = true;

	for (int setup = 0; setup < compare_setups(); setup++)
		for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		{
			questions[i].algorithm = GEONN_ALGORITHM_INDEX;
			right = ask_right(test, setup, &questions[i], &shapes[random_below(2)]) && right;
		}
	return right;
}

/*
 * So many references that windows are cut into slabs, and observations that go
 * through the index together.
 */
void
conditions_test_slabs(begin_case_function begin, uint64_t seed)
{
	static const struct conditions cases[] = {
		{"slabs: steps, and observations of one step", PLACES_UNIFORM, 1, SPANS_STEPS, SPANS_STEPS, false, 0, 0, 0, 40000},
		{"slabs: steps with all edges", PLACES_CITIES, 1, SPANS_STEPS, SPANS_STEPS, true, 0, 0, 0, 40000},
		{"slabs: instants", PLACES_UNIFORM, 1, SPANS_INSTANTS, SPANS_INSTANTS, false, 0, 0, 0, 40000},
		{"slabs: instants of groups, wide observations", PLACES_UNIFORM, 1, SPANS_INSTANTS, SPANS_WIDE, true, 0, 4, 0, 40000},
		{"slabs: narrow windows", PLACES_CITIES, 1, SPANS_NARROW, SPANS_NARROW, true, 0, 0, 0, 40000},
		{"slabs: narrow windows, observations of all lengths", PLACES_UNIFORM, 1, SPANS_NARROW, SPANS_MIXED, true, 0, 0, 0, 40000},
		{"slabs: windows of all lengths", PLACES_UNIFORM, 1, SPANS_MIXED, SPANS_MIXED, true, 0, 0, 0, 40000},
		{"slabs: windows of all lengths of groups", PLACES_CITIES, 1, SPANS_MIXED, SPANS_NARROW, true, 0, 50, 0, 40000},
		{"slabs: unbounded windows", PLACES_UNIFORM, 1, SPANS_UNBOUNDED, SPANS_UNBOUNDED, true, 0, 0, 0, 40000},
		{"slabs: bounds that are equal", PLACES_HEAPS, 1, SPANS_SMALL, SPANS_SMALL, true, 0, 0, 0, 40000},
		{"slabs: references at one point", PLACES_COINCIDENT, 1, SPANS_MIXED, SPANS_NARROW, true, 0, 0, 0, 40000},
		{"slabs: equal distances", PLACES_GRID, 1, SPANS_NARROW, SPANS_WIDE, true, 0, 0, 0, 40000},
		{"slabs: three windows", PLACES_UNIFORM, 3, SPANS_NARROW, SPANS_WIDE, true, 0, 0, 0, 40000},
		{"slabs: excluded tags", PLACES_UNIFORM, 1, SPANS_NARROW, SPANS_NARROW, true, 0, 0, 300, 40000},
		{"slabs: radiuses", PLACES_CITIES, 1, SPANS_NARROW, SPANS_WIDE, true, 3e5, 0, 0, 40000}
	};

	random_state = seed;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		struct test_case test = begin_conditions(begin, &cases[i], GEONN_METRIC_SPHERE);

		test.repeated = 20;
		finish_case(&test, 2000, nearest_right);
	}
}

/*
 * Observations have radiuses, references have none.
 */
static void
test_radiuses_of_observations(begin_case_function begin)
{
	struct test_case test = begin("radiuses of observations", GEONN_METRIC_SPHERE, 6000,
									   PLACES_CITIES, 150, false);

	points_draw_radiuses(&test.observations, 1e5);
	points_draw_radiuses(&test.references, 1);
	for (size_t i = 0; i < test.references.count; i++)
		test.references.radius[i] = INFINITY;
	test.columns = GEONN_COLUMN_RADIUS;
	test.repeated = 20;
	finish_case(&test, 2000, nearest_right);
}

/*
 * Radiuses that are the very distances of pairs, or the next float64 before or
 * after one.
 */
static void
test_exact_radiuses(begin_case_function begin, enum geonn_metric metric)
{
	struct test_case test = begin(metric == GEONN_METRIC_SPHERE ? "radiuses to the last bit" :
									   "spheroid: radiuses to the last bit", metric, 300,
									   PLACES_ONE_CITY, 60, false);
	struct points *sides[2] = {&test.observations, &test.references};
	struct definition distances = definition_create(&test.references, &test.observations, metric, 300);

	for (int side = 0; side < 2; side++)
	{
		struct points *points = sides[side];

		points_draw_radiuses(points, 1);
		for (size_t i = 0; i < points->count; i++)
		{
			size_t		observation = side == 0 ? i : (size_t) random_below((int) test.observations.count);
			const struct candidates *all = &distances.candidates[observation];
			const struct neighbour *chosen = &all->list[random_below((int) all->kept)];

			/* of a reference: its distance from that observation */
			for (size_t j = 0; side == 1 && j < all->kept; j++)
				if (all->list[j].place == i)
					chosen = &all->list[j];
			points->radius[i] = random_below(3) == 0 ? chosen->distance :
				nextafter(chosen->distance, random_below(2) ? 0 : INFINITY);
		}
	}
	definition_free(&distances);
	test.columns = GEONN_COLUMN_RADIUS;
	finish_case(&test, 300, questions_right);
}

void
conditions_test(begin_case_function begin, uint64_t seed, enum geonn_metric metric)
{
	random_state = seed;
	test_columns(begin, metric);
	test_exact_radiuses(begin, metric);
	if (metric == GEONN_METRIC_SPHERE)
		test_radiuses_of_observations(begin);
}
