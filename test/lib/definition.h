/*
 * definition.h
 *		What the answers are by definition: for each observation all candidates
 *		in the order (distance, place), found by a plain loop over all
 *		references.  Every question's answer is a first part of that.
 *
 * Distances are those of geonn_distance(); other tests hold them against
 * higher precision.
 */
#ifndef GEONN_TEST_DEFINITION_H
#define GEONN_TEST_DEFINITION_H

#include "points.h"

struct neighbour
{
	double		distance;		/* metres */
	uint32_t	place;			/* of the reference */
};

struct candidates
{
	size_t		all;			/* candidates of the observation */
	size_t		kept;			/* the first ones, as many as the definition
								 * is deep, or all */
	struct neighbour *list;		/* [kept] */
};

struct definition
{
	size_t		observations;
	struct candidates *candidates;	/* [observations] */
};

/*
 * Groups, excluded tags, radiuses and windows count where both have them.  Of each
 * observation's candidates at most the first depth are kept; depth is at
 * least 1.
 */
extern struct definition definition_create(const struct points *references,
										   const struct points *observations,
										   enum geonn_metric metric, size_t depth);

/*
 * How many candidates of an observation are the question's answer.  Ends the
 * program where the definition is not deep enough to tell.
 */
extern size_t definition_answer(const struct definition *definition, size_t observation,
								const struct client_question *question);

/*
 * How many candidates of an observation are within a radius.  Ends the program where the definition is not deep
 * enough to tell.
 */
extern size_t definition_count(const struct definition *definition, size_t observation, double radius);

/* The correctly rounded sum of a column of the references, over the same candidates, all of which it has kept. */
extern double definition_sum(const struct definition *definition, size_t observation, double radius,
							 const double *weight);

/* The least weight of the same candidates, INFINITY if none has one; or the greatest, -INFINITY likewise. */
extern double definition_extreme(const struct definition *definition, size_t observation, double radius,
								 const double *weight, bool greatest);

extern void definition_free(struct definition *definition);

#endif							/* GEONN_TEST_DEFINITION_H */
