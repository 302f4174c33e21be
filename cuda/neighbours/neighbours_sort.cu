/*
 * neighbours_sort.cu
 *		Sorts observations into the order of search.
 *
 * Warps that run at the same time should need the same parts of the index.  So
 * observations are searched in the order of (group, slab, place on the curve),
 * down to cells of some 600 m, or with both groups and windows of 40 km.  Observations
 * without groups and windows are sorted as those of a search for the single nearest
 * are, by index_order.cu: its keys also say at which leaf a walk begins.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/neighbours/neighbours_warp.cuh"

#define BLOCK_THREADS 256

/* how many bits a code has, with 6 faces and 14 levels */
#define CODE_LEVELS 14
#define CODE_BITS (3 + 2 * CODE_LEVELS)

/* how many bits a code has in a key that also has both a group and a slab */
#define SHORT_CODE_LEVELS 8
#define SHORT_CODE_BITS (3 + 2 * SHORT_CODE_LEVELS)

static_assert(CODE_BITS + 32 <= 64, "a code with a group takes 64 bits");
static_assert(32 + WINDOW_SLAB_BITS + SHORT_CODE_BITS <= 64, "a code with both takes 64 bits");

/* Return the key of an observation with a group, or windows, or both: the group, then the slab, then the code. */
static __device__ __forceinline__ uint64_t
long_code(const struct neighbours *search, uint32_t row, uint32_t code)
{
	const struct window_order *order = search->index.order;
	uint64_t	bits = code;

	if (order != NULL)
	{
		if (search->group != NULL)
			bits >>= CODE_BITS - SHORT_CODE_BITS;
		bits |= (uint64_t) window_slab_from(order, search->conditions.low[order->window][row]) <<
			(search->group != NULL ? SHORT_CODE_BITS : CODE_BITS);
	}
	if (search->group != NULL)
		bits |= (uint64_t) ((uint32_t) search->group[row] ^ 0x80000000u) <<
			(order != NULL ? SHORT_CODE_BITS + WINDOW_SLAB_BITS : CODE_BITS);
	return bits;
}

static __global__ void
prepare_kernel(const __grid_constant__ struct neighbours search)
{
	uint32_t	row = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	struct geonn_vector vector = {0.0, 0.0, 1.0};

	if (row >= search.rows)
		return;
	if (!geonn_coordinates_valid(search.latitude[row], search.longitude[row]))
		search.status->out_of_range = 1;
	else
		vector = geonn_metric_vector(search.index.metric, search.latitude[row],
									 search.longitude[row]);
	search.record[row].vector = vector;
	search.code[row] = long_code(&search, row, (uint32_t) space_curve_code(vector, CODE_LEVELS));
	search.row[row] = row;
}

static cudaError_t
sort_codes(const struct neighbours *search, uint32_t rows, int bits, size_t *bytes)
{
	return cub::DeviceRadixSort::SortPairs(search->sort_room, *bytes, search->code,
										   search->code + rows, search->row, search->order, rows,
										   0, bits, search->stream);
}

size_t
neighbours_place_order(void *memory, uint32_t rows, uint32_t columns, struct neighbours *search)
{
	size_t		bytes = 0;

	if ((columns & (GEONN_COLUMN_GROUP | GEONN_COLUMNS_WINDOWS)) == 0)
	{
		if (index_order_place(memory, rows, &search->curve, &bytes) != cudaSuccess)
			return INDEX_NO_ROOM;
		search->order = search->curve.sorted_row;
		search->row = search->curve.row;
		return bytes;
	}
	search->sort_room = NULL;
	if (sort_codes(search, rows, 64, &search->sort_bytes) != cudaSuccess)
		return INDEX_NO_ROOM;
	place_columns(memory, &bytes, rows, &search->order, &search->row, &search->record);
	place_columns(memory, &bytes, 2 * (size_t) rows, &search->code);
	search->sort_room = next_column(memory, &bytes, search->sort_bytes);
	return bytes;
}

/* Sort observations by their place on the curve alone. */
static cudaError_t
sort_by_curve(struct neighbours *search)
{
	struct index_order *curve = &search->curve;

	curve->rows = search->rows;
	curve->latitude = search->latitude;
	curve->longitude = search->longitude;
	curve->out_of_range = &search->status->out_of_range;
	curve->fraction_bits = index_order_fraction_bits(&search->index);
	return index_order_enqueue(curve, &search->index, search->stream);
}

cudaError_t
neighbours_sort(struct neighbours *search)
{
	size_t		bytes = search->sort_bytes;

	CUDA_TRY(cudaMemsetAsync(search->status, 0, sizeof(*search->status), search->stream));
	if (search->record == NULL)
		return sort_by_curve(search);
	prepare_kernel<<<blocks_for(search->rows, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>>
		(*search);
	CUDA_TRY(cudaGetLastError());
	return sort_codes(search, search->rows, search->index.order == NULL ? CODE_BITS + 32 :
					  search->group == NULL ? CODE_BITS + WINDOW_SLAB_BITS : 64, &bytes);
}
