/*
 * neighbours.h
 *		How many references observations have near them, by samples of both.
 */
#ifndef GEONN_PLAN_NEIGHBOURS_H
#define GEONN_PLAN_NEIGHBOURS_H

#include "plan/sample.h"

/* what is asked of each observation */
typedef struct NeighboursAsked
{
	double		radius;			/* metres; infinity: any distance */
	double		k;				/* references at most; infinity: all */
	double		references;		/* rows of the table of references */
	bool		itself;			/* each observation is among the references */
} NeighboursAsked;

typedef struct NeighboursExpected
{
	double		each;			/* references of an observation, on average */
	double		unmatched;		/* share of the observations that have none */
} NeighboursExpected;

/* Expect neighbours by samples of the observations and of the references. */
extern NeighboursExpected geonn_expect_neighbours(const PointSample *observations,
												  const PointSample *references,
												  const NeighboursAsked *asked);

#endif							/* GEONN_PLAN_NEIGHBOURS_H */
