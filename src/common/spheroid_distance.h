/*
 * spheroid_distance.h
 *		Computes geodesics of WGS84 in metres: the distances of the metric
 *		spheroid.  For the host alone.
 *
 * The engine has spheroid_distance.c itself; the module has join/geodesics.c, which
 * calls that same file in a library of its own (spheroid/library.c).
 */
#ifndef GEONN_SPHEROID_DISTANCE_H
#define GEONN_SPHEROID_DISTANCE_H

/*
 * The length in metres of the shortest path on the WGS84 spheroid between two
 * valid points in degrees, as PROJ's geod_inverse returns it for their
 * canonical coordinates (spheroid.h).  SQL's geonn_distance(…, 'spheroid')
 * returns this float64 value, and neighbours are ordered by it.
 *
 * The distance is never negative, and 0 from a point to itself, whichever of
 * its coordinates are given; equal canonical coordinates give equal bits.
 * geod_inverse puts the two points into one order before it calculates, so
 * that the bits are the same in both directions; all the same, the observation
 * is always the first point.  The bits belong to a build of PROJ: it calls the
 * C library's sine and arc tangent, so distances may differ by a few nanometres
 * between machines, never between processes of one machine.
 *
 * Any number of threads may call it.
 */
extern double geonn_spheroid_distance(double latitude1, double longitude1,
									  double latitude2, double longitude2);

/*
 * Return the direction in which the shortest path to the second point begins at the first point:
 * degrees clockwise from north, -180 to 180, as geod_inverse returns it.
 */
extern double geonn_spheroid_azimuth(double latitude1, double longitude1,
									 double latitude2, double longitude2);

#endif							/* GEONN_SPHEROID_DISTANCE_H */
