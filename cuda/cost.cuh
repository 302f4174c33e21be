/*
 * cost.cuh
 *		What a search costs on a GPU.
 *
 * This file and cost.cu are plain C as well, so that algorithm_test tries them
 * without a GPU, too.
 */
#ifndef GEONN_CUDA_COST_CUH
#define GEONN_CUDA_COST_CUH

#ifdef __cplusplus
extern "C"
{
#endif

#include "engine/search/device.h"

/* device.h's cost */
extern struct cost cuda_cost(const struct search *search, enum geonn_algorithm algorithm,
							 double observations);

#ifdef __cplusplus
}
#endif

#endif							/* GEONN_CUDA_COST_CUH */
