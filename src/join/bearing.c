/*
 * bearing.c
 *		The initial course from one point to another.
 *
 * On the sphere, with d the difference of longitudes: the tangent at the first
 * point has the parts cos(lat2) sin(d) to the east and cos(lat1) sin(lat2) -
 * sin(lat1) cos(lat2) cos(d) to the north.  The latter is written as
 * sin(lat2 - lat1) + 2 sin(lat1) cos(lat2) sin(d/2)^2, which loses no digits
 * where the points are near each other.  On the spheroid it is PROJ's azimuth.
 */
#include "postgres.h"

#include <math.h>

#include "common/geodesy.h"
#include "common/protocol.h"
#include "common/metric.h"
#include "join/bearing.h"

static double
sphere_bearing(double latitude1, double longitude1, double latitude2, double longitude2)
{
	double		sine1;
	double		cosine1;
	double		sine2;
	double		cosine2;
	double		north;
	double		east;
	double		half;
	double		unused;
	double		difference = longitude2 - longitude1;

	/* sines take one turn at most; subtracting a turn is exact */
	if (fabs(difference) > 360)
		difference -= copysign(360, difference);
	geonn_sincosd(latitude1, &sine1, &cosine1);
	geonn_sincosd(latitude2, &sine2, &cosine2);
	geonn_sincosd(latitude2 - latitude1, &north, &unused);
	geonn_sincosd(difference, &east, &unused);
	geonn_sincosd(difference / 2, &half, &unused);
	return atan2(cosine2 * east, north + 2 * sine1 * cosine2 * half * half) * (180 / M_PI);
}

double
geonn_bearing(int metric, double latitude1, double longitude1, double latitude2,
			  double longitude2)
{
	double		degrees = geonn_metric_chord_decides(metric) ?
		sphere_bearing(latitude1, longitude1, latitude2, longitude2) :
		geonn_spheroid_azimuth(latitude1, longitude1, latitude2, longitude2);

	if (degrees < 0)
		degrees += 360;
	/* -0 becomes 0 */
	return degrees < 360 ? degrees + 0.0 : 0;
}
