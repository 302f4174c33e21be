/*
 * spheroid_distance.c
 *		Computes geodesics of WGS84 in metres, by PROJ: the distances of the
 *		metric spheroid.
 */
#include "common/spheroid_distance.h"

#include <geodesic.h>
#include <stddef.h>

#include "common/spheroid.h"

static struct geod_geodesic wgs84;

/*
 * Runs when the engine, or the library that has this file, is loaded, before any thread starts: geod_init also fills
 * variables of PROJ's own, without a lock.
 */
__attribute__((constructor)) static void
initialize_wgs84(void)
{
	geod_init(&wgs84, GEONN_SPHEROID_AXIS, GEONN_SPHEROID_FLATTENING);
}

double
geonn_spheroid_distance(double latitude1, double longitude1,
						double latitude2, double longitude2)
{
	double		distance;

	geonn_spheroid_canonical(&latitude1, &longitude1);
	geonn_spheroid_canonical(&latitude2, &longitude2);
	geod_inverse(&wgs84, latitude1, longitude1, latitude2, longitude2,
				 &distance, NULL, NULL);
	return distance;
}

double
geonn_spheroid_azimuth(double latitude1, double longitude1,
					   double latitude2, double longitude2)
{
	double		azimuth;

	geod_inverse(&wgs84, latitude1, longitude1, latitude2, longitude2,
				 NULL, &azimuth, NULL);
	return azimuth;
}
