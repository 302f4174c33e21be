/*
 * dataset.cu
 *		Datasets on a GPU: copying references there and preparing them.
 *
 * A dataset's part (its references for brute force, or its index) is one block
 * of memory.
 */
#include <stdlib.h>

#include "dataset.cuh"
#include "device.cuh"

enum cuda_part
cuda_part_of(const struct search *search)
{
	const struct dataset *dataset = search->dataset;
	const struct question *question = &search->question;
	bool		plain = dataset->metric == GEONN_METRIC_SPHERE && dataset->columns == 0;

	return plain && question->algorithm == GEONN_ALGORITHM_BRUTE &&
		question->neighbours == 1 && !question->ties ? CUDA_BRUTE : CUDA_INDEX;
}

static cudaError_t
upload_references(struct cuda_device *cuda, const struct brute_references *references,
				  const struct dataset *dataset)
{
	size_t		bytes = dataset->count * sizeof(double);
	cudaError_t error;

	if ((error = cudaMemcpyAsync(references->x, dataset->latitude, bytes,
								 cudaMemcpyHostToDevice, cuda->building)) != cudaSuccess ||
		(error = cudaMemcpyAsync(references->y, dataset->longitude, bytes,
								 cudaMemcpyHostToDevice, cuda->building)) != cudaSuccess ||
		(error = cudaMemcpyAsync(references->tag, dataset->tag, bytes,
								 cudaMemcpyHostToDevice, cuda->building)) != cudaSuccess ||
		(error = brute_prepare_references(references, cuda->building)) != cudaSuccess)
		return error;
	return cudaStreamSynchronize(cuda->building);
}

bool
cuda_build(struct device *device, const struct search *search, struct failure *failure)
{
	struct cuda_device *cuda = (struct cuda_device *) device->private_data;
	struct dataset *dataset = search->dataset;
	struct cuda_built *built;
	uint32_t	count = (uint32_t) dataset->count;
	size_t		bytes;
	size_t		free_bytes = 0;
	size_t		total_bytes;
	cudaError_t error;

	if (dataset->built[device->number] != NULL)
		return true;
	built = (struct cuda_built *) calloc(1, sizeof(*built));
	if (built == NULL)
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a dataset's description");
	bytes = brute_place_references(NULL, count, &built->references);

	error = cudaMemGetInfo(&free_bytes, &total_bytes);
	if (error == cudaSuccess && free_bytes >= bytes)
		error = cudaMalloc(&built->memory[CUDA_BRUTE], bytes);
	else if (error == cudaSuccess)
		error = cudaErrorMemoryAllocation;
	if (error == cudaSuccess)
	{
		brute_place_references(built->memory[CUDA_BRUTE], count, &built->references);
		error = upload_references(cuda, &built->references, dataset);
		if (error == cudaSuccess)
		{
			dataset->built[device->number] = built;
			return true;
		}
	}

	cuda_fail(device, failure, error);
	if (error == cudaErrorMemoryAllocation)
	{
		fail(failure, GEONN_ERROR_MEMORY,
			 "%u references need %zu bytes on device %d, %s, of which %zu are free",
			 count, bytes, device->number, device->name, free_bytes);
		fail_hint(failure, "Search fewer references at a time, or set geonn.device = cpu.");
	}
	cudaFree(built->memory[CUDA_BRUTE]);
	free(built);
	return false;
}

void
cuda_discard(struct device *device, void *opaque)
{
	struct cuda_built *built = (struct cuda_built *) opaque;
	cudaError_t error = cudaSuccess;
	struct failure failure;

	for (int part = 0; part < CUDA_PARTS && error == cudaSuccess; part++)
		error = cudaFree(built->memory[part]);
	if (error != cudaSuccess)
		cuda_fail(device, &failure, error);
	free(built);
}
