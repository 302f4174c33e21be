/*
 * given_points.h
 *		Points that are given, in place of a source's rows: those of arrays, or of a baseline.
 */
#ifndef GEONN_GIVEN_POINTS_H
#define GEONN_GIVEN_POINTS_H

#include "points/point_row.h"

/* points that are at hand, in place of a source's rows */
typedef struct GivenPoints
{
	uint64		count;

	/*
	 * Tell of one, by its number from 0 on; they are asked for in this order.  What the row
	 * points to lives until the next call.  Its status is the caller's to find out.
	 */
	void		(*point) (void *state, uint64 number, PointRow *row);
	void	   *state;
} GivenPoints;

/* One of the points, by its number from 0 on, with its status: NULL, or what its coordinates are. */
extern PointRow geonn_given_row(const GivenPoints *given, uint64 number);

/* Raise the error of the first point that has invalid coordinates, if one has. */
extern void geonn_check_given(const GivenPoints *given);

#endif							/* GEONN_GIVEN_POINTS_H */
