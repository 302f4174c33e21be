/*
 * cells_cost.cuh
 *		What a table costs, and whether it pays.
 *
 * Plain C as well.  Nanoseconds, from runs of geonn-bench on one NVIDIA H100, with 2^27
 * observations on the GPU, on 25 November 2026 (doc/benchmarks.md).
 */
#ifndef GEONN_CELLS_COST_CUH
#define GEONN_CELLS_COST_CUH

#include <stdbool.h>

/* ns that a build takes: for its launches, and for each reference's squares; a third of that if
 * references are evenly spread */
#define CELLS_BUILD 100000.0
#define CELLS_BUILD_REFERENCE 20.0

/* ns that a table saves for each observation that the index would have to answer */
#define CELLS_SAVED 0.04

/* Datasets with more references, or positions of the index, have no table: it would be larger
 * than a GPU's second-level cache.  In its first form it was no faster: with 2^20 references
 * spread like cities its search took 17 ms and its build 10 ms, where the index took 14 ms
 * for both. */
#define CELLS_REFERENCES_MAX 262144.0

/* fewer observations get no table, as a table takes memory, too */
#define CELLS_OBSERVATIONS_MIN 4194304.0

/*
 * Whether a table is worth its build: whether it would have saved more time, for all
 * observations so far, than its build takes.
 */
static inline bool
cells_pay(double references, double observations)
{
	return observations >= CELLS_OBSERVATIONS_MIN &&
		observations * CELLS_SAVED >= CELLS_BUILD + CELLS_BUILD_REFERENCE * references;
}

#endif							/* GEONN_CELLS_COST_CUH */
