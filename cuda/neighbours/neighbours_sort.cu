/*
 * neighbours_sort.cu
 *		Observations into the order of search, and pairs into that of results.
 *
 * Warps that run at the same time should need the same parts of the index: so
 * observations are searched in the order of (group, place on the curve), down to
 * cells of some 600 m.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cuda/std/tuple>

#include "cuda/base/columns.cuh"
#include "cuda/neighbours/neighbours_warp.cuh"

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
	else
		vector = geonn_metric_vector(search.index.metric, search.latitude[row],
									 search.longitude[row]);
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

	return cub::DeviceRadixSort::SortPairs(NULL, bytes, (const uint64_t *) NULL, (uint64_t *) NULL,
										   (const uint32_t *) NULL, (uint32_t *) NULL,
										   rows) == cudaSuccess ? bytes : INDEX_NO_ROOM;
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

/* the parts of an entry, the first in its order first */
struct entry_parts
{
	__device__ __forceinline__ cuda::std::tuple<uint32_t &, double &, uint32_t &>
	operator() (struct neighbours_entry &entry) const
	{
		return {entry.row, entry.value, entry.place};
	}
};

/* bits of value and place */
#define ENTRY_BITS_BELOW_ROW 96

/* what a sort of entries has in its room */
struct entry_room
{
	struct neighbours_entry *entry; /* the sort goes to and fro */
	uint32_t   *reference;
	void	   *scratch;		/* CUB's */
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
 * Lay the room out for so many entries; *bytes is what it takes.
 */
static cudaError_t
place_entry_room(void *memory, uint32_t entries, struct entry_room *room, size_t *bytes)
{
	cub::DoubleBuffer<struct neighbours_entry> no_entries;
	cub::DoubleBuffer<uint32_t> no_references;
	cudaError_t error;

	room->scratch_bytes = 0;
	if ((error = enqueue_entry_sort(NULL, &room->scratch_bytes, &no_entries, &no_references,
									entries, UINT32_MAX, 0)) != cudaSuccess)
		return error;
	*bytes = 0;
	room->entry = (struct neighbours_entry *)
		next_column(memory, bytes, entries * sizeof(struct neighbours_entry));
	room->reference = (uint32_t *) next_column(memory, bytes, entries * sizeof(uint32_t));
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
 * By radix, though the entries of a row are adjacent already and merging would
 * do: the launches of CUB's merge sort overlap on GPUs of compute capability
 * 9.0 and later, and up to its version 3.0.1 at least read what the one before
 * has not yet written (NVIDIA/cccl issue 5297), where the GPU is shared.
 */
cudaError_t
neighbours_sort_entries(struct neighbours *search, uint32_t entries)
{
	struct entry_room room;
	size_t		bytes;
	cudaError_t error;

	if (entries == 0)
		return cudaSuccess;
	if ((error = place_entry_room(search->entry_sort_room, search->entry_room, &room,
								  &bytes)) != cudaSuccess)
		return error;

	cub::DoubleBuffer<struct neighbours_entry> sorted(search->entry, room.entry);
	cub::DoubleBuffer<uint32_t> references(search->entry_reference, room.reference);

	error = enqueue_entry_sort(room.scratch, &room.scratch_bytes, &sorted, &references, entries,
							   search->rows, search->stream);
	search->entry = sorted.Current();
	search->entry_reference = references.Current();
	search->results.distance = (const double *) search->entry;
	search->results.reference = search->entry_reference;
	return error;
}
