/*
 * shape_oracle.c
 *		Shapes, and the distances of points to them in __float128.
 *
 * It shares no code and no formula with src/common/arc.c and ring.c.  Of the degrees it makes
 * vectors with 33 digits.  The place of an arc that is nearest to p is found by
 * its angle from the arc's beginning, in a basis of the arc's plane, and the distance by
 * 2 atan2(|p - f|, |p + f|).  Whether p is inside a ring the sum of the angles
 * tells under which p sees its arcs: so many full turns as the ring winds
 * about p, where the antipode of p is outside, as for all rings within a
 * hemisphere around a centre that their maker knows.
 *
 * Two arcs meet where their planes do, if that place has no part against the direction from either end to the
 * other, on both arcs; an arc of less than 10 picometres is its ends alone.  Where they nearly meet, or are nearly on
 * one circle, rounding may say the opposite, and the distance is as good as 0 in either case.
 */
#include "shape_oracle.h"

#include <math.h>
#include <stdbool.h>

#include "degrees.h"

struct wide
{
	__float128	x;
	__float128	y;
	__float128	z;
};

static struct wide
wide_vector(struct point point)
{
	__float128	vector[3];

	oracle_unit_vector(point.latitude, point.longitude, vector);
	return (struct wide) {vector[0], vector[1], vector[2]};
}

static struct wide
wide_sum(__float128 s, struct wide u, __float128 t, struct wide v)
{
	return (struct wide) {s * u.x + t * v.x, s * u.y + t * v.y, s * u.z + t * v.z};
}

static __float128
wide_dot(struct wide u, struct wide v)
{
	return u.x * v.x + u.y * v.y + u.z * v.z;
}

static __float128
wide_length(struct wide u)
{
	return sqrtq(wide_dot(u, u));
}

static __float128
wide_angle(struct wide u, struct wide v)
{
	return 2 * atan2q(wide_length(wide_sum(1, u, -1, v)), wide_length(wide_sum(1, u, 1, v)));
}

static __float128
oracle_arc_angle(struct wide p, struct wide a, struct wide b)
{
	__float128	to_a = wide_angle(p, a);
	__float128	to_b = wide_angle(p, b);
	__float128	nearest = to_a < to_b ? to_a : to_b;
	__float128	arc = wide_angle(a, b);
	struct wide across;
	__float128	turn;
	__float128	sine;
	__float128	cosine;

	if (arc < 1e-30)
		return nearest;
	across = wide_sum(1, b, -wide_dot(a, b), a);
	across = wide_sum(1 / wide_length(across), across, 0, across);
	turn = atan2q(wide_dot(p, across), wide_dot(p, a));
	if (turn < 0 || turn > arc)
		return nearest;
	sincosq(turn, &sine, &cosine);
	return wide_angle(p, wide_sum(cosine, a, sine, across));
}

static struct wide
wide_cross(struct wide u, struct wide v)
{
	return (struct wide) {u.y * v.z - u.z * v.y, u.z * v.x - u.x * v.z, u.x * v.y - u.y * v.x};
}

/* Is a place of the arc's circle on the arc, or its antipode if `sign` is -1? */
static bool
is_on_arc(struct wide place, int sign, struct wide a, struct wide b)
{
	__float128	cosine = wide_dot(a, b);

	return sign * wide_dot(place, wide_sum(1, b, -cosine, a)) >= 0 && sign * wide_dot(place, wide_sum(1, a, -cosine, b)) >= 0;
}

static __float128
oracle_arcs_angle(struct wide a, struct wide b, struct wide c, struct wide d)
{
	struct wide place = wide_cross(wide_cross(a, b), wide_cross(c, d));
	__float128	angles[4] = {oracle_arc_angle(a, c, d), oracle_arc_angle(b, c, d), oracle_arc_angle(c, a, b),
	oracle_arc_angle(d, a, b)};
	__float128	nearest = angles[0];

	for (int sign = -1; sign <= 1 && wide_angle(a, b) > 1e-18 && wide_angle(c, d) > 1e-18; sign += 2)
		if (wide_length(place) > 0 && is_on_arc(place, sign, a, b) && is_on_arc(place, sign, c, d))
			return 0;
	for (int i = 1; i < 4; i++)
		nearest = angles[i] < nearest ? angles[i] : nearest;
	return nearest;
}

__float128
oracle_arcs_distance(struct point a, struct point b, struct point c, struct point d)
{
	return oracle_arcs_angle(wide_vector(a), wide_vector(b), wide_vector(c), wide_vector(d)) *
		(__float128) GEONN_SPHERE_RADIUS;
}

/* in turns: how often a ring winds about p, less how often about its antipode */
static double
oracle_winding(struct wide p, const struct wide *ring, int count)
{
	struct wide axis = fabsq(p.z) < 0.7 ? (struct wide) {0, 0, 1} : (struct wide) {1, 0, 0};
	struct wide up = wide_sum(1, axis, -wide_dot(axis, p), p);
	struct wide side = wide_cross(p, up);
	__float128	sum = 0;

	for (int i = 1; i < count; i++)
	{
		__float128	u1 = wide_dot(ring[i - 1], up);
		__float128	v1 = wide_dot(ring[i - 1], side);
		__float128	u2 = wide_dot(ring[i], up);
		__float128	v2 = wide_dot(ring[i], side);

		sum += atan2q(u1 * v2 - v1 * u2, u1 * u2 + v1 * v2);
	}
	return (double) (sum / (2 * M_PIq));
}

__float128
oracle_shape_distance(const struct shape *shape, struct point point)
{
	struct wide p = wide_vector(point);
	struct wide centre = wide_vector(shape->centre);
	__float128	nearest = 4;
	long		windings = 0;

	for (int i = 0; i < shape->count; i++)
	{
		const struct chain *chain = &shape->chains[i];
		struct wide ring[MOST_VERTICES];

		for (int j = 0; j < chain->count; j++)
		{
			ring[j] = wide_vector(chain->vertices[j]);
			if (j > 0)
			{
				__float128	angle = oracle_arc_angle(p, ring[j - 1], ring[j]);

				nearest = angle < nearest ? angle : nearest;
			}
		}
		if (shape->is_polygon && wide_dot(p, centre) > 0 && nearest > 1e-25)
			windings += lrint(oracle_winding(p, ring, chain->count));
	}
	return windings % 2 ? 0 : nearest * (__float128) GEONN_SPHERE_RADIUS;
}

/* ---- two shapes ---- */

/* Can two arcs be nearer than an angle?  Spheres around their chords say so, which are wider by what an arc may rise. */
static bool
may_be_nearer(const struct wide *one, const struct wide *other, __float128 angle)
{
	const struct wide *ends[2] = {one, other};
	double		middles[2][3];
	double		reach = 2 * sin(fmin((double) angle, M_PI) / 2) + 1e-9;
	double		square = 0;

	for (int i = 0; i < 2; i++)
	{
		struct wide a = ends[i][0];
		struct wide b = ends[i][1];
		double		chord = sqrt(pow((double) (a.x - b.x), 2) + pow((double) (a.y - b.y), 2) +
								 pow((double) (a.z - b.z), 2));

		middles[i][0] = (double) (a.x + b.x) / 2;
		middles[i][1] = (double) (a.y + b.y) / 2;
		middles[i][2] = (double) (a.z + b.z) / 2;
		reach += chord / 2 + chord * chord / 4;
	}
	for (int i = 0; i < 3; i++)
		square += pow(middles[0][i] - middles[1][i], 2);
	return sqrt(square) <= reach;
}

/* Write the vectors of a chain; a point is an arc without length.  Returns how many. */
static int
wide_chain(const struct chain *chain, struct wide *ring)
{
	for (int i = 0; i < chain->count; i++)
		ring[i] = wide_vector(chain->vertices[i]);
	ring[chain->count] = ring[0];
	return chain->count > 1 ? chain->count : 2;
}

static __float128
oracle_chains_angle(const struct chain *one, const struct chain *other, __float128 nearest)
{
	struct wide a[MOST_VERTICES + 1];
	struct wide c[MOST_VERTICES + 1];
	int			count = wide_chain(one, a);
	int			other_count = wide_chain(other, c);

	for (int i = 0; i + 1 < count; i++)
		for (int j = 0; j + 1 < other_count; j++)
		{
			__float128	angle;

			if (!may_be_nearer(&a[i], &c[j], nearest))
				continue;
			angle = oracle_arcs_angle(a[i], a[i + 1], c[j], c[j + 1]);
			nearest = angle < nearest ? angle : nearest;
		}
	return nearest;
}

/* Does a polygon wind about the first vertex of a part of the other shape? */
static bool
winds_about_part(const struct shape *polygon, const struct shape *other)
{
	struct wide centre = wide_vector(polygon->centre);

	for (int i = 0; i < other->count; i++)
	{
		struct wide p = wide_vector(other->chains[i].vertices[0]);
		long		windings = 0;

		for (int j = 0; j < polygon->count && wide_dot(p, centre) > 0; j++)
		{
			struct wide ring[MOST_VERTICES + 1];
			int			count = wide_chain(&polygon->chains[j], ring);

			windings += lrint(oracle_winding(p, ring, count));
		}
		if (windings % 2)
			return true;
	}
	return false;
}

__float128
oracle_shapes_distance(const struct shape *one, const struct shape *other)
{
	__float128	nearest = 4;

	for (int i = 0; i < one->count; i++)
		for (int j = 0; j < other->count; j++)
			nearest = oracle_chains_angle(&one->chains[i], &other->chains[j], nearest);
	if (nearest > 1e-25 && ((one->is_polygon && winds_about_part(one, other)) ||
							(other->is_polygon && winds_about_part(other, one))))
		return 0;
	return nearest * (__float128) GEONN_SPHERE_RADIUS;
}

double
oracle_middle_error(struct point a, struct point b, struct geonn_vector middle)
{
	struct wide truth = wide_sum(1, wide_vector(a), 1, wide_vector(b));

	truth = wide_sum(1 / wide_length(truth), truth, 0, truth);
	return (double) wide_length(wide_sum(1, truth, -1, (struct wide) {middle.x, middle.y, middle.z}));
}
