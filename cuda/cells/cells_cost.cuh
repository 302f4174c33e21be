/*
 * cells_cost.cuh
 *		What a table costs, and whether it pays.
 *
 * Plain C as well, for cost.cu.  Nanoseconds on an H100; estimates from the kernels'
 * instructions until geonn-bench prints them ("the table", --data device).
 */
#ifndef GEONN_CELLS_COST_CUH
#define GEONN_CELLS_COST_CUH

#include <stdbool.h>

/* to build: launches, and a reference's squares */
#define CELLS_BUILD 150000.0
#define CELLS_BUILD_REFERENCE 4.0

/* to search: launches, and an observation */
#define CELLS_SEARCH 30000.0
#define CELLS_OBSERVATION 0.03

/* what it saves of an observation that would go by the index */
#define CELLS_SAVED 0.035

/* more references, or positions of an index, have no table: it would be far larger than any
 * cache */
#define CELLS_REFERENCES_MAX 4194304.0

/* fewer observations never pay: a table is memory, too */
#define CELLS_OBSERVATIONS_MIN 4194304.0

static inline double
cells_build_cost(double references)
{
	return CELLS_BUILD + CELLS_BUILD_REFERENCE * references;
}

/*
 * Whether so many observations, of which some may have been answered without a table, are
 * enough for one: as many as would have saved what it takes to build.
 */
static inline bool
cells_pay(double references, double observations)
{
	return observations >= CELLS_OBSERVATIONS_MIN &&
		observations * CELLS_SAVED >= cells_build_cost(references);
}

#endif							/* GEONN_CELLS_COST_CUH */
