/*
 * hostile.h
 *		Coordinates at which squares, products, roots and quotients underflow, cancel or end.
 */
#ifndef GEONN_TEST_HOSTILE_H
#define GEONN_TEST_HOSTILE_H

#include "point.h"
#include "random.h"

/* a size that is at most 90; of either sign, as all below */
static inline double
hostile_latitude(void)
{
	static const double sizes[] = {0.0, 5e-324, 1e-323, 1e-310, 1e-300, 1e-170, 3e-162, 1e-160, 1e-155, 1e-150, 1e-80,
	1e-30, 1e-16, 1e-9, 17.5, 30.0, 45.0, 90.0 - 1e-9, 90.0 - 0x1p-46, 90.0, 90.0};
	double		size = sizes[random_below((int) (sizeof(sizes) / sizeof(sizes[0])))];

	return random_below(2) ? size : -size;
}

static inline double
hostile_longitude(void)
{
	static const double ends[] = {-180.0, -180.0 + 0x1p-45, 135.0, 180.0 - 0x1p-45, 180.0, 180.0 + 0x1p-45, 270.0,
	360.0 - 0x1p-44, 360.0};

	return random_below(3) ? hostile_latitude() : ends[random_below((int) (sizeof(ends) / sizeof(ends[0])))];
}

static inline struct point
hostile_point(void)
{
	struct point point;

	point.latitude = hostile_latitude();
	point.longitude = hostile_longitude();
	return point;
}

#endif							/* GEONN_TEST_HOSTILE_H */
