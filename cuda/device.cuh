/*
 * device.cuh
 *		The CUDA device's own state: lanes and what they search in.
 */
#ifndef GEONN_CUDA_DEVICE_CUH
#define GEONN_CUDA_DEVICE_CUH

#include <cuda_runtime_api.h>

#include "brute.cuh"

extern "C"
{
#include "../src/engine/device.h"
}

/* searches that may be under way on one GPU: copies in, kernels, copies out */
#define CUDA_LANES 3

/* launches that a lane has enqueued ahead, so that the GPU never idles */
#define LAUNCHES_AHEAD 2

enum lane_state
{
	LANE_IDLE,
	LANE_SEARCHING,				/* launches are left to enqueue */
	LANE_ENDING					/* what was enqueued has yet to be executed */
};

struct lane
{
	enum lane_state state;
	struct search *search;		/* NULL while idle */
	struct brute_search work;	/* its current piece */
	uint32_t	launches;		/* enqueued of this piece */
	uint32_t	launches_ended;

	/* immutable once probed */
	cudaStream_t stream;
	cudaEvent_t ends[LAUNCHES_AHEAD];	/* of launches, in turn */
	struct brute_status *status;	/* pinned host memory */

	/* grows with the batches */
	void	   *memory;			/* on the GPU */
	struct brute_room room;
};

/* device->private_data */
struct cuda_device
{
	struct brute_machine machine;
	cudaStream_t building;		/* of datasets; memory comes in its order */
	cudaMemPool_t pool;			/* NULL: this GPU has none */
	atomic_uint_fast64_t taken; /* bytes that cuda_allocate gave */
	void	   *staging;		/* upload.cu's pinned memory, once it has any */
	struct lane lanes[CUDA_LANES];
	int			next_lane;		/* that advance looks at first */
};

/*
 * Fill in the failure for a call that returned this error, and find out
 * whether the device is lost.  Returns false.
 */
extern bool cuda_fail(struct device *device, struct failure *failure, cudaError_t error);

/* in probe.cu */
extern bool cuda_device_probe(struct device *device, struct failure *failure);

#endif							/* GEONN_CUDA_DEVICE_CUH */
