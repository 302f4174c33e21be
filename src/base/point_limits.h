/*
 * point_limits.h
 *		What limits the candidates of a point: its radius and its windows; and the weights of a reference.
 */
#ifndef GEONN_POINT_LIMITS_H
#define GEONN_POINT_LIMITS_H

#include "common/protocol.h"
#include "common/window.h"

typedef struct GeonnWindow
{
	int64		low;			/* the values of the two bounds (window.h) */
	int64		high;
} GeonnWindow;

/*
 * Limits of a point.  A point without a radius has an infinite one.  A join with fewer windows or weights sets
 * only the first ones.  Padding bytes are 0, so that equal limits have equal bytes (geonn_limits_bytes).
 */
typedef struct GeonnLimits
{
	double		radius;			/* metres, 0 or more */
	uint16		edges;			/* the edges of all windows' bounds (window.h) */
	bool		none;			/* no point of the other side is a candidate, because a window is NULL or empty, or the
								 * radius is negative */
	GeonnWindow windows[GEONN_WINDOWS_MAX];
	double		weights[GEONN_WEIGHTS_MAX]; /* finite; NaN for a NULL */
} GeonnLimits;

/* Return the bytes that limits with this many windows and weights take. */
static inline Size
geonn_limits_bytes(int windows, int weights)
{
	if (weights > 0)
		return offsetof(GeonnLimits, weights) + weights * sizeof(double);
	return offsetof(GeonnLimits, windows) + windows * sizeof(GeonnWindow);
}

#endif							/* GEONN_POINT_LIMITS_H */
