/*
 * arcs_test.c
 *		Whether the CPU finds the nearest shapes: lines, polygons and points, by index and by brute force.
 *
 * Usage: arcs_test [seed [sets]].  Each set has random shapes of one or more parts, some of them twice, which are
 * sent as arcs, and observations near them.  The distance of every shape to every observation, as
 * geonn_distance(lat, lon, shape) puts it together of arc.c and ring.c, says what is right, byte for
 * byte; of the nearest shape the oracle in __float128 says it, too.  The oracle also says how far a pair's place is from
 * the observation and from the shape, and the lengths of arcs say what its fraction is.
 *
 * rooms: engine/cpu/arcs engine/shapes
 */
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/thread_pool.h"
#include "engine/cpu/base/path.h"
#include "../lib/verdict.h"
#include "arcs_sets.h"
#include "device_work.h"

#define OBSERVATIONS 24
#define PAIRS_MAX (OBSERVATIONS * PARTS_MAX)
#define LIMIT_NANOMETRES 10.0
#define PLACE_NANOMETRES 20.0

static struct device machine = {.operations = &cpu_device_operations};
static atomic_bool cancelled;

/* ---- observations and their answers ---- */

static struct
{
	double		latitude[OBSERVATIONS];
	double		longitude[OBSERVATIONS];
	int32_t		group[OBSERVATIONS];
	int64_t		excluded_first[OBSERVATIONS];
	int64_t		excluded_last[OBSERVATIONS];
	struct conditions of[OBSERVATIONS];
	struct condition_columns conditions;	/* the same */
	double		distance[OBSERVATIONS][PARTS_MAX];	/* to each shape */
}			observed;

struct answers
{
	uint32_t	count[OBSERVATIONS];
	uint32_t	pairs;
	int64_t		tag[PAIRS_MAX];
	double		distance[PAIRS_MAX];

	/* of those of a device, if the question has places */
	double		latitude[PAIRS_MAX];
	double		longitude[PAIRS_MAX];
	double		fraction[PAIRS_MAX];

	int			shape[PAIRS_MAX];	/* of plain ones */
	int			observation[PAIRS_MAX];
};

static void
draw_observations(void)
{
	long		undecided = 0;

	for (int i = 0; i < OBSERVATIONS; i++)
	{
		const struct shape *shape = &set.part[random_below(set.parts)];
		struct point point = random_below(8) ? make_point(shape) : random_place();

		observed.latitude[i] = point.latitude;
		observed.longitude[i] = point.longitude;
		observed.group[i] = random_below(3);
		observed.excluded_first[i] = random_below(2 * set.parts);
		observed.excluded_last[i] = observed.excluded_first[i] + random_below(4) - 1;
		observed.of[i] = draw_conditions();
		put_conditions(&observed.conditions, (uint32_t) i, &observed.of[i]);
		for (int part = 0; part < set.parts; part++)
		{
			double		distance = distance_to(&set.part[part], point, &undecided);
			double	   *least = &observed.distance[i][set.shape[part]];

			if (part == 0 || set.shape[part] != set.shape[part - 1] || distance < *least)
				*least = distance;
		}
	}
}

/* Whether a shape may be among the answers for an observation. */
static bool
is_candidate(int shape, int observation, uint32_t columns)
{
	return conditions_hold(&set.conditions[shape], &observed.of[observation],
						   observed.distance[observation][shape], columns) &&
		(!(columns & GEONN_COLUMN_GROUP) || set.group[shape] == observed.group[observation]) &&
		(!(columns & GEONN_COLUMN_EXCLUDED) || set.tag[shape] < observed.excluded_first[observation] ||
		 set.tag[shape] > observed.excluded_last[observation]);
}

static void
answer_plainly(const struct question *question, uint32_t columns, struct answers *answers)
{
	answers->pairs = 0;
	for (int i = 0; i < OBSERVATIONS; i++)
	{
		struct shape_pair pairs[PARTS_MAX];
		uint32_t	found = 0;
		uint32_t	count;

		for (int shape = 0; shape < set.shapes; shape++)
			if (observed.distance[i][shape] <= question->max_distance &&
				is_candidate(shape, i, columns))
				pairs[found++] = (struct shape_pair) {observed.distance[i][shape], set.tag[shape], shape};
		qsort(pairs, found, sizeof(*pairs), compare_shape_pairs);
		count = question->k > 0 && question->k < found ? question->k : found;
		while (question->ties && count > 0 && count < found && pairs[count].distance == pairs[count - 1].distance)
			count++;
		answers->count[i] = count;
		for (uint32_t j = 0; j < count; j++)
		{
			answers->shape[answers->pairs] = pairs[j].shape;
			answers->observation[answers->pairs] = i;
			answers->tag[answers->pairs] = pairs[j].tag;
			answers->distance[answers->pairs++] = pairs[j].distance;
		}
	}
}

/* Count the shapes within the question's radii, with the sums and extremes of their weights if they have these. */
static void
count_plainly(const struct question *question, uint32_t columns, struct answers *answers)
{
	answers->pairs = 0;
	for (int i = 0; i < OBSERVATIONS; i++)
	{
		answers->count[i] = 0;
		for (uint32_t radius = 0; radius < question->radii; radius++)
		{
			double		values[3] = {0.0, INFINITY, -INFINITY};
			int64_t		shapes = 0;

			for (int shape = 0; shape < set.shapes; shape++)
			{
				if (observed.distance[i][shape] > question->radius[radius] || !is_candidate(shape, i, columns))
					continue;
				shapes++;
				values[0] += isnan(set.weight[shape]) ? 0.0 : set.weight[shape];
				values[1] = fmin(values[1], set.weight[shape]);
				values[2] = fmax(values[2], set.weight[shape]);
			}
			for (int value = 0; value < (question->extremes ? 3 : 1); value++, answers->pairs++, answers->count[i]++)
			{
				answers->tag[answers->pairs] = shapes;
				answers->distance[answers->pairs] = columns & GEONN_COLUMN_WEIGHT ? values[value] : 0.0;
			}
		}
	}
}

/*
 * Answer the observations as the scheduler and a session do, batch by batch where the room is small.
 */
static bool
answer_by_device(struct dataset *dataset, const struct question *question, uint32_t room, struct answers *answers)
{
	static int64_t tag[PAIRS_MAX];
	static double distance[PAIRS_MAX];
	static double latitude[PAIRS_MAX];
	static double longitude[PAIRS_MAX];
	static double fraction[PAIRS_MAX];
	static uint32_t count[OBSERVATIONS];
	struct search search = {
		.dataset = dataset,
		.question = *question,
		.algorithm = question->algorithm,
		.rows = OBSERVATIONS,
		.cancelled = &cancelled,
		.columns = {
			.rows = OBSERVATIONS,
			.room = room,
			.latitude = observed.latitude,
			.longitude = observed.longitude,
			.tag = tag,
			.distance = distance,
			.end_latitude = latitude,
			.end_longitude = longitude,
			.fraction = fraction,
			.count = count,
			.group = dataset->group != NULL ? observed.group : NULL,
			.excluded_first = dataset->columns & GEONN_COLUMN_EXCLUDED ? observed.excluded_first : NULL,
			.excluded_last = dataset->columns & GEONN_COLUMN_EXCLUDED ? observed.excluded_last : NULL
		}
	};

	set_conditions(&search.columns, dataset->columns, &observed.conditions, 0);
	*answers = (struct answers) {.pairs = 0};
	while (search.first < search.rows)
	{
		search.answered = search.pairs = 0;
		search.one_each = false;
		if (!device_work(&machine, &search, &search.failure) || search.failed ||
			answers->pairs + search.pairs > PAIRS_MAX || (search.answered == 0 && search.pairs == 0))
			return false;
		for (uint32_t i = 0; i < search.answered; i++)
			answers->count[search.first + i] += search.one_each ? 1 : count[search.first + i];
		if (search.answered == 0)
			answers->count[search.first] += search.pairs;
		memcpy(answers->tag + answers->pairs, tag, search.pairs * sizeof(*tag));
		memcpy(answers->distance + answers->pairs, distance, search.pairs * sizeof(*distance));
		memcpy(answers->latitude + answers->pairs, latitude, search.pairs * sizeof(*latitude));
		memcpy(answers->longitude + answers->pairs, longitude, search.pairs * sizeof(*longitude));
		memcpy(answers->fraction + answers->pairs, fraction, search.pairs * sizeof(*fraction));
		answers->pairs += search.pairs;
		search.first += search.answered;
	}
	return true;
}

static bool
same_answers(const struct answers *a, const struct answers *b)
{
	return a->pairs == b->pairs && memcmp(a->count, b->count, sizeof(a->count)) == 0 &&
		memcmp(a->tag, b->tag, a->pairs * sizeof(*a->tag)) == 0 &&
		memcmp(a->distance, b->distance, a->pairs * sizeof(*a->distance)) == 0;
}

/* ---- properties ---- */

/* how far the distance to an observation's nearest shape is from the oracle's least distance, in nanometres */
static double
oracle_error(int observation)
{
	struct point point = {observed.latitude[observation], observed.longitude[observation]};
	double		nearest = INFINITY;
	__float128	truth = 1e9;

	for (int shape = 0; shape < set.shapes; shape++)
		nearest = fmin(nearest, observed.distance[observation][shape]);
	for (int part = 0; part < set.parts; part++)
		truth = fminq(truth, oracle_shape_distance(&set.part[part], point));
	return (double) fabsq(nearest - truth) * 1e9;
}

static bool
same_places(const struct answers *a, const struct answers *b)
{
	return memcmp(a->latitude, b->latitude, a->pairs * sizeof(*a->latitude)) == 0 &&
		memcmp(a->longitude, b->longitude, a->pairs * sizeof(*a->longitude)) == 0 &&
		memcmp(a->fraction, b->fraction, a->pairs * sizeof(*a->fraction)) == 0;
}

/* the oracle's distance from a place to a point, in nanometres more or less than a distance in metres */
static double
distance_error(struct point place, struct point point, double distance)
{
	struct shape shape = {.count = 1};

	shape.chains[0] = (struct chain) {2, {point, point}};
	return (double) fabsq(oracle_shape_distance(&shape, place) - distance) * 1e9;
}

static double
length_of(struct point a, struct point b)
{
	return geonn_distance_of(geonn_unit_vector(a.latitude, a.longitude), geonn_unit_vector(b.latitude, b.longitude));
}

static bool
is_point(const struct shape *part)
{
	const struct point *ends = part->chains[0].vertices;

	return !part->is_polygon && part->count == 1 && part->chains[0].count == 2 &&
		ends[0].latitude == ends[1].latitude && ends[0].longitude == ends[1].longitude;
}

/* Whether a place is this part of the way along the lines of a shape; of NAN, whether it is on a part that is no line, or on
 * lines without length. */
static bool
is_at_fraction(int shape, struct point place, double fraction)
{
	long double total = 0.0L;
	long double before = 0.0L;
	bool		is_there = false;

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < set.parts; i++)
		{
			const struct shape *part = &set.part[i];
			bool		is_line = !part->is_polygon && !is_point(part);

			if (set.shape[i] != shape)
				continue;
			if (isnan(fraction) && (!is_line || (round == 1 && total == 0.0L)))
				is_there = is_there || oracle_shape_distance(part, place) * 1e9 <= PLACE_NANOMETRES;
			for (int j = 1; is_line && j < part->chains[0].count; j++)
			{
				struct point a = part->chains[0].vertices[j - 1];
				struct point b = part->chains[0].vertices[j];
				double		length = length_of(a, b);
				double		along = length_of(a, place);

				if (round == 0)
					total += length;
				else if (along + length_of(place, b) - length < 6e-8 &&
						 fabsl(before + along - fraction * total) < 1e-7L + 1e-15L * total)
					is_there = true;
				before += round * length;
			}
		}
	return is_there && (isnan(fraction) || (total > 0.0L && fraction >= 0.0 && fraction <= 1.0));
}

/* what the places of all sets have shown */
static struct
{
	long		differing;		/* questions whose places depend on how they are asked */
	long		misplaced;		/* fractions that are not those of the place */
	long		on_lines;
	long		checked;
	double		worst;			/* nanometres */
}			places;

/*
 * Ask for the places of pairs by index and by brute force, and look at some of them.
 */
static void
check_places(struct dataset *dataset, struct question question, const struct answers *right)
{
	static struct answers found;
	static struct answers again;

	question.places = true;
	question.algorithm = GEONN_ALGORITHM_INDEX;
	if (!answer_by_device(dataset, &question, PAIRS_MAX, &found))
		found.pairs = 0;
	question.algorithm = GEONN_ALGORITHM_BRUTE;
	if (!answer_by_device(dataset, &question, 1 + (uint32_t) random_below(20), &again) ||
		!same_answers(right, &found) || !same_answers(&found, &again) || !same_places(&found, &again))
	{
		places.differing++;
		return;
	}
	for (uint32_t i = 0; i < found.pairs; i++)
		places.misplaced += !geonn_coordinates_valid(found.latitude[i], found.longitude[i]) ||
			found.fraction[i] < 0.0 || found.fraction[i] > 1.0;
	for (int i = 0; i < 4 && found.pairs > 0; i++)
	{
		uint32_t	pair = (uint32_t) random_below((int) found.pairs);
		int			observation = right->observation[pair];
		struct point place = {found.latitude[pair], found.longitude[pair]};
		struct point point = {observed.latitude[observation], observed.longitude[observation]};
		__float128	off = 1e9;

		for (int part = 0; part < set.parts; part++)
			if (set.shape[part] == right->shape[pair])
				off = fminq(off, oracle_shape_distance(&set.part[part], place));
		places.worst = fmax(places.worst, fmax((double) off * 1e9, distance_error(place, point, found.distance[pair])));
		places.misplaced += !is_at_fraction(right->shape[pair], place, found.fraction[pair]);
		places.on_lines += !isnan(found.fraction[pair]);
		places.checked++;
	}
}

static struct question
draw_question(int number)
{
	static const uint32_t ks[] = {1, 2, 10, 0, 1, 1000};
	double		distance = observed.distance[random_below(OBSERVATIONS)][random_below(set.shapes)];

	return (struct question) {
		.k = ks[number % 6],
		.ties = number % 6 < 3 && random_below(2),
		.algorithm = random_below(3) ? GEONN_ALGORITHM_INDEX : GEONN_ALGORITHM_BRUTE,
		.max_distance = random_below(2) ? INFINITY : distance
	};
}

static struct question
draw_count(uint32_t columns)
{
	struct question question = {.algorithm = GEONN_ALGORITHM_INDEX,.radii = 1 + (uint32_t) random_below(4)};

	for (uint32_t i = 0; i < question.radii; i++)
	{
		double		distance = observed.distance[random_below(OBSERVATIONS)][random_below(set.shapes)];
		double		least = i == 0 ? 0.0 : question.radius[i - 1];

		question.radius[i] = random_below(8) == 0 || distance <= least ? least * 1.5 + random_below(2) : distance;
		if (i > 0 && question.radius[i] <= least)
			question.radius[i] = least + 1.0;
	}
	question.max_distance = question.radius[question.radii - 1];
	question.extremes = columns & GEONN_COLUMN_WEIGHT && random_below(2);
	return question;
}

/* the columns of a set: often none, one or all */
static uint32_t
draw_columns(void)
{
	uint32_t	columns = random_below(3) ? 0 : (uint32_t) random_below(4);
	uint32_t	of_windows = (1u << random_below(GEONN_WINDOWS_MAX + 1)) - 1;
	uint32_t	of_parties = (1u << random_below(GEONN_PARTIES_MAX + 1)) - 1;

	columns |= random_below(2) ? GEONN_COLUMN_WEIGHT : 0;
	columns |= random_below(3) == 0 ? GEONN_COLUMN_RADIUS : 0;
	columns |= random_below(3) == 0 ? of_windows * GEONN_COLUMN_WINDOW : 0;
	columns |= random_below(3) == 0 ? of_parties * GEONN_COLUMN_PARTY : 0;
	return columns;
}

static void
test_sets(long sets)
{
	static const char *const paths[] = {"portable", "avx2", "avx512"};
	static struct answers right;
	static struct answers found;
	long		wrong = 0;
	long		miscounted = 0;
	long		refused = 0;
	double		worst = 0.0;
	uint64_t	pairs = 0;
	uint64_t	inside = 0;
	struct failure failure;

	for (long number = 0; number < sets; number++)
	{
		uint32_t	columns = draw_columns();
		struct dataset *dataset;
		struct question count;

		if (!cpu_path_choose(paths[number % 3], &failure))
			cpu_path_choose(NULL, &failure);
		pairs_by_tag = random_below(2);
		draw_set((int) (number % SHAPE_KINDS));
		draw_observations();
		make_arcs();
		dataset = make_dataset(columns, pairs_by_tag, &failure);
		if (dataset == NULL)
		{
			printf("# set %ld: %s\n", number, failure.message);
			refused++;
			continue;
		}
		for (int i = 0; i < 6; i++)
		{
			struct question question = draw_question(i);
			uint32_t	room = random_below(2) ? PAIRS_MAX : 1 + (uint32_t) random_below(20);

			answer_plainly(&question, columns, &right);
			if (answer_by_device(dataset, &question, room, &found) && same_answers(&right, &found))
			{
				pairs += found.pairs;
				for (uint32_t j = 0; j < found.pairs; j++)
					inside += found.distance[j] == 0.0;
				continue;
			}
			wrong++;
			printf("# set %ld, k = %u, ties %d, algorithm %d, max_distance %.17g, columns %u, room %u, by tag %d: wrong\n",
				   number, question.k, question.ties, question.algorithm, question.max_distance, columns, room, pairs_by_tag);
		}
		count = draw_count(columns);
		count_plainly(&count, columns, &right);
		if (!answer_by_device(dataset, &count, random_below(2) ? PAIRS_MAX : 12 + (uint32_t) random_below(50), &found) ||
			!same_answers(&right, &found))
		{
			miscounted++;
			printf("# set %ld, %u radii, extremes %d, columns %u: wrong\n", number, count.radii, count.extremes, columns);
		}
		worst = fmax(worst, oracle_error(random_below(OBSERVATIONS)));
		{
			struct question question = draw_question(random_below(6));

			answer_plainly(&question, columns, &right);
			check_places(dataset, question, &right);
		}
		device_forget(&machine, dataset);
	}
	report_failures("datasets of random shapes are taken", refused);
	report_failures("answers are those of every distance, in their order", wrong);
	report_failures("counts are those of every distance, with the sums and extremes of weights", miscounted);
	report_measure("the nearest distances are within 10 nm", worst <= LIMIT_NANOMETRES, "worst error", worst, "nm");
	report_failures("places are the same by index and by brute force, however many pairs a batch has room for",
					places.differing);
	report_measure("places are within 20 nm of their shapes, and as far from the observations as the distances say",
				   places.worst <= PLACE_NANOMETRES, "worst error", places.worst, "nm");
	report_failures("their fractions are those of the lengths of lines before them", places.misplaced);
	report("many places are on lines, and many are not", places.on_lines > places.checked / 20 &&
		   places.checked - places.on_lines > places.checked / 20);
	report("many pairs are found, and many of them at distance 0", pairs > 1000 && inside > pairs / 50);
}

/* A ring of many vertices, or a part of one that goes back along itself */
static void
test_large_polygons(long rounds)
{
	static struct geonn_vector ring[ARCS_MAX + 1];
	static struct point corner[ARCS_MAX];
	static struct answers found;
	struct question question = {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = 0.0};
	long		wrong = 0;
	uint32_t	inside = 0;

	for (long round = 0; round < rounds; round++)
	{
		struct point centre = random_place();
		int			corners = 600 + random_below(ARCS_MAX / 2);
		double		radius = random_radius(1e-4, 1.5);
		bool		pole;
		struct failure failure;
		struct dataset *dataset;
		int			turns = 1 + random_below(3);

		for (int i = 0; i < corners; i++)
			corner[i] = place_from(centre, radius * random_between(0.3, 1.0), 2.0 * M_PI * turns * i / corners);
		arcs.count = 0;
		set.shape[0] = 0;
		for (int i = 0; i < corners; i++)
		{
			add_arc(&corner[i], &corner[(i + 1) % corners], 0, 1);
			ring[i] = geonn_unit_vector(corner[i].latitude, corner[i].longitude);
		}
		ring[corners] = ring[0];
		if (!geonn_ring_holds_pole(ring, (size_t) corners + 1, NULL, &pole))
			continue;
		for (int i = 0; i < corners; i++)
			arcs.polygon[i] = pole ? -1 : 1;
		for (int i = 0; i < OBSERVATIONS; i++)
		{
			struct point point = i < 4 ? corner[random_below(corners)] : random_below(8) == 0 ? random_place() :
				place_from(centre, radius * random_between(0.0, 1.1), random_between(0.0, 6.3));

			observed.latitude[i] = i == 4 ? 90.0 : i == 5 ? -90.0 : point.latitude;
			observed.longitude[i] = point.longitude;
		}
		dataset = make_dataset(0, false, &failure);
		if (dataset == NULL || !answer_by_device(dataset, &question, PAIRS_MAX, &found))
		{
			wrong++;
			continue;
		}
		for (int i = 0; i < OBSERVATIONS; i++)
		{
			struct geonn_vector point = geonn_unit_vector(observed.latitude[i], observed.longitude[i]);
			bool		is_inside = geonn_ring_side(ring, (size_t) corners + 1, pole, point) != GEONN_OUTSIDE;

			if (!is_inside)
				is_inside = geonn_chain_distance(point, ring, (size_t) corners + 1) == 0.0;
			wrong += (found.count[i] == 1) != is_inside;
			inside += found.count[i];
		}
		device_forget(&machine, dataset);
	}
	report_failures("large polygons have the points that all of their arcs say", wrong);
	report("many points are inside", inside > rounds * OBSERVATIONS / 10);
}

/* A build ends early once its search is cancelled, and the next one builds the index. */
static void
test_cancelled(void)
{
	static struct answers found;
	struct question question = {.k = 1,.algorithm = GEONN_ALGORITHM_INDEX,.max_distance = INFINITY};
	struct failure failure;
	struct dataset *dataset;

	draw_set(0);
	make_arcs();
	dataset = make_dataset(0, false, &failure);
	memset(observed.latitude, 0, sizeof(observed.latitude));
	memset(observed.longitude, 0, sizeof(observed.longitude));
	atomic_store(&cancelled, true);
	report("a cancelled search builds no index", !answer_by_device(dataset, &question, PAIRS_MAX, &found) &&
		   atomic_load(&dataset->built_bytes) == 0);
	atomic_store(&cancelled, false);
	report("and the next one does", answer_by_device(dataset, &question, PAIRS_MAX, &found) &&
		   found.pairs == OBSERVATIONS && atomic_load(&dataset->built_bytes) > 0);
	device_forget(&machine, dataset);
}

int
main(int argc, char **argv)
{
	struct failure failure;
	long		sets = argc > 2 ? atol(argv[2]) : 3000;

	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : random_state;
	printf("# seed %llu, %ld sets\n", (unsigned long long) random_state, sets);
	cpu_path_choose(NULL, &failure);
	thread_pool_set_threads(2);
	if (!machine.operations->probe(&machine, &failure))
		return EXIT_FAILURE;
	test_cancelled();
	test_sets(sets);
	test_large_polygons(sets / 30 + 1);
	machine.operations->close(&machine);
	return summed_up();
}
