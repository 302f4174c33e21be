/*
 * shapes_polygons.cu
 *		Counts, or writes, all polygons that observations are in or on the border of.
 */
#include "cuda/arcs/polygons_take.cuh"
#include "cuda/base/blocks.cuh"
#include "cuda/base/try.cuh"
#include "cuda/shapes/shapes_within.cuh"

#define BLOCK_THREADS 128

template <bool WRITE>
static __global__ void __launch_bounds__(BLOCK_THREADS)
polygons_kernel(const __grid_constant__ struct shapes_within search, const __grid_constant__ struct polygons polygons,
				uint32_t rows)
{
	uint32_t	slot = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	count = 0;
	struct polygons_asking asking;
	uint64_t	first;
	uint32_t	row;
	bool		done;

	if (slot >= search.rows)
		return;
	row = search.order.sorted_row[slot];
	if (row >= rows || *(volatile const uint32_t *) &search.status->refused < row)
		return;
	asking = polygons_ask(&search.order, row);
	first = WRITE ? search.found.offset[row] : 0;
	done = polygons_take(&polygons, &asking, [](uint32_t) { return true; }, [&](uint32_t arc)
	{
		if (WRITE)
		{
			search.entries.entry[first + count] = {0.0, row, arc};
			search.entries.reference[first + count] = (uint32_t) search.arcs.shape_of[arc];
		}
		count++;
	});
	if (!done)
		atomicMin(&search.status->refused, row);
	if (!WRITE)
		search.inside[row] = count;
}

cudaError_t
shapes_count_polygons(const struct shapes_within *search)
{
	polygons_kernel<false><<<blocks_for(search->rows, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>>
		(*search, *search->polygons, search->rows);
	return cudaGetLastError();
}

cudaError_t
shapes_collect_polygons(const struct shapes_within *search, uint32_t rows)
{
	polygons_kernel<true><<<blocks_for(search->rows, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>>
		(*search, *search->polygons, rows);
	return cudaGetLastError();
}
