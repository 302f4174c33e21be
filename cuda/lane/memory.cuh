/*
 * memory.cuh
 *		Allocates memory of a GPU, within limits.
 */
#ifndef GEONN_MEMORY_CUH
#define GEONN_MEMORY_CUH

#include <cuda_runtime_api.h>

extern "C"
{
#include "engine/search/device.h"
}

/* The purpose of memory decides how much must stay free. */
enum cuda_purpose
{
	CUDA_FOR_SEARCH,
	CUDA_FOR_DATASET			/* for a dataset: some memory stays free for searches */
};

/*
 * Allocate memory on the current device, for `purpose` ("the index of 65536 references").  The function first checks that
 * the bytes are free, and within geonn.gpu_memory_limit; only then it asks the driver.  If they are not, the function
 * returns NULL, and the failure says how many bytes are needed, and how many are free, or allowed and taken.  The caller
 * may use the memory at once, on any stream; the call does not wait for the GPU.
 */
extern void *cuda_allocate(struct device *device, size_t bytes, enum cuda_purpose kind,
						   const char *purpose, struct failure *failure);

/*
 * Free memory that cuda_allocate() returned; NULL is allowed.  The GPU must
 * have executed all work that uses the memory, except work on cuda_device's
 * building stream.
 */
extern void cuda_release(struct device *device, void *memory, size_t bytes);

/* Prepare the current device, which is `device`, for cuda_allocate() and cuda_release(). */
extern cudaError_t cuda_memory_open(struct device *device);

/* device.h's memory_free */
extern uint64_t cuda_memory_free(struct device *device);

/*
 * Let one device's kernels and copies use memory of another device; false if
 * the two are not linked.
 */
extern bool cuda_memory_link(struct device *owner, struct device *user);

#endif							/* GEONN_MEMORY_CUH */
