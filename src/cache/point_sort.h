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
	uint64		number;			/* what the caller knows it by */
	uint32		length;
	const char *bytes;			/* valid until the next point is asked for */
} SortedPoint;

typedef struct PointSort PointSort;

/*
 * No points yet, in the current memory context.  They spill to disk when they take more than so many
 * kilobytes.
 */
extern PointSort *geonn_point_sort_create(int memory);

/* Add a point, whose bytes are copied. */
extern void geonn_point_sort_add(PointSort *sort, const SortedPoint *point);

/* The next point.  Returns false at the end.  After the first call no points can be added. */
extern bool geonn_point_sort_next(PointSort *sort, SortedPoint *point);

extern void geonn_point_sort_end(PointSort *sort);

#endif							/* GEONN_CACHE_POINT_SORT_H */
