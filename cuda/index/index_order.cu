/*
 * index_order.cu
 *		Sorts observations into the order of the search by the index.
 *
 * A warp searches for neighbouring observations together, so observations are
 * sorted along the references' curve (space_curve.h).  They are not put back
 * afterwards: answers go to the observations' rows, or carry the rows'
 * numbers.
 *
 * The whole code along the curve would take 8 bytes and 5 or more passes of a
 * radix sort, which move the most bytes of all the search does.  So keys are
 * of 16 to 32 bits, as many as tell apart what the search can make use of, and
 * adapt to where the references are: the leaves of the index, some 2^11 of them
 * at equal intervals, split the curve into ranks.  A key is an observation's
 * rank, and how far within the rank's part of the curve it is, linearly.
 *
 * The order does not affect the answers, so codes are computed from float32.
 *
 * A table of the curve's 2^12 first cells, and bisection for what the table
 * leaves open, find ranks; a table that goes 5 levels at a time gives codes.
 * Both tables are in shared memory.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/base/columns.cuh"
#include "cuda/base/multiprocessors.cuh"
#include "cuda/index/index_order.cuh"

#define KEY_THREADS 512
#define KEY_BLOCKS 3			/* on each multiprocessor */
#define TABLE_BLOCKS 8

/* cells of the curve, by the first bits of the code, with their ranks */
#define CELL_BITS 12
#define CELLS (1 << CELL_BITS)
#define CELL_SHIFT (3 + 2 * INDEX_CODE_LEVELS - CELL_BITS)

/* levels of an observation's code; STEP_LEVELS at a time */
#define ROW_LEVELS 20
#define STEP_LEVELS 5
#define STEP_CELLS (1 << (2 * STEP_LEVELS))

static_assert(ROW_LEVELS % STEP_LEVELS == 0 && ROW_LEVELS <= INDEX_CODE_LEVELS, "whole steps");

/* what keys are made by */
struct index_order_tables
{
	uint64_t	splitter[INDEX_RANKS_MAX];	/* where ranks begin on the curve */
	float		scale[INDEX_RANKS_MAX]; /* fractions for each unit of the code */
	uint32_t	cell[CELLS];	/* ranks of a cell: first | last << 16 */
	uint16_t	step[4 * STEP_CELLS];	/* curve_step() */
};

/* how keys are made of ranks */
struct ranking
{
	uint32_t	ranks;
	int			key_bits;
	int			fraction_bits;	/* of a key, below the rank */
};

cudaError_t
index_order_place(void *memory, uint32_t rows, struct index_order *order, size_t *bytes)
{
	size_t		count = rows;
	cudaError_t error;

	order->scratch_bytes = 0;
	error = cub::DeviceRadixSort::SortPairs(NULL, order->scratch_bytes, (uint32_t *) NULL,
											(uint32_t *) NULL, (uint32_t *) NULL,
											(uint32_t *) NULL, rows);
	if (error != cudaSuccess)
		return error;
	*bytes = 0;
	order->rows = rows;
	order->tables = (struct index_order_tables *)
		next_column(memory, bytes, sizeof(struct index_order_tables));
	order->record = (struct index_record *)
		next_column(memory, bytes, count * sizeof(struct index_record));
	order->key = (uint32_t *) next_column(memory, bytes, count * sizeof(uint32_t));
	order->sorted_key = (uint32_t *) next_column(memory, bytes, count * sizeof(uint32_t));
	order->row = (uint32_t *) next_column(memory, bytes, count * sizeof(uint32_t));
	order->sorted_row = (uint32_t *) next_column(memory, bytes, count * sizeof(uint32_t));
	order->scratch = next_column(memory, bytes, order->scratch_bytes);
	return cudaSuccess;
}

/*
 * One step along the curve: from a state, and STEP_LEVELS bits of column and
 * row, it gives the digits of the code and the next state.  A state is 1 where
 * columns and rows are swapped, plus 2 where both are flipped.
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
 * The beginning of space_curve_code(), to the precision of float32, by the
 * table of steps.
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
 * Make the tables.
 */
static __global__ void __launch_bounds__(KEY_THREADS)
table_kernel(const __grid_constant__ struct index index,
			 struct index_order_tables *tables, struct ranking ranking)
{
	__shared__ uint64_t splitter[INDEX_RANKS_MAX + 1];
	uint32_t	thread = blockIdx.x * KEY_THREADS + threadIdx.x;

	for (uint32_t i = threadIdx.x; i <= INDEX_RANKS_MAX; i += KEY_THREADS)
		splitter[i] = i == 0 ? 0 :
			i < ranking.ranks ?
			index.leaf_code[(uint64_t) i * index.shape.nodes[0] / ranking.ranks] :
			(uint64_t) 6 << (2 * INDEX_CODE_LEVELS);
	__syncthreads();
	for (uint32_t i = thread; i < INDEX_RANKS_MAX; i += TABLE_BLOCKS * KEY_THREADS)
	{
		tables->splitter[i] = splitter[i];
		tables->scale[i] = (float) (1u << ranking.fraction_bits) /
			(float) (splitter[i + 1] - splitter[i]);
	}
	for (uint32_t i = thread; i < CELLS; i += TABLE_BLOCKS * KEY_THREADS)
	{
		uint64_t	begin = (uint64_t) i << CELL_SHIFT;
		uint64_t	end = (uint64_t) (i + 1) << CELL_SHIFT;
		uint32_t	first = 0;
		uint32_t	last = 0;

		for (uint32_t step = INDEX_RANKS_MAX / 2; step > 0; step /= 2)
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
}

/*
 * Unit vectors of the observations, and keys to sort them by.
 */
static __global__ void __launch_bounds__(KEY_THREADS)
key_kernel(const __grid_constant__ struct index_order order, int fraction_bits)
{
	__shared__ struct index_order_tables tables;

	for (uint32_t i = threadIdx.x; i < sizeof(tables) / sizeof(uint64_t); i += KEY_THREADS)
		((uint64_t *) &tables)[i] = ((const uint64_t *) order.tables)[i];
	__syncthreads();

	for (uint32_t row = blockIdx.x * KEY_THREADS + threadIdx.x; row < order.rows;
		 row += gridDim.x * KEY_THREADS)
	{
		double		latitude = order.latitude[row];
		double		longitude = order.longitude[row];
		struct index_record record;
		uint64_t	code;
		uint32_t	rank;
		uint32_t	last;
		float		fraction;

		if (!geonn_coordinates_valid(latitude, longitude))
		{
			*order.out_of_range = 1;
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
		record.payload = code << INDEX_RANK_BITS | rank;
		order.record[row] = record;
		order.key[row] = rank << fraction_bits |
			min((uint32_t) fraction, (1u << fraction_bits) - 1);
		order.row[row] = row;
	}
}

/*
 * How many bits sort the observations: as many as tell apart eight of them, or
 * an eighth of a reference; where a splitter stands for many leaves, which may
 * lie as unevenly as cities do, all.
 */
static int
choose_key_bits(uint32_t rows, const struct index *index)
{
	if (rows >> 24 != 0 && index->shape.nodes[0] > 2 * INDEX_RANKS_MAX)
		return 32;
	return rows >> 18 != 0 ? 24 : 16;
}

cudaError_t
index_order_enqueue(const struct index_order *order, const struct index *index,
					cudaStream_t stream)
{
	struct ranking ranking;
	size_t		bytes = order->scratch_bytes;
	uint32_t	blocks = (uint32_t) (((uint64_t) order->rows + KEY_THREADS - 1) / KEY_THREADS);
	uint32_t	multiprocessors;
	cudaError_t error;

	if ((error = count_multiprocessors(&multiprocessors)) != cudaSuccess)
		return error;
	if (blocks > multiprocessors * KEY_BLOCKS)
		blocks = multiprocessors * KEY_BLOCKS;

	ranking.ranks = index->shape.nodes[0] < INDEX_RANKS_MAX ? index->shape.nodes[0] :
		INDEX_RANKS_MAX;
	ranking.key_bits = choose_key_bits(order->rows, index);
	ranking.fraction_bits = ranking.key_bits;
	while (1u << (ranking.key_bits - ranking.fraction_bits) < ranking.ranks)
		ranking.fraction_bits--;

	table_kernel<<<TABLE_BLOCKS, KEY_THREADS, 0, stream>>> (*index, order->tables, ranking);
	key_kernel<<<blocks, KEY_THREADS, 0, stream>>> (*order, ranking.fraction_bits);
	if ((error = cudaGetLastError()) != cudaSuccess)
		return error;
	return cub::DeviceRadixSort::SortPairs(order->scratch, bytes, order->key, order->sorted_key,
										   order->row, order->sorted_row, order->rows, 0,
										   ranking.key_bits, stream);
}
