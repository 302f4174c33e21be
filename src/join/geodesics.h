/*
 * geodesics.h
 *		Distances and directions that the module computes itself.
 */
#ifndef GEONN_GEODESICS_H
#define GEONN_GEODESICS_H

#include "fmgr.h"

#include "common/metric.h"
#include "points/geometry.h"

/*
 * Return the direction in which the shortest path by this metric (enum geonn_metric) begins: degrees clockwise from north,
 * from 0 to below 360.  The points are valid and in degrees.  Exact within 1e-9 degrees if the points are a metre apart or
 * more, and not nearly antipodal.  At a pole, north is along the meridian of the given longitude.  Points whose distance
 * by the metric is 0 have no direction: the value means nothing.
 */
extern double geonn_bearing(int metric, double latitude1, double longitude1,
							double latitude2, double longitude2);

/* Return the metric with this name, of `length` bytes.  Raises an error if no metric has it. */
extern enum geonn_metric geonn_metric_of(const char *name, size_t length);

/*
 * Return what kind of shapes the type of an argument of geonn_distance() holds, counted from 0.  The kind is looked up
 * once for each place where a statement calls the function.  Raises an error if the type is no type of shapes.
 */
extern GeonnPointKind geonn_kind_of_shape(FmgrInfo *function, int argument);

#endif							/* GEONN_GEODESICS_H */
