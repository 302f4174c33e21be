/*
 * conditions.h
 *		What the benchmark's points have beside their places: groups, windows and
 *		radiuses.
 *
 * All is a function of the seed, the set and the point's number.  Time goes
 * from 0 to CONDITIONS_TIME.  By steps, it is cut into steps of equal length,
 * and reference number i is there in step i % steps, from the step's beginning
 * until just before its end; an observation is a moment.  Groups are the same
 * steps, as numbers.  By spans, each reference is there, and each observation
 * lasts, for a share of all time around a moment.
 */
#ifndef GEONN_BENCH_CONDITIONS_H
#define GEONN_BENCH_CONDITIONS_H

#include "../lib/engine_client.h"
#include "points.h"

#define CONDITIONS_TIME INT64_C(1000000000000)

struct conditions
{
	uint32_t	groups;			/* 0: no groups */
	uint32_t	steps;			/* windows of so many steps; 0: not by steps */
	double		present;		/* share of all time for which a reference is there */
	double		observed;		/* and for which an observation lasts; both 0: not by spans */
	double		radius;			/* metres: of each point from 0 to that; 0: no radiuses */
	double		within;			/* metres: the greatest distance of a candidate; 0: no limit */
	uint32_t	weights;		/* of each reference: whole numbers below 1,000, then fractions */
	uint32_t	lines;			/* references are segments of lines, so many of each; 0: not of lines */
	uint32_t	polygons;		/* or sides of polygons with so many corners; 0: not of polygons */
	bool		exclude_self;	/* observation i is reference i, which is no candidate of it */
};

/* Whether there is any condition. */
extern bool conditions_any(const struct conditions *conditions);

/* The greatest distance of a candidate, in metres; may be INFINITY. */
extern double conditions_max_distance(const struct conditions *conditions);

/* The set of points that observations are of. */
extern enum points_set conditions_observed_set(const struct conditions *conditions);

/* GEONN_COLUMN_... of points with these conditions. */
extern uint32_t conditions_columns(const struct conditions *conditions);

/* Fill in the columns of points first ... first + count - 1 of a set, from row 0 on. */
extern void conditions_fill(const struct conditions *conditions, uint64_t seed, enum points_set set,
							uint64_t first, size_t count, const struct geonn_batch_columns *columns);

/* A weight of a reference. */
extern double conditions_weight(uint64_t seed, uint64_t reference, uint32_t weight);

/* Whether a reference may be an answer for an observation, by their numbers, so far from it. */
extern bool conditions_hold(const struct conditions *conditions, uint64_t seed,
							uint64_t observation, uint64_t reference, double distance);

/* ", 1000 groups" and so on. */
extern const char *conditions_text(const struct conditions *conditions);

#endif							/* GEONN_BENCH_CONDITIONS_H */
