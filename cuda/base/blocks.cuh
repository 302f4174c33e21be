/*
 * blocks.cuh
 *		How many blocks a launch has.
 */
#ifndef GEONN_BLOCKS_CUH
#define GEONN_BLOCKS_CUH

#include <cuda_runtime_api.h>
#include <stdint.h>

/* Return how many blocks a launch needs for `items`, if each block takes items_of_one. */
static inline uint32_t
blocks_for(uint64_t items, uint32_t items_of_one)
{
	return (uint32_t) ((items + items_of_one - 1) / items_of_one);
}

/* Count the multiprocessors of the current GPU. */
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

#endif							/* GEONN_BLOCKS_CUH */
