/*
 * ring.c
 *		On which side of a ring of arcs a point lies.
 *
 * A ring divides the sphere into two sides: two points lie on the same side if
 * a path between them crosses the ring an even number of times.  The path from a
 * point p is the arc of its meridian to the north pole N, so that all depends on
 * the crossings of the ring's arcs with that meridian, and on one bit of
 * the ring: whether N is inside.
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
 *
 *
 * The smaller side
 *
 * A ring whose vertices lie in an open hemisphere has the opposite hemisphere
 * outside: no arc reaches it, so that its side has more than half of the
 * sphere's area, also where the ring crosses itself.  PostGIS takes as outside a
 * point that is outside the ring's box in x, y and z, which it has widened to the
 * axes that the ring is around; the smaller side lies within that box, so that both
 * agree.  The centre of such a hemisphere is looked for as a perceptron learns:
 * vertices that are not in front of it are added to it.
 *
 * Of other rings the area tells: the sum of the signed areas of the triangles
 * between the antipode of a point q and the arcs is the area of the side
 * without q, as no triangle reaches q.  Here a ring that crosses itself has its
 * parts counted as often as it winds about them.  q is one of some points to
 * which no arc comes near, since there triangles change their sign.  Each
 * triangle's area is within 2^-36: its volume and its sum are within
 * 20 * 2^-53, and not both below 2^-10.  An area that differs from half of the
 * sphere's by less than 2^-36 times the number of arcs is not decided.
 */
#include "common/ring.h"

#include <math.h>

#include "common/arc.h"

/* ---- exact signs ---- */

static double
without_tiny(double part)
{
	return fabs(part) < 0x1p-300 ? 0.0 : part;
}

static struct geonn_vector
flattened(struct geonn_vector v)
{
	struct geonn_vector flat = {without_tiny(v.x), without_tiny(v.y), without_tiny(v.z)};

	return flat;
}

/* The sign of a d - b c */
static int
sign_of_minor(double a, double b, double c, double d)
{
	struct geonn_sum first = geonn_exact_product(a, d);
	struct geonn_sum second = geonn_exact_product(b, c);

	if (first.high != second.high)
		return first.high > second.high ? 1 : -1;
	return (first.low > second.low) - (first.low < second.low);
}

/* The sign of det(N, u, v): positive where v is to the east of u.  0 only for parallel vectors. */
static int
north(struct geonn_vector u, struct geonn_vector v)
{
	int			sign = sign_of_minor(u.x, u.y, v.x, v.y);

	if (sign == 0)
		sign = sign_of_minor(u.y, u.z, v.y, v.z);
	if (sign == 0)
		sign = sign_of_minor(u.z, u.x, v.z, v.x);
	return sign;
}

bool
geonn_ring_is_east(struct geonn_vector point, struct geonn_vector vector)
{
	return north(flattened(point), flattened(vector)) > 0;
}

/* float64 values that do not overlap, in growing order, with room for those that a determinant has */
struct expansion
{
	double		parts[24];
	int			count;
};

static void
grow(struct expansion *expansion, double value)
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
static void
grow_by_product(struct expansion *expansion, double a, double b, double c)
{
	struct geonn_sum product = geonn_exact_product(a, b);
	struct geonn_sum high = geonn_exact_product(product.high, c);
	struct geonn_sum low = geonn_exact_product(product.low, c);

	grow(expansion, low.low);
	grow(expansion, low.high);
	grow(expansion, high.low);
	grow(expansion, high.high);
}

static int
exact_orientation(struct geonn_vector a, struct geonn_vector b, struct geonn_vector p)
{
	struct expansion determinant = {.count = 0};
	double		sum = 0.0;

	grow_by_product(&determinant, a.y, b.z, p.x);
	grow_by_product(&determinant, -a.z, b.y, p.x);
	grow_by_product(&determinant, a.z, b.x, p.y);
	grow_by_product(&determinant, -a.x, b.z, p.y);
	grow_by_product(&determinant, a.x, b.y, p.z);
	grow_by_product(&determinant, -a.y, b.x, p.z);
	for (int i = determinant.count - 1; i >= 0 && sum == 0.0; i--)
		sum = determinant.parts[i];
	return (sum > 0.0) - (sum < 0.0);
}

/* The sign of det(a, b, p): positive where p lies to the left of the arc from a to b. */
static int
orientation(struct geonn_vector a, struct geonn_vector b, struct geonn_vector p)
{
	double		determinant = (a.y * b.z - a.z * b.y) * p.x + (a.z * b.x - a.x * b.z) * p.y +
		(a.x * b.y - a.y * b.x) * p.z;
	double		permanent = (fabs(a.y * b.z) + fabs(a.z * b.y)) * fabs(p.x) +
		(fabs(a.z * b.x) + fabs(a.x * b.z)) * fabs(p.y) +
		(fabs(a.x * b.y) + fabs(a.y * b.x)) * fabs(p.z);

	if (fabs(determinant) > 0x1p-50 * permanent)
		return determinant > 0.0 ? 1 : -1;
	return exact_orientation(a, b, p);
}

/* ---- crossings ---- */

static void
pause_at(size_t i, geonn_ring_pause pause)
{
	if (i % GEONN_RING_PIECE == GEONN_RING_PIECE - 1 && pause != NULL)
		pause();
}

/*
 * Count the arcs that cross the meridian between a point and the north pole: GEONN_INSIDE if their number is
 * odd.
 */
static enum geonn_side
side_from_pole(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause, struct geonn_vector point)
{
	struct geonn_vector p = flattened(point);
	struct geonn_vector a = {0.0, 0.0, 0.0};
	int			from = 0;
	unsigned	crossings = 0;

	for (size_t i = 0; i < count; i++)
	{
		struct geonn_vector b = flattened(ring[i]);
		int			to = north(p, b);

		pause_at(i, pause);
		if (to == 0 && geonn_dot(p, b) > 0.0)
			return GEONN_ON_BORDER;
		if (i > 0 && (from > 0) != (to > 0))
		{
			int			eastward = to > 0 ? 1 : -1;

			if (north(a, b) == eastward)
			{
				int			turn = orientation(a, b, p);

				if (turn == 0)
					return GEONN_ON_BORDER;
				crossings += turn != eastward;
			}
		}
		a = b;
		from = to;
	}
	return crossings % 2 ? GEONN_INSIDE : GEONN_OUTSIDE;
}

enum geonn_side
geonn_ring_side(const struct geonn_vector *ring, size_t count, bool pole_is_inside,
				struct geonn_vector point)
{
	enum geonn_side side = side_from_pole(ring, count, NULL, point);

	if (side == GEONN_ON_BORDER || !pole_is_inside)
		return side;
	return side == GEONN_INSIDE ? GEONN_OUTSIDE : GEONN_INSIDE;
}

/* ---- the smaller side ---- */

static struct geonn_vector
scaled(double factor, struct geonn_vector v)
{
	struct geonn_vector product = {factor * v.x, factor * v.y, factor * v.z};

	return product;
}

/*
 * Look for the centre of a hemisphere that has all vertices of a ring, and none within
 * 2^-40 of its edge.  Returns false if some rounds have not found one.
 */
static bool
find_hemisphere(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause, struct geonn_vector *centre)
{
	const double margin = 0x1p-40;
	const int	rounds = 32;
	struct geonn_vector sum = ring[0];
	double		length = sqrt(geonn_dot(sum, sum));

	for (int round = 0; round < rounds; round++)
	{
		bool		found = true;

		for (size_t i = 0; i < count; i++)
		{
			pause_at(i, pause);
			if (geonn_dot(sum, ring[i]) > margin * length)
				continue;
			found = false;
			sum.x += ring[i].x;
			sum.y += ring[i].y;
			sum.z += ring[i].z;
			/* antipodes leave nothing to go on from */
			if (geonn_dot(sum, sum) < 0x1p-40)
				sum = ring[(i + 1) % count];
			length = sqrt(geonn_dot(sum, sum));
		}
		if (found)
		{
			*centre = scaled(1.0 / length, sum);
			return true;
		}
	}
	return false;
}

/*
 * The area of the ring's side without q, of a unit sphere, negative if the ring winds about it clockwise.
 * Returns false if an arc comes near q.
 */
static bool
area_without(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause, struct geonn_vector q,
			 double *area)
{
	*area = 0.0;
	for (size_t i = 1; i < count; i++)
	{
		struct geonn_vector a = ring[i - 1];
		struct geonn_vector b = ring[i];
		double		volume = q.x * (a.z * b.y - a.y * b.z) + q.y * (a.x * b.z - a.z * b.x) +
			q.z * (a.y * b.x - a.x * b.y);
		double		sum = 1.0 - geonn_dot(q, a) + geonn_dot(a, b) - geonn_dot(b, q);

		pause_at(i, pause);
		if (fabs(volume) + fabs(sum) < 0x1p-9)
			return false;
		*area += 2.0 * atan2(volume, sum);
	}
	return true;
}

bool
geonn_ring_holds_pole(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause,
					  bool *pole_is_inside)
{
	const double half_sphere = 2.0 * 3.14159265358979323846;
	struct geonn_vector centre;

	*pole_is_inside = false;
	if (count == 0)
		return true;
	if (find_hemisphere(ring, count, pause, &centre))
	{
		*pole_is_inside = side_from_pole(ring, count, pause, scaled(-1.0, centre)) == GEONN_INSIDE;
		return true;
	}

	for (int i = 0; i < 64; i++)
	{
		/* points spread over the sphere, by the golden angle */
		double		z = (2.0 * i - 63.0) / 64.0;
		double		turn = 2.399963229728653 * i;
		struct geonn_vector q = {sqrt(1.0 - z * z) * cos(turn), sqrt(1.0 - z * z) * sin(turn), z};
		enum geonn_side side = side_from_pole(ring, count, pause, q);
		double		area;

		if (side == GEONN_ON_BORDER || !area_without(ring, count, pause, q, &area))
			continue;
		if (fabs(fabs(area) - half_sphere) <= 0x1p-36 * (double) count)
			return false;
		/* from the pole to q, and from q to what is outside */
		*pole_is_inside = (side == GEONN_INSIDE) != (fabs(area) > half_sphere);
		return true;
	}
	return false;
}
