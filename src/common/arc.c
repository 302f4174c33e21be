/*
 * arc.c
 *		The middles of arcs, and how far a point is from a chain of arcs.
 *
 * Near a half circle the ends of an arc hardly say where it runs: their sum, which points
 * to the middle, is small, and its relative error large.  So the ends of an arc whose
 * middle is wanted are computed once more, in two parts: sines and cosines of Taylor's
 * series, within 2^-100.  Of a sum of 2^-40, the least that
 * geonn_arc_is_antipodal() lets pass, that is 2^-60, and the middle has
 * little more than the rounding of its parts, 2^-54 each: 0.9 * 2^-53.
 */
#include "common/arc.h"

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

/* Sine and cosine of an angle in degrees, reduced as geonn_sincosd() does it. */
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

/* a / b, rounded; + 0 turns -0 into 0 */
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

	return middle;
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
	return distance;
}
