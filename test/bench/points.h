/*
 * points.h
 *		The benchmark's points: any of them from its number alone.
 *
 * A set of points, the references or the observations, is a function of a
 * seed.  Point number i is made from four random numbers that belong to (seed,
 * set, i), so threads and GPUs make any part of a set without the rest.  They
 * make the same bits: there is nothing in it but IEEE arithmetic and
 * geodesy.h's functions.
 *
 * Uniform: uniform on the sphere.
 *
 * Cities: nine tenths of the points belong to one of 4,096 cities, the other
 * tenth is uniform.  City number r = 1 ... 4096 has 1/r of the first one's
 * points (Zipf's law: the first has 11 % of all that are in cities), and they
 * lie around its centre by a Gaussian with a standard deviation of 2 + 18/sqrt(r)
 * km.  The centres are uniform between 60 degrees south and 60 degrees north,
 * and belong to the seed, so references and observations have the same cities.
 */
#ifndef GEONN_BENCH_POINTS_H
#define GEONN_BENCH_POINTS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "common/geodesy.h"

#define POINTS_FUNCTION GEONN_GEODESY_FUNCTION

#define POINTS_CITY_COUNT 4096
#define POINTS_SHARE_IN_CITIES 0.9
#define POINTS_DEGREES_PER_RADIAN 57.295779513082323

enum points_distribution
{
	POINTS_UNIFORM,
	POINTS_CITIES
};

enum points_set
{
	POINTS_REFERENCES,
	POINTS_OBSERVATIONS
};

struct point
{
	double		latitude;		/* degrees, -90 ... 90 */
	double		longitude;		/* degrees, -180 ... 180 */
};

/*
 * A city, and its place in the table from which cities are drawn: a draw of
 * this one stands with this probability, and else means the other one.
 */
struct points_city
{
	struct point centre;
	double		deviation;		/* of the latitude, degrees */
	double		stretch;		/* of the longitude's, from the latitude's */
	double		probability;
	uint32_t	other;
};

struct points
{
	enum points_distribution distribution;
	uint64_t	key;			/* of the seed and the set */
	const struct points_city *cities;	/* [POINTS_CITY_COUNT]; on a GPU, the
										 * address of a copy there */
};

/* The cities of a seed. */
extern void points_make_cities(uint64_t seed, struct points_city *cities);

/* A set of a seed; the cities stay the caller's. */
extern struct points points_of(enum points_distribution distribution, uint64_t seed,
							   enum points_set set, const struct points_city *cities);

/* Make points first ... first + count - 1, in this thread. */
extern void points_fill(const struct points *points, uint64_t first, size_t count,
						double *latitude, double *longitude);

/* The same with all cores. */
extern void points_fill_parallel(const struct points *points, uint64_t first, size_t count,
								 double *latitude, double *longitude);

/* splitmix64's output function */
POINTS_FUNCTION uint64_t
points_mix(uint64_t bits)
{
	bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
	return bits ^ (bits >> 31);
}

/* The random number in [0, 1) that belongs to a key and a number. */
POINTS_FUNCTION double
points_random(uint64_t key, uint64_t number)
{
	return (double) (points_mix(key + (number + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-53;
}

/* Arc sine in degrees. */
POINTS_FUNCTION double
points_arc_sine(double sine)
{
	double		size = fabs(sine);
	double		degrees = size <= 0.5 ? geonn_asin(size) * POINTS_DEGREES_PER_RADIAN :
		90.0 - 2.0 * geonn_asin(sqrt(0.5 * (1.0 - size))) * POINTS_DEGREES_PER_RADIAN;

	return sine < 0.0 ? -degrees : degrees;
}

/* Natural logarithm of a number in (0, 1], to about 15 digits. */
POINTS_FUNCTION double
points_logarithm(double number)
{
	int			exponent;
	double		mantissa = frexp(number, &exponent);
	double		ratio;
	double		square;
	double		series;

	if (mantissa < 0.70710678118654757)
	{
		mantissa *= 2.0;
		exponent--;
	}

	/* 2 artanh(ratio) */
	ratio = (mantissa - 1.0) / (mantissa + 1.0);
	square = ratio * ratio;
	series = fma(square, 1.0 / 19.0, 1.0 / 17.0);
	series = fma(square, series, 1.0 / 15.0);
	series = fma(square, series, 1.0 / 13.0);
	series = fma(square, series, 1.0 / 11.0);
	series = fma(square, series, 1.0 / 9.0);
	series = fma(square, series, 1.0 / 7.0);
	series = fma(square, series, 1.0 / 5.0);
	series = fma(square, series, 1.0 / 3.0);
	return fma((double) exponent, 0.69314718055994531, 2.0 * fma(ratio * square, series, ratio));
}

POINTS_FUNCTION struct point
points_on_sphere(double a, double b)
{
	struct point point;

	point.latitude = points_arc_sine(2.0 * a - 1.0);
	point.longitude = 360.0 * b - 180.0;
	return point;
}

/* A point of a city that is drawn by a; b and c place it. */
POINTS_FUNCTION struct point
points_in_city(const struct points_city *cities, double a, double b, double c)
{
	double		draw = a * POINTS_CITY_COUNT;
	uint32_t	number = (uint32_t) draw;
	double		away;
	double		sine;
	double		cosine;
	struct points_city city;
	struct point point;

	if (draw - number >= cities[number].probability)
		number = cities[number].other;
	city = cities[number];

	/* Box and Muller: distance and direction of a Gaussian in the plane */
	away = city.deviation * sqrt(-2.0 * points_logarithm(1.0 - b));
	geonn_sincosd(360.0 * c, &sine, &cosine);
	point.latitude = fma(away, sine, city.centre.latitude);
	point.longitude = fma(away * city.stretch, cosine, city.centre.longitude);
	if (point.longitude < -180.0)
		point.longitude += 360.0;
	if (point.longitude > 180.0)
		point.longitude -= 360.0;
	return point;
}

/* Point number `number` of a set. */
POINTS_FUNCTION struct point
points_get(const struct points *points, uint64_t number)
{
	double		a = points_random(points->key, 4 * number);
	double		b = points_random(points->key, 4 * number + 1);
	double		c = points_random(points->key, 4 * number + 2);

	if (points->distribution == POINTS_CITIES &&
		points_random(points->key, 4 * number + 3) < POINTS_SHARE_IN_CITIES)
		return points_in_city(points->cities, a, b, c);
	return points_on_sphere(a, b);
}

#endif							/* GEONN_BENCH_POINTS_H */
