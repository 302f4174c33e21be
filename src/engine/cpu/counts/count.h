/*
 * count.h
 *		Counts the candidates of many observations within radii on the CPU, adds up their weights, and finds the
 *		least and the greatest of them.
 */
#ifndef GEONN_CPU_COUNT_H
#define GEONN_CPU_COUNT_H

#include "engine/cpu/index/extremes.h"
#include "engine/cpu/index/index.h"
#include "engine/cpu/walk/neighbours.h"
#include "engine/cpu/index/sums.h"
#include "engine/search/device.h"
#include "engine/search/radii.h"

/* a piece of a search: observations in the order of the index's parts, and in each along the curve */
struct cpu_count_piece
{
	const struct search *search;
	const struct cpu_index *index;	/* NULL: the dataset is of arcs */
	const struct cpu_arcs *arcs;	/* set for a dataset of arcs, otherwise NULL */
	struct cpu_probes *probes;	/* of observations that are shapes, otherwise NULL; row 0 may be left there */
	const struct cpu_sums *sums;	/* [weights] of the index; for arcs only the forms are set */
	const struct cpu_extremes *extremes;	/* [weights] of the index; NULL: the question does not ask for extremes */
	uint32_t	weights;		/* how many weights the dataset has */
	const struct search_radii *radii;	/* of the question */
	const struct cpu_observation *observation;	/* by row */
	uint32_t	first;			/* row 0 is the search's observation with this number */
	int64_t		end_ms;			/* when to stop, on the clock of now_ms(); the first observation is answered in any case */

	uint32_t	count;
	uint32_t   *row;			/* [count] rows */
	uint32_t   *counts;			/* by row; for arcs: room for the number of shapes within the largest radius */

	/* the columns of pairs, which protocol_search.h describes, row by row; the addresses of row 0's first pair */
	int64_t    *tag;
	double	   *distance;
	bool	   *answered;		/* by row: set when the row's pairs are written */
	bool		short_of_memory;	/* set for arcs: the piece ended early */
};

/* Answer the observations of a piece until its time is over or the search is cancelled; answer at least the first one. */
extern void CPU_PATH_NAME(cpu_count) (struct cpu_count_piece *piece);

#endif							/* GEONN_CPU_COUNT_H */
