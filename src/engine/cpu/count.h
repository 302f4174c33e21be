/*
 * count.h
 *		Counts the candidates of many observations within radii on the CPU, and adds up their weights.
 */
#ifndef GEONN_CPU_COUNT_H
#define GEONN_CPU_COUNT_H

#include "common/metric.h"
#include "engine/cpu/index.h"
#include "engine/cpu/neighbours.h"
#include "engine/cpu/sums.h"
#include "engine/search/device.h"

/* radii, and what squared chords say of them; each column is rising */
struct cpu_radii
{
	uint32_t	count;
	double		radius[GEONN_RADII_MAX];	/* metres */
	double		within[GEONN_RADII_MAX];	/* no candidate within the radius has a greater squared chord */
	double		certain[GEONN_RADII_MAX];	/* any reference with at most this one is within the radius */
};

/* a piece of a search: observations in the order of the index's parts, and in each along the curve */
struct cpu_count_piece
{
	const struct search *search;
	const struct cpu_index *index;
	const struct cpu_sums *sums;	/* [weights] of the index */
	uint32_t	weights;		/* how many weights the dataset has */
	const struct cpu_radii *radii;	/* of the question */
	const struct cpu_observation *observation;	/* by row */
	uint32_t	first;			/* row 0 is the search's observation of this number */
	int64_t		end_ms;			/* when to stop, after the first observation */

	uint32_t	count;
	const uint32_t *row;		/* [count] rows */

	/* where row 0's pairs begin; row by row the pairs that protocol.h describes */
	int64_t    *tag;
	double	   *distance;
	bool	   *answered;		/* by row: set when its pairs are there */
};

/*
 * Set the radii, with what squared chords say of them.  No candidate is farther than `most` metres: radii beyond that
 * are cut off, and if it is negative or NaN, none has a candidate.
 */
static inline void
cpu_radii_set(struct cpu_radii *radii, enum geonn_metric metric, const double *radius, uint32_t count, double most)
{
	radii->count = count;
	for (uint32_t i = 0; i < count; i++)
	{
		double		reach = geonn_metric_reach(radius[i], most);

		radii->radius[i] = reach;
		radii->within[i] = reach < 0.0 ? -1.0 : geonn_metric_radius_limit(metric, reach);
		radii->certain[i] = reach < 0.0 ? -1.0 : geonn_metric_certain_limit(metric, reach);
	}
}

/* Answer the observations of a piece until its time is over or the search is cancelled, but at least the first one. */
extern void CPU_PATH_NAME(cpu_count) (struct cpu_count_piece *piece);

#endif							/* GEONN_CPU_COUNT_H */
