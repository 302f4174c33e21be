/*
 * device.cu
 *		A GPU as a device.
 *
 * Searches run in lane.cu's lanes, which share a GPU.  engine/search/ways.c says which of nearest.cu, shapes/shapes_within.cu
 * and neighbours/neighbours.cu answers a search.
 *
 * The host thread goes around the lanes, and sleeps a little when no lane has
 * anything to do.
 *
 * share registers the host memory of batches with CUDA, so that copies run at
 * full speed and without the host.  Copies of memory that is not registered
 * give the same.
 *
 * dataset.cu has datasets, memory.cu memory, and gpu.cu errors.
 */
#include <time.h>

extern "C"
{
#include "engine/search/ways.h"
}
#include "cuda/shapes/shapes_within.cuh"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/lane/memory.cuh"
#include "cuda/nearest.cuh"
#include "cuda/neighbours/neighbours.cuh"
#include "cuda/probe.cuh"

/* While all lanes have launches under way, the host thread sleeps this many ns before it looks again. */
#define NAP_NANOSECONDS 20000

static void
cuda_start(struct device *device, struct search *search)
{
	enum way	way = way_of(search, GEONN_KIND_CUDA);

	cuda_lanes_start(device, search, way == WAY_GPU_NEAREST ? &nearest_operations :
					 way == WAY_GPU_SHAPES_WITHIN ? &shapes_within_operations : &neighbours_operations);
}

static enum device_progress
cuda_advance(struct device *device, struct search **ended)
{
	struct timespec nap = {0, NAP_NANOSECONDS};
	enum device_progress progress = cuda_lanes_advance(device, ended);

	if (progress == DEVICE_IDLE)
		nanosleep(&nap, NULL);
	return progress;
}

/* ---- memory of batches, the end ---- */

/* Register the memory as portable: then it is pinned for all GPUs at once. */
static void
cuda_share(struct device *device, void *start, size_t bytes)
{
	if (cudaSetDevice(device->ordinal) != cudaSuccess ||
		cudaHostRegister(start, bytes, cudaHostRegisterPortable) != cudaSuccess)
		cudaGetLastError();
}

static void
cuda_unshare(struct device *device, void *start)
{
	if (cudaSetDevice(device->ordinal) != cudaSuccess ||
		cudaHostUnregister(start) != cudaSuccess)
		cudaGetLastError();
}

static void
cuda_close(struct device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);

	if (cuda == NULL)
		return;
	cuda_leave(device);
	/* On a lost device all of these calls fail; the errors do no harm and are ignored. */
	cuda_lanes_close(device);
	cudaFreeHost(cuda->staging);
	if (cuda->building != NULL)
		cudaStreamDestroy(cuda->building);
	cudaGetLastError();
}

extern "C" const struct device_operations cuda_device_operations = {
	.kind = GEONN_KIND_CUDA,
	.is_gpu = true,
	.count = cuda_device_count,
	.threads = NULL,
	.probe = cuda_device_probe,
	.memory_free = cuda_memory_free,
	.choose = NULL,				/* always the index */
	.is_built = cuda_is_built,
	.builds_long = NULL,		/* of devices with turn alone */
	.build = cuda_build,
	.discard = cuda_discard,
	.turn = NULL,				/* start and advance run searches */
	.start = cuda_start,
	.advance = cuda_advance,
	.share = cuda_share,
	.unshare = cuda_unshare,
	.close = cuda_close
};
