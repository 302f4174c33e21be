/*
 * nearest.cuh
 *		The pieces of searches for the nearest reference alone.
 */
#ifndef GEONN_NEAREST_CUH
#define GEONN_NEAREST_CUH

#include "cuda/lane/lane.cuh"

/* operations by brute force, by index, and by the table beside it */
extern const struct piece_operations nearest_brute_operations;
extern const struct piece_operations nearest_index_operations;
extern const struct piece_operations nearest_cells_operations;

#endif							/* GEONN_NEAREST_CUH */
