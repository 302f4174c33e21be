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

/* to build: launches, and a reference's squares; of evenly spread references a third of it */
#define CELLS_BUILD 100000.0
#define CELLS_BUILD_REFERENCE 20.0

/* what it saves of an observation that would go by the index */
#define CELLS_SAVED 0.04

/* more references, or positions of an index, have no table: it is larger than a GPU's second
 * cache, and in its first form was no faster than the index: with 2^20 city-like ones a search
 * took 17 ms and building 10, where the index took 14 for both */
#define CELLS_REFERENCES_MAX 262144.0

/* fewer observations never pay: a table is memory, too */
#define CELLS_OBSERVATIONS_MIN 4194304.0

/*
 * Whether so many observations, of which some may have been answered without a table, are
 * enough for one: as many as would have saved what it takes to build.
 */
static inline bool
cells_pay(double references, double observations)
{
	return observations >= CELLS_OBSERVATIONS_MIN &&
		observations * CELLS_SAVED >= CELLS_BUILD + CELLS_BUILD_REFERENCE * references;
}

#endif							/* GEONN_CELLS_COST_CUH */
