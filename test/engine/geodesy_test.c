/*
 * geodesy_test.c
 *		Measures src/common/geodesy.h against an oracle in __float128.
 *
 * The oracle shares no code and no formula with the header.  It reduces angles
 * in degrees, where that is exact, and takes the distance from half angles:
 * with D and S the difference and the sum of the latitudes, L the difference
 * of the longitudes,
 *
 *		sin^2(d/2) = sin^2(D/2) cos^2(L/2) + cos^2(S/2) sin^2(L/2)
 *		cos^2(d/2) = cos^2(D/2) cos^2(L/2) + sin^2(S/2) sin^2(L/2)
 *
 * Neither sum cancels, so d = 2 atan2(sqrt, sqrt) has some 30 good digits from
 * coincident to antipodal points.
 *
 * Usage: geodesy_test [seed [pairs]], where pairs is the number of random
 * pairs of points for each distance property.
 *
 * geodesy_margin_test has what filters by the chord rely on.
 *
 * rooms: common
 */
#include <math.h>
#include <quadmath.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/geodesy.h"
#include "pairs.h"
#include "../lib/degrees.h"
#include "../lib/verdict.h"

#define DISTANCE_LIMIT_NANOMETRES 10.0

/* 2^-53, the unit of the error bounds in geodesy.h's essay */
#define ROUNDING_UNIT 0x1p-53

/*
 * Makers of points and pairs
 */

static double
degrees_of_metres(double metres)
{
	return metres / GEONN_SPHERE_RADIUS * (180.0 / M_PI);
}

/* A point about so many metres away, in a random direction */
static struct point
neighbour(struct point point, double metres)
{
	double		direction = random_between(0.0, 2.0 * M_PI);
	double		shrink = cos(point.latitude * (M_PI / 180.0));
	double		north = degrees_of_metres(metres) * cos(direction);
	double		east = degrees_of_metres(metres) * sin(direction);

	point.latitude = clamped(point.latitude + north, -90.0, 90.0);
	point.longitude = clamped(point.longitude + east / (shrink > 1e-9 ? shrink : 1e-9),
							  -180.0, 360.0);
	return point;
}

static double
seam_longitude(void)
{
	static const double seams[] = {-180.0, -90.0, 0.0, 90.0, 180.0, 270.0, 360.0};
	double		seam = seams[random_below(7)];

	if (random_below(3) == 0)
		return seam;
	return clamped(seam + random_magnitude(1e-17, 1e-3), -180.0, 360.0);
}

static struct pair
seam_pair(void)
{
	struct pair pair = uniform_pair();

	pair.first.longitude = seam_longitude();
	pair.second.longitude = seam_longitude();
	if (random_below(2))
		pair.second.latitude = clamped(pair.first.latitude * (random_below(2) ? 1 : -1) +
									   random_magnitude(1e-15, 1e-3), -90.0, 90.0);
	return pair;
}

static struct pair
near_pair(void)
{
	struct pair pair;

	pair.first = uniform_point();
	pair.second = neighbour(pair.first, fabs(random_magnitude(1e-6, 1.0)));
	return pair;
}

static struct pair
local_pair(void)
{
	struct pair pair;

	pair.first = uniform_point();
	pair.second = neighbour(pair.first, fabs(random_magnitude(1.0, 1e6)));
	return pair;
}

static struct pair
antipodal_pair(void)
{
	struct pair pair;

	pair.first = uniform_point();
	pair.second = antipode(pair.first);
	if (random_below(8))
		pair.second = neighbour(pair.second, fabs(random_magnitude(1e-6, 1e3)));
	return pair;
}

/* About a quarter of the circle apart, where the formula changes its branch */
static struct pair
quarter_pair(void)
{
	struct pair pair;
	double		latitude = random_between(-M_PI / 2, M_PI / 2);
	double		bearing = random_between(0.0, 2.0 * M_PI);
	double		distance = M_PI / 2 + random_magnitude(1e-17, 1e-3);
	double		sine = sin(latitude) * cos(distance) +
		cos(latitude) * sin(distance) * cos(bearing);
	double		east = atan2(sin(bearing) * sin(distance) * cos(latitude),
							 cos(distance) - sin(latitude) * sine);

	pair.first.latitude = latitude * (180.0 / M_PI);
	pair.first.longitude = random_between(0.0, 180.0);
	pair.second.latitude = asin(clamped(sine, -1.0, 1.0)) * (180.0 / M_PI);
	pair.second.longitude = pair.first.longitude + east * (180.0 / M_PI);
	return pair;
}

static double
tiny_degrees(void)
{
	static const double tiny[] = {0.0, -0.0, 5e-324, -5e-324, 1e-310, -1e-310,
	2.3e-308, -2.3e-308, 1e-200, -1e-200, 1e-160, 1e-30, -1e-18};

	return tiny[random_below(13)];
}

static struct pair
tiny_pair(void)
{
	struct pair pair;

	pair.first.latitude = tiny_degrees();
	pair.first.longitude = tiny_degrees();
	pair.second.latitude = tiny_degrees();
	pair.second.longitude = tiny_degrees() + 180.0 * random_below(2);
	return pair;
}

static struct point
grid_point(void)
{
	struct point point;

	point.latitude = 0.5 * (random_below(361) - 180);
	point.longitude = 0.5 * (random_below(1081) - 360);
	return point;
}

static struct pair
grid_pair(void)
{
	struct pair pair = {grid_point(), grid_point()};

	return pair;
}

/*
 * The oracle
 */

static __float128
oracle_distance(struct pair pair)
{
	__float128	latitude1 = pair.first.latitude;
	__float128	latitude2 = pair.second.latitude;
	__float128	longitude1 = pair.first.longitude;
	__float128	sine_difference;
	__float128	cosine_difference;
	__float128	sine_sum;
	__float128	cosine_sum;
	__float128	sine_east;
	__float128	cosine_east;
	__float128	near;
	__float128	far;

	oracle_sincosd((latitude1 - latitude2) / 2, &sine_difference, &cosine_difference);
	oracle_sincosd((latitude1 + latitude2) / 2, &sine_sum, &cosine_sum);
	oracle_sincosd((longitude1 - pair.second.longitude) / 2, &sine_east, &cosine_east);
	near = hypotq(sine_difference * cosine_east, cosine_sum * sine_east);
	far = hypotq(cosine_difference * cosine_east, sine_sum * sine_east);
	return 2 * (__float128) GEONN_SPHERE_RADIUS * atan2q(near, far);
}

static double
distance_of_pair(struct pair pair)
{
	return geonn_distance_degrees(pair.first.latitude, pair.first.longitude,
								  pair.second.latitude, pair.second.longitude);
}

/* The oracle itself, against cross and dot product where these are good */
static void
test_oracle(void)
{
	double		worst = 0.0;

	for (int i = 0; i < 20000; i++)
	{
		struct pair pair = uniform_pair();
		__float128	sine1;
		__float128	cosine1;
		__float128	sine2;
		__float128	cosine2;
		__float128	sine_east;
		__float128	cosine_east;
		__float128	cross;
		__float128	dot;
		double		error;

		oracle_sincosd(pair.first.latitude, &sine1, &cosine1);
		oracle_sincosd(pair.second.latitude, &sine2, &cosine2);
		oracle_sincosd((__float128) pair.second.longitude - pair.first.longitude,
					   &sine_east, &cosine_east);
		cross = hypotq(cosine2 * sine_east,
					   cosine1 * sine2 - sine1 * cosine2 * cosine_east);
		dot = sine1 * sine2 + cosine1 * cosine2 * cosine_east;
		error = (double) fabsq((__float128) GEONN_SPHERE_RADIUS * atan2q(cross, dot) -
							   oracle_distance(pair));
		worst = fmax(worst, error);
	}
	report_measure("the oracle agrees with cross and dot product", worst < 1e-20,
				   "worst error", worst * 1e9, "nm");
}

/*
 * The parts of the distance, against the bounds that the header's essay proves
 */

static double
random_angle(void)
{
	switch (random_below(4))
	{
		case 0:
			return random_between(-45.0, 45.0);
		case 1:
			return clamped(45.0 * (random_below(17) - 8) + random_magnitude(1e-16, 1e-3),
						   -360.0, 360.0);
		case 2:
			return random_magnitude(1e-320, 360.0);
		default:
			return random_between(-360.0, 360.0);
	}
}

static void
test_sincosd_error(long count)
{
	double		worst = 0.0;

	for (long i = 0; i < count; i++)
	{
		double		degrees = random_angle();
		double		sine;
		double		cosine;
		__float128	true_sine;
		__float128	true_cosine;

		geonn_sincosd(degrees, &sine, &cosine);
		oracle_sincosd(degrees, &true_sine, &true_cosine);
		worst = fmax(worst, (double) fabsq(sine - true_sine));
		worst = fmax(worst, (double) fabsq(cosine - true_cosine));
	}
	worst /= ROUNDING_UNIT;
	report_measure("sine and cosine are within 0.73 of 2^-53", worst <= 0.73,
				   "worst error", worst, "of 2^-53");
}

static void
test_sincosd_exact(void)
{
	/* The sine at multiples of 30 degrees, 2 where it is irrational */
	static const double sines[] = {0.0, 0.5, 2.0, 1.0, 2.0, 0.5,
	0.0, -0.5, 2.0, -1.0, 2.0, -0.5};
	long		failures = 0;

	for (int step = -12; step <= 12; step++)
	{
		double		expected_sine = sines[(step + 12) % 12];
		double		expected_cosine = sines[(step + 15) % 12];
		double		sine;
		double		cosine;

		geonn_sincosd(30.0 * step, &sine, &cosine);
		if (expected_sine != 2.0)
			failures += sine != expected_sine;
		if (expected_cosine != 2.0)
			failures += cosine != expected_cosine;
	}
	report_failures("sine and cosine are exact at 0, 1/2 and 1", failures);
}

static void
test_sincosd_any_argument(void)
{
	static const double invalid[] = {INFINITY, -INFINITY, NAN, 1e300, -1e300,
	360.00000000000006, -360.00000000000006, 0x1p31, 0x1p63, 0x1p64, 1.7976931348623157e308};
	long		failures = 0;

	for (int i = 0; i < 11 + 1000000; i++)
	{
		double		degrees;
		double		sine;
		double		cosine;
		int			valid;

		if (i < 11)
			degrees = invalid[i];
		else
		{
			uint64_t	bits = random_bits();

			memcpy(&degrees, &bits, sizeof(degrees));
		}
		geonn_sincosd(degrees, &sine, &cosine);
		valid = degrees >= -360.0 && degrees <= 360.0;
		if (valid)
			failures += !(fabs(sine) <= 1.0 && fabs(cosine) <= 1.0);
		else
			failures += !(isnan(sine) && isnan(cosine));
	}
	report_failures("sine and cosine take any argument, NaN beyond 360", failures);
}

static void
test_unit_vector(long count)
{
	double		worst = 0.0;

	for (long i = 0; i < count; i++)
	{
		struct pair pair = i % 2 ? quarter_pair() : polar_pair();
		struct point point = i % 4 < 2 ? pair.first : grid_point();
		struct geonn_vector vector = geonn_unit_vector(point.latitude, point.longitude);
		__float128	truth[3];
		double		dx;
		double		dy;
		double		dz;

		oracle_unit_vector(point.latitude, point.longitude, truth);
		dx = (double) (vector.x - truth[0]);
		dy = (double) (vector.y - truth[1]);
		dz = (double) (vector.z - truth[2]);
		worst = fmax(worst, sqrt(dx * dx + dy * dy + dz * dz));
	}
	worst /= ROUNDING_UNIT;
	report_measure("unit vectors are within 2.25 of 2^-53", worst <= 2.25,
				   "worst error", worst, "of 2^-53");
}

static void
test_asin(long count)
{
	double		worst = 0.0;
	double		worst_relative = 0.0;

	for (long i = 0; i < count; i++)
	{
		double		x = i % 4 ? random_between(0.0, 0.7072) :
			i % 8 ? 0.5 + random_magnitude(1e-17, 1e-3) :
			fabs(random_magnitude(1e-300, 0.7072));
		__float128	truth = asinq(x);
		double		error = (double) fabsq(geonn_asin(x) - truth);

		worst = fmax(worst, error / ROUNDING_UNIT);
		worst_relative = fmax(worst_relative, error / (double) truth / ROUNDING_UNIT);
	}
	report_measure("arc sine is within 0.65 of 2^-53", worst <= 0.65,
				   "worst error", worst, "of 2^-53");
	report_measure("arc sine is relatively within 1.25 of 2^-53",
				   worst_relative <= 1.25 && geonn_asin(0.0) == 0.0,
				   "worst error", worst_relative, "of 2^-53");
}

/*
 * The distance
 */

static void
test_distance(const char *name, pair_maker make_pair, long count)
{
	double		worst = 0.0;
	int			sane = 1;
	char		title[160];

	for (long i = 0; i < count; i++)
	{
		struct pair pair = make_pair();
		double		distance = distance_of_pair(pair);

		if (!(isfinite(distance) && distance >= 0.0))
			sane = 0;
		worst = fmax(worst, (double) fabsq(distance - oracle_distance(pair)));
	}
	worst *= 1e9;
	snprintf(title, sizeof(title), "distance within %g nm: %s",
			 DISTANCE_LIMIT_NANOMETRES, name);
	report_measure(title, sane && worst <= DISTANCE_LIMIT_NANOMETRES,
				   "worst error", worst, "nm");
}

static void
test_symmetry(long count)
{
	static const pair_maker makers[] = {uniform_pair, polar_pair, seam_pair,
	near_pair, antipodal_pair, quarter_pair, tiny_pair, grid_pair};
	long		failures = 0;

	for (long i = 0; i < count; i++)
	{
		struct pair pair = makers[i % 8] ();
		struct pair swapped = {pair.second, pair.first};

		failures += !same_bits(distance_of_pair(pair), distance_of_pair(swapped));
	}
	report_failures("distance has the same bits in both directions", failures);
}

static void
test_coincident(long count)
{
	long		failures = 0;
	long		alias_failures = 0;

	for (long i = 0; i < count; i++)
	{
		struct point point = i % 2 ? uniform_point() : grid_point();
		struct pair pair = {point, point};
		struct geonn_vector vectors[2];

		failures += !same_bits(distance_of_pair(pair), 0.0);

		/* Other coordinates of the same point: another turn, or a pole */
		if (i % 3 == 0)
		{
			pair.first.longitude = -180.0;
			pair.second.longitude = 180.0;
		}
		else if (i % 3 == 1)
		{
			pair.first.longitude = i % 2 ? 0.0 : -0.0;
			pair.second.longitude = 360.0;
		}
		else
		{
			pair.first.latitude = copysign(90.0, point.latitude);
			pair.second.latitude = pair.first.latitude;
			pair.second.longitude = random_between(-180.0, 360.0);
		}
		vectors[0] = geonn_unit_vector(pair.first.latitude, pair.first.longitude);
		vectors[1] = geonn_unit_vector(pair.second.latitude, pair.second.longitude);
		alias_failures += memcmp(&vectors[0], &vectors[1], sizeof(vectors[0])) != 0;
		alias_failures += !same_bits(distance_of_pair(pair), 0.0);
	}
	report_failures("distance of a point to itself is 0", failures);
	report_failures("a point's other coordinates give the same vector", alias_failures);
}

static void
test_validity(void)
{
	static const struct
	{
		double		latitude;
		double		longitude;
		int			valid;
	}			cases[] =
	{
		{0.0, 0.0, 1}, {90.0, 360.0, 1}, {-90.0, -180.0, 1}, {-0.0, -0.0, 1},
		{90.00000000000001, 0.0, 0}, {-90.00000000000001, 0.0, 0},
		{0.0, 360.00000000000006, 0}, {0.0, -180.00000000000003, 0},
		{NAN, 0.0, 0}, {0.0, NAN, 0}, {INFINITY, 0.0, 0}, {0.0, -INFINITY, 0},
	};
	long		failures = 0;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		double		distance = geonn_distance_degrees(cases[i].latitude,
													  cases[i].longitude, 1.0, 2.0);

		failures += geonn_coordinates_valid(cases[i].latitude,
											cases[i].longitude) != cases[i].valid;
		failures += cases[i].valid && !isfinite(distance);
	}
	report_failures("validity is decided at the limits, NaN is invalid", failures);
}

int
main(int argc, char **argv)
{
	uint64_t	seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 20240229;
	long		count = argc > 2 ? strtol(argv[2], NULL, 0) : 200000;

	random_state = seed;
	printf("seed %llu, %ld pairs for each distance property\n",
		   (unsigned long long) seed, count);

	test_oracle();

	test_sincosd_error(2 * count);
	test_sincosd_exact();
	test_sincosd_any_argument();
	test_unit_vector(2 * count);
	test_asin(2 * count);

	test_distance("uniform points", uniform_pair, 2 * count);
	test_distance("at and near the poles", polar_pair, count);
	test_distance("at and near -180, 180, 0, 360 and the quadrants", seam_pair, count);
	test_distance("1 um to 1 m apart", near_pair, count);
	test_distance("1 m to 1,000 km apart", local_pair, count);
	test_distance("antipodal, and 1 um to 1 km off it", antipodal_pair, count);
	test_distance("a quarter of the circle apart", quarter_pair, 2 * count);
	test_distance("subnormal and signed zero degrees", tiny_pair, count / 4);
	test_distance("half-degree grid", grid_pair, count);

	test_symmetry(5 * count);
	test_coincident(5 * count);
	test_validity();

	return summed_up();
}
