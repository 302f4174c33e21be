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
 * radix sort.  So keys are of 31 bits and adapt to where the references are: the
 * leaves of the index, some 2^11 of them at equal intervals, split the curve into
 * ranks.  A key is an observation's rank, and how far within the rank's part of
 * the curve it is, linearly.  Only the first 16 to 31 bits are sorted by, as many
 * as tell apart what the search can make use of.
 *
 * What this costs is memory traffic.  Keys and rows, 8 bytes, go through the
 * sort.  The search gathers the rest by row: an access of memory brings 64 bytes
 * on an H100, however few are used, so a row's latitude and longitude are put side
 * by side.  They are all that is written for it, and the search makes the vectors:
 * to write and gather vectors takes longer than to make them.
 *
 * The order does not affect the answers, so codes are computed in float32 from
 * sines of float32's precision.
 *
 * A table of the curve's 2^12 first cells, and bisection for what the table
 * leaves open, find ranks; a table that goes 5 levels at a time gives codes.
 * Both tables are in shared memory.
 */
#include <cub/device/device_radix_sort.cuh>

#include "cuda/base/blocks.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index_order.cuh"

#define KEY_THREADS 512
#define KEY_BLOCKS 3			/* blocks of key_kernel on each multiprocessor */
#define TABLE_BLOCKS 8

/* The curve is cut into this many cells, by the first bits of the code; a table gives each cell's ranks. */
#define CELL_BITS 12
#define CELLS (1 << CELL_BITS)
#define CELL_SHIFT (3 + 2 * INDEX_CODE_LEVELS - CELL_BITS)

/* levels of an observation's code; STEP_LEVELS at a time */
#define ROW_LEVELS 20
#define STEP_LEVELS 5
#define STEP_CELLS (1 << (2 * STEP_LEVELS))

static_assert(ROW_LEVELS % STEP_LEVELS == 0 && ROW_LEVELS <= INDEX_CODE_LEVELS, "whole steps");

/* less than 32, so that a shift by all bits of a single rank is defined */
#define KEY_BITS 31

/* the tables from which keys are made */
struct index_order_tables
{
	struct index_order_ranks ranks;
	uint32_t	cell[CELLS];	/* the first and the last rank that a cell has a part of: first | last << 16 */
	uint16_t	step[4 * STEP_CELLS];	/* the results of curve_step(), by state and cell */
};

cudaError_t
index_order_place(void *memory, uint32_t rows, struct index_order *order, size_t *bytes)
{
	size_t		count = rows;

	order->scratch_bytes = 0;
	CUDA_TRY(cub::DeviceRadixSort::SortPairs(NULL, order->scratch_bytes, (uint32_t *) NULL,
											 (uint32_t *) NULL, (uint32_t *) NULL,
											 (uint32_t *) NULL, rows));
	*bytes = 0;
	order->rows = rows;
	place_columns(memory, bytes, 1, &order->tables);
	order->ranks = &order->tables->ranks;
	place_columns(memory, bytes, count, &order->point, &order->key, &order->sorted_key,
				  &order->row, &order->sorted_row);
	order->scratch = next_column(memory, bytes, order->scratch_bytes);
	return cudaSuccess;
}

/*
 * Go down STEP_LEVELS levels of the curve: from a state, and STEP_LEVELS bits of column and row, return the digits of the
 * code and the next state.  A state is 1 where columns and rows are swapped, plus 2 where both are flipped.
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

/* Return the first ROW_LEVELS levels of space_curve_code(), to the precision of float32, by the table of steps. */
static __device__ __forceinline__ uint64_t
row_code(float x, float y, float z, const uint16_t *step_table)
{
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
			 struct index_order_tables *tables, uint32_t ranks, int fraction_bits)
{
	__shared__ uint64_t splitter[INDEX_RANKS_MAX + 1];
	uint32_t	thread = blockIdx.x * KEY_THREADS + threadIdx.x;

	for (uint32_t i = threadIdx.x; i <= INDEX_RANKS_MAX; i += KEY_THREADS)
		splitter[i] = i == 0 ? 0 :
			i < ranks ? index.leaf_code[(uint64_t) i * index.shape.nodes[0] / ranks] :
			(uint64_t) 6 << (2 * INDEX_CODE_LEVELS);
	__syncthreads();
	for (uint32_t i = thread; i < INDEX_RANKS_MAX; i += TABLE_BLOCKS * KEY_THREADS)
	{
		tables->ranks.begin[i] = splitter[i];
		tables->ranks.scale[i] = (float) (1u << fraction_bits) /
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
 * Return an observation's key.
 */
static __device__ __forceinline__ uint32_t
row_key(const struct index_order_tables *tables, double latitude, double longitude,
		int fraction_bits)
{
	const double radian = M_PI / 180.0;
	float		x;
	float		y;
	float		z;
	float		radius;			/* radius of the circle of latitude */
	uint64_t	code;
	uint32_t	rank;
	uint32_t	last;
	float		fraction;

	__sincosf((float) (latitude * radian), &z, &radius);
	__sincosf((float) ((longitude > 180.0 ? longitude - 360.0 : longitude) * radian), &y, &x);
	code = row_code(x * radius, y * radius, z, tables->step);
	rank = tables->cell[code >> CELL_SHIFT];
	last = rank >> 16;
	rank &= 0xFFFF;
	while (rank < last)
	{
		uint32_t	middle = (rank + last + 1) / 2;

		if (tables->ranks.begin[middle] <= code)
			rank = middle;
		else
			last = middle - 1;
	}
	fraction = (float) (code - tables->ranks.begin[rank]) * tables->ranks.scale[rank];
	return rank << fraction_bits | min((uint32_t) fraction, (1u << fraction_bits) - 1);
}

/*
 * Make the points of the observations, and the keys by which they are sorted.
 */
static __global__ void __launch_bounds__(KEY_THREADS)
key_kernel(const __grid_constant__ struct index_order order)
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

		if (!geonn_coordinates_valid(latitude, longitude))
		{
			*order.out_of_range = 1;
			latitude = 0.0;
			longitude = 0.0;
		}
		order.point[row] = make_double2(latitude, longitude);
		order.key[row] = row_key(&tables, latitude, longitude, order.fraction_bits);
		order.row[row] = row;
	}
}

/*
 * Return how many bits of the keys the sort looks at: 16; from 2^18 observations on 24; from 2^24 on all bits, if each
 * rank has several leaves.  References that lie unevenly, like cities, need them.
 */
static int
choose_sort_bits(uint32_t rows, const struct index *index)
{
	if (rows >> 24 != 0 && index->shape.nodes[0] > 2 * INDEX_RANKS_MAX)
		return KEY_BITS;
	return rows >> 18 != 0 ? 24 : 16;
}

static uint32_t
ranks_of(const struct index *index)
{
	return index->shape.nodes[0] < INDEX_RANKS_MAX ? index->shape.nodes[0] : INDEX_RANKS_MAX;
}

int
index_order_fraction_bits(const struct index *index)
{
	int			rank_bits = 0;

	while (1u << rank_bits < ranks_of(index))
		rank_bits++;
	return KEY_BITS - rank_bits;
}

cudaError_t
index_order_enqueue(const struct index_order *order, const struct index *index,
					cudaStream_t stream)
{
	size_t		bytes = order->scratch_bytes;
	uint32_t	blocks = blocks_for(order->rows, KEY_THREADS);
	uint32_t	multiprocessors;

	CUDA_TRY(count_multiprocessors(&multiprocessors));
	if (blocks > multiprocessors * KEY_BLOCKS)
		blocks = multiprocessors * KEY_BLOCKS;

	table_kernel<<<TABLE_BLOCKS, KEY_THREADS, 0, stream>>> (*index, order->tables, ranks_of(index),
															order->fraction_bits);
	key_kernel<<<blocks, KEY_THREADS, 0, stream>>> (*order);
	CUDA_TRY(cudaGetLastError());
	return cub::DeviceRadixSort::SortPairs(order->scratch, bytes, order->key, order->sorted_key,
										   order->row, order->sorted_row, order->rows,
										   KEY_BITS - choose_sort_bits(order->rows, index),
										   KEY_BITS, stream);
}
