/*
 * curve_cells.h
 *		Orders the references of the CPU's index that share a cell of the
 *		curve.
 */
#ifndef GEONN_CPU_CURVE_CELLS_H
#define GEONN_CPU_CURVE_CELLS_H

#include "engine/cpu/index/index.h"

/*
 * Reorder the references of each cell so that references of one position are neighbours.  The
 * caller has filled the index's places and vectors, sorted by part and curve; `start` is scratch.
 * Once *cancelled is set, the function ends early, with places and vectors in some order.
 */
extern void cpu_curve_cells_order(const struct dataset *dataset, struct cpu_index *index,
							const atomic_bool *cancelled);

/*
 * Return whether reference i of the sorted order shares its position with reference i - 1: the same
 * point, group, radius, windows and parties.
 */
extern bool cpu_curve_cells_is_one(const struct dataset *dataset, const struct cpu_index *index,
							 size_t i);

#endif							/* GEONN_CPU_CURVE_CELLS_H */
