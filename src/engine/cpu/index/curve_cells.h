/*
 * curve_cells.h
 *		Orders the references of the CPU's index that share a cell of the
 *		curve.
 */
#ifndef GEONN_CPU_CURVE_CELLS_H
#define GEONN_CPU_CURVE_CELLS_H

#include "engine/cpu/index/index.h"

/*
 * Make references that are one position neighbours.  The caller has filled the
 * index's places and vectors, sorted by part and curve; `start` is scratch.
 * Ends early, with places and vectors in some order, once *cancelled is set.
 */
extern void cpu_curve_cells_order(const struct dataset *dataset, struct cpu_index *index,
							const atomic_bool *cancelled);

/*
 * Whether reference i of the sorted order is one position with the reference
 * before: the same point, of the same group, with the same radius, windows and parties.
 */
extern bool cpu_curve_cells_is_one(const struct dataset *dataset, const struct cpu_index *index,
							 size_t i);

#endif							/* GEONN_CPU_CURVE_CELLS_H */
