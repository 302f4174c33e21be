/*
 * nearest.cuh
 *		The pieces of searches for the nearest reference alone.
 */
#ifndef GEONN_NEAREST_CUH
#define GEONN_NEAREST_CUH

#include "cuda/lane/lane.cuh"

/* how pieces are answered: by brute force, the table or the index */
extern const struct piece_operations nearest_operations;

#endif							/* GEONN_NEAREST_CUH */
