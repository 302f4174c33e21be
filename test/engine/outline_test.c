/*
 * outline_test.c
 *		Measures the distances of two shapes, src/common/outline.c, against an oracle in __float128.
 *
 * Of each pair, a kind says how the other shape lies to the one: anywhere, near it, with its vertices, with vertices
 * on its arcs, around or inside of it, at its antipodes, at a pole, across the meridian of 180 degrees, as one
 * vertex.  Both are of all kinds and sizes of random_shapes.h: rings with holes, rings that cross themselves, of
 * millimetres, larger than a hemisphere.
 *
 * The oracle has degrees, the outline vectors, which are off by less than 2.25 * 2^-53: where two shapes nearly meet,
 * one may say 0, and the other a nanometre.  That 0 is exactly where shapes of vectors meet is asked of brute
 * force: by geonn_arcs_distance(), of which arc_pairs_test says the same, and by geonn_ring_side().
 *
 * Usage: outline_test [seed [pairs]], where pairs is the number of random pairs of shapes.
 *
 * rooms: common join
 */
#include <math.h>
#include <quadmath.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/outline.h"
#include "../lib/random.h"
#include "../lib/random_shapes.h"
#include "../lib/shape_oracle.h"
#include "../lib/verdict.h"

#define LIMIT_NANOMETRES 10.0
#define MOST_VECTORS (2 * MOST_VERTICES * MOST_RINGS)

/* an outline, and its arrays */
struct drawn
{
	struct geonn_outline outline;
	struct geonn_vector vectors[MOST_VECTORS];
	struct geonn_outline_part parts[MOST_RINGS];
	struct geonn_outline_box boxes[MOST_VECTORS];
};

/* Returns false if a ring has no smaller side. */
static bool
draw(const struct shape *shape, struct drawn *drawn)
{
	size_t		vectors = 0;
	bool		is_decided = true;

	for (int i = 0; i < shape->count; i++)
	{
		struct geonn_outline_part *part = &drawn->parts[i];

		*part = (struct geonn_outline_part) {
			.first = vectors,
			.is_ring = shape->is_polygon,
			.is_last_ring = shape->is_polygon && i + 1 == shape->count
		};
		part->count = vectors_of(&shape->chains[i], drawn->vectors + vectors);
		vectors += part->count;
		if (shape->is_polygon)
			is_decided &= geonn_ring_holds_pole(drawn->vectors + part->first, part->count, NULL, &part->pole_is_inside);
	}
	drawn->outline = (struct geonn_outline) {
		.vectors = drawn->vectors,
		.parts = drawn->parts,
		.part_count = (size_t) shape->count,
		.boxes = drawn->boxes
	};
	geonn_outline_complete(&drawn->outline);
	if (drawn->outline.box_count > geonn_outline_boxes(vectors, drawn->outline.part_count))
		abort();
	return is_decided;
}

/* ---- pairs ---- */

enum pair_kind
{
	ANYWHERE, NEAR, SHARED_VERTICES, ON_ARCS, NESTED, ANTIPODES, AT_POLES, ANTIMERIDIAN, ONE_VERTEX, SAME, PAIR_KINDS
};

static const char *const pair_names[PAIR_KINDS] = {"shapes anywhere", "shapes near each other", "shapes that share vertices",
	"vertices on the other's arcs", "one in the other, or its hole", "antipodes", "around and at the poles",
"across the meridian of 180 degrees", "points and rings of one vertex", "a shape and itself, or a part of it"};

/* Put a vertex into another's place, unless no arc could be drawn to it then, or a polygon would leave its hemisphere. */
static void
replace_vertex(struct shape *shape, struct point by)
{
	struct chain *chain = &shape->chains[random_below(shape->count)];
	int			i = 1 + random_below(chain->count);
	struct geonn_vector vector = geonn_unit_vector(by.latitude, by.longitude);

	if (i + 1 >= chain->count)
		return;
	if (shape->is_polygon && geonn_dot(vector, geonn_unit_vector(shape->centre.latitude, shape->centre.longitude)) < 0.1)
		return;
	for (int j = i - 1; j <= i + 1; j += 2)
		if (geonn_antichord_squared(vector, geonn_unit_vector(chain->vertices[j].latitude, chain->vertices[j].longitude)) < 1e-4)
			return;
	chain->vertices[i] = by;
}

static struct point
vertex_of(const struct shape *shape)
{
	const struct chain *chain = &shape->chains[random_below(shape->count)];

	return chain->vertices[random_below(chain->count)];
}

/* a place on an arc, but for rounding */
static struct point
place_on_arc(const struct shape *shape)
{
	const struct chain *chain = &shape->chains[random_below(shape->count)];
	int			i = chain->count > 1 ? random_below(chain->count - 1) : 0;

	return random_place_between(chain->vertices[i], chain->vertices[chain->count > 1 ? i + 1 : 0]);
}

static struct point
near_pole(double latitude)
{
	return place_from((struct point) {latitude, 0.0}, random_radius(1e-16, 1.0), random_between(0.0, 6.3));
}

static struct point
place_for(enum pair_kind kind, const struct shape *one)
{
	struct point place = random_below(2) ? vertex_of(one) : place_on_arc(one);

	switch (kind)
	{
		case NEAR:
			return place_from(place, random_radius(1e-16, 1.0), random_between(0.0, 6.3));
		case NESTED:
			return one->is_polygon ? place_from(one->centre, random_radius(1e-12, 1e-3), random_between(0.0, 6.3)) : place;
		case ANTIPODES:
			return place_from(place, M_PI, 0.0);
		case AT_POLES:
			return near_pole(random_below(2) ? 90.0 : -90.0);
		case ANTIMERIDIAN:
			return (struct point) {one->chains[0].vertices[0].latitude, 180.0};
		default:
			return place;
	}
}

static void
make_point_or_ring(struct shape *shape, struct point place)
{
	shape->is_polygon = random_below(2);
	shape->count = 1;
	shape->centre = place;
	shape->chains[0].count = 0;
	add_vertex(&shape->chains[0], place);
}

static void
make_pair(enum pair_kind kind, struct shape *one, struct shape *other)
{
	struct point place = random_place();

	if (kind == AT_POLES || kind == ANTIMERIDIAN)
	{
		place = kind == AT_POLES ? near_pole(90.0) : (struct point) {place.latitude, 180.0};
		place_to_be = &place;
	}
	make_shape(one, random_below(SHAPE_KINDS));
	place = place_for(kind, one);
	place_to_be = kind == ANYWHERE ? NULL : &place;
	if (kind == SAME)
		*other = *one;
	else if (kind == ONE_VERTEX)
		make_point_or_ring(other, place);
	else
		make_shape(other, random_below(SHAPE_KINDS));
	place_to_be = NULL;
	if (kind == SHARED_VERTICES || kind == ON_ARCS || (kind == SAME && random_below(2)))
		for (int i = random_below(4); i >= 0; i--)
			replace_vertex(other, kind == ON_ARCS ? place_on_arc(one) : vertex_of(one));
}

/* ---- brute force ---- */

static bool
holds_a_part(const struct drawn *drawn, const struct drawn *of)
{
	for (size_t i = 0; i < of->outline.part_count; i++)
	{
		bool		is_inside = false;

		for (size_t j = 0; j < drawn->outline.part_count; j++)
		{
			const struct geonn_outline_part *part = &drawn->parts[j];
			enum geonn_side side = !part->is_ring ? GEONN_OUTSIDE :
				geonn_ring_side(drawn->vectors + part->first, part->count, part->pole_is_inside,
								of->vectors[of->parts[i].first]);

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
parts_distance(const struct geonn_vector *one, size_t count, const struct geonn_vector *other, size_t other_count)
{
	double		least = INFINITY;

	for (size_t i = 0; i + 1 < count || i == 0; i++)
		for (size_t j = 0; j + 1 < other_count || j == 0; j++)
			least = fmin(least, geonn_arcs_distance(one[i], one[i + (count > 1)], other[j], other[j + (other_count > 1)]));
	return least;
}

static double
brute_distance(const struct drawn *one, const struct drawn *other)
{
	double		least = holds_a_part(one, other) || holds_a_part(other, one) ? 0.0 : INFINITY;

	for (size_t i = 0; i < one->outline.part_count; i++)
		for (size_t j = 0; j < other->outline.part_count; j++)
			least = fmin(least, parts_distance(one->vectors + one->parts[i].first, one->parts[i].count,
											   other->vectors + other->parts[j].first, other->parts[j].count));
	return least;
}

/* ---- properties ---- */

static bool
same_bits(double one, double other)
{
	return memcmp(&one, &other, sizeof(one)) == 0;
}

static void
test_pairs(long pairs)
{
	static struct shape one;
	static struct shape other;
	static struct drawn drawn;
	static struct drawn other_drawn;
	double		worst[PAIR_KINDS] = {0.0};
	long		zero[PAIR_KINDS] = {0};
	long		asymmetric = 0;
	long		not_brute = 0;
	long		other_points = 0;
	char		title[120];

	for (long pair = 0; pair < pairs; pair++)
	{
		enum pair_kind kind = (enum pair_kind) (pair % PAIR_KINDS);
		double		distance;
		double		error;
		long		undecided = 0;

		make_pair(kind, &one, &other);
		/* vertices put elsewhere may leave two sides of one size */
		if (!draw(&one, &drawn) || !draw(&other, &other_drawn))
			continue;
		distance = geonn_outline_distance(&drawn.outline, &other_drawn.outline, NULL);
		error = (double) fabsq(distance - oracle_shapes_distance(&one, &other)) * 1e9;
		zero[kind] += distance == 0.0;
		asymmetric += !same_bits(geonn_outline_distance(&other_drawn.outline, &drawn.outline, NULL), distance);
		not_brute += pair / PAIR_KINDS % 4 == 0 && !same_bits(brute_distance(&drawn, &other_drawn), distance);
		other_points += kind == ONE_VERTEX && !other.is_polygon &&
			!same_bits(distance_to(&one, other.chains[0].vertices[0], &undecided), distance);
		if (!(error <= worst[kind]))
			worst[kind] = error;
		if (!(error <= LIMIT_NANOMETRES))
			printf("# pair %ld, %s: %.9f m, off by %g nm\n", pair, pair_names[kind], distance, error);
	}
	for (int i = 0; i < PAIR_KINDS; i++)
	{
		snprintf(title, sizeof(title), "distances are within %g nm: %s, of which %ld meet", LIMIT_NANOMETRES,
				 pair_names[i], zero[i]);
		report_measure(title, worst[i] <= LIMIT_NANOMETRES, "worst error", worst[i], "nm");
	}
	report_failures("either order gives the same bits", asymmetric);
	report_failures("boxes leave out no arc: brute force gives the same bits", not_brute);
	report_failures("a point has the bits of a point", other_points);
}

/* Points are gathered in stretches, between lines and rings and at the ends. */
static void
test_points(long rounds)
{
	static struct geonn_vector vectors[200];
	static struct geonn_outline_part parts[200];
	static struct geonn_outline_box boxes[400];
	long		failures = 0;

	for (long round = 0; round < rounds; round++)
	{
		size_t		count = 1 + (size_t) random_below(60);
		size_t		used = 0;
		struct point place = random_place();
		struct geonn_vector vector = geonn_unit_vector(place.latitude, place.longitude);
		struct geonn_outline_part part = {.count = 1};
		struct geonn_outline_box box;
		struct geonn_outline point = {.vectors = &vector,.parts = &part,.part_count = 1,.boxes = &box};
		struct geonn_outline outline = {.vectors = vectors,.parts = parts,.part_count = count,.boxes = boxes};
		double		least = INFINITY;

		for (size_t i = 0; i < count; i++)
		{
			parts[i] = (struct geonn_outline_part) {.first = used,.count = random_below(3) ? 1 : 2};
			for (size_t j = 0; j < parts[i].count; j++)
			{
				place = j == 0 ? random_place() : place_from(place, random_radius(1e-6, 1.0), 1.0);
				vectors[used++] = geonn_unit_vector(place.latitude, place.longitude);
			}
			least = fmin(least, geonn_chain_distance(vector, vectors + parts[i].first, parts[i].count));
		}
		geonn_outline_complete(&outline);
		geonn_outline_complete(&point);
		failures += outline.box_count > geonn_outline_boxes(used, count) ||
			!same_bits(geonn_outline_distance(&outline, &point, NULL), least);
	}
	report_failures("collections of points and lines", failures);
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		pairs = argc > 2 ? strtol(argv[2], NULL, 0) : 200000;

	random_state = seed;
	printf("seed %llu, %ld pairs\n", (unsigned long long) seed, pairs);

	test_points(pairs);
	test_pairs(pairs);
	return summed_up();
}
