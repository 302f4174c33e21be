/*
 * memory.cuh
 *		Memory of a GPU: what the engine takes of it, and how much it may.
 */
#ifndef GEONN_MEMORY_CUH
#define GEONN_MEMORY_CUH

#include <cuda_runtime_api.h>

extern "C"
{
#include "engine/search/device.h"
}

/*
 * Allocate on the current device, for `purpose` ("the index of 65536
 * references").  Before it asks the driver it checks that the bytes are free,
 * and within geonn.gpu_memory_limit; where not, the failure says how many are
 * needed and how many are free, or allowed and taken, and NULL is returned.
 * The memory may be used at once, on any stream; nothing waits for what the
 * GPU is at.
 */
extern void *cuda_allocate(struct device *device, size_t bytes, const char *purpose,
						   struct failure *failure);

/* The same for a dataset, which has to leave something for searching it. */
extern void *cuda_allocate_for_dataset(struct device *device, size_t bytes, const char *purpose,
									   struct failure *failure);

/*
 * Free what these gave, once nothing that the GPU has yet to execute uses it,
 * but for what is enqueued on cuda_device's building stream; NULL is allowed.
 */
extern void cuda_release(struct device *device, void *memory, size_t bytes);

/* Prepare for the above; the device is the current one. */
extern cudaError_t cuda_memory_open(struct device *device);

/* device.h's memory_free */
extern uint64_t cuda_memory_free(struct device *device);

/*
 * Let one device's kernels and copies reach what is allocated on another; false
 * where they are not linked.
 */
extern bool cuda_memory_link(struct device *owner, struct device *user);

#endif							/* GEONN_MEMORY_CUH */
