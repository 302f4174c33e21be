/*
 * cost.cuh
 *		Which algorithm costs less on a GPU.
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

/* device.h's choose */
extern enum geonn_algorithm cuda_choose(const struct search *search, bool is_first);

#ifdef __cplusplus
}
#endif

#endif							/* GEONN_CUDA_COST_CUH */
