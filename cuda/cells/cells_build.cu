/*
 * cells_build.cu
 *		Makes a dataset's table of squares on a GPU, from its index.
 *
 * A warp takes a range, 64, 16, 4 or 1 squares of a block that form a square
 * themselves.  It walks the index once, from the middle of the range, and keeps the
 * positions that can be the nearest of some point of the range, at most 64.  Then each
 * lane takes squares of the range and finds out which of the kept ones are
 * candidates there: as bits of a number.  Up to three go into the entry itself, more into
 * a list.  cells_collect.cuh says what is left out, and why that is right.
 *
 * Ranges are taken in rounds, each a launch.  What a range leaves for the next round:
 *
 *	- if it has more than 64 candidates, its four quarters;
 *	- if references are so dense that most of its squares would be divided, or it is one
 *	  square, the blocks of its squares;
 *	- the block of each square with more than four candidates.
 *
 * So where references are dense squares become small.  All entries say CELLS_CROWDED
 * before the first round: what a round has no room or no time for, or the last one leaves,
 * stays so.  A round takes a millisecond or two; on a GPU with slow float64 one that lasts
 * ends like other launches do (warp_share.cuh).
 *
 *
 * Which squares are divided
 *
 * Those with more than four candidates, if one is near: within NEAR half sides of the
 * square's middle.  A warp waits for the longest list of 32 observations, so a list that
 * is short enough for all of them matters more than a short one for most.  Such a square
 * and its surroundings have some references, and evenly spread ones in a box of 500 km, the
 * worst of many cases that were tried, would take 38 divided squares for each: there is room
 * for 24.  What has no room keeps its list, of up to 32 candidates.
 *
 * A square with more would be crowded, and is divided wherever it is.  Far from all references
 * that helps less: where they form a ring, squares inside it would have to be divided until
 * they are smaller than the references are apart, and there are many.  So blocks are kept
 * for the near and for the far ones of these squares, 16 and 8 squares for each reference.
 * A cluster that is small in its square takes a chain of blocks, some for each level; so near
 * ones also take what squares with a long list leave.
 */
#include <math.h>

#include "cuda/base/columns.cuh"
#include "cuda/cells/cells_collect.cuh"
#include "cuda/index/warp_share.cuh"

#define BLOCK_THREADS WARP_BLOCK_THREADS
#define BLOCK_WARPS WARP_BLOCK_WARPS

/* the table has this many squares of faces, and of divided squares, for each reference */
#define FACE_SQUARES 16
#define FINE_SQUARES 48

/* NEAR_PARTS of FINE_PARTS parts of the blocks for divided squares are for near squares that
 * would be crowded, and one is for far ones */
#define FINE_PARTS 6
#define NEAR_PARTS 2

/* every table has at least this many squares within divided ones */
#define FINE_SQUARES_MIN ((uint32_t) 1 << 16)

/* the table has one element of `four` for this many squares */
#define SQUARES_OF_FOUR 8

static_assert(CELLS_REFERENCES_MAX * (FACE_SQUARES + FINE_SQUARES) <
			  (1u << CELLS_FOURS_SHIFT) * SQUARES_OF_FOUR,
			  "an entry has room for the place of a list, and so for a block");

/* how many rounds a build has: three for each level of blocks */
#define ROUNDS 24

/* how many ranges a round may leave to the next, for each block of the table */
#define RANGES_OF_BLOCK 2

/* how many candidates fit into an entry */
#define FEW_MAX 3

/* a square with more candidates than CANDIDATES is divided if one is near; other squares may have
 * lists of up to LIST_MAX */
#define CANDIDATES 4
#define LIST_MAX (4 * CELLS_FOURS_MAX)

/* a candidate is near if it is at most this many half sides away */
#define NEAR 8.0

/* a range is dense if it has this many references in or around it for each of its squares */
#define DENSE 6

struct build_room
{
	uint32_t	ranges_max;
	struct range *range[2];		/* [ranges_max] the ranges of this round, and of the next one */
	uint32_t   *count;			/* [ROUNDS + 1] how many ranges each round has */
	uint32_t   *taken;			/* [ROUNDS + 1] how many ranges warps have taken */
};

/* ---- room ---- */

size_t
cells_place(void *memory, uint32_t positions, struct cells *cells)
{
	uint32_t	fine = positions * FINE_SQUARES;
	size_t		entries;
	size_t		bytes = 0;

	*cells = {};
	cells->positions = positions;
	cells->side = cells_side_of(positions * FACE_SQUARES);
	cells->scale = cells_scale_of(cells->side);
	cells->face_blocks = 6 * cells->side * cells->side;
	cells->blocks_max = cells->face_blocks +
		(fine > FINE_SQUARES_MIN ? fine : FINE_SQUARES_MIN) / CELLS_BLOCK;
	entries = (size_t) cells->blocks_max * CELLS_BLOCK;
	cells->fours_max = (uint32_t) (entries / SQUARES_OF_FOUR);
	place_columns(memory, &bytes, positions, &cells->record);
	place_columns(memory, &bytes, entries, &cells->entry);
	place_columns(memory, &bytes, cells->fours_max, &cells->four);
	place_columns(memory, &bytes, 1, &cells->counts);
	return bytes;
}

static size_t
place_room(void *memory, const struct cells *cells, struct build_room *room)
{
	size_t		bytes = 0;

	room->ranges_max = cells->blocks_max * RANGES_OF_BLOCK;
	for (int i = 0; i < 2; i++)
		place_columns(memory, &bytes, room->ranges_max, &room->range[i]);
	place_columns(memory, &bytes, ROUNDS + 1, &room->count, &room->taken);
	return bytes;
}

size_t
cells_build_room(const struct cells *cells)
{
	struct build_room room;

	return place_room(NULL, cells, &room);
}

/* ---- ranges ---- */

/* the range that is a whole block of the faces */
static __device__ __forceinline__ struct range
face_range(const struct cells *cells, uint32_t block)
{
	uint32_t	of_face = cells->side * cells->side;
	uint32_t	rest = block % of_face;
	struct range range;

	range.block = block;
	range.u = rest % cells->side << CELLS_UNIT_BITS;
	range.v = rest / cells->side << CELLS_UNIT_BITS;
	range.face = (uint8_t) (block / of_face);
	range.shift = CELLS_FIRST_SHIFT;
	range.first = 0;
	range.side_bits = CELLS_SIDE_BITS;
	return range;
}

/* add a range to the next round for each lane that has one */
static __device__ __forceinline__ void
leave(const struct build_room *room, int round, bool has, struct range range)
{
	uint32_t	place = warp_take(&room->count[round + 1], has && round + 1 < ROUNDS);

	if (place < room->ranges_max)
		*(uint4 *) &room->range[(round + 1) % 2][place] = *(const uint4 *) &range;
}

/* ---- the squares of a range ---- */

/* Return a bit for each of a range's candidates, set if it is a candidate of the square. */
static __device__ __forceinline__ uint64_t
candidates_of(const struct kept *kept, const struct seen *seen, const struct cells_square *square,
			  bool *is_near)
{
	uint64_t	candidates = 0;
	double		greatest = -INFINITY;
	struct geonn_vector best = {};
	double		near;
	int			count;

	for (uint32_t i = 0; i < seen->count; i++)
	{
		struct geonn_vector vector = kept_vector(kept, i);
		double		nearness = fma(square->v, vector.z, fma(square->u, vector.y, vector.x));

		if (nearness > greatest)
		{
			greatest = nearness;
			best = vector;
		}
	}
	near = NEAR * square->half * best.x;
	*is_near = fabs(fma(-square->u, best.x, best.y)) <= near &&
		fabs(fma(-square->v, best.x, best.z)) <= near;
	for (uint32_t i = 0; i < seen->count; i++)
		if (!cells_comes_before(best, kept_vector(kept, i), square, seen->range.margin))
			candidates |= (uint64_t) 1 << i;

	/* neither of two rules out the other: the best is nearer to the middle; squares with many
	 * are divided */
	count = __popcll(candidates);
	if (count <= 2 || (*is_near && count > 2 * CANDIDATES))
		return candidates;
	for (uint64_t left = candidates; left != 0; left &= left - 1)
	{
		int			i = __ffsll(left) - 1;
		struct geonn_vector vector = kept_vector(kept, i);

		for (uint64_t others = candidates; others != 0; others &= others - 1)
			if (cells_comes_before(kept_vector(kept, __ffsll(others) - 1), vector, square,
								   seen->range.margin))
			{
				candidates &= ~((uint64_t) 1 << i);
				break;
			}
	}
	return candidates;
}

/* why a square is divided: each reason has blocks of its own */
enum division
{
	DIVISION_SHORTER,			/* a reference is near, and the list would be long */
	DIVISION_NEAR,				/* a reference is near, and the square would be crowded */
	DIVISION_FAR,				/* no reference is near, and the square would be crowded */
	DIVISION_NONE
};

static_assert(DIVISION_NONE == CELLS_DIVISIONS, "blocks are counted for each");

/*
 * Give each lane that wants one a block for this reason; CELLS_NONE to other lanes,
 * or if none is left.
 */
static __device__ __forceinline__ uint32_t
take_block(const struct cells *cells, bool wants, enum division division)
{
	uint32_t	fine = cells->blocks_max - cells->face_blocks;
	uint32_t	part = fine / FINE_PARTS;
	uint32_t	begin = division == DIVISION_FAR ? fine - part :
		division == DIVISION_NEAR ? fine - part - NEAR_PARTS * part : 0;
	uint32_t	end = division == DIVISION_FAR ? fine :
		division == DIVISION_NEAR ? fine - part : fine - part - NEAR_PARTS * part;
	uint32_t	number = warp_take(&cells->counts->blocks[division], wants);

	return number < end - begin ? cells->face_blocks + begin + number : CELLS_NONE;
}

/*
 * Return a block to each lane that divides its square; CELLS_NONE to other
 * lanes, and if none is left.
 */
static __device__ __forceinline__ uint32_t
take_blocks(const struct cells *cells, enum division division)
{
	uint32_t	block = take_block(cells, division == DIVISION_FAR, DIVISION_FAR);
	bool		needs = division == DIVISION_NEAR;

	if (__any_sync(ALL_LANES, needs))
		block = min(block, take_block(cells, needs, DIVISION_NEAR));
	return min(block, take_block(cells, division == DIVISION_SHORTER ||
								 (needs && block == CELLS_NONE), DIVISION_SHORTER));
}

/* Take `fours` fours of positions for this lane's list.  Returns the index of the first, or
 * CELLS_NONE. */
static __device__ __forceinline__ uint32_t
take_fours(const struct cells *cells, uint32_t fours)
{
	uint32_t	sum = fours;	/* fours of this lane and of the lanes before it */
	uint32_t	first = 0;

	for (int lanes = 1; lanes < INDEX_WIDTH; lanes *= 2)
	{
		uint32_t	before = __shfl_up_sync(ALL_LANES, sum, lanes);

		sum += warp_lane() >= lanes ? before : 0;
	}
	if (warp_lane() == INDEX_WIDTH - 1 && sum > 0)
		first = atomicAdd(&cells->counts->fours, sum);
	first = __shfl_sync(ALL_LANES, first, INDEX_WIDTH - 1) + sum - fours;
	return fours > 0 && first + fours <= cells->fours_max ? first : CELLS_NONE;
}

static __device__ __forceinline__ void
write_list(const struct cells *cells, const struct kept *kept, uint64_t candidates, uint32_t place)
{
	while (candidates != 0)
	{
		uint32_t	four[4];

#pragma unroll
		for (int i = 0; i < 4; i++)
		{
			four[i] = candidates != 0 ? kept->position[__ffsll(candidates) - 1] : CELLS_NONE;
			candidates &= candidates - 1;
		}
		cells->four[place++] = make_uint4(four[0], four[1], four[2], four[3]);
	}
}

/* the range of a divided square: this whole block */
static __device__ __forceinline__ struct range
range_of_square(const struct range *range, uint32_t number, uint32_t block)
{
	struct range fine = *range;

	fine.block = block;
	fine.u += column_of(number) << range->shift;
	fine.v += row_of(number) << range->shift;
	fine.shift = (uint8_t) (range->shift - CELLS_SIDE_BITS);
	fine.first = 0;
	fine.side_bits = CELLS_SIDE_BITS;
	return fine;
}

/* Make the entry of a square with 1 to 3 candidates.  False if one of them is too far from the
 * first in the index's order. */
static __device__ __forceinline__ bool
few_entry(const struct kept *kept, uint64_t candidates, uint2 *entry)
{
	uint32_t	first = kept->position[__ffsll(candidates) - 1];
	uint32_t	others = 0;

	candidates &= candidates - 1;
	for (int i = 0; candidates != 0; i++, candidates &= candidates - 1)
	{
		int32_t		away = (int32_t) (kept->position[__ffsll(candidates) - 1] - first);

		if (away != (int16_t) away)
			return false;
		others |= (uint32_t) (uint16_t) away << 16 * i;
	}
	*entry = make_uint2(CELLS_FEW << CELLS_KIND_SHIFT | first, others);
	return true;
}

/*
 * Make the entries of a range's squares, each by one lane; all lanes of the warp must
 * call this.  If the range has too many candidates, each of its squares is taken to
 * have too many.
 */
static __device__ __forceinline__ void
make_entries(const struct cells *cells, const struct build_room *room, int round,
			 const struct range *range, const struct kept *kept, const struct seen *seen)
{
	uint32_t	squares = 1u << 2 * range->side_bits;

	for (uint32_t begin = 0; begin < squares; begin += INDEX_WIDTH)
	{
		uint32_t	number = range->first + begin + warp_lane();
		bool		present = begin + warp_lane() < squares;
		bool		is_near = seen->range.best_square <= NEAR * NEAR * (seen->range.rho * seen->range.rho);
		uint64_t	candidates = 0;
		uint32_t	count = KEPT_MAX + 1;
		uint2		entry = make_uint2(CELLS_CROWDED_ENTRY, CELLS_CROWDED_ENTRY);
		bool		is_few;
		enum division division = DIVISION_NONE;
		uint32_t	block;
		uint32_t	fours;
		uint32_t	place;

		if (present && !seen->overflow)
		{
			struct cells_square square = squares_of(cells, range, number, 0);

			candidates = candidates_of(kept, seen, &square, &is_near);
			count = __popcll(candidates);
		}
		if (present && range->shift > 0 && round + 1 < ROUNDS)
			division = count > LIST_MAX ? (is_near ? DIVISION_NEAR : DIVISION_FAR) :
				count > CANDIDATES && is_near ? DIVISION_SHORTER : DIVISION_NONE;
		block = take_blocks(cells, division);
		is_few = present && block == CELLS_NONE && count <= FEW_MAX &&
			few_entry(kept, candidates, &entry);
		fours = present && !is_few && count <= LIST_MAX && block == CELLS_NONE ? (count + 3) / 4 : 0;
		place = take_fours(cells, fours);

		if (block != CELLS_NONE)
			entry.x = CELLS_DIVIDED << CELLS_KIND_SHIFT | block;
		else if (place != CELLS_NONE)
		{
			write_list(cells, kept, candidates, place);
			entry.x = CELLS_LIST << CELLS_KIND_SHIFT | (fours - 1) << CELLS_FOURS_SHIFT | place;
		}
		if (present)
			cells->entry[(size_t) range->block * CELLS_BLOCK + row_of(number) * CELLS_SIDE +
						 column_of(number)] = entry;
		leave(room, round, block != CELLS_NONE, range_of_square(range, number, block));
	}
}

static __device__ __forceinline__ void
make_range(const struct index *index, const struct cells *cells, const struct build_room *room,
		   int round, const struct range *range, struct kept *kept, struct corners *corners)
{
	uint32_t	squares = 1u << 2 * range->side_bits;
	struct seen seen;

	collect(index, cells, range, DENSE * squares, kept, corners, &seen);
	if (seen.overflow && range->side_bits > 0 && seen.inside < DENSE * squares)
	{
		struct range quarter = *range;

		quarter.side_bits--;
		quarter.first = (uint8_t) (range->first + warp_lane() * (squares / 4));
		leave(room, round, warp_lane() < 4, quarter);
	}
	else
		make_entries(cells, room, round, range, kept, &seen);
	__syncwarp();				/* all lanes are done with the kept candidates */
}

/* ---- kernels ---- */

static __global__ void __launch_bounds__(BLOCK_THREADS)
record_kernel(const __grid_constant__ struct index index, struct cells_record *record)
{
	uint32_t	position = blockIdx.x * BLOCK_THREADS + threadIdx.x;

	if (position < index.shape.positions)
	{
		struct geonn_vector vector = index_vector(&index, position);

		record[position].x = vector.x;
		record[position].y = vector.y;
		record[position].z = vector.z;
		record[position].tag = index.tag[index.start[position]];
	}
}

/*
 * Do a round: each warp takes ranges until none is left, or the launch has
 * lasted long enough.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
round_kernel(const __grid_constant__ struct index index, const __grid_constant__ struct cells cells,
			 const __grid_constant__ struct build_room room, int round)
{
	__shared__ struct kept kept[BLOCK_WARPS];
	__shared__ struct corners corners[BLOCK_WARPS];
	uint32_t	warp = threadIdx.x / INDEX_WIDTH;
	uint32_t	count = round == 0 ? cells.face_blocks : min(room.count[round], room.ranges_max);
	uint64_t	started = warp_clock();

	for (;;)
	{
		uint32_t	number = count;
		struct range range;

		if (warp_lane() == 0 && warp_clock() - started < LAUNCH_NANOSECONDS)
			number = atomicAdd(&room.taken[round], 1);
		number = __shfl_sync(ALL_LANES, number, 0);
		if (number >= count)
			return;
		if (round == 0)
			range = face_range(&cells, number);
		else
			*(uint4 *) &range = *(const uint4 *) &room.range[round % 2][number];
		make_range(&index, &cells, &room, round, &range, &kept[warp], &corners[warp]);
	}
}

cudaError_t
cells_build(const struct cells *cells, const struct index *index, void *memory,
			cudaStream_t stream)
{
	struct build_room room;
	uint32_t	blocks;

	place_room(memory, cells, &room);
	CUDA_TRY(resident_blocks(round_kernel, &blocks));
	CUDA_TRY(cudaMemsetAsync(cells->entry, CELLS_CROWDED_ENTRY & 0xFF,
							 (size_t) cells->blocks_max * CELLS_BLOCK * sizeof(uint2), stream));
	CUDA_TRY(cudaMemsetAsync(cells->counts, 0, sizeof(struct cells_counts), stream));
	CUDA_TRY(cudaMemsetAsync(room.count, 0, (ROUNDS + 1) * sizeof(uint32_t), stream));
	CUDA_TRY(cudaMemsetAsync(room.taken, 0, (ROUNDS + 1) * sizeof(uint32_t), stream));
	record_kernel<<<blocks_for(cells->positions, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
		(*index, cells->record);
	for (int round = 0; round < ROUNDS; round++)
		round_kernel<<<blocks, BLOCK_THREADS, 0, stream>>> (*index, *cells, room, round);
	return cudaGetLastError();
}
