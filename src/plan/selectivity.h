/*
 * selectivity.h
 *		How many references observations have near them, by samples of both tables.
 */
#ifndef GEONN_SELECTIVITY_H
#define GEONN_SELECTIVITY_H

#include "points/columns.h"

typedef struct PointSample PointSample;

/*
 * A sample of a table's points, up to a minute old.  It lives at least until seven more calls of this
 * function.  The caller has checked that the user may read the source.  NULL: the source is no plain heap
 * table, has policies, or columns to join by that cannot be hashed here, or no row has a point.
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

/* Estimate an observation's neighbours from samples of both sides, which may be one and the same. */
extern NeighboursExpected geonn_expect_neighbours(const PointSample *observations,
												  const PointSample *references,
												  const NeighboursAsked *asked);

#endif							/* GEONN_SELECTIVITY_H */
