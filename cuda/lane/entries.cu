/*
 * entries.cu
 *		Sorts the pairs that a search on a GPU has found into the order of results.
 */
#include <cub/device/device_radix_sort.cuh>
#include <cuda/std/tuple>

#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index.cuh"
#include "cuda/lane/entries.cuh"

/* The parts of an entry by which the sort compares entries, the most significant part first. */
struct entry_parts
{
	__device__ __forceinline__ cuda::std::tuple<uint32_t &, double &, uint32_t &>
	operator() (struct entry &entry) const
	{
		return {entry.row, entry.value, entry.place};
	}
};

/* how many bits value and place have together */
#define ENTRY_BITS_BELOW_ROW 96

/* memory for a sort of entries */
struct entry_room
{
	struct entry *entry; /* a second buffer; the passes of the sort alternate between the two */
	uint32_t   *reference;
	void	   *scratch;		/* memory for CUB's functions */
	size_t		scratch_bytes;
};

static cudaError_t
enqueue_entry_sort(void *scratch, size_t *bytes,
				   cub::DoubleBuffer<struct entry> *entries,
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
	cub::DoubleBuffer<struct entry> no_entries;
	cub::DoubleBuffer<uint32_t> no_references;

	room->scratch_bytes = 0;
	CUDA_TRY(enqueue_entry_sort(NULL, &room->scratch_bytes, &no_entries, &no_references, entries,
								UINT32_MAX, 0));
	*bytes = 0;
	place_columns(memory, bytes, entries, &room->entry, &room->reference);
	room->scratch = next_column(memory, bytes, room->scratch_bytes);
	return cudaSuccess;
}

static size_t
sort_bytes(uint32_t entries)
{
	struct entry_room room;
	size_t		bytes;

	return place_entry_room(NULL, entries, &room, &bytes) == cudaSuccess ? bytes : INDEX_NO_ROOM;
}

void
entries_place(void *memory, size_t *offset, uint32_t room, struct entries *entries)
{
	entries->room = room;
	place_columns(memory, offset, room, &entries->reference, &entries->entry);
	entries->sort_room = next_column(memory, offset, sort_bytes(room));
}

/*
 * Sort entries by a radix sort.  A merge sort would do, as the entries of a row are adjacent already; but on GPUs of
 * compute capability 9.0 and later the launches of CUB's merge sort overlap.  If the GPU is shared, a launch can read what
 * the launch before has not yet written (NVIDIA/cccl issue 5297; up to CUB 3.0.1 at least).
 */
cudaError_t
entries_sort(struct entries *entries, uint32_t count, uint32_t rows, cudaStream_t stream)
{
	struct entry_room room;
	size_t		bytes;

	if (count == 0)
		return cudaSuccess;
	CUDA_TRY(place_entry_room(entries->sort_room, entries->room, &room, &bytes));

	cub::DoubleBuffer<struct entry> sorted(entries->entry, room.entry);
	cub::DoubleBuffer<uint32_t> references(entries->reference, room.reference);

	CUDA_TRY(enqueue_entry_sort(room.scratch, &room.scratch_bytes, &sorted, &references, count, rows, stream));
	entries->entry = sorted.Current();
	entries->reference = references.Current();
	return cudaSuccess;
}
