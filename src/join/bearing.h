/*
 * bearing.h
 *		The initial course from one point to another.
 */
#ifndef GEONN_BEARING_H
#define GEONN_BEARING_H

/*
 * Degrees from north by east, 0 up to but not 360, in which the shortest path
 * by this metric (enum geonn_metric) begins; points are valid and in degrees.
 * Within 1e-9 degrees where they are a metre apart or more, and not nearly
 * antipodal.  At a pole, north is along the meridian of the longitude given.
 * False where the points coincide: there is none.
 */
extern bool geonn_bearing(int metric, double latitude1, double longitude1,
						  double latitude2, double longitude2, double *bearing);

#endif							/* GEONN_BEARING_H */
