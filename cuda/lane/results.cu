/*
 * results.cu
 *		Turns the neighbours found into a batch's results: counts and packed
 *		pairs.
 *
 * Searches leave the neighbours of each observation in slots of its own, in
 * whatever order observations are searched.  Then the counts are added up in
 * the order of rows, which gives the place of each observation's pairs, and
 * the number of observations that fit into the room.  Last, all pairs that fit
 * are moved to their places, with their tags, one thread a slot.
 */
#include <math.h>

#include <cub/device/device_scan.cuh>

#include "cuda/base/blocks.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/lane/results.cuh"

#define BLOCK_THREADS 256

size_t
results_place(void *memory, uint32_t rows, struct results *results)
{
	size_t		offset = 0;
	size_t		counts = (size_t) rows + 1;

	/* CUB computes the size from the number of rows alone, so the call cannot fail. */
	results->scan_bytes = 0;
	cub::DeviceScan::ExclusiveScan(NULL, results->scan_bytes, (const uint32_t *) NULL,
								   (uint64_t *) NULL, cuda::std::plus<>{}, (uint64_t) 0, counts);
	place_columns(memory, &offset, counts, &results->count, &results->offset);
	results->scan_room = next_column(memory, &offset, results->scan_bytes);
	place_columns(memory, &offset, 1, &results->status);
	return offset;
}

/*
 * Find the observations that fit: largest n with offset[n] <= room.
 */
static __global__ void
fit_kernel(struct results results)
{
	uint32_t	fits = 0;
	uint32_t	fits_not = results.rows + 1;

	while (fits_not - fits > 1)
	{
		uint32_t	middle = fits + (fits_not - fits) / 2;

		if (results.offset[middle] <= results.room)
			fits = middle;
		else
			fits_not = middle;
	}
	results.status->observations = fits;
	results.status->pairs = (uint32_t) results.offset[fits];
}

cudaError_t
results_scan(const struct results *results, cudaStream_t stream)
{
	size_t		bytes = results->scan_bytes;

	CUDA_TRY(cudaMemsetAsync(results->count + results->rows, 0, sizeof(uint32_t), stream));
	CUDA_TRY(cub::DeviceScan::ExclusiveScan(results->scan_room, bytes, results->count,
											results->offset, cuda::std::plus<>{}, (uint64_t) 0,
											(size_t) results->rows + 1, stream));
	fit_kernel<<<1, 1, 0, stream>>> (*results);
	return cudaGetLastError();
}

static __device__ __forceinline__ void
move_pair(const struct results *results, uint64_t from, uint64_t to)
{
	uint64_t	tag = results->reference == NULL ? from : results->reference[from];

	results->packed_tag[to] = results->tag[tag];
	results->packed_distance[to] = results->distance[from * results->distance_step];
}

static __global__ void
pack_kernel(struct results results)
{
	uint64_t	slot = (uint64_t) blockIdx.x * BLOCK_THREADS + threadIdx.x;

	if (results.stride > 0)
	{
		uint64_t	row = slot / results.stride;
		uint32_t	number = (uint32_t) (slot % results.stride);

		if (row < results.status->observations && number < results.count[row])
			move_pair(&results, slot, results.offset[row] + number);
	}
	else if (slot < results.status->pairs)
		move_pair(&results, slot, slot);
}

cudaError_t
results_pack(const struct results *results, cudaStream_t stream)
{
	uint64_t	slots = results->stride > 0 ? (uint64_t) results->rows * results->stride : results->room;

	pack_kernel<<<blocks_for(slots, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>> (*results);
	return cudaGetLastError();
}

static __global__ void
count_one_kernel(struct results results, double max_distance)
{
	uint32_t	row = blockIdx.x * BLOCK_THREADS + threadIdx.x;

	if (row < results.rows)
		results.count[row] = results.distance[row] <= max_distance &&
			results.distance[row] < INFINITY;
}

cudaError_t
results_count_one(const struct results *results, double max_distance, cudaStream_t stream)
{
	count_one_kernel<<<blocks_for(results->rows, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
		(*results, max_distance);
	return cudaGetLastError();
}
