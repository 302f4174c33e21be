/*
 * nearest.cuh
 *		The pieces of searches for the nearest reference alone.
 */
#ifndef GEONN_NEAREST_CUH
#define GEONN_NEAREST_CUH

#include "cuda/lane/lane.cuh"

/* The operations of pieces that ask for the nearest alone, by brute force, the index of points or the index of arcs. */
extern const struct piece_operations nearest_operations;

#endif							/* GEONN_NEAREST_CUH */
