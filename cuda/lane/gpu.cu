/*
 * gpu.cu
 *		Errors of a GPU.
 *
 * Any failed call makes one search or one build fail.  If the call was not an
 * allocation, the engine then tests whether the device still works: most
 * faults of a GPU are final for the process, and then the device is lost.
 */
#include "cuda/lane/gpu.cuh"

bool
cuda_fail(struct device *device, struct failure *failure, cudaError_t error)
{
	/* cudaGetLastError() clears the thread's error, if CUDA can clear it */
	cudaGetLastError();

	if (error == cudaErrorMemoryAllocation)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory on device %d, %s",
			 device->number, device->name);
		fail_detail(failure, "%s", cudaGetErrorString(error));
		return false;
	}

	fail(failure, GEONN_ERROR_DEVICE, "device %d, %s, failed", device->number, device->name);
	fail_detail(failure, "%s (%s)", cudaGetErrorString(error), cudaGetErrorName(error));
	if (cudaDeviceSynchronize() != cudaSuccess)
	{
		fail_hint(failure, "Lines with \"NVRM: Xid\" in the system's log may name the cause.");
		device->lost = *failure;
		atomic_store(&device->usable, false);
	}
	return false;
}
