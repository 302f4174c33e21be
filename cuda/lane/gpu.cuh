/*
 * gpu.cuh
 *		The engine's state of a GPU, and its errors.
 */
#ifndef GEONN_CUDA_GPU_CUH
#define GEONN_CUDA_GPU_CUH

#include <cuda_runtime_api.h>

#include "cuda/brute/brute.cuh"

extern "C"
{
#include "engine/search/device.h"
}

/*
 * So many searches may be under way on one GPU: while one copies its observations in, a second
 * computes, and a third copies its results out.
 */
#define CUDA_LANES 3

struct lane;

/* device->private_data */
struct cuda_device
{
	struct brute_machine machine;
	cudaStream_t building;		/* the stream of builds; memory is allocated in its order */
	cudaMemPool_t pool;			/* NULL: this GPU has no memory pools */
	atomic_uint_fast64_t taken; /* how many bytes cuda_allocate has given out */
	void	   *staging;		/* pinned memory of upload.cu; NULL before the first large upload */
	struct lane *lanes[CUDA_LANES]; /* used by lane.cu alone */
	int			next_lane;		/* the lane that advance looks at first */

	/*
	 * Free GPU memory that is not in use; return whether any was freed.  memory.cu calls this before
	 * it refuses memory.  NULL while the device has no lanes.
	 */
	bool		(*make_room) (struct device *device);
};

static inline struct cuda_device *
cuda_device_of(const struct device *device)
{
	return (struct cuda_device *) device->private_data;
}

/*
 * Fill in the failure for a CUDA call that returned this error, and find out
 * whether the device is lost.  Returns false.
 */
extern bool cuda_fail(struct device *device, struct failure *failure, cudaError_t error);

#endif							/* GEONN_CUDA_GPU_CUH */
