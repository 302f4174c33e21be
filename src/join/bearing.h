/*
 * bearing.h
 *		The initial course from one point to another.
 */
#ifndef GEONN_BEARING_H
#define GEONN_BEARING_H

/*
 * Compute the direction in which the shortest path by this metric (enum
 * geonn_metric) begins: degrees clockwise from north, from 0 up to but not
 * 360.  The points are valid and in degrees.  Exact within 1e-9 degrees if the
 * points are a metre apart or more, and not nearly antipodal.  At a pole,
 * north is along the meridian of the given longitude.  False if the points
 * coincide: then no direction exists.
 */
extern bool geonn_bearing(int metric, double latitude1, double longitude1,
						  double latitude2, double longitude2, double *bearing);

#endif							/* GEONN_BEARING_H */
