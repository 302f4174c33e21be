/*
 * no_cuda.c
 *		Stands in for cuda/ in a build without nvcc.
 */
#include "engine/search/device.h"

static int
count_none(struct failure *failure)
{
	fail(failure, GEONN_ERROR_NO_DEVICE, "the engine was built without CUDA");
	fail_hint(failure, "Build and install geonn where nvcc, the CUDA compiler, is found.");
	return 0;
}

const struct device_operations cuda_device_operations = {
	.kind = GEONN_KIND_CUDA,
	.is_gpu = true,
	.count = count_none
};
