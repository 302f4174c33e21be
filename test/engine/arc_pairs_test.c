/*
 * arc_pairs_test.c
 *		Measures the distances of two arcs, geonn_arcs_distance(), against an oracle in __float128.
 *
 * Whether two arcs meet, exactly, is asked of arcs between vectors of small integers: there an oracle
 * in 64-bit integers has no rounding, and most arcs touch, overlap, or end on each other.
 *
 * Usage: arc_pairs_test [seed [pairs]], where pairs is the number of random pairs of arcs.
 *
 * rooms: common
 */
#include <math.h>
#include <quadmath.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arc.h"
#include "../lib/random.h"
#include "../lib/random_shapes.h"
#include "../lib/shape_oracle.h"
#include "../lib/verdict.h"

#define LIMIT_NANOMETRES 10.0

struct arc
{
	struct point from;
	struct point to;
};

static struct geonn_vector
vector_of(struct point point)
{
	return geonn_unit_vector(point.latitude, point.longitude);
}

static double
distance_of(struct arc one, struct arc other)
{
	return geonn_arcs_distance(vector_of(one.from), vector_of(one.to), vector_of(other.from), vector_of(other.to));
}

/* ---- random pairs ---- */

static bool
is_measured(struct arc arc)
{
	return !geonn_arc_is_long(vector_of(arc.from), vector_of(arc.to));
}

static struct arc
arc_from(struct point from, double length, double bearing)
{
	struct arc	arc = {from, from};

	do
	{
		arc.to = place_from(from, length, bearing);
		length *= 0.999;
	} while (!is_measured(arc));
	return arc;
}

static struct arc
some_arc(struct point from)
{
	return arc_from(from, random_below(2) ? random_between(0.0, M_PI / 2) : random_radius(1e-12, 1.5),
					random_between(0.0, 6.3));
}

/* a place on an arc, but for rounding; often an end */
static struct point
place_on(struct arc arc)
{
	struct geonn_vector u = vector_of(arc.from);
	struct geonn_vector v = vector_of(arc.to);
	double		t = random_between(0.0, 1.0);
	double		x = u.x + t * (v.x - u.x);
	double		y = u.y + t * (v.y - u.y);
	double		z = u.z + t * (v.z - u.z);

	switch (random_below(4))
	{
		case 0:
			return arc.from;
		case 1:
			return arc.to;
	}
	return (struct point) {atan2(z, hypot(x, y)) * (180.0 / M_PI), atan2(y, x) * (180.0 / M_PI)};
}

static struct point
hostile_end(struct point from)
{
	struct arc	arc = {from, from};

	do
		arc.to = random_below(4) ? hostile_point() : place_from(from, random_radius(1e-17, 1.0), random_between(0.0, 6.3));
	while (!is_measured(arc));
	return arc.to;
}

enum pair_kind
{
	ANY_ARCS, NEAR_EACH_OTHER, CROSSING, ONE_END, END_ON_THE_OTHER, ONE_CIRCLE, NO_LENGTH, POLES, ANTIMERIDIAN,
	ANTIPODES, HOSTILE, MILLIMETRES, PAIR_KINDS
};

static const char *const pair_names[PAIR_KINDS] = {"any arcs", "arcs near each other", "arcs that cross or nearly do",
	"arcs that share an end", "an end on the other arc", "arcs of one circle", "arcs without length", "poles",
"the meridian of 180 degrees", "arcs near each other's antipodes", "hostile places", "arcs of millimetres"};

/* an arc that runs about through a place, or beside it */
static struct arc
arc_through(struct point place, double length)
{
	double		bearing = random_between(0.0, 6.3);

	return arc_from(place_from(place, length * random_between(-0.2, 1.0), bearing + M_PI),
					length * random_between(0.2, 1.0), bearing);
}

static struct arc
make_other(enum pair_kind kind, struct arc one)
{
	struct point place = place_on(one);
	struct point near = place_from(place, random_radius(1e-16, 0.5), random_between(0.0, 6.3));
	double		east = one.from.longitude;

	switch (kind)
	{
		case NEAR_EACH_OTHER:
			return some_arc(near);
		case CROSSING:
			return arc_through(random_below(2) ? place : near, random_radius(1e-9, 1.5));
		case ONE_END:
			return some_arc(random_below(2) ? one.from : one.to);
		case END_ON_THE_OTHER:
			return some_arc(place);
		case ONE_CIRCLE:
			return (struct arc) {place, place_on(one)};
		case NO_LENGTH:
			return (struct arc) {near, near};
		case POLES:
			return arc_from((struct point) {one.from.latitude, east + 180.0 <= 360.0 ? east + 180.0 : east - 180.0},
							random_between(0.0, 1.5), random_below(2) ? 0.0 : random_between(0.0, 6.3));
		case ANTIPODES:
			return some_arc(place_from(near, M_PI, 0.0));
		case HOSTILE:
			place = random_below(2) ? hostile_point() : place;
			return (struct arc) {place, hostile_end(place)};
		case MILLIMETRES:
			return arc_through(place_from(place, random_radius(1e-13, 1e-9), random_between(0.0, 6.3)),
							   random_radius(1e-12, 1e-9));
		default:
			return some_arc(random_place());
	}
}

static struct arc
make_one(enum pair_kind kind)
{
	struct point from = random_place();

	switch (kind)
	{
		case ONE_CIRCLE:
			from.latitude = random_below(2) ? 0.0 : from.latitude;
			return arc_from(from, random_between(0.0, M_PI / 2), from.latitude == 0.0 ? M_PI / 2 : random_between(0.0, 6.3));
		case NO_LENGTH:
			return random_below(2) ? some_arc(from) : (struct arc) {from, from};
		case POLES:
			from.latitude = (random_below(3) ? random_between(50.0, 90.0) : 90.0) * (random_below(2) ? 1 : -1);
			return arc_from(from, random_between(0.0, 1.5), from.latitude > 0.0 ? 0.0 : M_PI);
		case ANTIMERIDIAN:
			from.longitude = random_below(2) ? 180.0 : random_between(170.0, 190.0);
			return some_arc(from);
		case HOSTILE:
			from = hostile_point();
			return (struct arc) {from, hostile_end(from)};
		case MILLIMETRES:
			return arc_from(from, random_radius(1e-12, 1e-9), random_between(0.0, 6.3));
		default:
			return some_arc(from);
	}
}

static bool
same_bits(double one, double other)
{
	return memcmp(&one, &other, sizeof(one)) == 0;
}

/* each order of the arcs and of their ends gives the same bits */
static bool
is_symmetric(struct arc one, struct arc other, double distance)
{
	for (int i = 1; i < 8; i++)
	{
		struct arc	a = i & 1 ? (struct arc) {one.to, one.from} : one;
		struct arc	b = i & 2 ? (struct arc) {other.to, other.from} : other;

		if (!same_bits(i & 4 ? distance_of(b, a) : distance_of(a, b), distance))
			return false;
	}
	return true;
}

/* a point has the bits of a point */
static bool
is_chain_distance(struct point point, struct arc arc)
{
	struct geonn_vector chain[2] = {vector_of(arc.from), vector_of(arc.to)};

	return same_bits(distance_of((struct arc) {point, point}, arc), geonn_chain_distance(vector_of(point), chain, 2));
}

static void
test_pairs(long pairs)
{
	double		worst[PAIR_KINDS] = {0.0};
	long		meeting[PAIR_KINDS] = {0};
	long		asymmetric = 0;
	long		other_points = 0;
	char		title[100];

	for (long pair = 0; pair < pairs; pair++)
	{
		enum pair_kind kind = (enum pair_kind) (pair % PAIR_KINDS);
		struct arc	one = make_one(kind);
		struct arc	other = make_other(kind, one);
		double		distance = distance_of(one, other);
		double		error = (double) fabsq(distance - oracle_arcs_distance(one.from, one.to, other.from, other.to)) * 1e9;

		meeting[kind] += distance == 0.0;
		asymmetric += !is_symmetric(one, other, distance);
		other_points += !is_chain_distance(other.from, one);
		if (!(error <= worst[kind]))
			worst[kind] = error;
		if (!(error <= LIMIT_NANOMETRES))
			printf("# pair %ld: %.17g %.17g to %.17g %.17g and %.17g %.17g to %.17g %.17g are %.9f m apart, off by %g nm\n",
				   pair, one.from.latitude, one.from.longitude, one.to.latitude, one.to.longitude, other.from.latitude,
				   other.from.longitude, other.to.latitude, other.to.longitude, distance, error);
	}
	for (int i = 0; i < PAIR_KINDS; i++)
	{
		snprintf(title, sizeof(title), "distances are within %g nm: %s, of which %ld meet", LIMIT_NANOMETRES,
				 pair_names[i], meeting[i]);
		report_measure(title, worst[i] <= LIMIT_NANOMETRES, "worst error", worst[i], "nm");
	}
	report_failures("each order of arcs and ends gives the same bits", asymmetric);
	report_failures("an arc without length has the bits of a point", other_points);
}

/* ---- whether arcs meet ---- */

struct whole
{
	int64_t		x;
	int64_t		y;
	int64_t		z;
};

static struct whole
whole_cross(struct whole u, struct whole v)
{
	return (struct whole) {u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z, u.x * v.y - u.y * v.x};
}

static int64_t
whole_dot(struct whole u, struct whole v)
{
	return u.x * v.x + u.y * v.y + u.z * v.z;
}

static struct whole
random_whole(int size)
{
	struct whole vector;

	do
		vector = (struct whole) {random_below(2 * size + 1) - size, random_below(2 * size + 1) - size,
			random_below(2 * size + 1) - size};
	while (whole_dot(vector, vector) == 0);
	return vector;
}

/* so many times the vector that signs need all bits of products of three parts */
static struct geonn_vector
vector_of_whole(struct whole whole)
{
	double		times = (double) (random_bits() >> 16);

	return (struct geonn_vector) {times * (double) whole.x, times * (double) whole.y, times * (double) whole.z};
}

/* Is a place on the arc from a to b, which has a length? */
static bool
whole_is_on(struct whole place, struct whole a, struct whole b)
{
	struct whole n = whole_cross(a, b);

	return whole_dot(n, place) == 0 && whole_dot(whole_cross(a, place), n) >= 0 && whole_dot(whole_cross(place, b), n) >= 0;
}

static bool
whole_meet(struct whole a, struct whole b, struct whole c, struct whole d)
{
	struct whole place = whole_cross(whole_cross(a, b), whole_cross(c, d));
	struct whole antipode = {-place.x, -place.y, -place.z};

	if (whole_dot(place, place) == 0)
		return whole_is_on(a, c, d) || whole_is_on(b, c, d) || whole_is_on(c, a, b) || whole_is_on(d, a, b);
	return (whole_is_on(place, a, b) && whole_is_on(place, c, d)) ||
		(whole_is_on(antipode, a, b) && whole_is_on(antipode, c, d));
}

/* an arc that has a length, of at most a quarter circle */
static void
random_whole_arc(int size, struct whole *a, struct whole *b)
{
	struct whole n;

	do
	{
		*a = random_whole(size);
		*b = random_whole(size);
		n = whole_cross(*a, *b);
	} while (whole_dot(*a, *b) < 0 || whole_dot(n, n) == 0);
}

static void
test_meeting(long rounds)
{
	long		failures = 0;
	long		meeting = 0;

	for (long round = 0; round < rounds; round++)
	{
		int			size = 1 + random_below(4);
		struct whole a;
		struct whole b;
		struct whole c;
		struct whole d;
		bool		do_meet;

		random_whole_arc(size, &a, &b);
		random_whole_arc(size, &c, &d);
		do_meet = whole_meet(a, b, c, d);
		meeting += do_meet;
		failures += do_meet !=
			(geonn_arcs_distance(vector_of_whole(a), vector_of_whole(b), vector_of_whole(c), vector_of_whole(d)) == 0.0);
	}
	report_failures("arcs between whole vectors have distance 0 exactly where they meet", failures);
	report("a tenth of them meet, and a tenth do not", meeting > rounds / 10 && meeting < rounds - rounds / 10);
}

/* Both arcs of each meet exactly, or are apart by some nanometres. */
static void
test_touching(void)
{
	static const struct
	{
		struct arc	one;
		struct arc	other;
		bool		meet;
	}			pairs[] = {
		{{{0, 0}, {0, 10}}, {{0, 10}, {0, 20}}, true},	/* one end */
		{{{0, 0}, {0, 10}}, {{0, 5}, {7, 5}}, true},	/* an end on the other arc */
		{{{0, 0}, {0, 10}}, {{0, 5}, {0, 15}}, true},	/* overlapping */
		{{{0, 0}, {0, 90}}, {{0, 5}, {0, 15}}, true},	/* one in the other */
		{{{0, 0}, {0, 10}}, {{0, 10.0000001}, {0, 15}}, false},
		{{{0, 0}, {0, 10}}, {{0, 180}, {0, 190}}, false},	/* the antipodes */
		{{{-10, 5}, {10, 5}}, {{0, 180}, {0, 190}}, false},	/* would cross the other arc's antipode */
		{{{80, 0}, {80, 180}}, {{80, 90}, {80, -90}}, true},	/* cross at the pole */
		{{{80, 0}, {90, 0}}, {{80, 90}, {80, -90}}, true},	/* end at the pole */
		{{{80, 0}, {89.9999999, 0}}, {{80, 90}, {80, -90}}, false},
		{{{90, 17}, {0, 17}}, {{90, -120}, {0, -120}}, true},
		{{{-1, 180}, {1, 180}}, {{0, 179}, {0, -179}}, true},	/* across the meridian of 180 degrees */
		{{{-1, -180}, {1, -180}}, {{0, 180}, {0, 181}}, true},
		{{{-1, -180}, {1, -180}}, {{0, 180.0000001}, {0, 181}}, false},
		{{{0, 45}, {0, 45}}, {{0, 45}, {0, 45}}, true},	/* without length */
		{{{1, 45}, {1, 45}}, {{0, 45}, {2, 45}}, false},	/* not exactly on it; see test_pairs() */
	};
	long		failures = 0;

	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
	{
		double		distance = distance_of(pairs[i].one, pairs[i].other);

		if (i == sizeof(pairs) / sizeof(pairs[0]) - 1)
			failures += !(distance < 1e-8);
		else
			failures += pairs[i].meet ? distance != 0.0 : !(distance > 1e-3);
	}
	report_failures("arcs that touch in degrees are at distance 0", failures);
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		pairs = argc > 2 ? strtol(argv[2], NULL, 0) : 100000;

	random_state = seed;
	printf("seed %llu, %ld pairs\n", (unsigned long long) seed, pairs);

	test_touching();
	test_meeting(10 * pairs);
	test_pairs(pairs);
	return summed_up();
}
