/*
 * search_test.c
 *		Every device, algorithm, CPU path, batch size and number of threads
 *		gives the same bytes: those of the definition.
 *
 * Usage: search_test ENGINE [cpu|cuda [SEED [short|sanitized]]]
 *
 * With cuda, the GPUs are compared and the CPU beside them.  "short" asks some
 * of the questions of each case; "sanitized" too, and leaves out what is large
 * or has several processes, and the CPU beside GPUs: sanitizers are slow.
 *
 * nearest_oracle and geodesy_test hold the distances themselves against a
 * higher precision.
 *
 * rooms: engine/search engine/dataset engine/cpu engine/cpu/base engine/cpu/index engine/cpu/walk
 * rooms: engine/cpu/squares engine/cpu/counts cuda cuda/base cuda/brute cuda/index cuda/neighbours
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/geodesy.h"
#include "common/spheroid_distance.h"
#include "../lib/random.h"
#include "compare.h"
#include "conditions.h"
#include "counts.h"
#include "side_by_side.h"

/* at most, under a sanitizer */
#define SANITIZED_REFERENCES 300
#define SANITIZED_OBSERVATIONS 70

static uint64_t seed = 20240229;
static bool gpu;
static enum extent extent;

/*
 * Begin a case, with random numbers that no other case has an influence on.
 */
static struct test_case
begin_case(const char *name, enum geonn_metric metric, size_t references,
		   enum places places, size_t observations, bool far)
{
	static uint64_t cases;
	struct test_case test = {.metric = metric};

	random_state = seed + (++cases << 32);
	points_seed(random_state);
	compare_seed(random_state);
	snprintf(test.name, sizeof(test.name), "%s", name);
	if (extent == EXTENT_SANITIZED && references > SANITIZED_REFERENCES)
		references = SANITIZED_REFERENCES;
	if (extent == EXTENT_SANITIZED && observations > SANITIZED_OBSERVATIONS)
		observations = SANITIZED_OBSERVATIONS;
	test.references = points_create(references, places);
	test.observations = points_about(&test.references, observations, far);
	return test;
}

static void
test_places(void)
{
	for (int places = 0; places < PLACES_KINDS; places++)
	{
		char		name[80];
		struct test_case test;

		snprintf(name, sizeof(name), "references: %s", places_names[places]);
		test = begin_case(name, GEONN_METRIC_SPHERE, 1200, (enum places) places, 180, false);
		finish_case(&test, 2000, questions_right);
	}
}

static void
test_far_observations(void)
{
	static const enum places places[] = {PLACES_ONE_CITY, PLACES_ONE_CELL, PLACES_POLAR};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
	{
		char		name[80];
		struct test_case test;

		snprintf(name, sizeof(name), "all observations at the antipodes: %s",
				 places_names[places[i]]);
		test = begin_case(name, GEONN_METRIC_SPHERE, 1200, places[i], 120, true);
		finish_case(&test, 2000, questions_right);
	}
}

/*
 * Every observation has k neighbours, for the k at which a GPU searches in
 * another way, and as many or one less than the references.
 */
static bool
every_k_right(struct test_case *test)
{
	static const uint32_t numbers[] = {2, 3, 4, 8, 12, 16, 24, 32, 33, 48, 63, 64, 96, 127, 128, 129};
	bool		right = true;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		right = question_right(test, (struct client_question) {.k = numbers[i],
							   .max_distance = INFINITY}) && right;
	return right;
}

static void
test_every_k(void)
{
	static const size_t counts[] = {12, 32, 128, 700};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		char		name[80];
		struct test_case test;

		snprintf(name, sizeof(name), "k neighbours of %zu references, without a limit", counts[i]);
		test = begin_case(name, GEONN_METRIC_SPHERE, counts[i],
						  i % 2 ? PLACES_CITIES : PLACES_HEAPS, 100, false);
		finish_case(&test, 2000, every_k_right);
	}
}

/* numbers of references around the widths of nodes, tiles and groups */
static void
test_sizes(void)
{
	static const size_t counts[] = {
		0, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 1023, 1024, 1025
	};

	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
	{
		char		name[80];
		struct test_case test;

		if (extent == EXTENT_SANITIZED && counts[i] > SANITIZED_REFERENCES)
			break;
		snprintf(name, sizeof(name), "%zu references", counts[i]);
		test = begin_case(name, GEONN_METRIC_SPHERE, counts[i],
						  i % 2 ? PLACES_CITIES : PLACES_HEAPS,
						  i % 3 == 0 ? 1 : 60, false);
		finish_case(&test, 2000, questions_right);
	}
}

/*
 * Groups and excluded tags.  Observations have kinds that no reference has, and
 * references some that no observation has.
 */
static void
test_columns(enum geonn_metric metric)
{
	static const struct
	{
		const char *name;
		enum places places;
		uint32_t	groups;
		uint32_t	excluded;
		size_t		references;	/* 0: as many as most cases have */
	}			cases[] = {
		{"two groups", PLACES_UNIFORM, 2, 0, 0},
		{"some groups in cities", PLACES_CITIES, 20, 0, 0},
		{"groups of one or two", PLACES_UNIFORM, 1000, 0, 0},
		{"groups of coincident references", PLACES_HEAPS, 30, 0, 0},
		{"groups of references at one point", PLACES_COINCIDENT, 40, 0, 0},
		{"groups of three levels of nodes", PLACES_UNIFORM, 3, 0, 6000},
		{"excluded tags of few references", PLACES_UNIFORM, 0, 300, 0},
		{"two ranges of excluded tags", PLACES_HEAPS, 0, 2, 0},
		{"all tags are excluded", PLACES_CITIES, 0, 1, 0},
		{"groups and excluded tags", PLACES_CITIES, 10, 10, 0},
		{"groups and excluded tags of coincident references", PLACES_COINCIDENT, 6, 6, 0}
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		bool		spheroid = metric == GEONN_METRIC_SPHEROID;
		char		name[96];
		struct test_case test;

		if (spheroid && i % 3 != 2)
			continue;
		snprintf(name, sizeof(name), "%s%s", spheroid ? "spheroid: " : "", cases[i].name);
		test = begin_case(name, metric, cases[i].references > 0 ? cases[i].references :
						  spheroid ? 300 : 1200, cases[i].places, spheroid ? 80 : 150, false);
		case_draw_groups(&test, cases[i].groups);
		case_draw_excluded(&test, cases[i].excluded);
		finish_case(&test, 2000, questions_right);
	}
}

/*
 * Parties, alone and with groups, windows, radiuses and excluded tags.
 */
static void
test_parties(enum geonn_metric metric)
{
	static const struct
	{
		const char *name;
		enum places places;
		uint32_t	kinds[GEONN_PARTIES_MAX];
		bool		areas;		/* references that follow each other are of one party */
		uint32_t	further;	/* columns beside */
		size_t		references; /* 0: as many as most cases have */
	}			cases[] = {
		{"one party", PLACES_UNIFORM, {1, 0}, false, 0, 0},
		{"two parties", PLACES_UNIFORM, {2, 0}, false, 0, 0},
		{"ten parties in cities", PLACES_CITIES, {10, 0}, false, 0, 6000},
		{"parties of a track have parts of it", PLACES_TRACK, {5, 0}, true, 0, 6000},
		{"parties of one or two", PLACES_UNIFORM, {1000, 0}, false, 0, 0},
		{"one party for all references", PLACES_UNIFORM, {1, 0}, false, 0, 0},
		{"parties at one point", PLACES_COINCIDENT, {6, 0}, false, 0, 0},
		{"parties of coincident references", PLACES_HEAPS, {4, 3}, false, 0, 0},
		{"two columns of parties", PLACES_CITIES, {3, 7}, true, 0, 0},
		{"parties and groups", PLACES_UNIFORM, {8, 0}, false, GEONN_COLUMN_GROUP, 0},
		{"parties and excluded tags", PLACES_HEAPS, {8, 2}, false, GEONN_COLUMN_EXCLUDED, 0},
		{"parties and windows", PLACES_CITIES, {8, 0}, true, GEONN_COLUMN_WINDOW, 6000},
		{"parties, groups, windows, radiuses and excluded tags", PLACES_CITIES, {4, 6}, false,
			GEONN_COLUMN_GROUP | GEONN_COLUMN_WINDOW | GEONN_COLUMN_RADIUS | GEONN_COLUMN_EXCLUDED, 0}
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		bool		spheroid = metric == GEONN_METRIC_SPHEROID;
		char		name[96];
		struct test_case test;

		if (spheroid && i % 3 != 1)
			continue;
		snprintf(name, sizeof(name), "%s%s", spheroid ? "spheroid: " : "", cases[i].name);
		test = begin_case(name, metric, cases[i].references > 0 ? cases[i].references : spheroid ? 300 : 1200,
						  cases[i].places, spheroid ? 80 : 150, false);
		test.columns = cases[i].further;
		for (int party = 0; party < GEONN_PARTIES_MAX && cases[i].kinds[party] > 0; party++)
		{
			points_draw_parties(&test.references, party, cases[i].kinds[party], cases[i].areas);
			points_draw_parties(&test.observations, party, cases[i].kinds[party] + 1, false);
			test.columns |= GEONN_COLUMN_PARTY << party;
		}
		case_draw_groups(&test, test.columns & GEONN_COLUMN_GROUP ? 3 : 0);
		case_draw_excluded(&test, test.columns & GEONN_COLUMN_EXCLUDED ? 20 : 0);
		if (test.columns & GEONN_COLUMN_WINDOW)
		{
			points_draw_windows(&test.references, 0, SPANS_MIXED, true);
			points_draw_windows(&test.observations, 0, SPANS_WIDE, true);
		}
		if (test.columns & GEONN_COLUMN_RADIUS)
		{
			points_draw_radiuses(&test.references, 5e6);
			points_draw_radiuses(&test.observations, 5e6);
		}
		finish_case(&test, 2000, questions_right);
	}
}

/* each observation is one of the references, which is not its own neighbour */
static void
test_exclude_self(void)
{
	struct test_case test = begin_case("every point but itself", GEONN_METRIC_SPHERE,
									   400, PLACES_TRACK, 1, false);

	points_free(&test.observations);
	test.observations = points_sorted_by_tag(&test.references);
	points_exclude_own_tags(&test.observations);
	test.columns = GEONN_COLUMN_EXCLUDED;
	finish_case(&test, 2000, questions_right);
}

/* sorted by the engine, all columns along with their references */
static void
test_order_by_tag(void)
{
	struct test_case test = begin_case("the order by tag", GEONN_METRIC_SPHERE,
									   1000, PLACES_HEAPS, 200, false);

	for (size_t i = 0; i < test.references.count; i++)
		test.references.tag[i] %= 500;
	points_draw_groups(&test.references, 3);
	points_draw_groups(&test.observations, 3);
	points_draw_excluded(&test.observations, &test.references, 5);
	points_draw_radiuses(&test.references, 3e6);
	points_draw_radiuses(&test.observations, 3e6);
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		points_draw_windows(&test.references, window, SPANS_WIDE, true);
		points_draw_windows(&test.observations, window, SPANS_WIDE, true);
	}
	for (int party = 0; party < GEONN_PARTIES_MAX; party++)
	{
		points_draw_parties(&test.references, party, 4, false);
		points_draw_parties(&test.observations, party, 4, false);
	}
	test.columns = GEONN_COLUMNS_ALL & ~(GEONN_COLUMNS_WEIGHTS | GEONN_COLUMNS_OF_ARCS);
	test.order_by_tag = true;
	finish_case(&test, 2000, questions_right);
}

static void
test_spheroid(void)
{
	static const enum places places[] = {
		PLACES_UNIFORM, PLACES_CITIES, PLACES_HEAPS, PLACES_POLAR, PLACES_ANTIMERIDIAN,
		PLACES_ONE_CELL, PLACES_ADJACENT, PLACES_EQUATOR, PLACES_MERIDIAN
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
	{
		char		name[96];
		struct test_case test;

		snprintf(name, sizeof(name), "spheroid: %s", places_names[places[i]]);
		test = begin_case(name, GEONN_METRIC_SPHEROID, 350, places[i], 80, false);
		finish_case(&test, 1000, questions_right);
	}
}

/*
 * Two airports by a town in Mexico: on the sphere the one in the west is
 * nearer, on the Earth the one in the south.
 */
static bool
nearest_is(struct test_case *test, uint32_t place)
{
	struct client_question nearest = {.k = 1,.max_distance = INFINITY};

	return test->definition.candidates[0].list[0].place == place &&
		question_right(test, nearest);
}

static bool
nearest_is_first(struct test_case *test)
{
	return nearest_is(test, 0);
}

static bool
nearest_is_second(struct test_case *test)
{
	return nearest_is(test, 1);
}

static void
test_spheroid_differs(void)
{
	for (int metric = GEONN_METRIC_SPHERE; metric <= GEONN_METRIC_SPHEROID; metric++)
	{
		bool		sphere = metric == GEONN_METRIC_SPHERE;
		struct test_case test = begin_case(sphere ? "the nearest on the sphere" :
										   "another one is the nearest on the spheroid",
										   (enum geonn_metric) metric, 2, PLACES_UNIFORM, 1, false);

		test.references.latitude[0] = 29.0959;
		test.references.longitude[0] = -111.0480;
		test.references.latitude[1] = 27.3926;
		test.references.longitude[1] = -109.8330;
		test.observations.latitude[0] = 28.9277;
		test.observations.longitude[0] = -109.1868;
		finish_case(&test, 2, sphere ? nearest_is_first : nearest_is_second);
	}
}

/*
 * Has a point another nearest reference on the spheroid than on the sphere?
 */
static bool
metrics_disagree(const struct points *references, const struct geonn_vector *vectors,
				 double latitude, double longitude)
{
	struct geonn_vector vector = geonn_unit_vector(latitude, longitude);
	double		smallest_chord = INFINITY;
	double		smallest = INFINITY;
	size_t		by_sphere = 0;
	size_t		by_spheroid = 0;

	for (size_t i = 0; i < references->count; i++)
	{
		double		chord = geonn_chord_squared(vector, vectors[i]);

		if (chord < smallest_chord)
		{
			smallest_chord = chord;
			by_sphere = i;
		}
	}
	for (size_t i = 0; i < references->count; i++)
	{
		double		distance;

		/* the metrics differ by less than 1 % */
		if (geonn_chord_squared(vector, vectors[i]) > 1.04 * smallest_chord)
			continue;
		distance = geonn_spheroid_distance(latitude, longitude, references->latitude[i],
										   references->longitude[i]);
		if (distance < smallest)
		{
			smallest = distance;
			by_spheroid = i;
		}
	}
	return by_sphere != by_spheroid;
}

/*
 * So many points of which that is true.
 */
static struct points
disputed_points(const struct points *references, size_t count)
{
	struct geonn_vector *vectors = calloc(references->count, sizeof(*vectors));
	struct points disputed = points_create(count, PLACES_UNIFORM);
	size_t		found = 0;

	if (vectors == NULL)
		exit(EXIT_FAILURE);
	for (size_t i = 0; i < references->count; i++)
		vectors[i] = geonn_unit_vector(references->latitude[i], references->longitude[i]);
	while (found < count)
	{
		double		latitude = asin(random_between(-1, 1)) * (180 / M_PI);
		double		longitude = random_between(-180, 180);

		if (!metrics_disagree(references, vectors, latitude, longitude))
			continue;
		disputed.latitude[found] = latitude;
		disputed.longitude[found++] = longitude;
	}
	free(vectors);
	return disputed;
}

static bool
one_and_two_right(struct test_case *test)
{
	struct client_question one = {.k = 1,.max_distance = INFINITY};
	struct client_question two = {.k = 2,.max_distance = INFINITY};
	bool		right = question_right(test, one);

	return question_right(test, two) && right;
}

/* one point in a thousand is such; here all are */
static void
test_spheroid_always_differs(void)
{
	for (int metric = GEONN_METRIC_SPHERE; metric <= GEONN_METRIC_SPHEROID; metric++)
	{
		struct test_case test = begin_case(metric == GEONN_METRIC_SPHERE ?
										   "sphere: every nearest is another one on the spheroid" :
										   "spheroid: every nearest is another one on the sphere",
										   (enum geonn_metric) metric, 500, PLACES_UNIFORM, 100, false);
		size_t		count = test.observations.count;

		points_free(&test.observations);
		test.observations = disputed_points(&test.references, count);
		finish_case(&test, 500, one_and_two_right);
	}
}

/* every batch size, and every room, of one question */
static bool
every_shape_right(struct test_case *test)
{
	static const uint32_t sizes[] = {1, 2, 7, 63, 64, 65, 1000, 4096, 65536};
	struct client_question questions[] = {
		{.k = 1,.max_distance = INFINITY},
		{.k = 10,.ties = true,.max_distance = INFINITY},
		{.k = 0,.max_distance = draw_distance(test, 15)}
	};
	bool		right = true;

	for (int setup = 0; setup < compare_setups(); setup++)
		for (size_t i = 0; i < 3; i++)
			for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
			{
				struct shape shapes[] = {
					{.rows = sizes[j],.room = sizes[random_below(9)],.slots = 4},
					{.rows = sizes[random_below(9)],.room = sizes[j],.slots = 2}
				};

				for (size_t shape = 0; shape < 2; shape++)
				{
					if (extent != EXTENT_ALL && random_below(4) != 0)
						continue;
					questions[i].algorithm = random_below(2) ? GEONN_ALGORITHM_INDEX : GEONN_ALGORITHM_BRUTE;
					right = ask_right(test, setup, &questions[i], &shapes[shape]) && right;
				}
			}
	return right;
}

static void
test_shapes(void)
{
	struct test_case test = begin_case("every batch size and every room", GEONN_METRIC_SPHERE,
									   400, PLACES_HEAPS, 130, false);

	finish_case(&test, 2000, every_shape_right);
}

/*
 * More references than a small index has levels for, and more observations
 * than one batch.
 */
static bool
many_right(struct test_case *test)
{
	static const struct shape shape = {.rows = 4096,.room = 65536,.slots = 4};
	struct client_question questions[] = {
		{.k = 1,.max_distance = INFINITY},
		{.k = 10,.max_distance = INFINITY},
		{.k = 100,.max_distance = draw_distance(test, 100)}
	};
	bool		right = true;

	for (int setup = 0; setup < compare_setups(); setup++)
		for (size_t i = 0; i < 3; i++)
			for (int algorithm = GEONN_ALGORITHM_INDEX; algorithm <= GEONN_ALGORITHM_BRUTE; algorithm++)
			{
				questions[i].algorithm = (enum geonn_algorithm) algorithm;
				right = ask_right(test, setup, &questions[i], &shape) && right;
			}
	return right;
}

static void
test_many(void)
{
	static const enum places places[] = {PLACES_UNIFORM, PLACES_CITIES, PLACES_TRACK};

	for (size_t i = 0; i < (extent == EXTENT_ALL ? sizeof(places) / sizeof(places[0]) : 1); i++)
	{
		char		name[80];
		struct test_case test;

		snprintf(name, sizeof(name), "many references: %s", places_names[places[i]]);
		test = begin_case(name, GEONN_METRIC_SPHERE, gpu ? 1500000 : 120000, places[i],
						  gpu ? 100 : 150, false);
		test.repeated = gpu ? 100 : 15;
		finish_case(&test, 2000, many_right);
	}
}

/*
 * As many observations as fill one batch of 2^20, against brute force in small
 * ones.
 */
static bool
large_batch_right(struct test_case *test)
{
	static const struct shape one = {.rows = 1 << 20,.room = 1 << 20,.slots = 1};
	static const struct shape several = {.rows = 1 << 16,.room = 1 << 16,.slots = 4};
	struct client_question all = {.k = 1,.max_distance = INFINITY};
	struct client_question near = {.k = 1,.max_distance = draw_distance(test, 2)};
	bool		right;

	points_free(&test->observations);
	test->observations = points_about(&test->references, one.rows, false);
	right = same_as_brute(test, all, &one, &several);
	return same_as_brute(test, near, &one, &several) && right;
}

static void
test_large_batches(void)
{
	static const enum places places[] = {PLACES_UNIFORM, PLACES_CITIES, PLACES_TRACK};

	for (size_t i = 0; i < (extent == EXTENT_ALL ? sizeof(places) / sizeof(places[0]) : 1); i++)
	{
		char		name[80];
		struct test_case test;

		snprintf(name, sizeof(name), "a batch of 2^20 observations, by index as by brute force: %s",
				 places_names[places[i]]);
		test = begin_case(name, GEONN_METRIC_SPHERE, 200 + (size_t) random_below(400), places[i],
						  50, false);
		finish_case(&test, 10, large_batch_right);
	}
}

static void
test_random_sizes(void)
{
	for (int i = 0; i < 6; i++)
	{
		size_t		references = (size_t) fabs(random_magnitude(1, 4000));
		size_t		observations = (size_t) fabs(random_magnitude(1, 500));
		enum places places = (enum places) random_below(PLACES_KINDS);
		char		name[96];
		struct test_case test;

		snprintf(name, sizeof(name), "by chance: %zu references, %zu observations, %s",
				 references, observations, places_names[places]);
		test = begin_case(name, GEONN_METRIC_SPHERE, references, places, observations, false);
		finish_case(&test, 4000, questions_right);
	}
}

/*
 * A point that is none on Earth ends the session, whatever is asked.
 */
static bool
refuses_bad_places(struct test_case *test)
{
	static const struct shape shape = {.rows = 100,.room = 100,.slots = 2};
	static const double bad[] = {NAN, INFINITY, -90.5, 361};
	struct client_question questions[] = {
		{.k = 1,.max_distance = INFINITY},
		{.k = 20,.max_distance = 1},
		{.k = 20,.max_distance = INFINITY},
		{.k = 0,.max_distance = 0}
	};
	bool		right = true;

	for (int setup = 0; setup < compare_setups(); setup++)
		for (size_t i = 0; i < 4; i++)
			for (int algorithm = GEONN_ALGORITHM_INDEX; algorithm <= GEONN_ALGORITHM_BRUTE; algorithm++)
			{
				size_t		place = (size_t) random_below((int) test->observations.count);
				double	   *coordinate = random_below(2) ? &test->observations.latitude[place] :
					&test->observations.longitude[place];
				double		good = *coordinate;

				questions[i].algorithm = (enum geonn_algorithm) algorithm;
				*coordinate = random_below(2) ? bad[random_below(2)] :
					coordinate == &test->observations.latitude[place] ? bad[2] : bad[3];
				right = ask_refused(test, setup, &questions[i], &shape) && right;
				*coordinate = good;
			}
	return right;
}

static void
test_bad_places(void)
{
	struct test_case test = begin_case("observations that are no place on Earth", GEONN_METRIC_SPHERE,
									   500, PLACES_UNIFORM, 300, false);

	finish_case(&test, 500, refuses_bad_places);
}

int
main(int argument_count, char **words)
{
	if (argument_count < 2)
	{
		fprintf(stderr, "usage: %s ENGINE [cpu|cuda [SEED [short|sanitized]]]\n", words[0]);
		return EXIT_FAILURE;
	}
	gpu = argument_count > 2 && strcmp(words[2], "cuda") == 0;
	if (argument_count > 3)
		seed = strtoull(words[3], NULL, 10);
	if (argument_count > 4 && strcmp(words[4], "short") == 0)
		extent = EXTENT_SHORT;
	if (argument_count > 4 && strcmp(words[4], "sanitized") == 0)
		extent = EXTENT_SANITIZED;
	random_state = seed;
	printf("# seed %llu\n", (unsigned long long) seed);

	compare_start(words[1], gpu, seed, extent);
	test_places();
	test_far_observations();
	test_sizes();
	test_every_k();
	test_columns(GEONN_METRIC_SPHERE);
	test_parties(GEONN_METRIC_SPHERE);
	conditions_test(begin_case, seed, GEONN_METRIC_SPHERE);
	test_exclude_self();
	test_order_by_tag();
	counts_test(begin_case);
	test_random_sizes();
	test_spheroid();
	test_columns(GEONN_METRIC_SPHEROID);
	test_parties(GEONN_METRIC_SPHEROID);
	conditions_test(begin_case, seed, GEONN_METRIC_SPHEROID);
	test_spheroid_differs();
	test_spheroid_always_differs();
	test_bad_places();
	test_shapes();
	side_by_side_test(begin_case, seed, extent == EXTENT_SANITIZED ? 200 : 4096);
	if (extent != EXTENT_SANITIZED)
	{
		conditions_test_slabs(begin_case, seed);
		test_many();
		test_large_batches();
		side_by_side_test_clients(begin_case, seed);
	}
	return compare_finish() ? EXIT_SUCCESS : EXIT_FAILURE;
}
