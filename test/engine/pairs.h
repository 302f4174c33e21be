/*
 * pairs.h
 *		Pairs of points to measure distances between, whatever the Earth's shape.
 *
 * All random numbers of a program are one sequence, that of its own random.h.
 */
#ifndef GEONN_TEST_PAIRS_H
#define GEONN_TEST_PAIRS_H

#include <math.h>
#include <string.h>

#include "../lib/random.h"
#include "../lib/point.h"

typedef struct pair (*pair_maker) (void);

static inline double
clamped(double value, double low, double high)
{
	return value < low ? low : value > high ? high : value;
}

static inline int
same_bits(double a, double b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

static inline struct point
uniform_point(void)
{
	struct point point;

	point.latitude = asin(random_between(-1.0, 1.0)) * (180.0 / M_PI);
	point.longitude = random_between(-180.0, 360.0);
	return point;
}

static inline struct point
antipode(struct point point)
{
	point.latitude = -point.latitude;
	point.longitude += point.longitude > 0.0 ? -180.0 : 180.0;
	return point;
}

static inline struct pair
uniform_pair(void)
{
	struct pair pair = {uniform_point(), uniform_point()};

	return pair;
}

/* One of them at or near a pole */
static inline struct pair
polar_pair(void)
{
	struct pair pair = uniform_pair();
	double		pole = random_below(2) ? 90.0 : -90.0;
	double		off = fabs(random_magnitude(1e-15, 1.0));

	pair.first.latitude = random_below(4) ? copysign(90.0 - off, pole) : pole;
	if (random_below(2))
		pair.second.latitude = random_below(2) ? pole : -pole;
	else if (random_below(2))
		pair.second.latitude = copysign(90.0 - off * random_between(0.0, 2.0),
										random_below(2) ? pole : -pole);
	return pair;
}

#endif							/* GEONN_TEST_PAIRS_H */
