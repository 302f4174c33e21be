/*
 * given_points.h
 *		Points that are given, in place of a source's rows: those of arrays, or of a baseline.
 */
#ifndef GEONN_GIVEN_POINTS_H
#define GEONN_GIVEN_POINTS_H

#include "points/point_row.h"

/* points that the caller passes, in place of a source's rows */
typedef struct GivenPoints
{
	uint64		count;

	/*
	 * Get a point by its number, from 0 on; the numbers are asked for in this order.  What
	 * the row points to lives until the next call.  This function does not set the status.
	 */
	void		(*point) (void *state, uint64 number, PointRow *row);
	void	   *state;

	/*
	 * Each point is the only one of a call of its own, and these are some of many calls.  Then
	 * the one that gives the points warns of those that are skipped.
	 */
	bool		each_alone;
} GivenPoints;

/* Get a point by its number, from 0 on, with its status. */
extern PointRow geonn_given_row(const GivenPoints *given, uint64 number);

/* Warn of points that are skipped, or are kept without a neighbour; counts is by PointStatus. */
extern void geonn_warn_of_given(const uint64 *counts, bool kept);

/* Raise the error about the first point with invalid coordinates, if any point has them. */
extern void geonn_check_given(const GivenPoints *given);

#endif							/* GEONN_GIVEN_POINTS_H */
