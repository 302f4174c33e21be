/*
 * hostile_test.c
 *		Whether the geometry of src/common gives numbers, within their ranges and right, at hostile coordinates.
 *
 * Usage: hostile_test [seed [cases]].  All coordinates are from the pools of hostile.h: subnormal and tiny ones, both
 * zeros, the poles and the antimeridian with their neighbours, and so points that coincide or are antipodal, arcs
 * through poles, and points at the pole of an arc's great circle.  The oracles are in __float128.
 *
 * rooms: common
 */
#include <math.h>
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/arc.h"
#include "common/metric.h"
#include "common/ring.h"
#include "engine/search/space_curve.h"
#include "../lib/degrees.h"
#include "../lib/hostile.h"
#include "../lib/shape_oracle.h"
#include "../lib/verdict.h"

#define LIMIT_NANOMETRES 10.0
#define PLACE_NANOMETRES 20.0
#define LONGEST 20015115.0

static bool
is_within(double value, double low, double high)
{
	return value >= low && value <= high;
}

/* Note an error, where NaN is the worst of all. */
static void
note(double *worst, double error)
{
	if (!(error <= *worst))
		*worst = isnan(error) ? INFINITY : error;
}

static bool
is_unit(struct geonn_vector v)
{
	return is_within(geonn_dot(v, v), 1.0 - 0x1p-50, 1.0 + 0x1p-50);
}

static struct geonn_vector
vector_of(struct point point)
{
	return geonn_unit_vector(point.latitude, point.longitude);
}

/* the oracle's distance from a point to the arc between two others, in metres */
static double
distance_to_arc(struct point point, struct point a, struct point b)
{
	struct shape shape = {.count = 1};

	shape.chains[0] = (struct chain) {2, {a, b}};
	return (double) oracle_shape_distance(&shape, point);
}

/* ---- points ---- */

/* Whether a squared chord and a distance keep what the limits of a metric promise. */
static bool
limits_hold(enum geonn_metric metric, double square, double distance)
{
	static const double none[] = {-1.0, -5e-324, NAN};
	double		wide = geonn_metric_wide_limit(metric, distance);
	double		certain = geonn_metric_certain_limit(metric, nextafter(distance, -1.0));
	bool		hold = geonn_metric_chord_limit(metric, square) >= square &&
		geonn_metric_radius_limit(metric, distance) >= square && wide >= square &&
		geonn_metric_certain_limit(metric, distance) <= geonn_metric_radius_limit(metric, distance) &&
		!(square <= certain);

	for (int i = 0; i < 3; i++)
		hold = hold && !(square <= geonn_metric_certain_limit(metric, none[i])) &&
			geonn_metric_reach(distance, none[i]) == -1.0;
	return hold && isinf(geonn_metric_radius_limit(metric, NAN));
}

static bool
is_sphere_right(struct point a, struct point b, double *worst)
{
	struct geonn_vector u = vector_of(a);
	struct geonn_vector v = vector_of(b);
	double		square = geonn_chord_squared(u, v);
	double		distance = geonn_distance_of(u, v);
	double		near = square;

	note(worst, fabs(distance - distance_to_arc(a, b, b)) * 1e9);
	geonn_metric_near_distances(GEONN_METRIC_SPHERE, &near, 1);
	return is_unit(u) && is_within(square, 0.0, 4.0 + 0x1p-48) &&
		is_within(geonn_antichord_squared(u, v), 0.0, 4.0 + 0x1p-48) &&
		is_within(distance, 0.0, LONGEST) && distance == geonn_distance_of(v, u) &&
		(square > GEONN_NEAR_CHORD || near == distance) && limits_hold(GEONN_METRIC_SPHERE, square, distance);
}

static bool
is_spheroid_right(struct point a, struct point b)
{
	struct geonn_vector u = geonn_spheroid_vector(a.latitude, a.longitude);
	double		square = geonn_chord_squared(u, geonn_spheroid_vector(b.latitude, b.longitude));
	double		distance = geonn_spheroid_distance(a.latitude, a.longitude, b.latitude, b.longitude);

	return is_within(geonn_dot(u, u), 0.99, 1.0 + 0x1p-50) && is_within(square, 0.0, 4.0 + 0x1p-48) &&
		is_within(distance, 0.0, LONGEST) &&
		is_within(geonn_spheroid_azimuth(a.latitude, a.longitude, b.latitude, b.longitude), -180.0, 180.0) &&
		limits_hold(GEONN_METRIC_SPHEROID, square, distance);
}

/* Whether a vector has a place on the curve. */
static bool
is_on_curve(struct geonn_vector vector)
{
	return space_curve_code(vector, SPACE_CURVE_LEVELS) < UINT64_C(6) << (2 * SPACE_CURVE_LEVELS);
}

static void
test_pairs(long count)
{
	long		wrong_sphere = 0;
	long		wrong_spheroid = 0;
	long		off_curve = 0;
	double		worst = 0.0;

	for (long i = 0; i < count; i++)
	{
		struct point a = hostile_point();
		struct point b = random_below(20) ? hostile_point() : a;

		wrong_sphere += !is_sphere_right(a, b, &worst);
		wrong_spheroid += !is_spheroid_right(a, b);
		off_curve += !is_on_curve(vector_of(a)) || !is_on_curve(geonn_spheroid_vector(a.latitude, a.longitude));
	}
	report_failures("vectors, chords, distances and limits of the sphere are within their ranges", wrong_sphere);
	report_measure("distances are within 10 nm", worst <= LIMIT_NANOMETRES, "worst error", worst, "nm");
	report_failures("those of the spheroid are, and azimuths", wrong_spheroid);
	report_failures("each vector has a place on the curve", off_curve);
}

/* ---- degrees of vectors ---- */

static void
test_degrees(long count)
{
	long		wrong = 0;
	double		worst = 0.0;

	for (long i = 0; i < count; i++)
	{
		double		scale = random_below(2) ? 1.0 : 0x1p-390;
		struct geonn_vector v = {scale * hostile_latitude(), scale * hostile_latitude(), scale * hostile_latitude()};
		__float128	flat = hypotq(v.x, v.y);
		double		latitude;
		double		longitude;

		if (fmax(fmax(fabs(v.x), fabs(v.y)), fabs(v.z)) < 0x1p-400)
			continue;
		geonn_vector_degrees(v, &latitude, &longitude);
		wrong += !is_within(latitude, -90.0, 90.0) || !is_within(longitude, -180.0, 180.0) ||
			(v.x == 0.0 && v.y == 0.0 && longitude != 0.0);
		note(&worst, (double) fabsq(latitude * (M_PIq / 180) - atan2q(v.z, flat)) * 0x1p+53);
		if (flat > 0)
			note(&worst, (double) fabsq(remainderq(longitude * (M_PIq / 180) - atan2q(v.y, v.x), 2 * M_PIq)) * 0x1p+53);
	}
	report_failures("the degrees of vectors are within their ranges", wrong);
	report_measure("each is within 8.7 of 2^-53", worst <= 8.7, "worst error", worst, "of 2^-53");
}

/* ---- arcs ---- */

/* The vectors of an arc's ends and of its middle, where it is long; returns how many. */
static size_t
vectors_of_arc(struct point a, struct point b, struct geonn_vector *vectors)
{
	size_t		count = 0;

	vectors[count++] = vector_of(a);
	if (geonn_arc_is_long(vector_of(a), vector_of(b)))
		vectors[count++] = geonn_arc_middle(a.latitude, a.longitude, b.latitude, b.longitude);
	vectors[count++] = vector_of(b);
	return count;
}

struct feet
{
	long		found;
	long		undefined;		/* of points at the pole of an arc's great circle */
	long		wrong;
	double		worst;			/* nanometres */
};

/* Look at the foot of a point on the arc a-b, or on the half of it between two vectors. */
static void
look_at_foot(struct feet *feet, struct point p, struct point a, struct point b, const struct geonn_vector *half)
{
	double		distance = geonn_foot_distance(vector_of(p), half[0], half[1]);
	struct geonn_vector foot = geonn_arc_foot(vector_of(p), half[0], half[1]);
	struct point place;

	feet->wrong += !(isinf(distance) || is_within(distance, 0.0, LONGEST / 2));
	if (!(distance <= LONGEST / 2))
		return;
	if (geonn_dot(foot, foot) < 0x1p-800)
	{
		feet->undefined++;
		note(&feet->worst, fabs(distance - geonn_distance_of(vector_of(p), half[1])) * 1e9);
		return;
	}
	feet->found++;
	geonn_vector_degrees(foot, &place.latitude, &place.longitude);
	feet->wrong += !is_within(place.latitude, -90.0, 90.0) || !is_within(place.longitude, -180.0, 180.0);
	note(&feet->worst, distance_to_arc(place, a, b) * 1e9);
	note(&feet->worst, fabs(distance_to_arc(place, p, p) - distance) * 1e9);
}

static void
test_arcs(long count)
{
	struct feet feet = {0};
	long		wrong_middles = 0;
	double		worst = 0.0;

	for (long i = 0; i < count; i++)
	{
		struct point a = hostile_point();
		struct point b = hostile_point();
		struct point p = hostile_point();
		struct geonn_vector vectors[3];
		size_t		vertices;

		if (geonn_arc_is_antipodal(vector_of(a), vector_of(b)))
			continue;
		vertices = vectors_of_arc(a, b, vectors);
		wrong_middles += vertices == 3 &&
			(!is_unit(vectors[1]) || !(oracle_middle_error(a, b, vectors[1]) <= 2.25 * 0x1p-53));
		for (size_t j = 1; j < vertices; j++)
			look_at_foot(&feet, p, a, b, &vectors[j - 1]);
		note(&worst, fabs(geonn_chain_distance(vector_of(p), vectors, vertices) - distance_to_arc(p, a, b)) * 1e9);
	}
	report_failures("middles of long arcs are within 2.25 of 2^-53", wrong_middles);
	report_measure("distances to arcs are within 10 nm", worst <= LIMIT_NANOMETRES, "worst error", worst, "nm");
	report_failures("distances and degrees of feet are within their ranges", feet.wrong);
	report_measure("feet are within 20 nm of their arcs, and as far as the distances say", feet.worst <= PLACE_NANOMETRES,
				   "worst error", feet.worst, "nm");
	report("many points have feet, and some are poles of great circles", feet.found > count / 50 && feet.undefined > 0);
}

/* ---- rings ---- */

/* Make the vectors of a ring around three points.  False: two of them are antipodal. */
static bool
make_ring(const struct point *corner, struct geonn_vector *ring, size_t *count)
{
	*count = 0;
	for (int i = 0; i < 3; i++)
	{
		if (geonn_arc_is_antipodal(vector_of(corner[i]), vector_of(corner[(i + 1) % 3])))
			return false;
		/* the end of one arc is the beginning of the next */
		*count += vectors_of_arc(corner[i], corner[(i + 1) % 3], ring + *count) - 1;
	}
	(*count)++;
	return true;
}

static void
test_rings(long count)
{
	long		off_border = 0;
	long		differing = 0;
	long		inside = 0;

	for (long i = 0; i < count; i++)
	{
		struct point corner[3] = {hostile_point(), hostile_point(), hostile_point()};
		struct point p = hostile_point();
		struct geonn_vector ring[7];
		struct geonn_vector reversed[7];
		size_t		vertices;
		bool		pole;
		bool		pole_of_reversed;
		enum geonn_side side;

		if (!make_ring(corner, ring, &vertices) || !geonn_ring_holds_pole(ring, vertices, NULL, &pole))
			continue;
		for (size_t j = 0; j < vertices; j++)
		{
			reversed[vertices - 1 - j] = ring[j];
			off_border += geonn_ring_side(ring, vertices, pole, ring[j]) != GEONN_ON_BORDER;
		}
		side = geonn_ring_side(ring, vertices, pole, vector_of(p));
		differing += !geonn_ring_holds_pole(reversed, vertices, NULL, &pole_of_reversed) || pole != pole_of_reversed ||
			side != geonn_ring_side(reversed, vertices, pole, vector_of(p)) ||
			(side == GEONN_INSIDE && geonn_chain_distance(vector_of(p), ring, vertices) > LONGEST / 2);
		inside += side == GEONN_INSIDE;
	}
	report_failures("vertices of rings are on their borders", off_border);
	report_failures("a ring has the same sides backwards", differing);
	report("some points are inside", inside > count / 1000);
}

int
main(int argc, char **argv)
{
	long		count = argc > 2 ? strtol(argv[2], NULL, 0) : 30000;

	random_state = argc > 1 ? strtoull(argv[1], NULL, 0) : random_state;
	printf("seed %llu, %ld cases\n", (unsigned long long) random_state, count);
	test_pairs(count);
	test_degrees(count);
	test_arcs(count);
	test_rings(count);
	return summed_up();
}
