/*
 * metric.h
 *		What a metric is: its vectors, limits and distances, by its number.
 *
 * Module, engine and kernels ask here, and nowhere else, what depends on the
 * metric.  Each function has a case for each metric and no default, so that the
 * compiler names what a new one lacks.
 *
 * Metrics are of two kinds.  For some the chord decides: a distance is a function
 * of two vectors, computed anywhere, on a GPU as well.  Searches may then rely on
 * three things: the vectors are geonn_unit_vector()'s, equal ones give equal
 * distances, and geonn_chord_limit() of a squared chord bounds the squared chords
 * of all that are not farther by the distance as computed.  For the others vectors
 * tell which references can be among the nearest, and only a host, which has the
 * degrees, knows their distances.
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

/* Its name in SQL.  NULL: there is no metric of this number; they begin with 0. */
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

/* The vector of a valid point in degrees, that its chords are between. */
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
 * The squared chord that none of an observation's k nearest exceeds, nor what ties
 * with the k-th, if k references have a squared chord of at most kth_chord_squared.
 * May be INFINITY.
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

/* The squared chord that nothing within so many metres exceeds; may be INFINITY. */
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

/* Metres between two points given by their vectors, where the chord decides. */
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
 * Metres between two valid points in degrees: what SQL's geonn_distance() returns
 * and neighbours are ordered by.  For the host.
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
