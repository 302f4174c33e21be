/*
 * brute_filter.cuh
 *		The float32 filter, and what the kernels of brute force share.
 *
 * For those kernels alone; the rest of the engine knows brute.cuh.
 *
 * Why the filter never loses the nearest
 *
 * u stands for 2^-25.  Let o and r be the float64 vectors of an observation
 * and a reference, of length 1 within 2^-51.  float32 vectors are
 * O = single((1 - 8u) o) and R = single(r), and f is the computed
 * fma(Oz, Rz, fma(Oy, Ry, Ox * Rx)).
 *
 * Components are at most 1 in magnitude, where rounding to float32 moves a
 * number by at most u (a component that float64 left just above 1 goes to 1),
 * so |O - (1 - 8u) o| and |R - r| are at most sqrt(3) u.  The three numbers
 * that f's computation rounds are at most |O| |R| <= (1 - 6.2 u)(1 + 1.8 u)
 * plus two earlier roundings, less than 1, so each rounding is at most u: this
 * is what the factor 1 - 8u is for.  By Cauchy and Schwarz
 *
 *		|f - (1 - 8u) o.r| <= (2 sqrt(3) + 3) u < 6.465 u
 *
 * but for terms below 2^-48, of which there are few: u^2, 2^-51, subnormal
 * numbers, rounding of (1 - 8u) o in float64.
 *
 * Let s be geonn_chord_squared(o, r).  It is |o - r|^2 within a relative
 * 2^-50, hence o.r = 1 - s/2 within 2^-48.  Now let n be the answer and m a
 * reference of largest f, M.  geonn_chord_limit() says s(n) <= L(s(m)) <=
 * s(m) + 2^-43, as L of the smallest s is at most that of s(m).  Therefore
 *
 *		f(n) >= M - 2 * 6.465 u - 2^-43 > M - 13 u
 *
 * and MARGIN is 13 u: n's chunk has a maximum of at least M - MARGIN, and n is
 * among the references of f >= M - MARGIN.  The same holds for whatever
 * reference has the smallest s, so the smallest s of those is that of all.
 * Likewise, if any reference has a chord squared of s, then s(n) <= L(s) and
 * f(n) >= (1 - 8u)(1 - L(s)/2) - 6.5 u, which is the floor that redo raises.
 * Floors are rounded down.
 *
 * Maxima are taken of float bits as signed integers: the order of floats
 * where one of two is not negative, and not where both are.  So if the best
 * is positive, it is right, and a negative runner-up says only that nothing
 * in another chunk exceeds 0; if the best is not, no dot product is positive.
 * Reading a negative runner-up as 0 is safe, and makes every observation with
 * a best of at most MARGIN ambiguous.  Its floor is that of M if M is positive
 * and else -2, which any pair reaches.
 */
#ifndef GEONN_BRUTE_FILTER_CUH
#define GEONN_BRUTE_FILTER_CUH

#include <math.h>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "../src/common/geodesy.h"
#include "brute.cuh"

#define BLOCK_THREADS 256
#define BLOCK_WARPS (BLOCK_THREADS / 32)
#define ALL_LANES 0xFFFFFFFFu

/* observations that a thread of scan, and its block, works on */
#define SCAN_PER_THREAD 8
#define SCAN_PER_BLOCK (SCAN_PER_THREAD * BLOCK_THREADS)

/* observations that a warp of redo, and its block, works on */
#define REDO_PER_WARP 8
#define REDO_PER_BLOCK (REDO_PER_WARP * BLOCK_WARPS)

/* of the proof: 1 - 8u, 6.5 u and 13 u with u = 2^-25 */
#define SHRINK (1.0 - 0x1p-22)
#define DOT_ERROR (6.5 * 0x1p-25)
#define MARGIN (13.0f * 0x1p-25f)

/* a chord squared that no pair exceeds, a floor that every pair reaches */
#define CHORD_SQUARED_ANY 5.0
#define FLOOR_ANY -2.0f

#define NO_REFERENCE UINT32_MAX

static_assert(BRUTE_TILE == 4 * BLOCK_THREADS, "each thread stages 16 bytes of a column");

/* float32 vectors of references, in shared memory */
struct __align__(16) tile
{
	float		x[BRUTE_TILE];
	float		y[BRUTE_TILE];
	float		z[BRUTE_TILE];
};

/* what scan knows of an observation; dot products as integers, as columns */
struct scan_states
{
	int		   *best;
	int		   *second;
	uint32_t   *chunk;			/* of best */
};

#define SCAN_STATE_BYTES (2 * sizeof(int) + sizeof(uint32_t))

/* what redo knows of an observation */
struct redo_state
{
	double		limit;			/* s that the answer can't exceed */
	double		distance;		/* of the best so far */
	uint32_t	index;			/* of the best so far, or NO_REFERENCE */
	float		floor;			/* dot product that the answer reaches */
};

/*
 * Enqueue a launch: of scan or redo for the tiles next_tile ... end_tile - 1,
 * of decide or merge for all observations that they concern.
 */
extern cudaError_t scan_launch(const struct brute_search *search, uint32_t blocks,
							   uint32_t end_tile);
extern cudaError_t decide_launch(const struct brute_search *search);
extern cudaError_t redo_launch(const struct brute_search *search, uint32_t blocks,
							   uint32_t end_tile);
extern cudaError_t merge_launch(const struct brute_search *search);

/* blocks that one multiprocessor runs at the same time */
extern cudaError_t scan_resident_blocks(int *blocks);
extern cudaError_t redo_resident_blocks(int *blocks);

/* blocks that have room for this many, each for so many */
static inline uint32_t
blocks_for(uint32_t items, uint32_t items_per_block)
{
	return (uint32_t) (((uint64_t) items + items_per_block - 1) / items_per_block);
}

static __device__ __forceinline__ float
dot_product(float ax, float ay, float az, float bx, float by, float bz)
{
	return __fmaf_rn(az, bz, __fmaf_rn(ay, by, __fmul_rn(ax, bx)));
}

/* O of the essay */
static __device__ __forceinline__ float
shrunk_single(double component)
{
	return __double2float_rn(SHRINK * component);
}

static __device__ __forceinline__ struct geonn_vector
load_vector(const double *x, const double *y, const double *z, size_t index)
{
	struct geonn_vector vector;

	vector.x = x[index];
	vector.y = y[index];
	vector.z = z[index];
	return vector;
}

/*
 * Begin to copy a tile; the block's threads take 16 bytes of each column.
 */
static __device__ __forceinline__ void
stage_tile(struct tile *tile, const struct brute_references *references, uint32_t number)
{
	uint32_t	place = 4 * threadIdx.x;
	size_t		from = (size_t) number * BRUTE_TILE + place;

	__pipeline_memcpy_async(&tile->x[place], &references->x_single[from], 16);
	__pipeline_memcpy_async(&tile->y[place], &references->y_single[from], 16);
	__pipeline_memcpy_async(&tile->z[place], &references->z_single[from], 16);
}

/*
 * Learn which tiles are this block's segment, as the range is cut evenly over
 * grid.y, and begin to stage them.
 */
static __device__ __forceinline__ void
begin_segment(struct tile *tiles, const struct brute_references *references,
			  uint32_t *first_tile, uint32_t *end_tile)
{
	uint32_t	share = (*end_tile - *first_tile + gridDim.y - 1) / gridDim.y;
	uint32_t	first = *first_tile + blockIdx.y * share;

	*first_tile = min(first, *end_tile);
	*end_tile = min(first + share, *end_tile);
	if (*first_tile < *end_tile)
		stage_tile(&tiles[*first_tile % 2], references, *first_tile);
	__pipeline_commit();
}

/*
 * Wait for a tile of the segment while the next one is staged.  The block
 * must have done with the one before.
 */
static __device__ __forceinline__ const struct tile *
take_tile(struct tile *tiles, const struct brute_references *references,
		  uint32_t number, uint32_t end_tile)
{
	if (number + 1 < end_tile)
		stage_tile(&tiles[(number + 1) % 2], references, number + 1);
	__pipeline_commit();
	__pipeline_wait_prior(1);
	__syncthreads();
	return &tiles[number % 2];
}

static __device__ __forceinline__ double
warp_smallest(double value)
{
	for (int distance = 16; distance > 0; distance /= 2)
		value = fmin(value, __shfl_xor_sync(ALL_LANES, value, distance));
	return value;
}

static __device__ __forceinline__ bool
is_before(double distance, uint32_t index, double other_distance, uint32_t other_index)
{
	return distance < other_distance || (distance == other_distance && index < other_index);
}

/* the first of the lanes' pairs, in every lane */
static __device__ __forceinline__ void
warp_first(double *distance, uint32_t *index)
{
	for (int lanes = 16; lanes > 0; lanes /= 2)
	{
		double		other_distance = __shfl_xor_sync(ALL_LANES, *distance, lanes);
		uint32_t	other_index = __shfl_xor_sync(ALL_LANES, *index, lanes);

		if (is_before(other_distance, other_index, *distance, *index))
		{
			*distance = other_distance;
			*index = other_index;
		}
	}
}

#endif							/* GEONN_BRUTE_FILTER_CUH */
