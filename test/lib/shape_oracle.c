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
 */
#include "shape_oracle.h"

#include <math.h>

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

/* in turns: how often a ring winds about p, less how often about its antipode */
static double
oracle_winding(struct wide p, const struct wide *ring, int count)
{
	struct wide axis = fabsq(p.z) < 0.7 ? (struct wide) {0, 0, 1} : (struct wide) {1, 0, 0};
	struct wide up = wide_sum(1, axis, -wide_dot(axis, p), p);
	struct wide side = {p.y * up.z - p.z * up.y, p.z * up.x - p.x * up.z, p.x * up.y - p.y * up.x};
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

double
oracle_middle_error(struct point a, struct point b, struct geonn_vector middle)
{
	struct wide truth = wide_sum(1, wide_vector(a), 1, wide_vector(b));

	truth = wide_sum(1 / wide_length(truth), truth, 0, truth);
	return (double) wide_length(wide_sum(1, truth, -1, (struct wide) {middle.x, middle.y, middle.z}));
}
