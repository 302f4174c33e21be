/*
 * arc.c
 *		The middles of arcs, the nearest places on them, and how far points and arcs are from them.
 *
 * Near a half circle the ends of an arc hardly say where it runs: their sum, which points
 * to the middle, is small, and its relative error large.  So the ends of an arc whose
 * middle is wanted are computed once more, in two parts: sines and cosines of Taylor's
 * series, within 2^-100.  Of a sum of 2^-40, the least that
 * geonn_arc_is_antipodal() lets pass, that is 2^-60, and the middle has
 * little more than the rounding of its parts, 2^-54 each: 0.9 * 2^-53.
 *
 *
 * Feet
 *
 * e stands for 2^-53.  With n = a x b the foot has the direction of (n x p) x n.  Both factors are computed in
 * two parts and rounded, each coordinate by e relatively: either turns by e at most.  They are
 * at right angles, so their product is as long as they are together, and the roundings of its coordinates
 * add 2 e.  All in all the foot is within 4 e.
 *
 * Degrees come from two sides of a right triangle.  The quotient of a side and the hypotenuse has 3 e relatively, so
 * 3 e as an angle of up to 45 degrees; arc sine has 0.65 e, the constant and the product 1.6 e, and where
 * the angle is the rest of 90 degrees, 1.2 e more: 6.5 e.  One side of a latitude is the root of x^2 + y^2, which is
 * off by 2 e relatively and turns it by e: 7.5 e.  A longitude may be the rest of 180 degrees: 8.7 e.
 * Together 11.5 e.
 *
 * So a place in degrees is within 15.5 e of the foot of the given vectors.  These are within 2.25 e of
 * the point, and 3.19 e of the arc (arc.h).  The place is then within 18.7 e = 13.3 nm of the arc, and
 * farther from the point than the nearest place of the arc by at most 15.5 + 2 * (2.25 + 3.19) e, 18.7 nm.
 *
 *
 * Two arcs
 *
 * The distance of two arcs is 0 where they have a place in common.  Otherwise it is the least of the distances of the four ends
 * to the other arc.  To see why, let two places turn on their circles, by s and t from a place where the circles meet.  The
 * cosine of their distance is f = cos(s) cos(t) + v sin(s) sin(t), where v is the cosine of the angle between the
 * circles.  Where two places inside of the arcs are the nearest, both derivatives of f are 0.  If |v| < 1, that says that
 * sin(s) cos(t) and cos(s) sin(t) are 0.  Then both places are where the circles meet, so that they are one place, or
 * antipodes, which are farthest from each other; or both are a quarter circle from there, where f has a saddle, since its
 * second derivatives have the determinant v^2 - 1.  If both arcs are on one circle, turning brings their places
 * nearer.  So two arcs apart have an end among their nearest places.
 *
 * Signs decide whether arcs from a to b and from c to d have a common place.  Write [u v w] for det(u, v, w).  Then
 *
 *		(a x b) x (c x d) = [a b d] c - [a b c] d = [c d a] b - [c d b] a
 *
 * is where the planes of both arcs meet, and so is its antipode.  It is on an arc if both of its coefficients there are
 * 0 or positive, its antipode if both are 0 or negative.  So the arcs have a common place where [a b d] and -[a b c], [c d a] and
 * -[c d b] have no different signs.  If all four are 0, both arcs lie in one plane, and one has an end of the other.
 * A place e of that plane is on the arc from a to b if neither a x e nor e x b is opposite to a x b: both turns are
 * up to half a circle, and together as long as the arc.  The signs are exact, as ring_side.h says, for the
 * vectors as they are given.  An arc whose ends have one direction is a point, and has its distance to the other
 * arc, as geonn_chain_distance() returns it.
 *
 * Of arcs that are apart both as the degrees say and as the vectors say, each of the point's distances is
 * within 10 nm (arc.h), and so is the least.  Where one says that they meet, and the other that they do not, the distance
 * is at most what the two arcs have moved, 2 * 3.19 e = 4.5 nm, and computed, near 0, with relative errors alone.
 */
#include "common/arc.h"

#include "common/assertion.h"
#include "common/ring_side.h"

static struct geonn_sum
sum_product(struct geonn_sum a, struct geonn_sum b)
{
	struct geonn_sum product = geonn_exact_product(a.high, b.high);

	return geonn_sum_of(product.high,
						product.low + fma(a.low, b.high, fma(a.high, b.low, a.low * b.low)));
}

static struct geonn_sum
sum_divided(struct geonn_sum a, double divisor)
{
	double		quotient = a.high / divisor;

	return geonn_sum_of(quotient, (fma(-quotient, divisor, a.high) + a.low) / divisor);
}

/*
 * 1 - z / (n (n + 1)) (1 - z / ((n + 2) (n + 3)) (1 - ...)), with terms up to z^13: of z = x^2 it is
 * cos(x) with n = 1, sin(x) / x with n = 2.  For x up to 45 degrees the first term left out
 * is below 2^-107.
 */
static struct geonn_sum
alternating_series(struct geonn_sum z, int n)
{
	const struct geonn_sum one = {1.0, 0.0};
	struct geonn_sum series = one;

	for (int term = n + 24; term >= n; term -= 2)
		series = geonn_sum_minus(one, sum_divided(sum_product(z, series), term * (term + 1.0)));
	return series;
}

/* Compute sine and cosine of an angle in degrees, which is reduced as geonn_sincosd() reduces it. */
static void
precise_sincosd(double degrees, struct geonn_sum *sine, struct geonn_sum *cosine)
{
	const struct geonn_sum radians_of_degree = {0x1.1df46a2529d39p-6, 0x1.5c1d8becdd291p-62};
	double		quadrant = rint(degrees / 90.0);
	struct geonn_sum x = geonn_sum_times(radians_of_degree, fma(-90.0, quadrant, degrees));
	struct geonn_sum z = sum_product(x, x);
	struct geonn_sum rest_sine = sum_product(x, alternating_series(z, 2));
	struct geonn_sum rest_cosine = alternating_series(z, 1);
	int			turns = (int) quadrant;

	*sine = turns & 1 ? rest_cosine : rest_sine;
	*cosine = turns & 1 ? rest_sine : rest_cosine;
	if (turns & 2)
		*sine = geonn_sum_times(*sine, -1.0);
	if ((turns + 1) & 2)
		*cosine = geonn_sum_times(*cosine, -1.0);
}

static struct geonn_precise_vector
precise_vector(double latitude, double longitude)
{
	struct geonn_precise_vector vector;
	struct geonn_sum latitude_cosine;
	struct geonn_sum sine;
	struct geonn_sum cosine;

	precise_sincosd(latitude, &vector.z, &latitude_cosine);
	precise_sincosd(longitude, &sine, &cosine);
	vector.x = sum_product(latitude_cosine, cosine);
	vector.y = sum_product(latitude_cosine, sine);
	return vector;
}

/* Return a / b, rounded; + 0 turns -0 into 0. */
static double
rounded_quotient(struct geonn_sum a, struct geonn_sum b)
{
	double		quotient = a.high / b.high;
	struct geonn_sum rest = geonn_sum_minus(a, geonn_sum_times(b, quotient));

	return quotient + rest.high / b.high + 0.0;
}

struct geonn_vector
geonn_arc_middle(double latitude1, double longitude1, double latitude2, double longitude2)
{
	struct geonn_precise_vector a = precise_vector(latitude1, longitude1);
	struct geonn_precise_vector b = precise_vector(latitude2, longitude2);
	struct geonn_sum x = geonn_sum_plus(a.x, b.x);
	struct geonn_sum y = geonn_sum_plus(a.y, b.y);
	struct geonn_sum z = geonn_sum_plus(a.z, b.z);
	struct geonn_sum square = geonn_sum_plus(geonn_sum_plus(sum_product(x, x), sum_product(y, y)),
											 sum_product(z, z));
	double		root = sqrt(square.high);
	struct geonn_sum length = geonn_sum_of(root, (fma(-root, root, square.high) + square.low) / (2.0 * root));
	struct geonn_vector middle = {rounded_quotient(x, length), rounded_quotient(y, length),
		rounded_quotient(z, length)};

	geonn_assert(fabs(geonn_dot(middle, middle) - 1.0) < 0x1p-48);
	return middle;
}

uint32_t
geonn_arc_pieces(double latitude1, double longitude1, double latitude2, double longitude2)
{
	const double shorter = 2.24;	/* degrees, of less than a piece */
	double		along = fabs(latitude1 - latitude2);
	double		across = fabs(longitude1 - longitude2);
	struct geonn_vector a;
	struct geonn_vector b;
	uint32_t	pieces;

	/* a path along a meridian and a parallel is not shorter than the arc */
	across = across > 180.0 ? fabs(360.0 - across) : across;
	if (along + across < shorter)
		return 1;
	a = geonn_unit_vector(latitude1, longitude1);
	b = geonn_unit_vector(latitude2, longitude2);
	pieces = (uint32_t) ceil(geonn_distance_of(a, b) / GEONN_ARC_PIECE_METRES);
	return geonn_arc_is_long(a, b) ? pieces + pieces % 2 : pieces > 0 ? pieces : 1;
}

struct geonn_vector
geonn_arc_foot(struct geonn_vector p, struct geonn_vector a, struct geonn_vector b)
{
	struct geonn_precise_vector start = {{a.x, 0.0}, {a.y, 0.0}, {a.z, 0.0}};
	struct geonn_precise_vector n = geonn_precise_cross(start, b);
	struct geonn_precise_vector across = geonn_precise_cross(n, p);
	struct geonn_vector foot = {
		fma(across.y.high, n.z.high, -(across.z.high * n.y.high)),
		fma(across.z.high, n.x.high, -(across.x.high * n.z.high)),
		fma(across.x.high, n.y.high, -(across.y.high * n.x.high))
	};

	return foot;
}

/*
 * Return the angle in degrees, 0 ... 90, whose tangent is y / x, of which neither is negative; 0 / 0 gives 0.  First
 * scale both by a power of two that brings the larger one to 1/2 ... 1: their squares might underflow.
 */
static double
angle_of(double y, double x)
{
	const double degrees_of_radian = 57.295779513082321;
	double		hypotenuse;
	int			exponent;

	geonn_assert(!(y < 0.0) && !(x < 0.0));
	frexp(fmax(y, x), &exponent);
	y = ldexp(y, -exponent);
	x = ldexp(x, -exponent);
	hypotenuse = sqrt(fma(y, y, x * x));
	if (y <= x)
		return hypotenuse > 0.0 ? degrees_of_radian * geonn_asin(y / hypotenuse) : 0.0;
	return 90.0 - degrees_of_radian * geonn_asin(x / hypotenuse);
}

void
geonn_vector_degrees(struct geonn_vector vector, double *latitude, double *longitude)
{
	double		east = angle_of(fabs(vector.y), fabs(vector.x));

	/* Where the squares of x and y underflow, z is so much larger that the latitude is 90. + 0 turns -0 into 0. */
	*latitude = copysign(angle_of(fabs(vector.z), sqrt(fma(vector.y, vector.y, vector.x * vector.x))), vector.z) + 0.0;
	*longitude = copysign(vector.x < 0.0 ? 180.0 - east : east, vector.y) + 0.0;
	geonn_assert(geonn_coordinates_valid(*latitude, *longitude));
}

double
geonn_chain_distance(struct geonn_vector point, const struct geonn_vector *chain, size_t count)
{
	double		distance = INFINITY;
	double		limit = INFINITY;

	for (size_t i = 0; i < count; i++)
	{
		double		s = geonn_chord_squared(point, chain[i]);

		if (s <= limit)
		{
			distance = fmin(distance, geonn_distance_of(point, chain[i]));
			limit = fmin(limit, geonn_chord_limit(s));
		}
	}
	for (size_t i = 1; i < count; i++)
		distance = fmin(distance, geonn_foot_distance(point, chain[i - 1], chain[i]));
	geonn_assert(distance >= 0.0);
	return distance;
}

/* Return whether e, which lies in the plane of the arc from a to b, lies on the arc. */
static bool
is_between(struct geonn_vector a, struct geonn_vector b, struct geonn_vector e)
{
	int			turn = geonn_north(a, b);

	geonn_assert(turn != 0);
	return turn * geonn_north(a, e) >= 0 && turn * geonn_north(e, b) >= 0;
}

/* Return whether the arcs from a to b and from c to d have a place in common. */
static bool
arcs_meet(struct geonn_vector a, struct geonn_vector b, struct geonn_vector c, struct geonn_vector d)
{
	int			side_c = geonn_orientation(a, b, c);
	int			side_d = geonn_orientation(a, b, d);
	int			side_a;
	int			side_b;

	if (side_c * side_d > 0)
		return false;
	side_a = geonn_orientation(c, d, a);
	side_b = geonn_orientation(c, d, b);
	if (side_a * side_b > 0 || geonn_north(a, b) == 0 || geonn_north(c, d) == 0)
		return false;
	if (side_c == side_d)
		return is_between(a, b, c) || is_between(a, b, d) || is_between(c, d, a);
	return (side_d - side_c) * (side_a - side_b) > 0;
}

double
geonn_arcs_distance(struct geonn_vector a, struct geonn_vector b, struct geonn_vector c, struct geonn_vector d)
{
	double		of_ends;
	double		of_feet;

	if (arcs_meet(geonn_flattened(a), geonn_flattened(b), geonn_flattened(c), geonn_flattened(d)))
		return 0.0;
	of_ends = fmin(fmin(geonn_distance_of(a, c), geonn_distance_of(a, d)),
				   fmin(geonn_distance_of(b, c), geonn_distance_of(b, d)));
	of_feet = fmin(fmin(geonn_foot_distance(a, c, d), geonn_foot_distance(b, c, d)),
				   fmin(geonn_foot_distance(c, a, b), geonn_foot_distance(d, a, b)));
	geonn_assert(!(of_ends < 0.0) && !(of_feet < 0.0));
	return fmin(of_ends, of_feet);
}

static struct geonn_precise_vector
normal_of(struct geonn_vector a, struct geonn_vector b)
{
	struct geonn_precise_vector start = {{a.x, 0.0}, {a.y, 0.0}, {a.z, 0.0}};

	return geonn_precise_cross(start, b);
}

static double
length_of(struct geonn_vector v)
{
	return sqrt(geonn_dot(v, v));
}

/*
 * The parts of normals are off by 3 * 2^-106 relatively, products of two parts by 2^-103, and their product as vectors by
 * 2^-101 of the normals' lengths.  Where the sine of the angle between the great circles is 2^-50 or more, that is 4 * 2^-53 of
 * the product's own length; the last roundings add less than as much.
 */
bool
geonn_arcs_crossing(struct geonn_vector a, struct geonn_vector b, struct geonn_vector c, struct geonn_vector d,
					struct geonn_vector *crossing)
{
	struct geonn_precise_vector m = normal_of(a, b);
	struct geonn_precise_vector n = normal_of(c, d);
	struct geonn_vector all = {a.x + b.x + c.x + d.x, a.y + b.y + c.y + d.y, a.z + b.z + c.z + d.z};
	struct geonn_vector across = {
		geonn_sum_minus(sum_product(m.y, n.z), sum_product(m.z, n.y)).high,
		geonn_sum_minus(sum_product(m.z, n.x), sum_product(m.x, n.z)).high,
		geonn_sum_minus(sum_product(m.x, n.y), sum_product(m.y, n.x)).high
	};
	double		lengths = length_of((struct geonn_vector) {m.x.high, m.y.high, m.z.high}) *
		length_of((struct geonn_vector) {n.x.high, n.y.high, n.z.high});
	double		length = length_of(across);

	if (!(length >= 0x1p-50 * lengths) || lengths < 0x1p-200)
		return false;
	/* Of the two places where the great circles cross, all ends are nearer to the one that is on both arcs. */
	length = geonn_dot(across, all) < 0.0 ? -length : length;
	*crossing = (struct geonn_vector) {across.x / length, across.y / length, across.z / length};
	return true;
}
