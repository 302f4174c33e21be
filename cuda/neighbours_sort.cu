/*
 * neighbours_sort.cu
 *		Observations into the order of search, and pairs into that of results.
 *
 * Warps that run at the same time should need the same parts of the index: so
 * observations are searched in the order of (group, place on the curve), down to
 * cells of some 600 m.
 */
#include <cub/device/device_merge_sort.cuh>
#include <cub/device/device_radix_sort.cuh>

#include "neighbours_warp.cuh"

#define BLOCK_THREADS 256

/* bits of a code: 6 faces, 14 levels */
#define CODE_LEVELS 14
#define CODE_BITS (3 + 2 * CODE_LEVELS)

static __global__ void
prepare_kernel(const __grid_constant__ struct neighbours search)
{
	uint32_t	row = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	struct geonn_vector vector = {0.0, 0.0, 1.0};
	uint64_t	code;

	if (row >= search.rows)
		return;
	if (!geonn_coordinates_valid(search.latitude[row], search.longitude[row]))
		search.status->out_of_range = 1;
	else if (search.index.metric == GEONN_METRIC_SPHEROID)
		vector = geonn_spheroid_vector(search.latitude[row], search.longitude[row]);
	else
		vector = geonn_unit_vector(search.latitude[row], search.longitude[row]);
	search.x[row] = vector.x;
	search.y[row] = vector.y;
	search.z[row] = vector.z;

	code = space_curve_code(vector, CODE_LEVELS);
	if (search.group != NULL)
		code |= (uint64_t) ((uint32_t) search.group[row] ^ 0x80000000u) << CODE_BITS;
	search.code[row] = code;
	search.row[row] = row;
}

size_t
neighbours_sort_bytes(uint32_t rows)
{
	size_t		bytes = 0;

	/* its answer depends on the number alone, and can't fail */
	cub::DeviceRadixSort::SortPairs(NULL, bytes, (const uint64_t *) NULL, (uint64_t *) NULL,
									(const uint32_t *) NULL, (uint32_t *) NULL, rows);
	return bytes;
}

cudaError_t
neighbours_sort(const struct neighbours *search)
{
	uint32_t	blocks = (search->rows + BLOCK_THREADS - 1) / BLOCK_THREADS;
	size_t		bytes = search->sort_bytes;
	cudaError_t error;

	if ((error = cudaMemsetAsync(search->status, 0, sizeof(*search->status),
								 search->stream)) != cudaSuccess)
		return error;
	prepare_kernel<<<blocks, BLOCK_THREADS, 0, search->stream>>> (*search);
	if ((error = cudaGetLastError()) != cudaSuccess)
		return error;
	return cub::DeviceRadixSort::SortPairs(search->sort_room, bytes, search->code,
										   search->code + search->rows, search->row, search->order,
										   search->rows, 0,
										   CODE_BITS + (search->group == NULL ? 0 : 32),
										   search->stream);
}

struct entry_before
{
	__device__ __forceinline__ bool
	operator() (const struct neighbours_entry &a, const struct neighbours_entry &b) const
	{
		if (a.row != b.row)
			return a.row < b.row;
		return a.value < b.value || (a.value == b.value && a.place < b.place);
	}
};

size_t
neighbours_entry_sort_bytes(uint32_t entries)
{
	size_t		bytes = 0;

	cub::DeviceMergeSort::SortPairs(NULL, bytes, (struct neighbours_entry *) NULL,
									(uint32_t *) NULL, entries, entry_before());
	return bytes;
}

cudaError_t
neighbours_sort_entries(const struct neighbours *search, uint32_t entries)
{
	size_t		bytes = search->entry_sort_bytes;

	if (entries == 0)
		return cudaSuccess;
	return cub::DeviceMergeSort::SortPairs(search->entry_sort_room, bytes, search->entry,
										   search->entry_reference, entries, entry_before(),
										   search->stream);
}
