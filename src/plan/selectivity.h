/*
 * selectivity.h
 *		How many references observations have near them, by samples of both tables.
 */
#ifndef GEONN_SELECTIVITY_H
#define GEONN_SELECTIVITY_H

#include "points/columns.h"

typedef struct PointSample PointSample;

/*
 * A sample of the points of a table, which lives at least until seven more calls have been made, and is up to a
 * minute old.  The caller has checked that the user may read the source.  NULL: the source is not a plain heap table,
 * policies apply, its columns to join by cannot be hashed here, or no row has a point.
 */
extern const PointSample *geonn_sample(const PointSource *source);

/* what is asked of each observation */
typedef struct NeighboursAsked
{
	double		radius;			/* metres; infinity: any distance */
	double		k;				/* the greatest number of references; infinity: all */
	double		references;		/* how many rows the table of references has */
	bool		itself;			/* each observation is among the references */
} NeighboursAsked;

typedef struct NeighboursExpected
{
	double		each;			/* how many references an observation has, on average */
	double		unmatched;		/* the share of observations without any, from 0 to 1 */
} NeighboursExpected;

/* Expect neighbours by samples of the observations and of the references, which may be the same one. */
extern NeighboursExpected geonn_expect_neighbours(const PointSample *observations,
												  const PointSample *references,
												  const NeighboursAsked *asked);

#endif							/* GEONN_SELECTIVITY_H */
