/*
 * memory.cuh
 *		Memory of a GPU: what the engine takes of it, and how much it may.
 */
#ifndef GEONN_MEMORY_CUH
#define GEONN_MEMORY_CUH

#include "device.cuh"

/*
 * Allocate on the current device, for `purpose` ("the index of 65536
 * references").  Before it asks the driver it checks that the bytes are free,
 * and within geonn.gpu_memory_limit; where not, the failure says how many are
 * needed and how many are free, or allowed and taken, and NULL is returned.
 */
extern void *cuda_allocate(struct device *device, size_t bytes, const char *purpose,
						   struct failure *failure);

/* Free what cuda_allocate gave; NULL is allowed. */
extern void cuda_release(struct device *device, void *memory, size_t bytes);

#endif							/* GEONN_MEMORY_CUH */
