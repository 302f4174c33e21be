/*
 * spheroid_pairs.h
 *		Pairs of points that are hard for geodesics on the spheroid, and what
 *		src/common says of them.
 */
#ifndef GEONN_TEST_SPHEROID_PAIRS_H
#define GEONN_TEST_SPHEROID_PAIRS_H

#include <geodesic.h>

#include "pairs.h"
#include "common/spheroid.h"
#include "common/spheroid_distance.h"

/* PROJ's, to place points at a distance and a bearing; begin_pairs() sets it */
static struct geod_geodesic wgs84;

/* Begin the sequence of random numbers from which all below draw. */
static inline void
begin_pairs(uint64_t seed)
{
	random_state = seed;
	geod_init(&wgs84, GEONN_SPHEROID_AXIS, GEONN_SPHEROID_FLATTENING);
}

/* A point about so many metres away; the bearing is random, often a cardinal one */
static inline struct point
neighbour(struct point from, double metres)
{
	double		bearing = random_below(3) ? random_between(0.0, 360.0) :
		90.0 * random_below(4);
	struct point to;

	geod_direct(&wgs84, from.latitude, from.longitude, bearing, metres,
				&to.latitude, &to.longitude, NULL);
	to.latitude = clamped(to.latitude, -90.0, 90.0);
	return to;
}

/* Both at or near the equator: along it, and off it where that is shorter */
static inline struct pair
equatorial_pair(void)
{
	struct pair pair = uniform_pair();

	pair.first.latitude = random_below(2) ? 0.0 : random_magnitude(1e-20, 1.0);
	pair.second.latitude = random_below(2) ? 0.0 : random_magnitude(1e-20, 1.0);
	if (random_below(2))
		pair.second.longitude = clamped(pair.first.longitude +
										(pair.first.longitude > 90.0 ? -179.4 : 179.4) +
										random_magnitude(1e-9, 0.6), -180.0, 360.0);
	return pair;
}

/* On one meridian, or opposite ones, or nearly */
static inline struct pair
meridional_pair(void)
{
	struct pair pair = uniform_pair();

	pair.second.longitude = pair.first.longitude;
	if (random_below(2))
		pair.second.longitude += pair.first.longitude > 90.0 ? -180.0 : 180.0;
	if (random_below(2))
		pair.second.longitude = clamped(pair.second.longitude + random_magnitude(1e-16, 1e-3),
										-180.0, 360.0);
	return pair;
}

/* As far from the equator as one another */
static inline struct pair
parallel_pair(void)
{
	struct pair pair = uniform_pair();

	pair.second.latitude = random_below(2) ? pair.first.latitude : -pair.first.latitude;
	if (random_below(2))
		pair.second.latitude = clamped(pair.second.latitude + random_magnitude(1e-15, 1e-3),
									   -90.0, 90.0);
	return pair;
}

static inline struct pair
near_pair(void)
{
	struct pair pair;

	pair.first = random_below(4) ? uniform_point() : polar_pair().first;
	pair.second = neighbour(pair.first, fabs(random_magnitude(1e-9, 1.0)));
	return pair;
}

static inline struct pair
local_pair(void)
{
	struct pair pair;

	pair.first = uniform_point();
	pair.second = neighbour(pair.first, fabs(random_magnitude(1.0, 1e6)));
	return pair;
}

/* The antipode, and up to 200 km off it, where the shortest paths change sides */
static inline struct pair
antipodal_pair(void)
{
	struct pair pair;

	pair.first = random_below(4) ? uniform_point() : equatorial_pair().first;
	pair.second = antipode(pair.first);
	if (random_below(8))
		pair.second = neighbour(pair.second, fabs(random_magnitude(1e-6, 2e5)));
	return pair;
}

static inline struct pair
coincident_pair(void)
{
	struct pair pair;

	pair.first = random_below(4) ? uniform_point() : polar_pair().first;
	pair.second = pair.first;
	return pair;
}

static const pair_maker makers[] = {uniform_pair, polar_pair, equatorial_pair,
meridional_pair, parallel_pair, near_pair, local_pair, antipodal_pair, coincident_pair};

#define MAKERS ((int) (sizeof(makers) / sizeof(makers[0])))

static inline double
distance_of_pair(struct pair pair)
{
	return geonn_spheroid_distance(pair.first.latitude, pair.first.longitude,
								   pair.second.latitude, pair.second.longitude);
}

static inline struct geonn_vector
vector_of(struct point point)
{
	return geonn_spheroid_vector(point.latitude, point.longitude);
}

#endif							/* GEONN_TEST_SPHEROID_PAIRS_H */
