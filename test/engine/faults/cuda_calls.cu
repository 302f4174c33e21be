/*
 * cuda_calls.cu
 *		Calls of the engine into CUDA's runtime, which can fail.
 *
 * As in calls.c.  What fails is remembered for its thread until the thread asks
 * for its last error, as CUDA does it; a launch that fails does nothing, and says
 * so only there.  A call that takes memory has none, any other does not say why.
 */
#include <cuda_runtime_api.h>

extern "C"
{
#include "plan.h"
}

static thread_local cudaError_t last_error;

static bool
fails(const char *call, cudaError_t error)
{
	if (!fault_fails(FAULT_CUDA, call, false))
		return false;
	last_error = error;
	return true;
}

#define WRAP(type, name, parameters, arguments, error) \
	extern "C" type __real_##name parameters; \
	extern "C" type \
	__wrap_##name parameters \
	{ \
		return fails(#name, error) ? error : __real_##name arguments; \
	}

#define WRAP_CALL(name, parameters, arguments) \
	WRAP(cudaError_t, name, parameters, arguments, cudaErrorUnknown)
#define WRAP_ALLOCATION(name, parameters, arguments) \
	WRAP(cudaError_t, name, parameters, arguments, cudaErrorMemoryAllocation)

WRAP_CALL(cudaGetDeviceCount, (int *count), (count))
WRAP_CALL(cudaGetDeviceProperties, (struct cudaDeviceProp *properties, int device), (properties, device))
WRAP_CALL(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr attribute, int device), (value, attribute, device))
WRAP_CALL(cudaDeviceCanAccessPeer, (int *can, int device, int peer), (can, device, peer))
WRAP_CALL(cudaInitDevice, (int device, unsigned device_flags, unsigned flags), (device, device_flags, flags))
WRAP_CALL(cudaGetDevice, (int *device), (device))
WRAP_CALL(cudaSetDevice, (int device), (device))
WRAP_CALL(cudaDeviceSynchronize, (void), ())
WRAP_CALL(cudaFuncGetAttributes, (struct cudaFuncAttributes *attributes, const void *function), (attributes, function))
WRAP_CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
		  (int *blocks, const void *function, int threads, size_t shared, unsigned flags),
		  (blocks, function, threads, shared, flags))

WRAP_CALL(cudaStreamCreateWithFlags, (cudaStream_t *stream, unsigned flags), (stream, flags))
WRAP_CALL(cudaStreamDestroy, (cudaStream_t stream), (stream))
WRAP_CALL(cudaStreamQuery, (cudaStream_t stream), (stream))
WRAP_CALL(cudaStreamSynchronize, (cudaStream_t stream), (stream))
WRAP_CALL(cudaEventCreateWithFlags, (cudaEvent_t *event, unsigned flags), (event, flags))
WRAP_CALL(cudaEventDestroy, (cudaEvent_t event), (event))
WRAP_CALL(cudaEventQuery, (cudaEvent_t event), (event))
WRAP_CALL(cudaEventRecord, (cudaEvent_t event, cudaStream_t stream), (event, stream))
WRAP_CALL(cudaEventSynchronize, (cudaEvent_t event), (event))

WRAP_CALL(cudaMemGetInfo, (size_t *free_bytes, size_t *total), (free_bytes, total))
WRAP_CALL(cudaMemPoolCreate, (cudaMemPool_t *pool, const struct cudaMemPoolProps *properties), (pool, properties))
WRAP_CALL(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
		  (pool, attribute, value))
WRAP_CALL(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
		  (pool, attribute, value))
WRAP_CALL(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *access, size_t count),
		  (pool, access, count))
WRAP_CALL(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes), (pool, bytes))
WRAP_ALLOCATION(cudaMalloc, (void **memory, size_t bytes), (memory, bytes))
WRAP_ALLOCATION(cudaMallocFromPoolAsync, (void **memory, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
				(memory, bytes, pool, stream))
WRAP_ALLOCATION(cudaMallocHost, (void **memory, size_t bytes), (memory, bytes))
WRAP_ALLOCATION(cudaHostRegister, (void *start, size_t bytes, unsigned flags), (start, bytes, flags))
WRAP_CALL(cudaHostUnregister, (void *start), (start))
WRAP_CALL(cudaFree, (void *memory), (memory))
WRAP_CALL(cudaFreeAsync, (void *memory, cudaStream_t stream), (memory, stream))
WRAP_CALL(cudaFreeHost, (void *memory), (memory))

WRAP_CALL(cudaMemcpyAsync, (void *target, const void *source, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
		  (target, source, bytes, kind, stream))
WRAP_CALL(cudaMemcpyPeerAsync,
		  (void *target, int device, const void *source, int source_device, size_t bytes, cudaStream_t stream),
		  (target, device, source, source_device, bytes, stream))
WRAP_CALL(cudaMemsetAsync, (void *memory, int value, size_t bytes, cudaStream_t stream), (memory, value, bytes, stream))

/* what the compiler makes of <<<>>> */
WRAP_CALL(__cudaLaunchKernel,
		  (cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared, cudaStream_t stream),
		  (kernel, grid, block, arguments, shared, stream))

extern "C" cudaError_t __real_cudaGetLastError(void);
extern "C" cudaError_t __real_cudaPeekAtLastError(void);

extern "C" cudaError_t
__wrap_cudaPeekAtLastError(void)
{
	return last_error != cudaSuccess ? last_error : __real_cudaPeekAtLastError();
}

extern "C" cudaError_t
__wrap_cudaGetLastError(void)
{
	cudaError_t error = last_error != cudaSuccess ? last_error : __real_cudaGetLastError();

	last_error = cudaSuccess;
	return error;
}
