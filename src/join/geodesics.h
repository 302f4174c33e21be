/*
 * geodesics.h
 *		Distances and directions that the module computes itself.
 */
#ifndef GEONN_GEODESICS_H
#define GEONN_GEODESICS_H

/*
 * Return the direction in which the shortest path by this metric (enum geonn_metric) begins: degrees clockwise from north,
 * from 0 to below 360.  The points are valid and in degrees.  Exact within 1e-9 degrees if the points are a metre apart or
 * more, and not nearly antipodal.  At a pole, north is along the meridian of the given longitude.  Points whose distance
 * by the metric is 0 have no direction: the value means nothing.
 */
extern double geonn_bearing(int metric, double latitude1, double longitude1,
							double latitude2, double longitude2);

#endif							/* GEONN_GEODESICS_H */
