/*
 * shapes_pack.cu
 *		Makes pairs of the runs of arcs that observations have found.
 *
 * sort		brings the entries into the order (row, distance, arc).
 * keep		keeps an entry if it is not farther than max_distance, and none before it has its row and shape: a thread looks at
 *			the entries before its own, of which an observation has SHAPES_WITHIN_MAX at most.
 * rank		adds up which are kept; so the differences are the counts of observations.
 * pack		moves those that are kept, of the observations whose pairs fit, to their places.
 */
#include <cub/device/device_scan.cuh>

#include "cuda/shapes/shapes_within.cuh"
#include "cuda/base/blocks.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"

#define BLOCK_THREADS 256

static __global__ void __launch_bounds__(BLOCK_THREADS)
keep_kernel(const __grid_constant__ struct shapes_within search, uint32_t entries)
{
	uint32_t	number = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	const uint32_t *shape = search.entries.reference;
	struct entry entry;
	bool		keeps;

	if (number > entries)
		return;
	if (number == entries)
	{
		search.rank[number] = 0;
		return;
	}
	entry = search.entries.entry[number];
	keeps = entry.value <= search.max_distance;
	for (uint32_t i = (uint32_t) search.found.offset[entry.row]; keeps && i < number; i++)
		keeps = shape[i] != shape[number];
	search.rank[number] = keeps;
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
count_kernel(const __grid_constant__ struct shapes_within search, uint32_t rows)
{
	uint32_t	row = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	const uint64_t *offset = search.found.offset;

	if (row < rows)
		search.results.count[row] = search.rank[offset[row + 1]] - search.rank[offset[row]];
}

static __global__ void __launch_bounds__(BLOCK_THREADS)
pack_kernel(const __grid_constant__ struct shapes_within search, uint32_t entries)
{
	uint32_t	number = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	rank;

	if (number >= entries)
		return;
	rank = search.rank[number];
	if (search.rank[number + 1] == rank || rank >= search.results.status->pairs)
		return;
	search.results.packed_distance[rank] = search.entries.entry[number].value;
	search.results.packed_tag[rank] = search.arcs.tag[search.entries.entry[number].place];
}

static cudaError_t
add_up(struct shapes_within *search, uint32_t entries, cudaStream_t stream)
{
	return cub::DeviceScan::ExclusiveSum(search->rank_room, search->rank_bytes, search->rank, search->rank, entries + 1, stream);
}

void
shapes_place_ranks(void *memory, size_t *offset, struct shapes_within *search)
{
	/* CUB computes the size from the number of entries alone, so the call cannot fail. */
	search->rank_room = NULL;
	search->rank_bytes = 0;
	add_up(search, search->entries.room, 0);
	place_columns(memory, offset, search->entries.room + (size_t) 1, &search->rank);
	search->rank_room = next_column(memory, offset, search->rank_bytes);
}

cudaError_t
shapes_pack(struct shapes_within *search, uint32_t rows, uint32_t entries)
{
	cudaStream_t stream = search->stream;

	CUDA_TRY(entries_sort(&search->entries, entries, rows, stream));
	keep_kernel<<<blocks_for((uint64_t) entries + 1, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>> (*search, entries);
	CUDA_TRY(cudaGetLastError());
	CUDA_TRY(add_up(search, entries, stream));
	count_kernel<<<blocks_for(rows, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>> (*search, rows);
	CUDA_TRY(cudaGetLastError());
	search->results.rows = rows;
	CUDA_TRY(results_scan(&search->results, stream));
	if (entries > 0)
		pack_kernel<<<blocks_for(entries, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>> (*search, entries);
	return cudaGetLastError();
}
