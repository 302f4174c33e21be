/*
 * point.h
 *		Points in degrees, and two of them.
 */
#ifndef GEONN_TEST_POINT_H
#define GEONN_TEST_POINT_H

struct point
{
	double		latitude;
	double		longitude;
};

struct pair
{
	struct point first;
	struct point second;
};

#endif							/* GEONN_TEST_POINT_H */
