/*
 * ring_side.h
 *		Whether an arc crosses the meridian between a point and the north pole: exact signs, the same everywhere
 *
 * For ring.c, and for devices.
 *
 *
 * Crossings
 *
 * Let north(u, v) be the sign of det(N, u, v): positive where v lies to the
 * east of u, less than half a turn.  It is the sign of the third part of u x v.  An
 * arc from a to b crosses the great circle of p's meridian if one end is to the
 * east of p, north(p, .) > 0, and the other is not.  Of an eastward arc, det(a, b, p) < 0
 * says that the place of crossing is less than half a turn from p in
 * the direction of N, and north(a, b) > 0 that it is less than half a turn from
 * N in the direction of p.  Both together: it is between p and N.  For a
 * westward arc both signs change.
 *
 * So that N lies on no arc, it is moved by something infinitely small:
 * N = (d, d^2, 1).  Then det(N, u, v) has the sign of the first part of u x v
 * that is not 0, in the order z, x, y, and is 0 only where u and v are parallel
 * (the simulation of simplicity of Edelsbrunner and Muecke, for the one point
 * that all paths share).  Points and vertices are not moved.  A vertex parallel
 * to p is p itself, and p lies on the border; or it is p's antipode, and then
 * the two signs above do not hold together for any arc that begins or ends
 * there.  Where an arc crosses and det(a, b, p) is 0, it crosses in p or in the
 * antipode; north(a, b) tells which, and if it is p, p lies on the border.
 *
 *
 * Signs
 *
 * Signs are those of the exact values for the vectors as they are given.
 * Parts smaller than 2^-300 count as 0, a move of less than that, so that no
 * product underflows: parts are multiples of 2^-352, products of three parts of
 * 2^-1056.
 *
 * Rounding keeps the order, so a b > c d where the rounded products say so;
 * where they are equal, their rounding errors are compared, which are float64
 * values.
 *
 * Of a determinant of three vectors, each of the six products of three parts
 * takes part in five roundings: a product of two, the difference of two such, the
 * product with the third part, and two sums.  So the error is at most 5 * 2^-53 of
 * the sum of the absolute values, the permanent.  Where the determinant
 * exceeds 8 * 2^-53 of the computed permanent, it has the right sign.
 * Else the six products are written as 24 float64 values, whose sum is the
 * determinant, and added to an expansion (Shewchuk, "Adaptive precision
 * floating-point arithmetic and fast robust geometric predicates", 1997):
 * float64 values that do not overlap, in growing order, so that the last that is
 * not 0 has the sign.
 */
#ifndef GEONN_RING_SIDE_H
#define GEONN_RING_SIDE_H

#include "common/arc.h"
#include "common/ring.h"

#ifdef __CUDACC__
#define GEONN_RARE_FUNCTION static __host__ __device__ __noinline__
#else
#define GEONN_RARE_FUNCTION static __attribute__((noinline, unused))
#endif

GEONN_GEODESY_FUNCTION double
geonn_without_tiny(double part)
{
	return fabs(part) < 0x1p-300 ? 0.0 : part;
}

GEONN_GEODESY_FUNCTION struct geonn_vector
geonn_flattened(struct geonn_vector v)
{
	struct geonn_vector flat = {geonn_without_tiny(v.x), geonn_without_tiny(v.y), geonn_without_tiny(v.z)};

	return flat;
}

/* The sign of a d - b c */
GEONN_GEODESY_FUNCTION int
geonn_sign_of_minor(double a, double b, double c, double d)
{
	struct geonn_sum first = geonn_exact_product(a, d);
	struct geonn_sum second = geonn_exact_product(b, c);

	if (first.high != second.high)
		return first.high > second.high ? 1 : -1;
	return (first.low > second.low) - (first.low < second.low);
}

/* Return the sign of det(N, u, v): positive if v is to the east of u.  0 only for parallel vectors. */
GEONN_GEODESY_FUNCTION int
geonn_north(struct geonn_vector u, struct geonn_vector v)
{
	int			sign = geonn_sign_of_minor(u.x, u.y, v.x, v.y);

	if (sign == 0)
		sign = geonn_sign_of_minor(u.y, u.z, v.y, v.z);
	if (sign == 0)
		sign = geonn_sign_of_minor(u.z, u.x, v.z, v.x);
	return sign;
}

/*
 * Return whether a vector lies to the east of a point, by less than half a turn.  A path crosses the great circle of the
 * point's meridian an odd number of times if this differs for its two ends.
 */
GEONN_GEODESY_FUNCTION bool
geonn_is_east(struct geonn_vector point, struct geonn_vector vector)
{
	return geonn_north(geonn_flattened(point), geonn_flattened(vector)) > 0;
}

/* A sum of float64 values that do not overlap, in growing order, with room for all values of a determinant. */
struct geonn_expansion
{
	double		parts[24];
	int			count;
};

GEONN_GEODESY_FUNCTION void
geonn_expansion_add(struct geonn_expansion *expansion, double value)
{
	for (int i = 0; i < expansion->count; i++)
	{
		struct geonn_sum sum = geonn_exact_sum(value, expansion->parts[i]);

		expansion->parts[i] = sum.low;
		value = sum.high;
	}
	expansion->parts[expansion->count++] = value;
}

/* Add a * b * c, or take it away. */
GEONN_GEODESY_FUNCTION void
geonn_expansion_add_product(struct geonn_expansion *expansion, double a, double b, double c)
{
	struct geonn_sum product = geonn_exact_product(a, b);
	struct geonn_sum high = geonn_exact_product(product.high, c);
	struct geonn_sum low = geonn_exact_product(product.low, c);

	geonn_expansion_add(expansion, low.low);
	geonn_expansion_add(expansion, low.high);
	geonn_expansion_add(expansion, high.low);
	geonn_expansion_add(expansion, high.high);
}

GEONN_RARE_FUNCTION int
geonn_exact_orientation(struct geonn_vector a, struct geonn_vector b, struct geonn_vector p)
{
	struct geonn_expansion determinant = {{0.0}, 0};
	double		sum = 0.0;

	geonn_expansion_add_product(&determinant, a.y, b.z, p.x);
	geonn_expansion_add_product(&determinant, -a.z, b.y, p.x);
	geonn_expansion_add_product(&determinant, a.z, b.x, p.y);
	geonn_expansion_add_product(&determinant, -a.x, b.z, p.y);
	geonn_expansion_add_product(&determinant, a.x, b.y, p.z);
	geonn_expansion_add_product(&determinant, -a.y, b.x, p.z);
	for (int i = determinant.count - 1; i >= 0 && sum == 0.0; i--)
		sum = determinant.parts[i];
	return (sum > 0.0) - (sum < 0.0);
}

/* Return the sign of det(a, b, p): positive if p lies to the left of the arc from a to b. */
GEONN_GEODESY_FUNCTION int
geonn_orientation(struct geonn_vector a, struct geonn_vector b, struct geonn_vector p)
{
	double		determinant = (a.y * b.z - a.z * b.y) * p.x + (a.z * b.x - a.x * b.z) * p.y +
		(a.x * b.y - a.y * b.x) * p.z;
	double		permanent = (fabs(a.y * b.z) + fabs(a.z * b.y)) * fabs(p.x) +
		(fabs(a.z * b.x) + fabs(a.x * b.z)) * fabs(p.y) +
		(fabs(a.x * b.y) + fabs(a.y * b.x)) * fabs(p.z);

	if (fabs(determinant) > 0x1p-50 * permanent)
		return determinant > 0.0 ? 1 : -1;
	return geonn_exact_orientation(a, b, p);
}

/*
 * Return whether the arc from a to b crosses the meridian between p and the north pole: GEONN_INSIDE if it does.  `from`
 * and `to` are geonn_north(p, a) and geonn_north(p, b); all vectors are flattened, and neither end is p.
 */
GEONN_GEODESY_FUNCTION enum geonn_side
geonn_arc_crossing(struct geonn_vector p, struct geonn_vector a, int from, struct geonn_vector b, int to)
{
	int			eastward = to > 0 ? 1 : -1;
	int			turn;

	if ((from > 0) == (to > 0) || geonn_north(a, b) != eastward)
		return GEONN_OUTSIDE;
	turn = geonn_orientation(a, b, p);
	return turn == 0 ? GEONN_ON_BORDER : turn != eastward ? GEONN_INSIDE : GEONN_OUTSIDE;
}

#endif							/* GEONN_RING_SIDE_H */
