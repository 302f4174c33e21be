/*
 * arc.h
 *		Arcs of great circles, and how far a point is from them: the same bits everywhere
 *
 * A line or a ring of a shape is a chain of arcs: between two vertices lies the
 * shorter of the two arcs of their great circle.  The distance of a point to a
 * chain is the least of its distances to the vertices, which
 * geonn_distance_of() computes, and of its distances to the arcs whose great
 * circle has the point's foot between the ends, which geonn_foot_distance()
 * computes here.  So a vertex gives the bits that a point at its place gives.
 *
 * Chains are arrays of vectors.  An arc longer than a quarter circle has its
 * middle as one more vertex (geonn_arc_middle()): then no arc between two
 * neighbouring vectors is longer, which the error budget needs, and so do boxes
 * around arcs.  Ends that are antipodal have no shorter arc, and ends within 6
 * micrometres of that are refused as well (geonn_arc_is_antipodal()).
 *
 * As in geodesy.h, all operations are + - * / sqrt fma, in a given order.
 *
 *
 * Error budget
 *
 * e stands for 2^-53; 10 nm are 14.13 e (geodesy.h).  A value with two
 * float64 parts, struct geonn_sum, has some 2^-104 of relative error, which is
 * left out, as are terms in e^2.
 *
 *	1.	Vectors.  The distance of a point to a set changes at most by what the
 *		point moves, and at most by what the set moves.  The vector of the
 *		point is within 2.25 e of the truth, and so are the ends of the arc.
 *		At the fraction t of an arc of the angle w, an end's error counts
 *		sin((1 - t) w) / sin(w) or sin(t w) / sin(w), together at most
 *		1 / cos(w / 2), the value at the middle.  Up to a quarter circle that is
 *		1.4143: the arc is within 3.19 e.  Together 5.44 e.
 *
 *	2.	Foot.  With n = a x b, the foot lies between the ends where
 *		(n x a) . p and (b x n) . p are not negative.  Both are computed
 *		in two parts, from the products of the given vectors, and are off by
 *		2^-98 |n|.  Where that makes a difference, the foot is as near to an
 *		end, and the two distances differ by less than 2^-48 of an e.
 *
 *	3.	Angle.  With h = |n . p| and g = |n x p| the angle is atan(h / g), whatever
 *		the lengths of the vectors are.  h is rounded once; g^2 is the sum of the
 *		squares of three rounded parts, relatively within 5 e.  So h / g is within
 *		3.5 e, and moves the angle by 3.5 e * sin * cos <= 1.75 e.
 *
 *	4.	Near branch, h <= g: the sine h / sqrt(h^2 + g^2) has three roundings, 2.5 e
 *		relatively, which are 2.5 e in the angle at 45 degrees.  Arc sine
 *		0.65 e, product 0.66 e.  With 1. and 3. 11.0 e = 7.8 nm.
 *
 *	5.	Far branch, h > g: the cosine has the rounding of g besides, 3.5 e.
 *		The subtraction from a quarter circle, in two parts, adds 1.32 e where the
 *		result is below 2^23 m: 5.44 + 1.75 + 3.5 + 0.65 + 1.32 = 12.7 e = 9.0
 *		nm.  From 2^23 m on (75.4 degrees) it adds 2.64 e, and the terms of the
 *		angle have factors below 0.26: 10.2 e.
 *
 * Arcs shorter than a chord of 2^-100 are their ends alone.
 */
#ifndef GEONN_ARC_H
#define GEONN_ARC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/geodesy.h"

/* ---- numbers of two parts ---- */

/* The sum of two numbers, of which low is at most half a unit in the last place of high */
struct geonn_sum
{
	double		high;
	double		low;
};

/* Return the sum of two parts as a normalized geonn_sum; |high| >= |low|, or high is 0 */
GEONN_GEODESY_FUNCTION struct geonn_sum
geonn_sum_of(double high, double low)
{
	struct geonn_sum sum = {high + low, 0.0};

	sum.low = low - (sum.high - high);
	return sum;
}

/* a + b exactly */
GEONN_GEODESY_FUNCTION struct geonn_sum
geonn_exact_sum(double a, double b)
{
	struct geonn_sum sum = {a + b, 0.0};
	double		b_part = sum.high - a;

	sum.low = (a - (sum.high - b_part)) + (b - b_part);
	return sum;
}

/* a * b exactly, unless it underflows */
GEONN_GEODESY_FUNCTION struct geonn_sum
geonn_exact_product(double a, double b)
{
	struct geonn_sum product = {a * b, 0.0};

	product.low = fma(a, b, -product.high);
	return product;
}

/* a + b, within 3 * 2^-106 relatively, even where the terms cancel */
GEONN_GEODESY_FUNCTION struct geonn_sum
geonn_sum_plus(struct geonn_sum a, struct geonn_sum b)
{
	struct geonn_sum high = geonn_exact_sum(a.high, b.high);
	struct geonn_sum low = geonn_exact_sum(a.low, b.low);

	high = geonn_sum_of(high.high, high.low + low.high);
	return geonn_sum_of(high.high, high.low + low.low);
}

GEONN_GEODESY_FUNCTION struct geonn_sum
geonn_sum_minus(struct geonn_sum a, struct geonn_sum b)
{
	struct geonn_sum negative = {-b.high, -b.low};

	return geonn_sum_plus(a, negative);
}

/* a * b, relatively within 2 * 2^-106 */
GEONN_GEODESY_FUNCTION struct geonn_sum
geonn_sum_times(struct geonn_sum a, double b)
{
	struct geonn_sum product = geonn_exact_product(a.high, b);

	return geonn_sum_of(product.high, fma(a.low, b, product.low));
}

/* ---- arcs ---- */

struct geonn_precise_vector
{
	struct geonn_sum x;
	struct geonn_sum y;
	struct geonn_sum z;
};

/* u x v, where the parts of v are exact */
GEONN_GEODESY_FUNCTION struct geonn_precise_vector
geonn_precise_cross(struct geonn_precise_vector u, struct geonn_vector v)
{
	struct geonn_precise_vector cross = {
		geonn_sum_minus(geonn_sum_times(u.y, v.z), geonn_sum_times(u.z, v.y)),
		geonn_sum_minus(geonn_sum_times(u.z, v.x), geonn_sum_times(u.x, v.z)),
		geonn_sum_minus(geonn_sum_times(u.x, v.y), geonn_sum_times(u.y, v.x))
	};

	return cross;
}

GEONN_GEODESY_FUNCTION double
geonn_precise_dot(struct geonn_precise_vector u, struct geonn_vector v)
{
	return geonn_sum_plus(geonn_sum_plus(geonn_sum_times(u.x, v.x), geonn_sum_times(u.y, v.y)),
						  geonn_sum_times(u.z, v.z)).high;
}

GEONN_GEODESY_FUNCTION double
geonn_dot(struct geonn_vector u, struct geonn_vector v)
{
	return fma(u.z, v.z, fma(u.y, v.y, u.x * v.x));
}

/*
 * Return whether the ends of an arc are antipodal, or within 6 micrometres of it: then no arc
 * between them is the shorter one, or their degrees hardly say which is.
 */
GEONN_GEODESY_FUNCTION bool
geonn_arc_is_antipodal(struct geonn_vector a, struct geonn_vector b)
{
	return geonn_antichord_squared(a, b) < 0x1p-80;
}

/* Return whether an arc is longer than a quarter circle; such an arc needs its middle as a vertex. */
GEONN_GEODESY_FUNCTION bool
geonn_arc_is_long(struct geonn_vector a, struct geonn_vector b)
{
	return geonn_dot(a, b) < 0.0;
}

/*
 * Return the distance in metres of the point p to the arc from a to b, if p's foot on the great circle
 * lies between the ends; otherwise INFINITY: an end is the nearest place.  The arc is at most a quarter
 * circle long; all vectors come from geonn_unit_vector() or geonn_arc_middle().  Within 10 nm (essay).
 *
 * First the signs of 2. are computed in float64, as (a . a) (b . p) - (a . b) (a . p) with a . a = 1, off
 * by less than 16 e: the three dot products by 3 e each, a . a by 4.5 e, the last step by 2 e.
 */
GEONN_GEODESY_FUNCTION double
geonn_foot_distance(struct geonn_vector p, struct geonn_vector a, struct geonn_vector b)
{
	const double quarter_circle_high = 0x1.31680a5a2bfcap+23;	/* pi R / 2 */
	const double quarter_circle_low = -0x1.facf3c1f4f616p-33;
	double		along = geonn_dot(a, b);
	double		from_a = geonn_dot(a, p);
	double		from_b = geonn_dot(b, p);
	struct geonn_precise_vector start = {{a.x, 0.0}, {a.y, 0.0}, {a.z, 0.0}};
	struct geonn_precise_vector normal;
	struct geonn_precise_vector across;
	double		height;
	double		base_squared;
	double		hypotenuse;
	double		product;

	if (from_b - along * from_a < -0x1p-48 || from_a - along * from_b < -0x1p-48 ||
		geonn_chord_squared(a, b) < 0x1p-200)
		return INFINITY;

	normal = geonn_precise_cross(start, b);
	if (geonn_precise_dot(geonn_precise_cross(normal, a), p) < 0.0 ||
		geonn_precise_dot(geonn_precise_cross(normal, b), p) > 0.0)
		return INFINITY;

	height = fabs(geonn_precise_dot(normal, p));
	across = geonn_precise_cross(normal, p);
	base_squared = fma(across.z.high, across.z.high,
					   fma(across.y.high, across.y.high, across.x.high * across.x.high));
	hypotenuse = sqrt(fma(height, height, base_squared));
	if (height * height <= base_squared)
		return GEONN_SPHERE_RADIUS * geonn_asin(height / hypotenuse);

	height = geonn_asin(sqrt(base_squared) / hypotenuse);
	product = GEONN_SPHERE_RADIUS * height;
	return (quarter_circle_high - product) +
		(quarter_circle_low - fma(GEONN_SPHERE_RADIUS, height, -product));
}

/*
 * An index cuts arcs into pieces of at most this length, in metres: the box of a longer arc holds too much beside it.  Among
 * 50,000 flight routes a search takes 2.4 times as long with pieces of 500 km, and a build twice as long with pieces of 100 km.
 */
#define GEONN_ARC_PIECE_METRES 250e3

#ifndef __CUDACC__

/*
 * Return into how many pieces of the same length an index cuts the arc between two valid points in degrees that are not
 * antipodal: an even number if the arc has a middle.  Searches measure the arc itself, however the index cuts it.
 */
extern uint32_t geonn_arc_pieces(double latitude1, double longitude1, double latitude2, double longitude2);

/*
 * Return the middle of the arc between two valid points in degrees that are neither equal nor
 * antipodal: a unit vector within 2.25 * 2^-53 of the true middle.
 */
extern struct geonn_vector geonn_arc_middle(double latitude1, double longitude1,
											double latitude2, double longitude2);

/*
 * Return the foot of the point p on the great circle of the arc from a to b; geonn_foot_distance() must have found the
 * foot between the ends.  The vector may have any length, and is off by at most 4 * 2^-53 if it is 2^-400 long or
 * longer.  A shorter vector says nothing: all places of the great circle are equally near to p, but for 2^-190.
 */
extern struct geonn_vector geonn_arc_foot(struct geonn_vector p, struct geonn_vector a, struct geonn_vector b);

/*
 * Find where the arcs from a to b and from c to d cross, whose geonn_arcs_distance() is 0: a vector of length 1, off by at most
 * 8 * 2^-53.  Returns false if their great circles are nearer to each other than 2^-50, by angle: then an end of one of the arcs
 * is within 6 nm of the other arc.
 */
extern bool geonn_arcs_crossing(struct geonn_vector a, struct geonn_vector b, struct geonn_vector c, struct geonn_vector d,
								struct geonn_vector *crossing);

/*
 * Find the degrees of a vector that is 2^-400 long or longer, off by at most 11.5 * 2^-53: a latitude, and
 * a longitude from -180 to 180, which is 0 for a pole.
 */
extern void geonn_vector_degrees(struct geonn_vector vector, double *latitude, double *longitude);

/*
 * Return the distance in metres of a point to a chain of `count` vectors, none of whose arcs is
 * longer than a quarter circle; INFINITY if the chain has no vectors.
 */
extern double geonn_chain_distance(struct geonn_vector point, const struct geonn_vector *chain,
								   size_t count);

/*
 * Return the distance in metres of the arcs from a to b and from c to d, each at most a quarter circle long, or a point where
 * both ends are equal: 0 where they touch or cross, as exact signs decide; within 10 nm (arc.c).  Each order of the arcs, and
 * of the ends of each, gives the same bits, and a point has those of geonn_chain_distance().  Vectors are those of
 * geonn_foot_distance().
 */
extern double geonn_arcs_distance(struct geonn_vector a, struct geonn_vector b, struct geonn_vector c, struct geonn_vector d);

#endif

#endif							/* GEONN_ARC_H */
