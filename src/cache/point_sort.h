/*
 * point_sort.h
 *		Points in the order of their keys.
 */
#ifndef GEONN_CACHE_POINT_SORT_H
#define GEONN_CACHE_POINT_SORT_H

#include "cache/baseline.h"

/* a point in the sort */
typedef struct SortedPoint
{
	Fingerprint fingerprint;
	uint64		number;			/* a number by which the caller knows the point */
	uint32		length;
	const char *bytes;			/* valid until the next point is asked for */
} SortedPoint;

typedef struct PointSort PointSort;

/*
 * Create a sort without points, in the current memory context.  Points spill to disk when they take more
 * than this many kilobytes.
 */
extern PointSort *geonn_point_sort_create(int memory);

/* Add a point, whose bytes are copied. */
extern void geonn_point_sort_add(PointSort *sort, const SortedPoint *point);

/* Get the next point; false after the last.  No points can be added after the first call. */
extern bool geonn_point_sort_next(PointSort *sort, SortedPoint *point);

extern void geonn_point_sort_end(PointSort *sort);

#endif							/* GEONN_CACHE_POINT_SORT_H */
