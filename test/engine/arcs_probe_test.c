/*
 * arcs_probe_test.c
 *		Whether an engine finds the nearest shapes of shapes: points, lines, polygons and several of these on both sides.
 *
 * Usage: arcs_probe_test ENGINE [cpu|cuda [SEED [SETS|sanitized]]].  Each set has random shapes on both sides, which meet,
 * touch, lie in each other, or are far apart.  The distance of each two, put together of geonn_arcs_distance() and
 * ring.c, says what is right, byte for byte; of some the oracle in __float128 says it, too.  Batches have room for few rows
 * or pairs, so that searches go on and resume; some of the engines have turns that are shorter than a search for one shape.
 *
 * rooms: engine/cpu/arcs engine/server engine/shapes
 */
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../lib/engine_client.h"
#include "../lib/verdict.h"
#include "arcs_sets.h"

#define SIDES 2
#define OBSERVED 0				/* sides */
#define REFERRED 1
#define PAIRS_MAX (PARTS_MAX * PARTS_MAX)
#define LIMIT_NANOMETRES 10.0
#define PLACE_NANOMETRES 10.0

/* the oracle looks at pairs with at most so many pairs of vertices */
#define ORACLE_PAIRS 400

/* the columns that observations have for themselves */
static struct
{
	int64_t		excluded_first[ARCS_MAX];
	int64_t		excluded_last[ARCS_MAX];
}			excluded;

static __typeof__(set) sets[SIDES];
static __typeof__(arcs) rows[SIDES];

/* of each observation and each reference */
static double distances[PARTS_MAX][PARTS_MAX];
static int64_t excluded_of[PARTS_MAX][2];

struct answers
{
	uint32_t	count[PARTS_MAX];
	uint32_t	pairs;
	int64_t		tag[PAIRS_MAX * 4];
	double		distance[PAIRS_MAX * 4];
};

/* ---- shapes ---- */

/* Move all vertices of a part by up to some radians, those that are the same by the same. */
static void
move_vertices(struct shape *part, double radians)
{
	uint64_t	seed = random_bits();

	for (int i = 0; i < part->count; i++)
	{
		random_state = seed;
		for (int j = 0; j < part->chains[i].count; j++)
			part->chains[i].vertices[j] = place_from(part->chains[i].vertices[j], radians * random_between(0.0, 1.0),
													 random_between(0.0, 6.3));
		if (part->is_polygon)
			part->chains[i].vertices[part->chains[i].count - 1] = part->chains[i].vertices[0];
	}
}

static bool
is_antipodal(struct point a, struct point b)
{
	return geonn_arc_is_antipodal(geonn_unit_vector(a.latitude, a.longitude), geonn_unit_vector(b.latitude, b.longitude));
}

/* Let a part have to do with another one: be the same, or near it, begin at a vertex, lie in it, cross it, touch it. */
static void
make_related(struct shape *part, const struct shape *other)
{
	int			kind = random_below(7);

	if (kind < 2)
	{
		*part = *other;
		if (kind == 1)
			move_vertices(part, random_radius(1e-17, 1e-2));
		return;
	}
	*part = (struct shape) {.count = 1,.centre = other->centre};
	if (kind == 2 && other->is_polygon)
	{
		part->is_polygon = true;
		make_star(&part->chains[0], random_below(2) ? other->centre : make_point(other), random_radius(1e-9, 1e-1));
		part->centre = part->chains[0].vertices[0];
		return;
	}
	for (int vertices = kind == 3 ? 1 : 2 + random_below(4); part->chains[0].count < vertices;)
	{
		struct point next = make_point(other);
		const struct chain *chain = &part->chains[0];

		if (chain->count == 0 || !is_antipodal(chain->vertices[chain->count - 1], next))
			add_vertex(&part->chains[0], next);
	}
	if (kind == 3)
		add_vertex(&part->chains[0], part->chains[0].vertices[0]);
}

/* Whether all rings of a polygon have two sides, and no arc has antipodal ends. */
static bool
is_sound(const struct shape *part)
{
	bool		decided = true;

	for (int i = 0; i < part->count; i++)
		for (int j = 1; j < part->chains[i].count; j++)
			if (is_antipodal(part->chains[i].vertices[j - 1], part->chains[i].vertices[j]))
				return false;
	if (part->is_polygon)
		pole_is_inside(part, &decided);
	return decided;
}

/* Draw the shapes of both sides, and make their arcs. */
static void
draw_sides(int number)
{
	for (int side = 0; side < SIDES; side++)
	{
		int			most = random_below(6) ? 10 : 40;

		draw_set(number);
		set.parts = set.parts < most ? set.parts : most;
		set.shapes = set.shape[set.parts - 1] + 1;
		for (int part = 0; side == 1 && part < set.parts; part++)
		{
			struct shape related;

			if (random_below(3) == 0)
				continue;
			make_related(&related, &sets[0].part[random_below(sets[0].parts)]);
			if (is_sound(&related))
				set.part[part] = related;
		}
		make_arcs();
		sets[side] = set;
		rows[side] = arcs;
	}
	for (int i = 0; i < sets[OBSERVED].shapes; i++)
	{
		excluded_of[i][0] = random_below(2 * sets[REFERRED].parts);
		excluded_of[i][1] = excluded_of[i][0] + random_below(4) - 1;
	}
	for (uint32_t i = 0; i < rows[OBSERVED].count; i++)
	{
		excluded.excluded_first[i] = excluded_of[rows[OBSERVED].shape[i]][0];
		excluded.excluded_last[i] = excluded_of[rows[OBSERVED].shape[i]][1];
	}
}

/* a part's vectors */
struct part_vectors
{
	size_t		count[MOST_RINGS];
	bool		pole[MOST_RINGS];
	struct geonn_vector vector[MOST_RINGS][2 * MOST_VERTICES];
};

static struct part_vectors vectors[SIDES][PARTS_MAX];

static void
make_vectors(void)
{
	for (int side = 0; side < SIDES; side++)
		for (int part = 0; part < sets[side].parts; part++)
			for (int i = 0; i < sets[side].part[part].count; i++)
			{
				struct part_vectors *of = &vectors[side][part];

				of->count[i] = vectors_of(&sets[side].part[part].chains[i], of->vector[i]);
				geonn_ring_holds_pole(of->vector[i], of->count[i], NULL, &of->pole[i]);
			}
}

/* Whether some ring or line of a part begins in the polygon that another part is, or on its border. */
static bool
has_inside(const struct shape *polygon, const struct part_vectors *of, const struct shape *part,
		   const struct part_vectors *others)
{
	for (int i = 0; polygon->is_polygon && i < part->count; i++)
	{
		bool		is_inside = false;

		for (int ring = 0; ring < polygon->count; ring++)
		{
			enum geonn_side side = geonn_ring_side(of->vector[ring], of->count[ring], of->pole[ring], others->vector[i][0]);

			if (side == GEONN_ON_BORDER)
				return true;
			is_inside ^= side == GEONN_INSIDE;
		}
		if (is_inside)
			return true;
	}
	return false;
}

static double
part_distance(int a, int b)
{
	const struct shape *first = &sets[0].part[a];
	const struct shape *second = &sets[1].part[b];
	const struct part_vectors *u = &vectors[0][a];
	const struct part_vectors *v = &vectors[1][b];
	double		distance = INFINITY;

	if (has_inside(first, u, second, v) || has_inside(second, v, first, u))
		return 0.0;
	for (int i = 0; i < first->count; i++)
		for (size_t j = 1; j < u->count[i]; j++)
			for (int k = 0; k < second->count; k++)
				for (size_t l = 1; l < v->count[k]; l++)
					distance = fmin(distance, geonn_arcs_distance(u->vector[i][j - 1], u->vector[i][j],
																  v->vector[k][l - 1], v->vector[k][l]));
	return distance;
}

static void
find_distances(void)
{
	make_vectors();
	for (int i = 0; i < PARTS_MAX; i++)
		for (int j = 0; j < PARTS_MAX; j++)
			distances[i][j] = INFINITY;
	for (int a = 0; a < sets[0].parts; a++)
		for (int b = 0; b < sets[1].parts; b++)
		{
			double	   *least = &distances[sets[0].shape[a]][sets[1].shape[b]];

			*least = fmin(*least, part_distance(a, b));
		}
}

/* ---- answers ---- */

static bool
is_candidate(int observation, int shape, uint32_t columns)
{
	int64_t		tag = sets[REFERRED].tag[shape];

	return conditions_hold(&sets[REFERRED].conditions[shape], &sets[OBSERVED].conditions[observation],
						   distances[observation][shape], columns) &&
		(!(columns & GEONN_COLUMN_GROUP) || sets[REFERRED].group[shape] == sets[OBSERVED].group[observation]) &&
		(!(columns & GEONN_COLUMN_EXCLUDED) || tag < excluded_of[observation][0] || tag > excluded_of[observation][1]);
}

static void
add_pair(struct answers *answers, int observation, int64_t tag, double distance)
{
	answers->count[observation]++;
	answers->tag[answers->pairs] = tag;
	answers->distance[answers->pairs++] = distance;
}

static void
answer_plainly(const struct client_question *question, uint32_t columns, struct answers *answers)
{
	*answers = (struct answers) {.pairs = 0};
	for (int i = 0; i < sets[OBSERVED].shapes; i++)
	{
		struct shape_pair pairs[PARTS_MAX];
		uint32_t	found = 0;
		uint32_t	count;

		for (int shape = 0; shape < sets[REFERRED].shapes; shape++)
			if (distances[i][shape] <= question->max_distance && is_candidate(i, shape, columns))
				pairs[found++] = (struct shape_pair) {distances[i][shape], sets[REFERRED].tag[shape], shape};
		qsort(pairs, found, sizeof(*pairs), compare_shape_pairs);
		count = question->k > 0 && question->k < found ? question->k : found;
		while (question->ties && count > 0 && count < found && pairs[count].distance == pairs[count - 1].distance)
			count++;
		for (uint32_t j = 0; j < count; j++)
			add_pair(answers, i, pairs[j].tag, pairs[j].distance);
	}
}

static void
count_plainly(const struct client_question *question, uint32_t columns, struct answers *answers)
{
	*answers = (struct answers) {.pairs = 0};
	for (int i = 0; i < sets[OBSERVED].shapes; i++)
		for (uint32_t radius = 0; radius < question->radii; radius++)
		{
			double		sum = 0.0;
			int64_t		shapes = 0;

			for (int shape = 0; shape < sets[REFERRED].shapes; shape++)
				if (distances[i][shape] <= question->radius[radius] && is_candidate(i, shape, columns))
				{
					shapes++;
					sum += isnan(sets[REFERRED].weight[shape]) ? 0.0 : sets[REFERRED].weight[shape];
				}
			add_pair(answers, i, shapes, columns & GEONN_COLUMN_WEIGHT ? sum : 0.0);
		}
}

/* The rows of a side, as a client sends them. */
static struct client_points
points_of(int side)
{
	__typeof__(arcs) *of = &rows[side];
	struct client_points points = {
		.count = of->count,
		.latitude = of->latitude,
		.longitude = of->longitude,
		.tag = side == REFERRED ? of->tag : NULL,
		.group = of->group,
		.excluded_first = excluded.excluded_first,
		.excluded_last = excluded.excluded_last,
		.radius = of->conditions.radius,
		.edges = of->conditions.edges,
		.end_latitude = of->end_latitude,
		.end_longitude = of->end_longitude,
		.shape = of->shape,
		.polygon = of->polygon
	};

	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		points.low[i] = of->conditions.low[i];
		points.high[i] = of->conditions.high[i];
	}
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		points.party[i] = of->conditions.party[i];
	if (side == REFERRED)
		points.weight[0] = of->weight;
	return points;
}

static bool
is_right(const struct answers *right, const struct client_answers *found)
{
	uint32_t	pairs = 0;

	for (int i = 0; i < sets[OBSERVED].shapes; i++)
	{
		if (found->first[i] != pairs)
			return false;
		pairs += right->count[i];
	}
	return pairs == found->first[found->count] && memcmp(right->tag, found->tag, pairs * sizeof(int64_t)) == 0 &&
		memcmp(right->distance, found->distance, pairs * sizeof(double)) == 0;
}

/* how many rows the longest shape of the observations has */
static uint32_t
longest_shape(void)
{
	uint32_t	longest = 0;
	uint32_t	count = 0;

	for (uint32_t i = 0; i < rows[OBSERVED].count; i++)
	{
		count = i > 0 && rows[OBSERVED].shape[i] == rows[OBSERVED].shape[i - 1] ? count + 1 : 1;
		longest = count > longest ? count : longest;
	}
	return longest;
}

/* ---- properties ---- */

static struct
{
	long		wrong;
	long		miscounted;
	long		refused;
	long		checked;
	long		meeting_there;	/* pairs whose distance is 0 by the oracle */
	double		worst;			/* nanometres */
	uint64_t	pairs;
	uint64_t	meeting;
	long		apart;			/* pairs of shapes that meet, whose places are not the same */
	long		differing;		/* questions whose places depend on how they are asked */
	long		places;
	double		worst_place;	/* nanometres */
}			seen;

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

static double
some_distance(void)
{
	return distances[random_below(sets[OBSERVED].shapes)][random_below(sets[REFERRED].shapes)];
}

static struct client_question
draw_question(int number)
{
	static const uint32_t ks[] = {1, 3, 100, 0, 1};

	return (struct client_question) {
		.shapes = true,
		.k = ks[number % 5],
		.ties = number % 5 < 3 && random_below(2),
		.algorithm = random_below(4) ? GEONN_ALGORITHM_INDEX : GEONN_ALGORITHM_BRUTE,
		.max_distance = random_below(2) ? INFINITY : some_distance()
	};
}

static struct client_question
draw_count(void)
{
	struct client_question question = {.shapes = true,.radii = 1 + (uint32_t) random_below(4)};

	for (uint32_t i = 0; i < question.radii; i++)
	{
		double		least = i == 0 ? 0.0 : question.radius[i - 1];
		double		distance = some_distance();

		question.radius[i] = i == 0 || distance > least ? distance : least + 1.0;
	}
	return question;
}

static void
check(struct client *client, const struct client_question *question, uint32_t columns)
{
	static struct answers right;
	struct client_points observations = points_of(OBSERVED);
	struct client_answers found;
	bool		same;

	(question->radii > 0 ? count_plainly : answer_plainly) (question, columns, &right);
	if (!client_collect(client, question, &observations, &found))
	{
		printf("# refused: %s\n", client->message.header.type == GEONN_ERROR ? client->message.error.message : "no answer");
		seen.refused++;
		return;
	}
	same = is_right(&right, &found);
	for (uint32_t i = 0; question->radii == 0 && i < right.pairs; i++)
		seen.meeting += right.distance[i] == 0.0;
	seen.pairs += question->radii == 0 ? right.pairs : 0;
	seen.wrong += question->radii == 0 && !same;
	seen.miscounted += question->radii > 0 && !same;
	if (!same)
		printf("# k = %u, radii %u, ties %d, algorithm %d, max_distance %.17g, columns %u, by tag %d: wrong, %u pairs, found %zu\n",
			   question->k, question->radii, question->ties, question->algorithm, question->max_distance, columns,
			   pairs_by_tag, right.pairs, found.first[found.count]);
	client_free_answers(&found);
}

static int
vertices_of(const struct shape *part)
{
	int			count = 0;

	for (int i = 0; i < part->count; i++)
		count += part->chains[i].count;
	return count;
}

/* Hold the distance of some parts against the oracle. */
static void
ask_oracle(void)
{
	for (int round = 0; round < 8; round++)
	{
		int			a = random_below(sets[0].parts);
		int			b = random_below(sets[1].parts);
		__float128	truth;

		if (vertices_of(&sets[0].part[a]) * vertices_of(&sets[1].part[b]) > ORACLE_PAIRS)
			continue;
		truth = oracle_shapes_distance(&sets[0].part[a], &sets[1].part[b]);
		seen.worst = fmax(seen.worst, (double) fabsq(part_distance(a, b) - truth) * 1e9);
		seen.checked++;
		seen.meeting_there += truth == 0;
	}
}

/* how far a place is from a shape of a side, in nanometres */
static double
place_error(int side, int shape, struct point place)
{
	__float128	off = 1e9;

	for (int part = 0; part < sets[side].parts; part++)
		if (sets[side].shape[part] == shape)
			off = fminq(off, oracle_shape_distance(&sets[side].part[part], place));
	return (double) off * 1e9;
}

static int
shape_of_tag(int64_t tag)
{
	int			shape = -1;

	for (int i = 0; i < sets[REFERRED].shapes; i++)
		if (sets[REFERRED].tag[i] == tag)
			shape = shape < 0 ? i : sets[REFERRED].shapes;
	return shape;
}

/* Hold the places of a pair against the shapes, if only one reference has its tag. */
static void
check_place(const struct client_answers *found, int observation, size_t pair)
{
	int			shape = shape_of_tag(found->tag[pair]);
	struct point place = {found->places[CLIENT_LATITUDE][pair], found->places[CLIENT_LONGITUDE][pair]};
	struct point own = {found->places[CLIENT_OWN_LATITUDE][pair], found->places[CLIENT_OWN_LONGITUDE][pair]};

	if (shape == sets[REFERRED].shapes)
		return;
	seen.places++;
	seen.worst_place = fmax(seen.worst_place, place_error(REFERRED, shape, place));
	seen.worst_place = fmax(seen.worst_place, place_error(OBSERVED, observation, own));
	seen.worst_place = fmax(seen.worst_place,
							(double) fabsq(oracle_arcs_distance(own, own, place, place) - found->distance[pair]) * 1e9);
}

static bool
is_same(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

/* Ask for places by index and by brute force: they are the same, and those that the distances say. */
static void
check_places(struct client *client, struct client_question question)
{
	struct client_points observations = points_of(OBSERVED);
	struct client_answers found[2];
	bool		same = true;

	question.places = true;
	for (int i = 0; i < 2; i++)
	{
		question.algorithm = i == 0 ? GEONN_ALGORITHM_INDEX : GEONN_ALGORITHM_BRUTE;
		if (!client_collect(client, &question, &observations, &found[i]))
		{
			seen.refused++;
			return;
		}
	}
	same = found[0].first[found[0].count] == found[1].first[found[1].count];
	for (size_t pair = 0; same && pair < found[0].first[found[0].count]; pair++)
	{
		for (int i = 0; i < CLIENT_PLACES; i++)
			same = same && is_same(found[0].places[i][pair], found[1].places[i][pair]);
		seen.apart += found[0].distance[pair] == 0.0 &&
			(found[0].places[CLIENT_LATITUDE][pair] != found[0].places[CLIENT_OWN_LATITUDE][pair] ||
			 found[0].places[CLIENT_LONGITUDE][pair] != found[0].places[CLIENT_OWN_LONGITUDE][pair]);
	}
	seen.differing += !same;
	for (int i = 0; i < 4; i++)
	{
		int			observation = random_below(sets[OBSERVED].shapes);
		size_t		pairs = found[0].first[observation + 1] - found[0].first[observation];

		if (pairs > 0)
			check_place(&found[0], observation, found[0].first[observation] + (size_t) random_below((int) pairs));
	}
	client_free_answers(&found[0]);
	client_free_answers(&found[1]);
}

static void
test_set(const struct engine *engine, enum geonn_device_choice device, long number)
{
	uint32_t	columns = draw_columns();
	uint32_t	longest;
	struct client client;
	struct client_points references;
	struct client_question question;

	draw_sides((int) (number % SHAPE_KINDS));
	find_distances();
	pairs_by_tag = random_below(2);
	references = points_of(REFERRED);
	longest = longest_shape();
	client_connect(&client, engine);
	if (!client_create(&client, device, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC | columns) ||
		!client_allocate(&client, 0, longest + (random_below(2) ? rows[OBSERVED].count : (uint32_t) random_below(8)),
						 random_below(2) ? PAIRS_MAX : 4 + (uint32_t) random_below(20)) ||
		!client_send_dataset(&client, &references, pairs_by_tag))
	{
		seen.refused++;
		client_close(&client);
		return;
	}
	for (int i = 0; i < 5; i++)
	{
		question = draw_question(i);
		check(&client, &question, columns);
	}
	check_places(&client, draw_question(random_below(5)));
	question = draw_count();
	check(&client, &question, columns);
	ask_oracle();
	client_close(&client);
}

/* Two triangles near a line; what a client sends of them may be spoiled. */
static struct geonn_batch_columns
fill_triangles(struct client *client)
{
	struct geonn_batch_columns columns = client->slots[0].columns;
	static const double corners[3][2] = {{0.0, 0.0}, {0.0, 1.0}, {1.0, 0.0}};

	for (int i = 0; i < 6; i++)
	{
		columns.latitude[i] = corners[i % 3][0];
		columns.longitude[i] = corners[i % 3][1] + 10.0 * (i / 3);
		columns.end_latitude[i] = corners[(i + 1) % 3][0];
		columns.end_longitude[i] = corners[(i + 1) % 3][1] + 10.0 * (i / 3);
		columns.shape[i] = i / 3;
		columns.polygon[i] = 1 + i / 3;
	}
	return columns;
}

/*
 * Connect, send a line, and fill a batch that has room for one pair; where `begins`, ask for the first triangle's nearest
 * line.
 */
static bool
begin_triangles(struct client *client, const struct engine *engine, bool begins)
{
	static const double line[] = {0.0, 3.0, 5.0};
	static const int64_t tag[] = {7};
	static const int32_t number[] = {0};
	struct client_points references = {1, line, line + 1, tag,.end_latitude = line,.end_longitude = line + 2,.shape = number,
		.polygon = number
	};
	struct geonn_search search = {.rows = 6,.k = 1,.max_distance = INFINITY,.flags = GEONN_SEARCH_SHAPES};

	client_connect(client, engine);
	if (!client_create(client, GEONN_DEVICE_CPU, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC) || !client_allocate(client, 0, 6, 1) ||
		!client_send_dataset(client, &references, false))
		return false;
	fill_triangles(client);
	if (!begins)
		return true;
	client_send(client, GEONN_SEARCH, &search);
	return client_expect(client, GEONN_RESULTS) && client->message.results.observations == 1;
}

/*
 * A search that goes on is of the shapes that the engine has copied, whatever the client has written meanwhile; other requests
 * are refused.
 */
static void
test_going_on(const struct engine *engine)
{
	static const struct
	{
		const char *what;
		bool		begins;
		struct geonn_search search;
	}			refusals[] = {
		{"a beginning with the second shape", false, {.first = 1,.rows = 6,.k = 1,.flags = GEONN_SEARCH_SHAPES}},
		{"fewer rows", true, {.first = 1,.rows = 3,.k = 1,.flags = GEONN_SEARCH_SHAPES}},
		{"behind the last shape", true, {.first = 2,.rows = 6,.k = 1,.flags = GEONN_SEARCH_SHAPES}},
		{"behind the last shape at once", false, {.first = 5,.rows = 6,.k = 1,.flags = GEONN_SEARCH_SHAPES}},
		{"a ring that is not closed", false, {.rows = 5,.k = 1,.flags = GEONN_SEARCH_SHAPES}},
		{"a resumed search that was not cut off", true, {.first = 1,.rows = 6,.k = 1,.flags = GEONN_SEARCH_SHAPES | GEONN_SEARCH_RESUME}}
	};
	struct geonn_search on = {.first = 1,.rows = 6,.k = 1,.max_distance = INFINITY,.flags = GEONN_SEARCH_SHAPES};
	struct geonn_batch_columns columns;
	struct client client;
	double		truth = geonn_distance_of(geonn_unit_vector(0.0, 5.0), geonn_unit_vector(0.0, 10.0));
	long		taken = 0;
	bool		right;

	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++)
	{
		struct geonn_search search = refusals[i].search;
		bool		refused;

		search.max_distance = INFINITY;
		refused = begin_triangles(&client, engine, refusals[i].begins);
		client_send(&client, GEONN_SEARCH, &search);
		refused = refused && client_expect(&client, GEONN_ERROR) && client.message.error.code == GEONN_ERROR_PROTOCOL;
		if (!refused)
			printf("# taken: %s\n", refusals[i].what);
		taken += !refused;
		client_close(&client);
	}
	report_failures("shapes that are none, or that the engine has not got, are refused", taken);

	right = begin_triangles(&client, engine, true) && client.slots[0].columns.tag[0] == 7;
	columns = client.slots[0].columns;
	memset(columns.latitude, 255, 6 * sizeof(double));
	memset(columns.shape, 255, 6 * sizeof(int32_t));
	client_send(&client, GEONN_SEARCH, &on);
	right = right && client_expect(&client, GEONN_RESULTS) && client.message.results.observations == 1 &&
		columns.distance[0] == truth;
	report("a search goes on with the shapes as they were when it began", right);
	client_send(&client, GEONN_SEARCH, &on);
	report("once all are answered, the engine has them no more", right && client_expect(&client, GEONN_ERROR));
	client_close(&client);

	/* points ask meanwhile */
	right = begin_triangles(&client, engine, true);
	columns = client.slots[0].columns;
	on.flags = on.first = 0;
	columns.latitude[0] = columns.longitude[0] = 0.0;
	on.rows = 1;
	client_send(&client, GEONN_SEARCH, &on);
	right = right && client_expect(&client, GEONN_RESULTS);
	on.flags = GEONN_SEARCH_SHAPES;
	on.first = 1;
	on.rows = 6;
	client_send(&client, GEONN_SEARCH, &on);
	report("but not once points have asked", right && client_expect(&client, GEONN_ERROR));
	client_close(&client);
}

#define RING 400000

/* Polygons of very many sides that cross, and that lie apart: the observation is cut into very many bundles. */
static void
test_large(const struct engine *engine)
{
	double	   *degrees[4];
	int32_t    *zero = calloc(RING, sizeof(int32_t));
	int32_t    *polygon = calloc(RING, sizeof(int32_t));
	int64_t    *tag = calloc(RING, sizeof(int64_t));
	struct client_question question = {.shapes = true,.k = 1,.max_distance = INFINITY};
	struct client_points points;
	struct client_answers found;
	struct client client;
	double		began = now_ms();
	bool		right;

	for (int i = 0; i < 4; i++)
		degrees[i] = calloc(RING, sizeof(double));
	for (int i = 0; i < RING; i++)
		for (int end = 0; end < 2; end++)
		{
			double		turn = 2.0 * M_PI * ((i + end) % RING) / RING;
			double		radius = 20.0 + ((i + end) % RING) % 2 * 0.001;

			degrees[2 * end][i] = radius * sin(turn);
			degrees[2 * end + 1][i] = radius * cos(turn);
			polygon[i] = 1;
		}
	points = (struct client_points) {RING, degrees[0], degrees[1], tag,.end_latitude = degrees[2],.end_longitude = degrees[3],
		.shape = zero,.polygon = polygon
	};
	client_connect(&client, engine);
	right = client_create(&client, GEONN_DEVICE_CPU, GEONN_METRIC_SPHERE, GEONN_COLUMN_ARC) &&
		client_allocate(&client, 0, RING, 16) && client_send_dataset(&client, &points, false);

	/* the ring, 30 degrees to the east: the two rings cross, and then 60, they do not */
	for (int east = 30; east <= 60 && right; east += 30)
	{
		for (int i = 0; i < RING; i++)
		{
			degrees[1][i] += 30.0;
			degrees[3][i] += 30.0;
		}
		right = client_collect(&client, &question, &points, &found) && found.first[1] == 1 &&
			(found.distance[0] == 0.0) == (east == 30);
		printf("# %d degrees: %.3f m\n", east, right ? found.distance[0] : -1.0);
		client_free_answers(&found);
	}
	printf("# %.0f ms\n", now_ms() - began);
	report("polygons of very many sides find each other", right);
	client_close(&client);
	for (int i = 0; i < 4; i++)
		free(degrees[i]);
	free(zero);
	free(polygon);
	free(tag);
}

int
main(int argument_count, char **words)
{
	static const char *const paths[] = {"portable", "avx2", NULL};
	enum geonn_device_choice device = argument_count > 2 && strcmp(words[2], "cuda") == 0 ? GEONN_DEVICE_AUTO : GEONN_DEVICE_CPU;
	long		count = argument_count <= 4 ? 200 : strcmp(words[4], "sanitized") == 0 ? 24 : atol(words[4]);

	if (argument_count < 2)
		return EXIT_FAILURE;
	random_state = argument_count > 3 ? strtoull(words[3], NULL, 10) : random_state;
	printf("# seed %llu, %ld sets\n", (unsigned long long) random_state, count);
	for (int start = 0; start < 6; start++)
	{
		const char *path = paths[start % 3];
		struct geonn_configure settings = {.cpu_threads = 2};
		struct engine engine;

		/* the later engines end a turn almost at once, and leave an observation to the next one again and again */
		engine_turn_ms = start < 3 ? "50" : "0";
		if (engine_try_start(&engine, words[1], path, &settings))
			for (long number = start % 3; number < count; number += start < 3 ? 3 : 24)
				test_set(&engine, device, number);
		if (path == NULL)
		{
			test_going_on(&engine);
			test_large(&engine);
		}
		engine_stop(&engine);
	}
	report_failures("shapes of both sides are taken", seen.refused);
	report_failures("answers are those of every distance, in their order", seen.wrong);
	report_failures("counts are those of every distance, with the sums of weights", seen.miscounted);
	report_measure("distances are within 10 nm of the oracle's", seen.worst <= LIMIT_NANOMETRES, "worst error", seen.worst, "nm");
	report_failures("places are the same by index and by brute force", seen.differing);
	report_failures("those of shapes that meet are one place", seen.apart);
	report_measure("places are within 10 nm of their shapes, and as far from each other as the distances say",
				   seen.worst_place <= PLACE_NANOMETRES && seen.places > count, "worst error", seen.worst_place, "nm");
	printf("# %llu pairs, %llu at distance 0; %ld by the oracle, %ld of them meet\n", (unsigned long long) seen.pairs,
		   (unsigned long long) seen.meeting, seen.checked, seen.meeting_there);
	report("many pairs are found, many of them meet, and many do not", seen.pairs > (uint64_t) count &&
		   seen.meeting > seen.pairs / 20 && seen.meeting < seen.pairs / 20 * 19 && seen.meeting_there > seen.checked / 20);
	return summed_up();
}
