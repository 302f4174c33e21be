/*
 * multiprocessors.cuh
 *		The number of multiprocessors of the current GPU.
 */
#ifndef GEONN_MULTIPROCESSORS_CUH
#define GEONN_MULTIPROCESSORS_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

static inline cudaError_t
count_multiprocessors(uint32_t *count)
{
	int			device;
	int			value = 0;
	cudaError_t error;

	if ((error = cudaGetDevice(&device)) == cudaSuccess)
		error = cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, device);
	*count = (uint32_t) value;
	return error;
}

#endif							/* GEONN_MULTIPROCESSORS_CUH */
