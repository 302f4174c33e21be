/*
 * try.cuh
 *		Ends a function with the error of the first call that fails.
 */
#ifndef GEONN_TRY_CUH
#define GEONN_TRY_CUH

#include <cuda_runtime_api.h>

/* Return the error of a call, unless it succeeds. */
#define CUDA_TRY(call) \
	do \
	{ \
		cudaError_t tried = (call); \
 \
		if (tried != cudaSuccess) \
			return tried; \
	} while (0)

#endif							/* GEONN_TRY_CUH */
