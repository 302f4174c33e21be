/*
 * geodesy.h
 *		Points, chords and distances on the sphere, the same bits everywhere
 *
 * The nearest reference is, by definition, the first in the order (distance,
 * id), where distance is the float64 value that geonn_distance_degrees() below
 * returns.
 *
 * So "exact" is a statement about bits: the backend, the engine's CPU device
 * and its CUDA device must compute one and the same float64 for a pair of
 * points, or two of them could name different neighbours.  And it is a
 * statement about the Earth's surface: that value is within 10 nm of the great
 * circle distance of the given degrees on PostGIS's sphere, from coincident to
 * antipodal points.
 *
 *
 * Why the bits are the same
 *
 * Every operation here is one of + - * / sqrt fma, which IEEE 754 rounds
 * correctly, so there is just one possible result: gcc, clang and nvcc, x86-64
 * and arm64, with or without an FMA unit (libm's fma() is exact too), give the
 * same bits.  No function of libm whose last bit depends on the version of
 * libm, such as sin, is called.
 *
 * Two things could still spoil it, and the build rules them out: a compiler
 * that contracts a * b + c by itself (-ffp-contract=off, nvcc -fmad=false) and
 * one that reorders sums (-ffast-math, refused below).  Where a fused
 * operation is wanted, fma() is written.  Only the bits of a NaN are not
 * promised; valid input gives none.
 *
 *
 * Error budget
 *
 * e stands for 2^-53: rounding to nearest adds at most e/2 to a result in
 * [1/2, 1], at most e in [1, 2], and at most a relative e anywhere.  e radians
 * are 0.7073 nm, so 10 nm are 14.13 e.  Terms in e^2 are left out.
 *
 *	1.	Sine and cosine.  Let x = hi + lo be the reduced angle in radians,
 *		|x| <= pi/4, known to 2^-106, with |lo| <= 0.62 e, and z = hi^2, known
 *		to as much.  Truncation of the Taylor series is at most the first term
 *		left out: x^19/19! < 0.001 e and x^18/18! < 0.02 e.  The sine is hi +
 *		tail with |tail| <= 0.081.  At 45 degrees the series' constant and
 *		last step give 0.22 e * x^3 = 0.11 e, its product with z 0.05 e,
 *		tail's own rounding 0.06 e, taking 1 - z/2 for the cosine beside lo
 *		0.01 e: with e/2 for the final sum 0.73 e.  For |sine| <= 1/2 all that
 *		is below 0.32 e.  The cosine is (1 - z/2) + tail; tail is the exactly
 *		known rounding error of 1 - z/2 and a series of at most 0.016: 0.5 e +
 *		0.05 e + 0.02 e = 0.57 e.
 *
 *	2.	Unit vector.  Horizontally the error is at most that of cos(latitude),
 *		plus cos(latitude) times that of (cos, sin)(longitude), one of which
 *		is the sine's and one the cosine's polynomial: 0.93 e, plus the
 *		rounding of two products: 0.71 e.  Up to 30 degrees of latitude that
 *		is 0.57 + 0.93 + 0.71 = 2.21, with 0.32 vertically 2.24 e; up to 45
 *		degrees 0.57 + 0.81 + 0.71 = 2.09, with 0.73 vertically 2.22 e; beyond
 *		45, where cos(latitude) < 0.7072 is the sine's polynomial, 0.73 + 0.66
 *		+ 0.56 = 1.95, with 0.57 2.04 e.  So a vector is within 2.25 e of the
 *		true one, and its squared length within 4.5 e of 1.
 *
 *	3.	Chord.  Of c = |u - v| the vectors account for 4.5 e.  In s = c^2 the
 *		rounding of the three differences gives at most 2 e s, that of the
 *		three sums at most 3 e in absolute (s <= 2), in any case 5 e s
 *		together.  With s <= 2, c is off by at most 4.5 e + (2 s + 3) e / 2c +
 *		e for sqrt.  The same holds for t = |u + v|^2.
 *
 *	4.	Arc sine.  See geonn_asin(): 0.65 e, relative 1.25 e.
 *
 *	5.	Near branch, s <= 2.  The angle 2 asin(c/2) moves by 1/sqrt(1 -
 *		s/4) <= sqrt(2) for each unit of c.  At the worst place, s = 2:
 *		vectors 6.37 e, sums 3.50 e, sqrt 1.42 e, asin 1.30 e, rounding of a
 *		product of 10,007 km 1.32 e: 13.91 e = 9.84 nm.  For smaller s no term
 *		is larger.
 *
 *	6.	Far branch, t <= 2.  The subtraction from pi R, carried in two parts,
 *		takes the place of the product's rounding.  While 2R asin >= 2^23 m
 *		the first difference is exact, and 5. holds as it stands.  Just below
 *		(t < 1.49, slope 1.27) two roundings of 0.93 nm remain: 5.70 + 3.10 +
 *		1.27 + 1.30 + 2.64 = 14.01 e = 9.91 nm.  From 2^24 m on (t < 0.26,
 *		slope 1.04) they are of 1.86 nm: 4.68 + 1.32 + 0.52 + 0.60 +
 *		5.27 = 12.39 e.
 *
 * These are bounds that all roundings conspiring could not exceed; what
 * test/engine/geodesy_test.c measures is about half.  So the reference
 * returned is never more than 20 nm farther than the nearest.
 *
 *
 * Filters
 *
 * Search works on s, which needs neither sqrt nor asin.  Distance is not a
 * monotone function of s in the last bits, so a filter must keep what lies in
 * a margin; geonn_chord_limit() gives it, with the proof, geonn_radius_limit()
 * for a distance in metres.
 */
#ifndef GEONN_GEODESY_H
#define GEONN_GEODESY_H

#include <math.h>

#if defined(__FAST_MATH__) || defined(__USE_FAST_MATH__)
#error "geonn's distances need IEEE arithmetic: compile without -ffast-math"
#endif

#ifdef __CUDACC__
#define GEONN_GEODESY_FUNCTION static __host__ __device__ __forceinline__
#else
/*
 * Always inlined, so that a function that is compiled for several kinds of processors uses the instructions of each kind.
 */
#define GEONN_GEODESY_FUNCTION static inline __attribute__((always_inline))
#endif

/* The sphere's radius in metres, the same as in PostGIS: (2a + b) / 3 of WGS84 */
#define GEONN_SPHERE_RADIUS 6371008.7714150598

/* A point of the unit sphere.  The x axis points to (0, 0), y to (0, 90 E), z to the north pole. */
struct geonn_vector
{
	double		x;
	double		y;
	double		z;
};

/*
 * Return whether the coordinates are a valid point: latitude in [-90, 90], longitude in [-180, 360]
 * degrees.  NaN fails the comparisons.
 */
GEONN_GEODESY_FUNCTION int
geonn_coordinates_valid(double latitude, double longitude)
{
	return latitude >= -90.0 && latitude <= 90.0 &&
		longitude >= -180.0 && longitude <= 360.0;
}

/*
 * Sine and cosine of an angle in degrees, |degrees| <= 360.  Within 0.73 * 2^-53
 * (essay, 1.), and exact at multiples of 90 and wherever the sine is 1/2.
 * Any other argument, infinite or NaN included, gives two NaNs.
 *
 * The quadrant is the integer nearest to degrees / 90, found by adding a number
 * so large that its last bit counts 1.  The product's rounding may lead to the
 * next integer: then |rest| exceeds 45 by a few units in the last place, which does no harm.
 * rest = degrees - 90 * quadrant is exact: with quadrant 0 it is degrees; else
 * |degrees| > 32, so both terms are multiples of 2^-47, and so is the
 * difference, which is below 64 = 2^53 * 2^-47 and thus a float64.
 *
 * The angle in radians is hi + lo: hi is the rounded product, lo its exact error plus rest
 * times the bits of pi / 180 beyond 53.  The coefficients are Taylor's, quotients of integers
 * that are exact in float64.  square + square_rest is hi^2 exactly.
 */
GEONN_GEODESY_FUNCTION void
geonn_sincosd(double degrees, double *sine, double *cosine)
{
	const double round_to_integer = 0x1.8p+52;
	const double radians_high = 0x1.1df46a2529d39p-6;	/* pi / 180 */
	const double radians_low = 0x1.5c1d8becdd291p-62;
	double		quadrant;
	double		rest;
	double		hi;
	double		lo;
	double		square;
	double		square_rest;
	double		series;
	double		tail;
	double		one_minus_half;
	double		rest_sine;
	double		rest_cosine;
	int			valid;
	int			turns;

	quadrant = (degrees * (1.0 / 90.0) + round_to_integer) - round_to_integer;
	rest = fma(-90.0, quadrant, degrees);

	hi = rest * radians_high;
	lo = fma(rest, radians_low, fma(rest, radians_high, -hi));
	square = hi * hi;
	square_rest = fma(hi, hi, -square);
	one_minus_half = 1.0 - 0.5 * square;

	/* sin = hi + hi^3 (-1/3! + hi^2/5! - ... + hi^14/17!) + lo cos */
	series = fma(square, 1.0 / 355687428096000.0, -1.0 / 1307674368000.0);
	series = fma(square, series, 1.0 / 6227020800.0);
	series = fma(square, series, -1.0 / 39916800.0);
	series = fma(square, series, 1.0 / 362880.0);
	series = fma(square, series, -1.0 / 5040.0);
	series = fma(square, series, 1.0 / 120.0);
	series = fma(square, series, -1.0 / 6.0);
	tail = fma(hi * square_rest, series, lo * one_minus_half);
	tail = fma(hi, square * series, tail);
	rest_sine = hi + tail;

	/*
	 * cos = 1 - hi^2/2 + hi^4 (1/4! - hi^2/6! + ... + hi^12/16!) - lo sin, and
	 * square_rest times the derivative by hi^2, -1/2 + hi^2/12 - ...
	 */
	series = fma(square, 1.0 / 20922789888000.0, -1.0 / 87178291200.0);
	series = fma(square, series, 1.0 / 479001600.0);
	series = fma(square, series, -1.0 / 3628800.0);
	series = fma(square, series, 1.0 / 40320.0);
	series = fma(square, series, -1.0 / 720.0);
	series = fma(square, series, 1.0 / 24.0);
	tail = (1.0 - one_minus_half) - 0.5 * square;	/* exact */
	tail += fma(-rest_sine, lo, fma(square, 1.0 / 12.0, -0.5) * square_rest);
	tail = fma(square * square, series, tail);
	rest_cosine = one_minus_half + tail;

	/* Compilers can compute several angles at once, because the code below has no branches. */
	valid = fabs(degrees) <= 360.0;
	turns = valid ? (int) quadrant : 0;
	if (turns & 1)
	{
		double		swapped = rest_sine;

		rest_sine = rest_cosine;
		rest_cosine = swapped;
	}
	rest_sine = turns & 2 ? -rest_sine : rest_sine;
	rest_cosine = (turns + 1) & 2 ? -rest_cosine : rest_cosine;
	*sine = valid ? rest_sine : NAN;
	*cosine = valid ? rest_cosine : NAN;
}

/*
 * The unit vector of a valid point in degrees, within 2.25 * 2^-53 (essay, 2.).
 *
 * Adding 0 turns -0 into +0, so that equal points have equal bits: a pole at
 * any longitude, and points of the meridians -180 and 180, 0 and 360.
 */
GEONN_GEODESY_FUNCTION struct geonn_vector
geonn_unit_vector(double latitude, double longitude)
{
	struct geonn_vector vector;
	double		latitude_sine;
	double		latitude_cosine;
	double		longitude_sine;
	double		longitude_cosine;

	geonn_sincosd(latitude, &latitude_sine, &latitude_cosine);
	geonn_sincosd(longitude, &longitude_sine, &longitude_cosine);

	vector.x = latitude_cosine * longitude_cosine + 0.0;
	vector.y = latitude_cosine * longitude_sine + 0.0;
	vector.z = latitude_sine + 0.0;
	return vector;
}

/*
 * s = |u - v|^2, the squared chord in squared radii: 0 for equal vectors, 4
 * for opposite ones (essay, 3.).  The same bits for (u, v) as for (v, u).
 */
GEONN_GEODESY_FUNCTION double
geonn_chord_squared(struct geonn_vector u, struct geonn_vector v)
{
	double		dx = u.x - v.x;
	double		dy = u.y - v.y;
	double		dz = u.z - v.z;

	return fma(dz, dz, fma(dy, dy, dx * dx));
}

/*
 * t = |u + v|^2, the squared chord from u to v's antipode: 4 - s but for
 * rounding, and precise where s is not, near 0.  Symmetric in u and v too.
 */
GEONN_GEODESY_FUNCTION double
geonn_antichord_squared(struct geonn_vector u, struct geonn_vector v)
{
	double		ax = u.x + v.x;
	double		ay = u.y + v.y;
	double		az = u.z + v.z;

	return fma(az, az, fma(ay, ay, ax * ax));
}

/* Return the polynomial of geonn_asin(): (asin(sqrt(z)) / sqrt(z) - 1) / z for 0 <= z <= 1/4. */
GEONN_GEODESY_FUNCTION double
geonn_asin_series(double z)
{
	double		series;

	series = fma(z, 0.029612011264955121, -0.019241671746743041);
	series = fma(z, series, 0.019554513336123378);
	series = fma(z, series, 0.0030448799094556773);
	series = fma(z, series, 0.0093195607947674456);
	series = fma(z, series, 0.0096218429701002816);
	series = fma(z, series, 0.011566459612121669);
	series = fma(z, series, 0.01396378001220357);
	series = fma(z, series, 0.017352816540325496);
	series = fma(z, series, 0.022372157443507221);
	series = fma(z, series, 0.03038194447553234);
	series = fma(z, series, 0.044642857142551895);
	series = fma(z, series, 0.075000000000001177);
	series = fma(z, series, 0.16666666666666666);
	return series;
}

/*
 * The arc sine in radians, for 0 <= x <= 0.7072; callers give no other x.
 * Within 0.65 * 2^-53, relative 1.25 * 2^-53.
 *
 * Up to 1/2 it is x + x z f(z) with z = x^2; beyond, pi/2 - 2 asin(r) with
 * r = sqrt(z) and z = (1 - x) / 2, which is exact and at most 1/4.
 *
 * f(z) = (asin(sqrt(z)) / sqrt(z) - 1) / z is the sum of A[k+1] z^k with
 * A[k] = binomial(2k, k) / (4^k (2k + 1)), positive and falling.  The polynomial
 * interpolates f at the 14 Chebyshev nodes of [0, 1/4], coefficients rounded
 * to float64.  Its error is at most 2 (1/16)^14 times f's 14th derivative
 * over 14!, which is at most A[15] times the sum of binomial(k, 14) (1/4)^(k-14),
 * A[15] (4/3)^15; so z f(z) is off by at most 2^-58.5 = 0.03 e.
 *
 * Roundings: f lies in [1/6, 0.19], its constant and its last step give
 * 0.22 e, times z 0.06 e; the product with z, at most 0.048, 0.04 e; z itself
 * 0.02 e.  With truncation 0.15 e at z = 1/4, in proportion to x.  Up to 1/2 the
 * final fma adds e/2 (relatively e), and x scales the rest: 0.58 e, relatively
 * 1.15 e.  Beyond, pi/2 - 2r is exact, both being multiples of 2^-53 and the
 * difference below 1; 2r <= 1 scales the rest; z is exact, which makes up for the
 * 0.03 e of tail's own rounding; the sum adds e/2: 0.65 e, relatively 1.25 e
 * as the result is at least pi/6.
 */
GEONN_GEODESY_FUNCTION double
geonn_asin(double x)
{
	const double half_pi_high = 0x1.921fb54442d18p+0;
	const double half_pi_low = 0x1.1a62633145c07p-54;
	double		z = x <= 0.5 ? x * x : 0.5 * (1.0 - x);
	double		series;
	double		root;
	double		root_rest;
	double		tail;

	series = geonn_asin_series(z);
	if (x <= 0.5)
		return fma(x, z * series, x);

	/* root + root_rest / 2 is sqrt(z) to twice the precision */
	root = sqrt(z);
	root_rest = fma(-root, root, z) / root;
	tail = fma(2.0 * root, z * series, root_rest - half_pi_low);
	return (half_pi_high - 2.0 * root) - tail;
}

/* The squared chord of an angle of 60 degrees.  geonn_near_distance() computes distances of squared chords up to this. */
#define GEONN_NEAR_CHORD 1.0

/*
 * Return the distance that geonn_distance_of() returns for a squared chord s of at most GEONN_NEAR_CHORD.
 * Compilers can compute several distances at once, because the function has no branches.
 */
GEONN_GEODESY_FUNCTION double
geonn_near_distance(double s)
{
	double		x = 0.5 * sqrt(s);
	double		z = x * x;

	return 2.0 * GEONN_SPHERE_RADIUS * fma(x, z * geonn_asin_series(z), x);
}

/*
 * Distance in metres of two points given as unit vectors: within 10 nm of the
 * truth for the degrees that they came from (essay, 5. and 6.), never negative,
 * 0 for equal vectors, the same bits for (u, v) as for (v, u).
 *
 * Beyond a quarter circle the chord says less and less about the angle, so the distance to the antipode is
 * subtracted from pi R.  product + product_rest and half_circle_high + half_circle_low are exact, the latter
 * to 2^-85 m.
 */
GEONN_GEODESY_FUNCTION double
geonn_distance_of(struct geonn_vector u, struct geonn_vector v)
{
	const double half_circle_high = 0x1.31680a5a2bfcap+24;	/* pi R */
	const double half_circle_low = -0x1.facf3c1f4f616p-32;
	const double diameter = 2.0 * GEONN_SPHERE_RADIUS;
	double		s = geonn_chord_squared(u, v);
	double		angle;
	double		product;
	double		product_rest;

	if (s <= 2.0)
		return diameter * geonn_asin(0.5 * sqrt(s));

	angle = geonn_asin(0.5 * sqrt(geonn_antichord_squared(u, v)));
	product = diameter * angle;
	product_rest = fma(diameter, angle, -product);
	return (half_circle_high - product) + (half_circle_low - product_rest);
}

/*
 * Return the distance in metres of two valid points in degrees.  SQL's geonn_distance() returns
 * this float64 value, and neighbours are ordered by it.
 */
GEONN_GEODESY_FUNCTION double
geonn_distance_degrees(double latitude1, double longitude1,
					   double latitude2, double longitude2)
{
	return geonn_distance_of(geonn_unit_vector(latitude1, longitude1),
							 geonn_unit_vector(latitude2, longitude2));
}

/*
 * The candidate margin: the limit L, in squared radii, such that
 *
 *		distance(u, a) <= distance(u, b)  implies  s(u, a) <= L(s(u, b))
 *
 * for all unit vectors made by geonn_unit_vector(), distance as computed.  So if b has the smallest s of all
 * references, each reference not farther than b has s <= L(s(u, b)): no other can be the first.  For k
 * neighbours take the k-th smallest s: k references have no larger one, each of the k nearest is not farther
 * than one of them, and L grows with s.
 *
 * Each s may be geonn_chord_squared()'s, or a plain sum of the same differences,
 * dx*dx + dy*dy + dz*dz, as a SIMD filter computes it: in any association, with
 * any of its products fused or none.  The implication holds for any mixture of
 * these.  It costs a filter nothing: the margin is 2^-46 = 128 e
 * relative and 2^-1000 absolute, where the proof needs 83 e and 2^-1019.
 *
 * Proof, notation as in the essay.  Write a and b for the two pairs.  We show
 * that s_a > s_b (1 + m), with s from geonn_chord_squared() and m = 70 e,
 * implies distance_a > distance_b.  Let N(s) = 2 asin(sqrt(s) / 2); its slope
 * 1 / sqrt(s (4 - s)) is at least 1/2, and N(4 - t) = pi - N(t).
 *
 * Computed from s, a near distance is R N(s) (1 + 3.6 e): sqrt gives e,
 * stretched by asin to at most 1.28 e, asin 1.25 e, the product e; at most
 * 5.7 e in angle.  Computed from t, a far one is R (pi - N(t)) but for (1.28 +
 * 1.25) e pi/2 and two roundings of at most 1.86 nm or 2.64 e: 9.3 e in angle.
 *
 * The exact |u - v|^2 + |u + v|^2 is 2 |u|^2 + 2 |v|^2, within 18 e of 4 (essay,
 * 2.), and s and t are within 5 e of theirs relatively, 20 e together.  Hence
 * |s + t - 4| <= 38 e.  It follows that far branches have t <= 2 + 38 e, within
 * what geonn_asin() accepts.
 *
 * Both near: arc sine is convex, so N(s_a) > N(s_b) sqrt(1 + m) ~ N(s_b) (1 +
 * m/2), and m/2 = 35 e exceeds the 7.2 e by which the two distances may be off.
 * Should s_b be 0, so is distance_b, and distance_a is not.  Squares that
 * underflow do no harm here: this case used nothing but the computed s.
 *
 * Both far: s_a - s_b > 2 m, so t_b - t_a > 2 m - 76 e = 64 e, and the
 * angles differ by more than 32 e, where 18.6 e would do.
 *
 * The seam, s_b <= 2 < s_a: distance_a is R N(4 - t_a) but for 9.3 e, 4 - t_a >=
 * s_a - 38 e, and distance_b is R N(s_b) but for 5.7 e.  If s_b >= 1, s_a - 38 e
 * exceeds s_b by m - 38 e = 32 e, and the angles differ by more than 16 e, where
 * 15 e would do.  If s_b < 1, the difference is huge.  The other seam, s_a
 * <= 2 < s_b, contradicts s_a > s_b.
 *
 * Sums in another order or without fma: both are within 3 e relatively of the
 * exact sum of squares of the same differences, 6 e of each other, for each of
 * the two s: 12 e more, 82 e, and 1 e for the rounding of L itself.  Underflow
 * moves a sum by at most 3 * 2^-1075, or by 3 * 2^-1022 where subnormal numbers
 * are flushed to zero; 2^-1000 covers that many times over.
 */
GEONN_GEODESY_FUNCTION double
geonn_chord_limit(double smallest_chord_squared)
{
	return fma(smallest_chord_squared, 1.0 + 0x1p-46, 0x1p-1000);
}

/*
 * The limit L on squared chords, in squared radii, such that
 *
 *		distance(u, a) <= max_distance  implies  s(u, a) <= L
 *
 * for all unit vectors made by geonn_unit_vector(), with s summed in any of
 * the ways that geonn_chord_limit() allows.  INFINITY from 20,000 km on.
 *
 * Proof, notation as there, with h = max_distance / 2R < 1.5696, L without any
 * error or margin being 4 sin^2(h).  Near: N(s) <= 2h (1 + 3.7 e), and as the
 * sine is concave up to there, sin(h (1 + d)) <= (1 + d) sin(h), hence s <=
 * 4 sin^2(h) (1 + 7.4 e).  Far: N(4 - t) <= 2h + 9.3 e, the slope of 4 sin^2(x / 2) is
 * at most 2, and s <= 4 - t + 38 e, hence s <= 4 sin^2(h) + 57 e, where s > 2: relatively
 * 29 e.  The computed h is off by 2 e relatively, constant and product, and with it
 * the sine by no more; the sine's own error is at most 1.5 e relatively (all
 * its terms have the factor hi, and the last rounding adds e): 7 e in the
 * square, which is rounded once more.  Sums in another order: 6 e.  43 e
 * altogether, where geonn_chord_limit() adds 128 e.  Where something underflows,
 * s is below 2^-1018, and its 2^-1000 covers that.
 */
GEONN_GEODESY_FUNCTION double
geonn_radius_limit(double max_distance)
{
	const double degrees_of_half = 0x1.2dc308076922fp-18;	/* 90 / (pi R) */
	double		sine;
	double		cosine;

	if (!(max_distance < 20000000.0))
		return INFINITY;
	geonn_sincosd(degrees_of_half * max_distance, &sine, &cosine);
	return geonn_chord_limit(4.0 * (sine * sine));
}

/*
 * The limit C on squared chords, in squared radii, such that
 *
 * s(u, a) <= C implies distance(u, a) <= max_distance
 *
 * for all unit vectors made by geonn_unit_vector(), with s summed in any of the ways that geonn_chord_limit()
 * allows.  Negative if no chord implies the distance; INFINITY if no two points are farther apart: pi R is
 * 20,015,115 m, rounded up.
 *
 * Proof: the bounds of geonn_radius_limit() hold with the signs reversed.  Near, sin(h (1 - d)) >= (1 - d) sin(h);
 * far, N(4 - t) >= 2h - 9.3 e.  So a greater distance has s > 4 sin^2(h) (1 - 43 e), of which 128 e are taken off,
 * and 2^-1000 for what underflows.
 */
GEONN_GEODESY_FUNCTION double
geonn_certain_limit(double max_distance)
{
	const double degrees_of_half = 0x1.2dc308076922fp-18;
	double		sine;
	double		cosine;

	if (max_distance >= 20015115.0)
		return INFINITY;
	/* NaN, too */
	if (!(max_distance >= 0.0))
		return -1.0;
	geonn_sincosd(degrees_of_half * (max_distance < 20000000.0 ? max_distance : 20000000.0), &sine, &cosine);
	return fma(4.0 * (sine * sine), 1.0 - 0x1p-46, -0x1p-1000);
}

#endif							/* GEONN_GEODESY_H */
