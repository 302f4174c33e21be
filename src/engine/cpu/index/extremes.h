/*
 * extremes.h
 *		The least and the greatest weight, over any range of the index's positions.
 */
#ifndef GEONN_CPU_EXTREMES_H
#define GEONN_CPU_EXTREMES_H

#include "engine/cpu/base/conditions.h"
#include "engine/cpu/index/index.h"
#include "engine/search/device.h"

/* the least and the greatest of some weights; INFINITY and -INFINITY of no weights */
struct cpu_range
{
	double		least;
	double		greatest;
};

/* the extremes of one of a dataset's weights, for an index */
struct cpu_extremes
{
	const double *weight;		/* the dataset's column; NAN: the reference has no weight */
	struct cpu_range *node;		/* [shape.all_nodes] the extremes of the weights of each node's references */
	size_t		bytes;			/* how many bytes of memory `node` takes */
};

/*
 * Compute the extremes of weight number `weight`, which the search's dataset must have.  Returns false with the
 * failure if memory is short.  cpu_extremes_free() frees the extremes; all fields may be 0.
 */
extern bool cpu_extremes_build(struct cpu_extremes *extremes, const struct search *search,
							   const struct cpu_index *index, int weight, struct failure *failure);
extern void cpu_extremes_free(struct cpu_extremes *extremes);

/*
 * Widen a range by the weights of the references at positions first ... end - 1 whose tags are not excluded.  Returns
 * how many references it looked at one by one.
 */
extern uint64_t cpu_extremes_widen(const struct cpu_extremes *extremes, const struct cpu_index *index,
								   uint32_t first, uint32_t end, struct cpu_tags excluded, struct cpu_range *range);

#endif							/* GEONN_CPU_EXTREMES_H */
