/*
 * device.cu
 *		A GPU as a device.
 *
 * Searches run in lanes, lane.cu's, which share a GPU.  Here it is chosen how a
 * lane answers a search: nearest.cu's way is for the question that most searches
 * ask, neighbours.cu's for any other.
 *
 * The host thread goes around the lanes, and sleeps a little where none has
 * anything to do.
 *
 * Host memory of batches is registered by share, so that the copies run at
 * full speed and by themselves.  Registered or not, they give the same.
 *
 * Datasets are dataset.cu's, memory is memory.cu's, and errors are gpu.cu's.
 */
#include <time.h>

#include "common/metric.h"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/lane/memory.cuh"
#include "cuda/nearest.cuh"
#include "cuda/neighbours/neighbours.cuh"
#include "cuda/probe.cuh"

/* nap of the host thread while all launches are under way */
#define NAP_NANOSECONDS 20000

static const struct piece_operations *
choose_piece(const struct search *search)
{
	const struct question *question = &search->question;

	if (search->cutoff.present)
		return &neighbours_part_operations;
	if (!geonn_metric_chord_decides(search->dataset->metric) || search->dataset->columns != 0 ||
		question->neighbours != 1 || question->ties)
		return &neighbours_operations;
	return cuda_part_of(search) == CUDA_BRUTE ? &nearest_brute_operations :
		&nearest_index_operations;
}

static void
cuda_start(struct device *device, struct search *search)
{
	cuda_lanes_start(device, search, choose_piece(search));
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

/* portable memory is registered for all GPUs at once */
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
	/* on a lost device none of these succeeds, and none has to */
	cuda_lanes_close(device);
	cudaFreeHost(cuda->staging);
	if (cuda->building != NULL)
		cudaStreamDestroy(cuda->building);
	cudaGetLastError();
}

extern "C" const struct device_operations cuda_device_operations = {
	.kind = GEONN_KIND_CUDA,
	.is_gpu = true,
	.auto_rank = 1,				/* beside one the CPU would finish its batch long after all others */
	.count = cuda_device_count,
	.threads = NULL,
	.probe = cuda_device_probe,
	.memory_free = cuda_memory_free,
	.build = cuda_build,
	.discard = cuda_discard,
	.start = cuda_start,
	.advance = cuda_advance,
	.share = cuda_share,
	.unshare = cuda_unshare,
	.close = cuda_close
};
