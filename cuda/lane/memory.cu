/*
 * memory.cu
 *		Allocates memory of a GPU, within limits.
 *
 * Datasets come and go while other sessions search, and cudaFree waits until
 * the GPU has executed all that it was given.  So memory comes from a CUDA
 * memory pool, in the order of a stream that only builds use: to free memory
 * takes microseconds and waits for no other work.  The pool keeps a share of
 * the GPU's memory when it becomes free, so that the next dataset of that size
 * need not ask the driver, and gives the rest back.
 *
 * Before the engine takes memory, it checks the free bytes and
 * geonn.gpu_memory_limit.  So a statement that asks for too much gets both
 * numbers in its error, and does not harm other statements.  A dataset cannot
 * take the last part of the memory, since searches need some, too.  Before a
 * request is refused, idle lanes give their memory back.  When the limit is
 * lowered, memory in use stays with its owner until the owner frees it.
 *
 * A GPU without memory pools (some virtual ones) gets cudaMalloc and cudaFree.
 *
 * Each device's thread allocates and frees for itself.  The pool is never
 * destroyed: when the engine ends, another GPU may be copying from it.
 */
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/memory.cuh"

/* The pool keeps at most one part in so many of the GPU's memory unused. */
#define POOL_KEEPS_DIVISOR 32

/* Datasets leave one part in so many of the GPU's memory, or of the limit, free for searches. */
#define SEARCHES_DIVISOR 64

#define KILOBYTES(bytes) ((unsigned long long) (((bytes) + 1023) / 1024))

cudaError_t
cuda_memory_open(struct device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);
	uint64_t	keeps = device->memory_total / POOL_KEEPS_DIVISOR;
	cudaMemPoolProps properties = {};
	int			supported;
	cudaError_t error;

	error = cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, device->ordinal);
	if (error != cudaSuccess || !supported)
		return error;
	properties.allocType = cudaMemAllocationTypePinned;
	properties.location.type = cudaMemLocationTypeDevice;
	properties.location.id = device->ordinal;
	if ((error = cudaMemPoolCreate(&cuda->pool, &properties)) != cudaSuccess)
		return error;
	return cudaMemPoolSetAttribute(cuda->pool, cudaMemPoolAttrReleaseThreshold, &keeps);
}

/* Return how many bytes the pool holds beyond those in use. */
static uint64_t
pool_spare(struct cuda_device *cuda)
{
	uint64_t	held = 0;
	uint64_t	taken = atomic_load(&cuda->taken);

	if (cuda->pool == NULL ||
		cudaMemPoolGetAttribute(cuda->pool, cudaMemPoolAttrReservedMemCurrent,
								&held) != cudaSuccess)
		return 0;
	return held > taken ? held - taken : 0;
}

uint64_t
cuda_memory_free(struct device *device)
{
	size_t		free_bytes = 0;
	size_t		total_bytes;
	int			current;

	/* Restore the calling thread's current device afterwards: it may be another one. */
	if (!atomic_load(&device->usable) || cudaGetDevice(&current) != cudaSuccess)
		return 0;
	if (cudaSetDevice(device->ordinal) != cudaSuccess ||
		cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess)
	{
		cudaGetLastError();
		free_bytes = 0;
	}
	else
		free_bytes += pool_spare(cuda_device_of(device));
	if (current != device->ordinal)
		cudaSetDevice(current);
	return free_bytes;
}

/* Return whether geonn.gpu_memory_limit allows `bytes` more bytes, and `kept` bytes beyond them. */
static bool
within_limit(struct device *device, size_t bytes, uint64_t kept, uint64_t limit,
			 const char *purpose, struct failure *failure)
{
	struct cuda_device *cuda = cuda_device_of(device);
	uint64_t	taken = atomic_load(&cuda->taken);

	if (taken + kept <= limit && bytes <= limit - taken - kept)
	{
		/* The pool's unused bytes count towards the limit: give them back to the GPU if the sum would exceed it. */
		if (taken + pool_spare(cuda) + bytes > limit)
			cudaMemPoolTrimTo(cuda->pool, 0);
		return true;
	}
	fail(failure, GEONN_ERROR_LIMIT,
		 "%s needs %llu kB on device %d, %s, and %llu kB of geonn.gpu_memory_limit, %llu kB, are taken",
		 purpose, KILOBYTES(bytes), device->number, device->name, KILOBYTES(taken),
		 KILOBYTES(limit));
	if (kept > 0)
		fail_detail(failure, "Datasets leave %llu kB for searches.", KILOBYTES(kept));
	fail_hint(failure, "Raise geonn.gpu_memory_limit, run fewer searches at a time, or set geonn.device = cpu.");
	return false;
}

/* Allocate memory, and leave one part in kept_divisor of the GPU's memory, or of the limit, free; 0: leave none free. */
static void *
allocate(struct device *device, size_t bytes, unsigned kept_divisor, const char *purpose,
		 struct failure *failure)
{
	struct cuda_device *cuda = cuda_device_of(device);
	uint64_t	limit = atomic_load(&gpu_memory_limit);
	uint64_t	ours = limit != 0 && limit < device->memory_total ? limit : device->memory_total;
	uint64_t	kept = kept_divisor > 0 ? ours / kept_divisor : 0;
	size_t		free_bytes;
	size_t		total_bytes;
	void	   *memory = NULL;
	cudaError_t error;

	if (limit != 0 && !within_limit(device, bytes, kept, limit, purpose, failure))
		return NULL;

	if ((error = cudaMemGetInfo(&free_bytes, &total_bytes)) != cudaSuccess)
	{
		cuda_fail(device, failure, error);
		return NULL;
	}
	free_bytes += pool_spare(cuda);
	if (free_bytes < kept || free_bytes - kept < bytes)
		error = cudaErrorMemoryAllocation;
	else if (cuda->pool == NULL)
		error = cudaMalloc(&memory, bytes);
	else if ((error = cudaMallocFromPoolAsync(&memory, bytes, cuda->pool,
											  cuda->building)) == cudaSuccess)
		error = cudaStreamSynchronize(cuda->building);	/* wait, so that other streams can use the memory at once */

	if (error == cudaSuccess)
	{
		atomic_fetch_add(&cuda->taken, bytes);
		return memory;
	}
	if (error != cudaErrorMemoryAllocation)
	{
		if (memory != NULL)
			cudaFreeAsync(memory, cuda->building);
		cuda_fail(device, failure, error);
		return NULL;
	}
	cudaGetLastError();
	fail(failure, GEONN_ERROR_MEMORY, "%s needs %llu kB on device %d, %s, of which %llu kB are free",
		 purpose, KILOBYTES(bytes), device->number, device->name, KILOBYTES(free_bytes));
	if (kept > 0)
		fail_detail(failure, "Datasets leave %llu kB for searches.", KILOBYTES(kept));
	fail_hint(failure, "Search fewer references, or run fewer searches, at a time, or set geonn.device = cpu.");
	return NULL;
}

void *
cuda_allocate(struct device *device, size_t bytes, enum cuda_purpose kind, const char *purpose,
			  struct failure *failure)
{
	unsigned	divisor = kind == CUDA_FOR_SEARCH ? 0 : SEARCHES_DIVISOR;
	struct cuda_device *cuda = cuda_device_of(device);
	void	   *memory = allocate(device, bytes, divisor, purpose, failure);

	if (memory == NULL && atomic_load(&device->usable) &&
		cuda->make_room != NULL && cuda->make_room(device))
		memory = allocate(device, bytes, divisor, purpose, failure);
	return memory;
}

void
cuda_release(struct device *device, void *memory, size_t bytes)
{
	struct cuda_device *cuda = cuda_device_of(device);
	struct failure failure;
	cudaError_t error;

	if (memory == NULL)
		return;
	error = cuda->pool != NULL ? cudaFreeAsync(memory, cuda->building) : cudaFree(memory);
	if (error != cudaSuccess)
		cuda_fail(device, &failure, error);
	atomic_fetch_sub(&cuda->taken, bytes);
}

bool
cuda_memory_link(struct device *owner, struct device *user)
{
	cudaMemPool_t pool = cuda_device_of(owner)->pool;
	cudaMemAccessDesc access = {};
	int			linked = 0;

	access.location.type = cudaMemLocationTypeDevice;
	access.location.id = user->ordinal;
	access.flags = cudaMemAccessFlagsProtReadWrite;
	if (pool != NULL &&
		cudaDeviceCanAccessPeer(&linked, user->ordinal, owner->ordinal) == cudaSuccess &&
		linked && cudaMemPoolSetAccess(pool, &access, 1) == cudaSuccess)
		return true;
	cudaGetLastError();
	return false;
}
