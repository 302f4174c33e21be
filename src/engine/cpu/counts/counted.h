/*
 * counted.h
 *		What a count has found for one observation within one radius.
 */
#ifndef GEONN_CPU_COUNTED_H
#define GEONN_CPU_COUNTED_H

#include "engine/cpu/counts/count.h"

struct cpu_counted
{
	uint64_t	references;
	struct cpu_sum sum[GEONN_WEIGHTS_MAX];
	struct cpu_range range[GEONN_WEIGHTS_MAX];
};

/* Begin with an observation of a piece: set the counts within all radii to nothing. */
extern void cpu_counted_begin(const struct cpu_count_piece *piece, struct cpu_counted *counted);

/* Write the counts within each radius as the pairs of the observation in this row. */
extern void cpu_counted_end(const struct cpu_count_piece *piece, uint32_t row, const struct cpu_counted *counted);

#endif							/* GEONN_CPU_COUNTED_H */
