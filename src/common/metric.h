/*
 * metric.h
 *		The vectors, limits and distances of each metric.
 *
 * Module, engine and kernels get all that depends on the metric from here.
 * Each function has a case for each metric and no default, so that the
 * compiler names the functions that a new metric lacks.
 *
 * Metrics are of two kinds.  For some metrics the chord decides: a distance is
 * a function of two vectors, and can be computed anywhere, on a GPU as well.
 * Searches by such a metric may rely on three things: the vectors are
 * geonn_unit_vector()'s; equal vectors give equal distances; and
 * geonn_chord_limit() of a reference's squared chord bounds the squared chords
 * of all references that are not farther, by the distance as computed.  For
 * the other metrics, vectors tell which references can be among the nearest,
 * and only the host, which has the degrees, can compute their distances.
 */
#ifndef GEONN_METRIC_H
#define GEONN_METRIC_H

#include <stddef.h>

#include "common/geodesy.h"
#include "common/protocol.h"
#include "common/spheroid.h"
#ifndef __CUDACC__
#include "common/spheroid_distance.h"
#endif

/* Return the name of a metric in SQL, or NULL if no metric has this number.  Numbers begin with 0. */
GEONN_GEODESY_FUNCTION const char *
geonn_metric_name(enum geonn_metric metric)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return "sphere";
		case GEONN_METRIC_SPHEROID:
			return "spheroid";
	}
	return NULL;
}

GEONN_GEODESY_FUNCTION bool
geonn_metric_chord_decides(enum geonn_metric metric)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return true;
		case GEONN_METRIC_SPHEROID:
			return false;
	}
	__builtin_unreachable();
}

/* Return the vector of a valid point in degrees; chords are distances between such vectors. */
GEONN_GEODESY_FUNCTION struct geonn_vector
geonn_metric_vector(enum geonn_metric metric, double latitude, double longitude)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return geonn_unit_vector(latitude, longitude);
		case GEONN_METRIC_SPHEROID:
			return geonn_spheroid_vector(latitude, longitude);
	}
	__builtin_unreachable();
}

/*
 * Return the limit on squared chords: if k references have a squared chord of at most kth_chord_squared from an
 * observation, its k nearest, and all that tie with the k-th, have squared chords of at most the limit.  May be INFINITY.
 */
GEONN_GEODESY_FUNCTION double
geonn_metric_chord_limit(enum geonn_metric metric, double kth_chord_squared)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return geonn_chord_limit(kth_chord_squared);
		case GEONN_METRIC_SPHEROID:
			return geonn_spheroid_limit(kth_chord_squared);
	}
	__builtin_unreachable();
}

/* Return a limit that the squared chords of all references within max_distance metres keep; may be INFINITY. */
GEONN_GEODESY_FUNCTION double
geonn_metric_radius_limit(enum geonn_metric metric, double max_distance)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return geonn_radius_limit(max_distance);
		case GEONN_METRIC_SPHEROID:
			return geonn_spheroid_radius_limit(max_distance);
	}
	__builtin_unreachable();
}

/*
 * Return a limit such that each reference whose squared chord is at most the limit is within `distance`
 * metres.  Negative if no chord implies the distance; may be INFINITY.
 */
GEONN_GEODESY_FUNCTION double
geonn_metric_certain_limit(enum geonn_metric metric, double distance)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return geonn_certain_limit(distance);
		case GEONN_METRIC_SPHEROID:
			return geonn_spheroid_certain_limit(distance);
	}
	__builtin_unreachable();
}

/*
 * Return the greatest distance, in metres, of a pair of a point with this radius, if pairs are asked for
 * within max_distance; negative if the point can have no pairs.
 */
GEONN_GEODESY_FUNCTION double
geonn_metric_reach(double max_distance, double radius)
{
	return radius >= max_distance ? max_distance : radius >= 0.0 ? radius : -1.0;
}

/*
 * Return a wider limit than geonn_metric_radius_limit() does, at less cost.  A chord is shorter than the path along the
 * surface.  The unit of chords, the radius of the sphere or the semi-major axis, is 1 % longer than the divisor.  The 1 %
 * and the millimetre are far more than the errors of rounding and of computed distances.
 */
GEONN_GEODESY_FUNCTION double
geonn_metric_wide_limit(enum geonn_metric metric, double max_distance)
{
	double		chord = (max_distance + 1e-3) / 6300000.0;

	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
		case GEONN_METRIC_SPHEROID:
			return chord * chord;
	}
	__builtin_unreachable();
}

/*
 * Return the greatest difference of latitude, in degrees, of points at most max_distance metres apart.  A degree has at
 * least 110,574 metres, at the spheroid's equator: a (1 - e^2) pi / 180, by the radius of curvature of a meridian there.
 */
GEONN_GEODESY_FUNCTION double
geonn_metric_latitudes(enum geonn_metric metric, double max_distance)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
		case GEONN_METRIC_SPHEROID:
			return (max_distance + 1e-3) / 110000.0;
	}
	__builtin_unreachable();
}

/* Return the distance in metres of two points by their vectors, for a metric with geonn_metric_chord_decides(). */
GEONN_GEODESY_FUNCTION double
geonn_metric_distance_of(enum geonn_metric metric, struct geonn_vector u, struct geonn_vector v)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return geonn_distance_of(u, v);
		case GEONN_METRIC_SPHEROID:
			break;
	}
	__builtin_unreachable();
}

#ifndef __CUDACC__

/*
 * Replace squared chords, each at most GEONN_NEAR_CHORD, by the distances that
 * geonn_metric_distance_of() gives, for a metric with geonn_metric_chord_decides().
 */
static inline __attribute__((always_inline)) void
geonn_metric_near_distances(enum geonn_metric metric, double *values, size_t count)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			for (size_t i = 0; i < count; i++)
				values[i] = geonn_near_distance(values[i]);
			return;
		case GEONN_METRIC_SPHEROID:
			break;
	}
	__builtin_unreachable();
}

/*
 * Return the distance in metres of two valid points in degrees.  SQL's geonn_distance() returns
 * this value, and neighbours are ordered by it.  For the host alone.
 */
static inline double
geonn_metric_distance(enum geonn_metric metric, double latitude1, double longitude1,
					  double latitude2, double longitude2)
{
	switch (metric)
	{
		case GEONN_METRIC_SPHERE:
			return geonn_distance_degrees(latitude1, longitude1, latitude2, longitude2);
		case GEONN_METRIC_SPHEROID:
			return geonn_spheroid_distance(latitude1, longitude1, latitude2, longitude2);
	}
	__builtin_unreachable();
}

#endif

#endif							/* GEONN_METRIC_H */
