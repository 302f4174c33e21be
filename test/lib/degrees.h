/*
 * degrees.h
 *		Angles of the oracles in __float128, reduced in degrees, where that is
 *		exact.
 */
#ifndef GEONN_TEST_DEGREES_H
#define GEONN_TEST_DEGREES_H

#include <quadmath.h>

static inline void
oracle_sincosd(__float128 degrees, __float128 *sine, __float128 *cosine)
{
	__float128	turned = remainderq(degrees, 360);	/* exact, in [-180, 180] */
	__float128	size = fabsq(turned);
	__float128	folded = size > 90 ? 180 - size : size;
	__float128	small = folded > 45 ? 90 - folded : folded;
	__float128	small_sine;
	__float128	small_cosine;

	sincosq(small * M_PIq / 180, &small_sine, &small_cosine);
	*sine = copysignq(folded > 45 ? small_cosine : small_sine, turned);
	*cosine = folded > 45 ? small_sine : small_cosine;
	if (size > 90)
		*cosine = -*cosine;
}

/* The unit vector of a point, [3]. */
static inline void
oracle_unit_vector(double latitude, double longitude, __float128 *vector)
{
	__float128	latitude_sine;
	__float128	latitude_cosine;
	__float128	longitude_sine;
	__float128	longitude_cosine;

	oracle_sincosd(latitude, &latitude_sine, &latitude_cosine);
	oracle_sincosd(longitude, &longitude_sine, &longitude_cosine);
	vector[0] = latitude_cosine * longitude_cosine;
	vector[1] = latitude_cosine * longitude_sine;
	vector[2] = latitude_sine;
}

#endif							/* GEONN_TEST_DEGREES_H */
