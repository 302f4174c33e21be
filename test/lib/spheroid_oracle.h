/*
 * spheroid_oracle.h
 *		Geodesics and chords of WGS84 in __float128.
 */
#ifndef GEONN_TEST_SPHEROID_ORACLE_H
#define GEONN_TEST_SPHEROID_ORACLE_H

#include <quadmath.h>
#include <stdint.h>

#include "point.h"

/* of WGS84 */
static const __float128 flattening = 1000000000 / (__float128) INT64_C(298257223563);

/* Two points, the first in the south and no nearer to the equator */
struct arc
{
	__float128	sine1;			/* of the reduced latitudes */
	__float128	cosine1;
	__float128	sine2;
	__float128	cosine2;
	__float128	east;			/* radians from one to the other, in [0, pi] */
};

/* Call it before all below. */
extern void initialize_oracle(void);

/* Of two points in either order, mirrored where that puts the first in the south */
extern struct arc make_arc(struct pair pair);

/* Metres; the direction is that at arc's first point, in radians south of east */
extern __float128 oracle_geodesic(struct arc arc, __float128 *south);

/* The same of two points */
extern __float128 oracle_distance(struct pair pair);

/* Earth-centred coordinates in units of the semi-major axis */
extern void oracle_vector(struct point point, __float128 *vector);

/* The length of the straight line, in the same unit */
extern __float128 oracle_chord(struct pair pair);

#endif							/* GEONN_TEST_SPHEROID_ORACLE_H */
