/*
 * index_nearest.cu
 *		The nearest reference of each observation, by the index, on a GPU.
 */
#include <cub/device/device_radix_sort.cuh>

#include "index_walk.cuh"

#define ALIGNMENT 256

#define BLOCK_THREADS 128
#define BLOCK_WARPS (BLOCK_THREADS / INDEX_WIDTH)

/* observations that a lane, and its warp, works on */
#ifndef PER_LANE
#define PER_LANE 2
#endif
#define GROUP_ROWS (PER_LANE * INDEX_WIDTH)

/* leaves that a group looks at before it leaves its observations to decide */
#define GROUP_LEAVES_MAX 64

/* references for each observation from which on no group is searched */
#ifndef SPARSE
#define SPARSE 32
#endif

/* the anchor's surroundings reach twice as far as so many positions of its leaf */
#define SURROUNDINGS 8

/* more positions than these are compared in two steps, the nearer ones first */
#define MANY 8

/* observations that a round must finish for another to be worthwhile */
#define ROUND_ROWS_MIN 8

/* of the key kernel */
#define KEY_THREADS 512
#define TABLE_BLOCKS 8
#define SPLITTERS_MAX 2048
#define SPLITTER_BITS 11

#ifndef KEY_BLOCKS
#define KEY_BLOCKS 3
#endif
#ifndef SEARCH_BLOCKS
#define SEARCH_BLOCKS 7
#endif

/* cells of the curve, by the first bits of the code, with their splitters */
#define CELL_BITS 12
#define CELLS (1 << CELL_BITS)
#define CELL_SHIFT (3 + 2 * INDEX_CODE_LEVELS - CELL_BITS)

/* levels of an observation's code; STEP_LEVELS at a time */
#define ROW_LEVELS 20
#define STEP_LEVELS 5
#define STEP_CELLS (1 << (2 * STEP_LEVELS))

/* blocks of decide on each multiprocessor */
#define DECIDE_BLOCKS 8

/* entries of the list of one launch of decide */
#define DECIDE_ROWS ((uint32_t) 1 << 22)

/* of the proof */
#define MARGIN 0x1p-17f
#define MARGIN_FLOOR 0x1p-120f
#define ABOVE (1.0f + 0x1p-20f)

static_assert(ROW_LEVELS % STEP_LEVELS == 0 && ROW_LEVELS <= INDEX_CODE_LEVELS, "whole steps");
static_assert(1 << SPLITTER_BITS == SPLITTERS_MAX, "ranks have SPLITTER_BITS");

/* what keys are made by, in shared memory and in the room */
struct key_tables
{
	uint64_t	splitter[SPLITTERS_MAX];	/* where ranks begin on the curve */
	float		scale[SPLITTERS_MAX];	/* fractions for each unit of the code */
	uint32_t	cell[CELLS];	/* ranks of a cell: first | last << 16 */
	uint16_t	step[4 * STEP_CELLS];	/* curve_step() */
};

struct nearest_room
{
	struct key_tables *tables;
	struct index_record *record;	/* [rows] payload: code << SPLITTER_BITS | rank */
	uint32_t   *key;			/* [rows]; then the list of ambiguous slots */
	uint32_t   *sorted_key;		/* [rows] */
	uint32_t   *row;			/* [rows] */
	uint32_t   *sorted_row;		/* [rows] of each slot */
	uint32_t   *listed;			/* ambiguous slots */
	void	   *scratch;		/* CUB's */
	size_t		scratch_bytes;
};

/* what the kernels know of a search */
struct nearest_task
{
	uint32_t	rows;
	const double *latitude;
	const double *longitude;
	double		max_distance;
	double		chord_limit;	/* squared chord that no match exceeds */
	float		square_limit;	/* the same, above the true square */
	float		length_limit;	/* its root */
	int64_t    *tag;
	double	   *distance;
	uint32_t   *row;
	struct index_status *status;
	struct nearest_room room;
	uint32_t	splitters;
	int			fraction_bits;	/* of a key, below the rank */
	float		spread;			/* squares of members to those of surroundings */
	uint32_t	leaves_max;		/* for a group */
};

/* an observation of a lane, as float32 sees it from the anchor */
struct seeker
{
	float		x;				/* offset, times -2 */
	float		y;
	float		z;
	float		square;			/* of the offset */
	float		norm;			/* its length, rounded up */
	float		best;			/* least comparison value */
	float		second;			/* of any other */
	uint32_t	position;		/* that of best */
};

static void *
take(void *memory, size_t *offset, size_t bytes)
{
	size_t		at = *offset;

	*offset += geonn_align(bytes, ALIGNMENT);
	return memory != NULL ? (char *) memory + at : NULL;
}

static cudaError_t
place_room(void *memory, uint32_t rows, struct nearest_room *room, size_t *bytes)
{
	size_t		count = rows;
	cudaError_t error;

	room->scratch_bytes = 0;
	error = cub::DeviceRadixSort::SortPairs(NULL, room->scratch_bytes, (uint32_t *) NULL,
											(uint32_t *) NULL, (uint32_t *) NULL,
											(uint32_t *) NULL, rows);
	if (error != cudaSuccess)
		return error;
	*bytes = 0;
	room->tables = (struct key_tables *) take(memory, bytes, sizeof(struct key_tables));
	room->record = (struct index_record *) take(memory, bytes,
													  count * sizeof(struct index_record));
	room->key = (uint32_t *) take(memory, bytes, count * sizeof(uint32_t));
	room->sorted_key = (uint32_t *) take(memory, bytes, count * sizeof(uint32_t));
	room->row = (uint32_t *) take(memory, bytes, count * sizeof(uint32_t));
	room->sorted_row = (uint32_t *) take(memory, bytes, count * sizeof(uint32_t));
	room->listed = (uint32_t *) take(memory, bytes, sizeof(uint32_t));
	room->scratch = take(memory, bytes, room->scratch_bytes);
	return cudaSuccess;
}

size_t
index_nearest_room(uint32_t rows)
{
	struct nearest_room room;
	size_t		bytes;

	return place_room(NULL, rows, &room, &bytes) == cudaSuccess ? bytes : SIZE_MAX;
}

/*
 * What one step along the curve does: from a state, and as many levels' bits
 * of column and row, the digits of the code and the next state.  A state is 1
 * where columns and rows are swapped, plus 2 where both are flipped.
 */
static __device__ __forceinline__ uint32_t
curve_step(uint32_t state, uint32_t column, uint32_t row)
{
	uint32_t	swap = state & 1;
	uint32_t	flip = state >> 1;
	uint32_t	code = 0;

	for (int level = STEP_LEVELS - 1; level >= 0; level--)
	{
		uint32_t	first = column >> level & 1;
		uint32_t	second = row >> level & 1;
		uint32_t	right = (swap ? second : first) ^ flip;
		uint32_t	up = (swap ? first : second) ^ flip;

		code = code << 2 | ((3 * right) ^ up);
		if (!up)
		{
			swap ^= 1;
			flip ^= right;
		}
	}
	return code << 2 | flip << 1 | swap;
}

/*
 * The beginning of space_curve_code(), as far as float32 knows it, with steps
 * made beforehand.
 */
static __device__ __forceinline__ uint64_t
row_code(struct geonn_vector vector, const uint16_t *step_table)
{
	float		x = (float) vector.x;
	float		y = (float) vector.y;
	float		z = (float) vector.z;
	float		largest = fabsf(x);
	float		u = y;
	float		v = z;
	uint32_t	face = x < 0.0f;
	float		scale;
	const float cells = (float) (1 << ROW_LEVELS);
	const uint32_t last = (1 << ROW_LEVELS) - 1;
	uint32_t	column;
	uint32_t	row;
	uint32_t	state = 0;
	uint64_t	code;

	if (fabsf(y) > largest)
	{
		largest = fabsf(y);
		u = z;
		v = x;
		face = 2 + (y < 0.0f);
	}
	if (fabsf(z) > largest)
	{
		largest = fabsf(z);
		u = x;
		v = y;
		face = 4 + (z < 0.0f);
	}
	scale = __fdividef(0.5f, largest);
	column = min((uint32_t) (__saturatef(__fmaf_rn(u, scale, 0.5f)) * cells), last);
	row = min((uint32_t) (__saturatef(__fmaf_rn(v, scale, 0.5f)) * cells), last);

	code = face;
	for (int shift = ROW_LEVELS - STEP_LEVELS; shift >= 0; shift -= STEP_LEVELS)
	{
		const uint32_t mask = (1 << STEP_LEVELS) - 1;
		uint32_t	step = step_table[state * STEP_CELLS + ((column >> shift & mask) << STEP_LEVELS) +
								 (row >> shift & mask)];

		code = code << (2 * STEP_LEVELS) | step >> 2;
		state = step & 3;
	}
	return code << (2 * (INDEX_CODE_LEVELS - ROW_LEVELS));
}

/*
 * Make the tables, and reset what the later kernels count.
 */
static __global__ void __launch_bounds__(KEY_THREADS)
table_kernel(const __grid_constant__ struct index index,
			 const __grid_constant__ struct nearest_task task)
{
	__shared__ uint64_t splitter[SPLITTERS_MAX + 1];
	struct key_tables *tables = task.room.tables;
	uint32_t	thread = blockIdx.x * KEY_THREADS + threadIdx.x;

	for (uint32_t i = threadIdx.x; i <= SPLITTERS_MAX; i += KEY_THREADS)
		splitter[i] = i == 0 ? 0 :
			i < task.splitters ?
			index.leaf_code[(uint64_t) i * index.shape.nodes[0] / task.splitters] :
			(uint64_t) 6 << (2 * INDEX_CODE_LEVELS);
	__syncthreads();
	for (uint32_t i = thread; i < SPLITTERS_MAX; i += TABLE_BLOCKS * KEY_THREADS)
	{
		tables->splitter[i] = splitter[i];
		tables->scale[i] = (float) (1u << task.fraction_bits) /
			(float) (splitter[i + 1] - splitter[i]);
	}
	for (uint32_t i = thread; i < CELLS; i += TABLE_BLOCKS * KEY_THREADS)
	{
		uint64_t	begin = (uint64_t) i << CELL_SHIFT;
		uint64_t	end = (uint64_t) (i + 1) << CELL_SHIFT;
		uint32_t	first = 0;
		uint32_t	last = 0;

		for (uint32_t step = SPLITTERS_MAX / 2; step > 0; step /= 2)
		{
			if (splitter[first + step] <= begin)
				first += step;
			if (splitter[last + step] < end)
				last += step;
		}
		tables->cell[i] = first | last << 16;
	}
	for (uint32_t i = thread; i < 4 * STEP_CELLS; i += TABLE_BLOCKS * KEY_THREADS)
		tables->step[i] = (uint16_t) curve_step(i / STEP_CELLS,
												i >> STEP_LEVELS & ((1 << STEP_LEVELS) - 1),
												i & ((1 << STEP_LEVELS) - 1));
	if (thread == 0)
	{
		*task.room.listed = 0;
		task.status->out_of_range = 0;
		task.status->unmatched = 0;
		task.status->ambiguous = 0;
	}
}

/*
 * Unit vectors of the observations, and keys to sort them by.
 */
static __global__ void __launch_bounds__(KEY_THREADS)
key_kernel(const __grid_constant__ struct nearest_task task)
{
	__shared__ struct key_tables tables;

	for (uint32_t i = threadIdx.x; i < sizeof(tables) / sizeof(uint64_t); i += KEY_THREADS)
		((uint64_t *) &tables)[i] = ((const uint64_t *) task.room.tables)[i];
	__syncthreads();

	for (uint32_t row = blockIdx.x * KEY_THREADS + threadIdx.x; row < task.rows;
		 row += gridDim.x * KEY_THREADS)
	{
		double		latitude = task.latitude[row];
		double		longitude = task.longitude[row];
		struct index_record record;
		uint64_t	code;
		uint32_t	rank;
		uint32_t	last;
		float		fraction;

		if (!geonn_coordinates_valid(latitude, longitude))
		{
			task.status->out_of_range = 1;
			latitude = 0.0;
			longitude = 0.0;
		}
		record.vector = geonn_unit_vector(latitude, longitude);
		code = row_code(record.vector, tables.step);
		rank = tables.cell[code >> CELL_SHIFT];
		last = rank >> 16;
		rank &= 0xFFFF;
		while (rank < last)
		{
			uint32_t	middle = (rank + last + 1) / 2;

			if (tables.splitter[middle] <= code)
				rank = middle;
			else
				last = middle - 1;
		}
		fraction = (float) (code - tables.splitter[rank]) * tables.scale[rank];
		record.payload = code << SPLITTER_BITS | rank;
		task.room.record[row] = record;
		task.room.key[row] = rank << task.fraction_bits |
			min((uint32_t) fraction, (1u << task.fraction_bits) - 1);
		task.room.row[row] = row;
	}
}

static __device__ __forceinline__ bool
is_before(double distance, uint32_t place, double other_distance, uint32_t other_place)
{
	return distance < other_distance || (distance == other_distance && place < other_place);
}

/* Write the answer of a slot: a reference, by its sorted number, or none. */
static __device__ __forceinline__ void
write_answer(const struct index *index, const struct nearest_task *task, uint32_t slot,
			 uint32_t row, double distance, uint32_t number)
{
	bool		matched = distance <= task->max_distance && distance < INFINITY;
	uint32_t	at = task->row != NULL ? slot : row;

	if (task->row != NULL)
		__stcs(&task->row[slot], row);
	__stcs(&task->distance[at], matched ? distance : INFINITY);
	__stcs((long long *) &task->tag[at], matched ? index->tag[number] : 0);
	if (!matched)
		atomicAdd(&task->status->unmatched, 1);
}

/* of the lanes' floats, none of which is negative */
static __device__ __forceinline__ float
warp_largest(float value)
{
	return __uint_as_float(~index_warp_smallest(~__float_as_uint(value)));
}

static __device__ __forceinline__ float
warp_smallest(float value)
{
	return __uint_as_float(index_warp_smallest(__float_as_uint(value)));
}

/* the SURROUNDINGS-th smallest, infinity where there are not that many */
static __device__ __forceinline__ float
warp_nth_smallest(float value)
{
	for (int i = 1; i < SURROUNDINGS; i++)
		if (value == warp_smallest(value))
			value = INFINITY;
	return warp_smallest(value);
}

/* where the leaf is likely to be that holds the nearest of an observation */
static __device__ __forceinline__ uint32_t
home_of(const struct index *index, uint64_t hint)
{
	uint32_t	rank = (uint32_t) hint & (SPLITTERS_MAX - 1);
	uint64_t	leaves = index->shape.nodes[0];

	/* a splitter for each leaf, or SPLITTERS_MAX */
	if (leaves <= SPLITTERS_MAX)
		return rank;
	return index_home_leaf(index, hint >> SPLITTER_BITS,
						   (uint32_t) (rank * leaves >> SPLITTER_BITS),
						   (uint32_t) ((rank + 1) * leaves >> SPLITTER_BITS));
}

/* the root of a square above MARGIN_FLOOR, rounded up */
static __device__ __forceinline__ float
root_above(float square)
{
	return square * rsqrtf(square) * ABOVE;
}

static __device__ __forceinline__ struct seeker
make_seeker(struct geonn_vector vector, struct geonn_vector anchor)
{
	float		x = (float) (vector.x - anchor.x);
	float		y = (float) (vector.y - anchor.y);
	float		z = (float) (vector.z - anchor.z);
	struct seeker seeker;

	seeker.x = -2.0f * x;
	seeker.y = -2.0f * y;
	seeker.z = -2.0f * z;
	seeker.square = __fmaf_rn(z, z, __fmaf_rn(y, y, __fmul_rn(x, x)));
	seeker.norm = root_above(seeker.square + MARGIN_FLOOR);
	seeker.best = INFINITY;
	seeker.second = INFINITY;
	seeker.position = 0;
	return seeker;
}

/*
 * Compare all lanes' observations with those positions of a leaf, staged in
 * shared memory, that the mask names.
 */
static __device__ __forceinline__ void
compare_positions(struct seeker *seekers, const float4 *staged, uint32_t leaf, uint32_t mask)
{
	while (mask != 0)
	{
		uint32_t	place = __ffs(mask) - 1;
		float4		reference = staged[place];

		mask &= mask - 1;
#pragma unroll
		for (int j = 0; j < PER_LANE; j++)
		{
			struct seeker *seeker = &seekers[j];
			float		value = __fmaf_rn(seeker->z, reference.z,
										  __fmaf_rn(seeker->y, reference.y,
													__fmaf_rn(seeker->x, reference.x,
															  reference.w)));

			seeker->second = fminf(seeker->second, fmaxf(seeker->best, value));
			if (value < seeker->best)
				seeker->position = leaf * INDEX_WIDTH + place;
			seeker->best = fminf(seeker->best, value);
		}
	}
}

/* the square of the distance to the best so far, more or less */
static __device__ __forceinline__ float
best_square(const struct seeker *seeker)
{
	return fmaxf(seeker->best + seeker->square, 0.0f);
}

static __device__ __forceinline__ float
margin_of(const struct seeker *seeker)
{
	return __fmaf_rn(MARGIN, best_square(seeker) + seeker->square, MARGIN_FLOOR);
}

/* how far from the anchor the nearest of the lanes' members can be */
static __device__ __forceinline__ float
reach_of_members(const struct seeker *seekers, const bool *member, float square_limit)
{
	float		reach = 0.0f;

#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
		if (member[j])
		{
			float		square = best_square(&seekers[j]) + margin_of(&seekers[j]);

			reach = fmaxf(reach, seekers[j].norm + root_above(fminf(square, square_limit)));
		}
	return warp_largest(reach * ABOVE);
}

/* put slots on the list of ambiguous ones; all lanes take part */
static __device__ __forceinline__ void
list_slot(const struct nearest_task *task, uint32_t slot, bool ambiguous)
{
	uint32_t	lanes = __ballot_sync(INDEX_ALL_LANES, ambiguous);
	uint32_t	first = 0;

	if (index_lane() == 0)
		first = atomicAdd(task->room.listed, __popc(lanes));
	first = __shfl_sync(INDEX_ALL_LANES, first, 0);
	if (ambiguous)
		task->room.key[first + __popc(lanes & ((1u << index_lane()) - 1))] = slot;
}

/*
 * Load the lanes' records.  Two lanes load one record at a time, which asks
 * for each sector once, and past the first cache, where they would displace the
 * index.
 */
static __device__ __forceinline__ struct index_record
load_record(const struct index_record *records, uint32_t row)
{
	bool		is_odd = index_lane() % 2 != 0;
	uint32_t	other = __shfl_xor_sync(INDEX_ALL_LANES, row, 1);
	double2		even_half = __ldcg((const double2 *) &records[is_odd ? other : row] + is_odd);
	double2		odd_half = __ldcg((const double2 *) &records[is_odd ? row : other] + is_odd);
	double2		kept = is_odd ? odd_half : even_half;
	double2		sent = is_odd ? even_half : odd_half;
	double2		received;
	struct index_record record;

	received.x = __shfl_xor_sync(INDEX_ALL_LANES, sent.x, 1);
	received.y = __shfl_xor_sync(INDEX_ALL_LANES, sent.y, 1);
	record.vector.x = is_odd ? received.x : kept.x;
	record.vector.y = is_odd ? received.y : kept.y;
	record.vector.z = is_odd ? kept.x : received.x;
	record.payload = __double_as_longlong(is_odd ? kept.y : received.y);
	return record;
}

/*
 * An observation that is left: from the middle of the group, or next to it.
 * False where none is left.
 */
static __device__ __forceinline__ bool
choose_anchor(const struct index_record *records, const uint32_t *left,
			  struct index_record *anchor)
{
	struct index_record chosen = records[0];
	uint32_t	source = 0;

#pragma unroll
	for (int j = 0; j < PER_LANE / 2; j++)
		if (left[j] != 0)
		{
			chosen = records[j];
			source = 32 - __clz(left[j]);
		}
#pragma unroll
	for (int j = PER_LANE - 1; j >= PER_LANE / 2; j--)
		if (left[j] != 0)
		{
			chosen = records[j];
			source = __ffs(left[j]);
		}
	if (source == 0)
		return false;
	source--;
	anchor->vector.x = __shfl_sync(INDEX_ALL_LANES, chosen.vector.x, source);
	anchor->vector.y = __shfl_sync(INDEX_ALL_LANES, chosen.vector.y, source);
	anchor->vector.z = __shfl_sync(INDEX_ALL_LANES, chosen.vector.z, source);
	anchor->payload = __shfl_sync(INDEX_ALL_LANES, chosen.payload, source);
	return true;
}

/*
 * Each warp answers a group of neighbouring observations.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS, SEARCH_BLOCKS)
search_kernel(const __grid_constant__ struct index index,
			  const __grid_constant__ struct nearest_task task)
{
	__shared__ float4 staged_leaves[BLOCK_WARPS][INDEX_WIDTH];
	float4	   *staged = staged_leaves[threadIdx.x / INDEX_WIDTH];
	uint32_t	group = blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH;
	uint32_t	first_slot = group * GROUP_ROWS + index_lane();
	uint32_t	leaves_left = task.leaves_max;
	uint32_t	row[PER_LANE];
	struct index_record record[PER_LANE];
	struct index_record anchor_record;
	uint32_t	left[PER_LANE]; /* lanes whose observation is not finished */

	if ((uint64_t) group * GROUP_ROWS >= task.rows)
		return;
#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
	{
		uint32_t	slot = first_slot + j * INDEX_WIDTH;

		left[j] = __ballot_sync(INDEX_ALL_LANES, slot < task.rows);
		row[j] = __ldcs(&task.room.sorted_row[min(slot, task.rows - 1)]);
	}
#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
		record[j] = load_record(task.room.record, row[j]);

	while (choose_anchor(record, left, &anchor_record))
	{
		struct geonn_vector anchor = anchor_record.vector;
		struct seeker seekers[PER_LANE];
		bool		member[PER_LANE];
		struct index_walk walk;
		uint32_t	leaf;
		bool		is_home = true;
		bool		is_last;
		uint32_t	finished;
		float		reach = INFINITY;

#pragma unroll
		for (int j = 0; j < PER_LANE; j++)
		{
			seekers[j] = make_seeker(record[j].vector, anchor);
			member[j] = left[j] >> index_lane() & 1;
		}

		index_walk_begin(&walk, &index, anchor, 0, home_of(&index, anchor_record.payload));
		while (index_walk_next(&walk, (double) (reach * reach * ABOVE), &leaf))
		{
			uint32_t	position = leaf * INDEX_WIDTH + index_lane();
			bool		present = position < index.shape.positions;
			struct geonn_vector vector = index_vector(&index, position);
			float		x = (float) (vector.x - anchor.x);
			float		y = (float) (vector.y - anchor.y);
			float		z = (float) (vector.z - anchor.z);
			float		square = __fmaf_rn(z, z, __fmaf_rn(y, y, __fmul_rn(x, x)));
			uint32_t	mask;

			if (leaves_left == 0)
				break;
			leaves_left--;
			__syncwarp();		/* all have done with the leaf before */
			staged[index_lane()] = make_float4(x, y, z, square);
			__syncwarp();

			if (is_home)
			{
				/* members are those of the anchor's surroundings */
				float		least = warp_smallest(present ? square : INFINITY);
				float		size = warp_nth_smallest(present ? square : INFINITY);
				float		norm = 0.0f;

#pragma unroll
				for (int j = 0; j < PER_LANE; j++)
				{
					member[j] = member[j] && seekers[j].square <= task.spread * size;
					if (member[j])
						norm = fmaxf(norm, seekers[j].norm);
				}
				norm = warp_largest(norm);

				/* none is farther from the anchor's nearest than this */
				reach = norm + fminf(norm + root_above(least + MARGIN_FLOOR), task.length_limit);
				reach *= ABOVE;
				is_home = false;
			}
			mask = __ballot_sync(INDEX_ALL_LANES, present && square <= reach * reach * ABOVE);
			if (mask == 0)
				continue;
			if (__popc(mask) > MANY)
			{
				/* half of them may do, the nearer ones that is */
				uint32_t	nearer = __ballot_sync(INDEX_ALL_LANES,
												   present && square <= 0.25f * reach * reach);

				if (nearer != 0)
				{
					compare_positions(seekers, staged, leaf, nearer);
					reach = reach_of_members(seekers, member, task.square_limit);
					mask = ~nearer &
						__ballot_sync(INDEX_ALL_LANES,
									  present && square <= reach * reach * ABOVE);
				}
			}
			compare_positions(seekers, staged, leaf, mask);
			reach = reach_of_members(seekers, member, task.square_limit);
		}

		/* a round that finishes few is the last, and decide has the others */
		finished = 0;
#pragma unroll
		for (int j = 0; j < PER_LANE; j++)
			finished += __popc(__ballot_sync(INDEX_ALL_LANES, member[j]));
		is_last = leaves_left == 0 || finished < ROUND_ROWS_MIN;
#pragma unroll
		for (int j = 0; j < PER_LANE; j++)
		{
			uint32_t	slot = first_slot + j * INDEX_WIDTH;
			bool		is_left = left[j] >> index_lane() & 1;
			bool		found = seekers[j].best < INFINITY;
			bool		ambiguous;

			if (leaves_left == 0)
				member[j] = false;
			ambiguous = member[j] ?
				found && !(seekers[j].second > seekers[j].best + margin_of(&seekers[j])) :
				is_left && is_last;
			if (__any_sync(INDEX_ALL_LANES, ambiguous))
				list_slot(&task, slot, ambiguous);
			if (member[j] && !ambiguous)
			{
				uint32_t	position = seekers[j].position;
				double		distance = found ?
					geonn_distance_of(record[j].vector, index_vector(&index, position)) : INFINITY;

				if (index.references != index.shape.positions)
					position = index.start[position];
				write_answer(&index, &task, slot, row[j], distance, position);
			}
			left[j] &= ~__ballot_sync(INDEX_ALL_LANES, member[j]);
			if (is_last)
				left[j] = 0;
		}
	}
}

/*
 * Each warp decides an ambiguous observation, in float64 alone.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
decide_kernel(const __grid_constant__ struct index index,
			  const __grid_constant__ struct nearest_task task, uint32_t first)
{
	uint32_t	listed = *task.room.listed;
	uint32_t	end = first + min(listed - min(first, listed), DECIDE_ROWS);
	uint32_t	warps = gridDim.x * BLOCK_WARPS;

	for (uint32_t i = first + blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH; i < end;
		 i += warps)
	{
		uint32_t	slot = task.room.key[i];
		uint32_t	row = task.room.sorted_row[slot];
		struct index_record record = task.room.record[row];
		double		limit = task.chord_limit;
		double		best_distance = INFINITY;
		uint32_t	best_place = INDEX_NONE;
		uint32_t	best_number = INDEX_NONE;
		struct index_walk walk;
		uint32_t	leaf;

		index_walk_begin(&walk, &index, record.vector, 0,
						 home_of(&index, record.payload));
		while (index_walk_next(&walk, limit, &leaf))
		{
			uint32_t	position = leaf * INDEX_WIDTH + index_lane();
			struct geonn_vector vector = index_vector(&index, position);
			double		square = geonn_chord_squared(record.vector, vector);
			double		least = position < index.shape.positions ? square : INFINITY;

			square = least;
			if (!__any_sync(INDEX_ALL_LANES, square <= limit))
				continue;
			for (int lanes = INDEX_WIDTH / 2; lanes > 0; lanes /= 2)
				least = fmin(least, __shfl_xor_sync(INDEX_ALL_LANES, least, lanes));
			limit = fmin(limit, geonn_chord_limit(least));
			if (square <= limit)
			{
				double		distance = geonn_distance_of(record.vector, vector);
				uint32_t	number = index.start[position];
				uint32_t	place = index.place[number];

				if (is_before(distance, place, best_distance, best_place))
				{
					best_distance = distance;
					best_place = place;
					best_number = number;
				}
			}
		}

		for (int lanes = INDEX_WIDTH / 2; lanes > 0; lanes /= 2)
		{
			double		distance = __shfl_xor_sync(INDEX_ALL_LANES, best_distance, lanes);
			uint32_t	place = __shfl_xor_sync(INDEX_ALL_LANES, best_place, lanes);
			uint32_t	number = __shfl_xor_sync(INDEX_ALL_LANES, best_number, lanes);

			if (is_before(distance, place, best_distance, best_place))
			{
				best_distance = distance;
				best_place = place;
				best_number = number;
			}
		}
		if (index_lane() == 0)
			write_answer(&index, &task, slot, row, best_distance, best_number);
	}
	if (first == 0 && blockIdx.x == 0 && threadIdx.x == 0)
		task.status->ambiguous = listed;
}

/* blocks that have room for this many, each for so many */
static uint32_t
blocks_for(uint32_t items, uint32_t items_per_block)
{
	return (uint32_t) (((uint64_t) items + items_per_block - 1) / items_per_block);
}

/*
 * How many bits sort the observations: as many as tell apart eight of them, or
 * an eighth of a reference; where a splitter stands for many leaves, which may
 * lie as unevenly as cities do, all.
 */
static int
choose_key_bits(uint32_t rows, const struct index *index)
{
	if (rows >> 24 != 0 && index->shape.nodes[0] > 2 * SPLITTERS_MAX)
		return 32;
	return rows >> 18 != 0 ? 24 : 16;
}

cudaError_t
index_nearest_enqueue(const struct index_nearest *search)
{
	const struct index *index = search->index;
	struct nearest_task task = {};
	size_t		bytes;
	int			device;
	int			multiprocessors;
	double		references_a_row = (double) index->shape.positions / search->rows;
	int			key_bits = choose_key_bits(search->rows, index);
	uint32_t	decide_blocks;
	uint32_t	key_blocks = blocks_for(search->rows, KEY_THREADS);
	cudaError_t error;

	task.rows = search->rows;
	task.latitude = search->latitude;
	task.longitude = search->longitude;
	task.max_distance = search->max_distance;
	task.chord_limit = geonn_radius_limit(search->max_distance);
	task.square_limit = (float) (task.chord_limit * (1.0 + 0x1p-20)) + MARGIN_FLOOR;
	task.length_limit = sqrtf(task.square_limit) * ABOVE;
	task.tag = search->tag;
	task.distance = search->distance;
	task.row = search->row;
	task.status = search->status;
	task.splitters = index->shape.nodes[0] < SPLITTERS_MAX ? index->shape.nodes[0] : SPLITTERS_MAX;
	task.fraction_bits = key_bits;
	while (1u << (key_bits - task.fraction_bits) < task.splitters)
		task.fraction_bits--;
	task.spread = 4.0f + (float) (64.0 * references_a_row);
	task.leaves_max = references_a_row < SPARSE ? GROUP_LEAVES_MAX : 0;

	if ((error = cudaGetDevice(&device)) != cudaSuccess ||
		(error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount,
										device)) != cudaSuccess ||
		(error = place_room(search->room, search->rows, &task.room, &bytes)) != cudaSuccess)
		return error;

	if (key_blocks > (uint32_t) multiprocessors * KEY_BLOCKS)
		key_blocks = (uint32_t) multiprocessors * KEY_BLOCKS;
	table_kernel<<<TABLE_BLOCKS, KEY_THREADS, 0, search->stream>>> (*index, task);
	key_kernel<<<key_blocks, KEY_THREADS, 0, search->stream>>> (task);
	if ((error = cudaGetLastError()) != cudaSuccess ||
		(error = cub::DeviceRadixSort::SortPairs(task.room.scratch, task.room.scratch_bytes,
												 task.room.key, task.room.sorted_key,
												 task.room.row, task.room.sorted_row,
												 search->rows, 0, key_bits,
												 search->stream)) != cudaSuccess)
		return error;
	if (search->sorted != NULL &&
		(error = cudaEventRecord(search->sorted, search->stream)) != cudaSuccess)
		return error;
	search_kernel<<<blocks_for(search->rows, GROUP_ROWS * BLOCK_WARPS), BLOCK_THREADS, 0,
		search->stream>>> (*index, task);
	if ((error = cudaGetLastError()) != cudaSuccess)
		return error;
	decide_blocks = blocks_for(search->rows, BLOCK_WARPS);
	if (decide_blocks > (uint32_t) multiprocessors * DECIDE_BLOCKS)
		decide_blocks = (uint32_t) multiprocessors * DECIDE_BLOCKS;
	for (uint64_t first = 0; first < search->rows; first += DECIDE_ROWS)
	{
		decide_kernel<<<decide_blocks, BLOCK_THREADS, 0, search->stream>>>
			(*index, task, (uint32_t) first);
		if ((error = cudaGetLastError()) != cudaSuccess)
			return error;
	}
	return cudaSuccess;
}
