/*
 * chords.h
 *		The squared chord of two vectors in all the ways that a filter may compute it.
 */
#ifndef GEONN_TEST_CHORDS_H
#define GEONN_TEST_CHORDS_H

#include <float.h>
#include <math.h>

#include "common/geodesy.h"

#define CHORD_VARIANTS 7

/* A unit that flushes subnormal numbers to zero */
static inline double
flushed(double value)
{
	return value < DBL_MIN ? 0.0 : value;
}

static inline void
chord_variants(struct geonn_vector u, struct geonn_vector v, double *variants)
{
	double		dx = u.x - v.x;
	double		dy = u.y - v.y;
	double		dz = u.z - v.z;

	variants[0] = geonn_chord_squared(u, v);
	variants[1] = dx * dx + dy * dy + dz * dz;
	variants[2] = dx * dx + (dy * dy + dz * dz);
	variants[3] = (dx * dx + dz * dz) + dy * dy;
	variants[4] = fma(dx, dx, dy * dy) + dz * dz;
	variants[5] = fma(dx, dx, dy * dy + dz * dz);
	variants[6] = flushed(dx * dx) + flushed(dy * dy) + flushed(dz * dz);
}

#endif							/* GEONN_TEST_CHORDS_H */
