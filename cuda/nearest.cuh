/*
 * nearest.cuh
 *		The pieces of searches for the nearest reference alone.
 */
#ifndef GEONN_NEAREST_CUH
#define GEONN_NEAREST_CUH

#include "cuda/lane/lane.cuh"

/* how pieces are answered by brute force; and by the table or the index */
extern const struct piece_operations nearest_brute_operations;
extern const struct piece_operations nearest_search_operations;

#endif							/* GEONN_NEAREST_CUH */
