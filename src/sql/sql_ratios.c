/*
 * sql_ratios.c
 *		Whether two places are within a radius on the spheroid, by their distance on the sphere.
 *
 * The same latitudes and longitudes are on both.  At a latitude, a short line along the meridian is M / R times as long on
 * the spheroid as on the sphere, one along the parallel N / R times, and any other one something between.  Here R is the
 * radius of the sphere; M = a (1 - e2) / w^3 and N = a / w, with w^2 = 1 - e2 sin^2(latitude), are the spheroid's radii of
 * curvature.  M is at most N, and both grow from the equator to the poles: M / R from 0.99441, N / R up to 1.00449.
 *
 * Let two places have the distances d on the sphere, s on the spheroid.  The sphere's shortest line between them is no
 * shorter than s on the spheroid.  So s is at most d N / R, with N at the greatest latitude, north or south, that this line
 * comes to.  The spheroid's shortest line is no shorter than d on the sphere.  So s is at least d M / R, with M at the
 * least latitude that this line comes to.  The first line stays within d / R of the latitude where it begins, the second
 * one within s / M, with the least M of all.  R is greater than that, and s at most d times the greatest ratio.  So both
 * stay within that, by the least M.
 *
 * Rounding takes less than ROUNDING of a ratio.
 */
#include "postgres.h"

#include <math.h>

#include "common/spheroid.h"
#include "sql/sql_ratios.h"

#define ROUNDING 1e-12

/* e2, and M at the equator, in metres */
#define ECCENTRICITY_SQUARED (GEONN_SPHEROID_FLATTENING * (2 - GEONN_SPHEROID_FLATTENING))
#define LEAST_CURVATURE (GEONN_SPHEROID_AXIS * (1 - ECCENTRICITY_SQUARED))

/* Return w at a latitude in degrees. */
static double
w_at(double latitude)
{
	double		sine = sin(latitude * (M_PI / 180));

	return sqrt(1 - ECCENTRICITY_SQUARED * sine * sine);
}

/*
 * Set the bounds for the shortest line from a place at this latitude, in degrees, to one that is so many metres from it on the
 * sphere.
 */
static void
ratios_near(double latitude, double distance, double *least, double *greatest)
{
	double		reach = distance * GREATEST_RATIO / LEAST_CURVATURE * (180 / M_PI);
	double		low = w_at(Max(fabs(latitude) - reach, 0));
	double		high = w_at(Min(fabs(latitude) + reach, 90));

	*least = LEAST_CURVATURE / (low * low * low) / GEONN_SPHERE_RADIUS * (1 - ROUNDING);
	*greatest = GEONN_SPHEROID_AXIS / high / GEONN_SPHERE_RADIUS * (1 + ROUNDING);
}

Verdict
geonn_verdict(double distance, double radius, double margin, bool is_spheroid, double latitude)
{
	double		least = LEAST_RATIO;
	double		greatest = GREATEST_RATIO;

	if (distance * (is_spheroid ? GREATEST_RATIO : 1) < radius - margin)
		return VERDICT_WITHIN;
	if (!is_spheroid)
		return VERDICT_OPEN;
	if (!isnan(latitude))
		ratios_near(latitude, distance, &least, &greatest);
	if (distance * greatest < radius - margin)
		return VERDICT_WITHIN;
	return distance * least > radius + margin ? VERDICT_BEYOND : VERDICT_OPEN;
}
