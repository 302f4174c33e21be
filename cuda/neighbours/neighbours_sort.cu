/*
 * neighbours_sort.cu
 *		Sorts observations into the order of search, and pairs into the order
 *		of results.
 *
 * Warps that run at the same time should need the same parts of the index.  So
 * observations are searched in the order of (group, slab, place on the curve),
 * down to cells of some 600 m, or with both groups and windows of 40 km.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cuda/std/tuple>

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

static_assert(CODE_BITS <= 32, "a code without group and slab takes 32 bits");
static_assert(32 + WINDOW_SLAB_BITS + SHORT_CODE_BITS <= 64, "a code with both takes 64 bits");

/* whether codes take 64 bits */
static bool
has_long_codes(uint32_t columns)
{
	return (columns & (GEONN_COLUMN_GROUP | GEONN_COLUMNS_WINDOWS)) != 0;
}

/*
 * The key of an observation with a group, or windows, or both: the group, then
 * the slab, then the code.
 */
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
	uint32_t	code;

	if (row >= search.rows)
		return;
	if (!geonn_coordinates_valid(search.latitude[row], search.longitude[row]))
		search.status->out_of_range = 1;
	else
		vector = geonn_metric_vector(search.index.metric, search.latitude[row],
									 search.longitude[row]);
	search.record[row].vector = vector;

	code = (uint32_t) space_curve_code(vector, CODE_LEVELS);
	if (search.group == NULL && search.index.order == NULL)
		((uint32_t *) search.code)[row] = code;
	else
		((uint64_t *) search.code)[row] = long_code(&search, row, code);
	search.row[row] = row;
}

size_t
neighbours_code_bytes(uint32_t rows, uint32_t columns)
{
	return 2 * (size_t) rows *
		(has_long_codes(columns) ? sizeof(uint64_t) : sizeof(uint32_t));
}

template <typename Code>
static size_t
code_sort_bytes(uint32_t rows)
{
	size_t		bytes = 0;

	return cub::DeviceRadixSort::SortPairs(NULL, bytes, (const Code *) NULL, (Code *) NULL,
										   (const uint32_t *) NULL, (uint32_t *) NULL,
										   rows) == cudaSuccess ? bytes : INDEX_NO_ROOM;
}

size_t
neighbours_sort_bytes(uint32_t rows, uint32_t columns)
{
	return has_long_codes(columns) ? code_sort_bytes<uint64_t>(rows) :
		code_sort_bytes<uint32_t>(rows);
}

template <typename Code>
static cudaError_t
sort_codes(const struct neighbours *search, int bits)
{
	Code	   *code = (Code *) search->code;
	size_t		bytes = search->sort_bytes;

	return cub::DeviceRadixSort::SortPairs(search->sort_room, bytes, code, code + search->rows,
										   search->row, search->order, search->rows, 0, bits,
										   search->stream);
}

cudaError_t
neighbours_sort(const struct neighbours *search)
{
	CUDA_TRY(cudaMemsetAsync(search->status, 0, sizeof(*search->status), search->stream));
	prepare_kernel<<<blocks_for(search->rows, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>>
		(*search);
	CUDA_TRY(cudaGetLastError());
	if (!has_long_codes(search->index.columns))
		return sort_codes<uint32_t>(search, CODE_BITS);
	if (search->index.order == NULL)
		return sort_codes<uint64_t>(search, CODE_BITS + 32);
	return sort_codes<uint64_t>(search, search->group == NULL ? CODE_BITS + WINDOW_SLAB_BITS : 64);
}

/* the parts of an entry by which entries are sorted, the most significant first */
struct entry_parts
{
	__device__ __forceinline__ cuda::std::tuple<uint32_t &, double &, uint32_t &>
	operator() (struct neighbours_entry &entry) const
	{
		return {entry.row, entry.value, entry.place};
	}
};

/* how many bits value and place have together */
#define ENTRY_BITS_BELOW_ROW 96

/* memory for a sort of entries */
struct entry_room
{
	struct neighbours_entry *entry; /* the second buffer that the sort alternates with */
	uint32_t   *reference;
	void	   *scratch;		/* memory for CUB's functions */
	size_t		scratch_bytes;
};

static cudaError_t
enqueue_entry_sort(void *scratch, size_t *bytes,
				   cub::DoubleBuffer<struct neighbours_entry> *entries,
				   cub::DoubleBuffer<uint32_t> *references, uint32_t count, uint32_t rows,
				   cudaStream_t stream)
{
	int			row_bits = 1;

	while (row_bits < 32 && rows > 1u << row_bits)
		row_bits++;
	return cub::DeviceRadixSort::SortPairs(scratch, *bytes, *entries, *references, count,
										   entry_parts(), 0, ENTRY_BITS_BELOW_ROW + row_bits,
										   stream);
}

/*
 * Lay out the memory for a sort of this many entries; *bytes becomes its size.
 */
static cudaError_t
place_entry_room(void *memory, uint32_t entries, struct entry_room *room, size_t *bytes)
{
	cub::DoubleBuffer<struct neighbours_entry> no_entries;
	cub::DoubleBuffer<uint32_t> no_references;

	room->scratch_bytes = 0;
	CUDA_TRY(enqueue_entry_sort(NULL, &room->scratch_bytes, &no_entries, &no_references, entries,
								UINT32_MAX, 0));
	*bytes = 0;
	place_columns(memory, bytes, entries, &room->entry, &room->reference);
	room->scratch = next_column(memory, bytes, room->scratch_bytes);
	return cudaSuccess;
}

size_t
neighbours_entry_sort_bytes(uint32_t entries)
{
	struct entry_room room;
	size_t		bytes;

	return place_entry_room(NULL, entries, &room, &bytes) == cudaSuccess ? bytes : INDEX_NO_ROOM;
}

/*
 * The sort is a radix sort, though the entries of a row are adjacent already
 * and a merge sort would do.  But on GPUs of compute capability 9.0 and later
 * the launches of CUB's merge sort overlap.  If the GPU is shared, a launch
 * can read what the one before has not yet written (NVIDIA/cccl issue 5297; up
 * to CUB 3.0.1 at least).
 */
cudaError_t
neighbours_sort_entries(struct neighbours *search, uint32_t entries)
{
	struct entry_room room;
	size_t		bytes;

	if (entries == 0)
		return cudaSuccess;
	CUDA_TRY(place_entry_room(search->entry_sort_room, search->entry_room, &room, &bytes));

	cub::DoubleBuffer<struct neighbours_entry> sorted(search->entry, room.entry);
	cub::DoubleBuffer<uint32_t> references(search->entry_reference, room.reference);

	CUDA_TRY(enqueue_entry_sort(room.scratch, &room.scratch_bytes, &sorted, &references, entries,
								search->rows, search->stream));
	search->entry = sorted.Current();
	search->entry_reference = references.Current();
	search->results.distance = (const double *) search->entry;
	search->results.reference = search->entry_reference;
	return cudaSuccess;
}
