/*
 * brute_filter.cuh
 *		The filters of brute force, and the code that its kernels share.
 *
 * For those kernels alone; the rest of the engine knows brute.cuh.
 *
 * Two filters limit float64 to a few pairs: scan's dot products by tensor
 * cores from float16 pieces, and the dot products of decide and redo in
 * float32.  This is the proof that neither loses the nearest.  u stands for
 * 2^-25.  Let o and r be the float64 vectors of an observation and a
 * reference, of length 1 within 2^-51.
 *
 *
 * What both rest on
 *
 * Let s be geonn_chord_squared(o, r).  It is |o - r|^2 within a relative
 * 2^-50, hence o.r = 1 - s/2 within 2^-48.  Let n be the answer, and m any
 * other reference.  geonn_chord_limit() says s(n) <= L(s(m)) <= s(m) + 2^-43,
 * so o.n >= o.m - 2^-43.  The same holds for whatever reference has the
 * smallest s, so if these are among what a filter keeps, the smallest s of
 * what it keeps is that of all.
 *
 *
 * Scan
 *
 * The order of o.r by r is that of o.(r - c) for any point c, and that of
 * k o.(r - c) for any k > 0.  So scan may choose.  The references' frame has
 * a centre c and a scale g: those of a region are moved to its centre and
 * magnified by a power of two, at most 2^12, such that |g (r - c)| <= 1; those
 * of the world are left alone, c = 0, g = 1.  And every observation is
 * multiplied by its own k, at most 1 - 2^-8 and at least (1 - 2^-8)(1 - 2^-10),
 * such that the z of k o is a float16 number.
 *
 * Let p be k o and q be g (r - c).  As float16 has 11 bits, two of them, high
 * and low, hold a number of at most 1 within 2^-24: high is off by at most
 * 2^-12, and low by at most 2^-12 of that.  All is multiplied by 2^14, which
 * makes the largest number 2^14 and leaves only what is below 2^-28 to be
 * subnormal, and perhaps lost; for z of p see the fifth term below.  Let f be
 * the sum of eight products, over 2^28,
 *
 *		p.x high q.x high + p.x high q.x low + p.x low q.x high +
 *		p.y high q.y high + p.y high q.y low + p.y low q.y high +
 *		p.z q.z high + p.z q.z low
 *
 * |f - p.q| is made up of
 *
 *		sqrt(3) 2^-24	3.47 u	what the pieces of q lack
 *		sqrt(2) 2^-24	2.83 u	what the pieces of p's x and y lack
 *		2 * 2^-24		4 u		their products low * low, left out
 *		9 * 2^-24		18 u	roundings of the sum
 *		2^-28			0.13 u	p.z below 2^-28, taken as 0
 *
 * Of the sum the instruction set promises that the products and their
 * accumulation are of at least single precision, in any order, rounded in any
 * way.  The products are exact, having 22 bits.  Any partial sum is at most
 * the sum of magnitudes, which is at most (1 - 2^-8)(1 + 2^-10 + 2^-22)^2, less
 * than 1, where single precision has a unit of 2^-24: this is what the factor
 * 1 - 2^-8 is for.  So that is the most that a rounding takes, whether
 * after each of seven additions or, as tensor cores do, by aligning all eight
 * products to the largest before one sum.  (Measured on Hopper, all errors
 * together are within 10.1 u.)
 *
 * Together with float64's roundings that is less than SCAN_ERROR, 28.45 u.
 * Let m be a reference of largest f, M.  As p.q is k g (o.r - o.c) and
 * g 2^-43 <= 2^-31,
 *
 *		f(n) >= M - 2 * 28.45 u - 2^-31 > M - 57 u
 *
 * and SCAN_MARGIN is 57 u: the chunk of n has a maximum of at least that.  So
 * if every chunk of such a maximum is known, n is in one of them; if some may
 * not be, the observation is ambiguous and redone.  Moreover
 *
 *		o.n >= (M - SCAN_ERROR) / (k g) + o.c - 2^-43
 *
 * Maxima are taken of float bits as signed integers: the order of floats
 * where one of two is not negative, and not where both are.  So if the best
 * is positive, it is right, and a negative number elsewhere says only that
 * nothing there exceeds 0; if the best is not, no f is positive.  Reading a
 * negative number as 0 is safe, and makes every observation with a best of at
 * most SCAN_MARGIN ambiguous.
 *
 *
 * Decide and redo
 *
 * float32 vectors are O = single((1 - 8u) o) and R = single(r), and f is the
 * computed fma(Oz, Rz, fma(Oy, Ry, Ox * Rx)).
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
 * but for a few terms below 2^-48: u^2, 2^-51, subnormal numbers, rounding of
 * (1 - 8u) o in float64.
 *
 * Hence if o.n >= d - 2^-43, then f(n) >= (1 - 8u) d - 6.5 u, the floor.  d is
 * at first what scan says of o.n, if its best is positive, and else nothing: a
 * floor of -2, which any pair reaches.  Once redo has met a reference with a
 * chord squared of s, s(n) <= L(s), and d is 1 - L(s)/2.  Floors are rounded
 * down.
 *
 *
 * Silent references
 *
 * A reference with the vector of an earlier one is never the first, so no
 * filter needs to keep it.  prepare silences such references where it finds
 * them, and also the places that fill up the last tile: their q is 0, which is
 * below the best of any observation that is not ambiguous, and their R is NaN,
 * which reaches no floor.
 */
#ifndef GEONN_BRUTE_FILTER_CUH
#define GEONN_BRUTE_FILTER_CUH

#include <math.h>

#include <cuda_pipeline.h>
#include <cuda_runtime.h>

#include "common/metric.h"
#include "cuda/base/blocks.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/brute/brute.cuh"

#define BLOCK_THREADS 256
#define BLOCK_WARPS (BLOCK_THREADS / 32)

/*
 * How many observations a warp, and a block, of scan take: in groups of as
 * many as a matrix has rows.
 */
#define SCAN_GROUP 16
#define SCAN_GROUPS_PER_WARP 4
#define SCAN_PER_WARP (SCAN_GROUP * SCAN_GROUPS_PER_WARP)
#define SCAN_PER_BLOCK (SCAN_PER_WARP * BLOCK_WARPS)

/* how many observations a warp, and a block, of redo take */
#define REDO_PER_WARP 8
#define REDO_PER_BLOCK (REDO_PER_WARP * BLOCK_WARPS)

/* constants of the proof for scan: 2^14, 28.45 u and 57 u; scan computes dot products times 2^28 */
#define SCAN_UNIT 0x1p14
#define SCAN_ERROR (28.45 * 0x1p-25)
#define SCAN_MARGIN (57.0f * 0x1p-25f * 0x1p28f)

/* constants of the proof for decide and redo: 1 - 8u and 6.5 u */
#define SHRINK (1.0 - 0x1p-22)
#define DOT_ERROR (6.5 * 0x1p-25)

/* a chord squared that no pair exceeds; and a floor that every pair reaches */
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

/* float16 pieces of references, in shared memory, in the order that scan reads */
struct __align__(16) scan_tile
{
	uint4		pieces[BRUTE_TILE];
};

/*
 * What scan knows of each observation; dot products are integers.  Four lanes share an observation
 * and see a quarter of the chunks each, so `best` has four values for each observation.
 */
struct scan_states
{
	int4	   *best;			/* [4] the best dot product and its chunk, the second best and its
								 * chunk */
	int		   *third;			/* the largest dot product in all chunks except the best and the second best */
};

#define SCAN_STATE_BYTES (4 * sizeof(int4) + sizeof(int))

/* the state of an observation in redo */
struct redo_state
{
	double		limit;			/* the chord squared that the answer can't exceed */
	double		distance;		/* metres, to the best reference so far */
	uint32_t	index;			/* index of the best reference so far, or NO_REFERENCE */
	float		floor;			/* the dot product that the answer reaches at least */
};

/* Enqueue the kernel that makes the references' float16 pieces from their vectors. */
extern cudaError_t arrange_launch(const struct brute_references *references,
								  cudaStream_t stream);

/*
 * Enqueue a launch.  scan and redo take the tiles next_tile ... end_tile - 1,
 * decide takes all observations, and merge all ambiguous ones.
 */
extern cudaError_t scan_launch(const struct brute_search *search, uint32_t blocks,
							   uint32_t end_tile);
extern cudaError_t decide_launch(const struct brute_search *search);
extern cudaError_t redo_launch(const struct brute_search *search, uint32_t blocks,
							   uint32_t end_tile);
extern cudaError_t merge_launch(const struct brute_search *search);

/* Find how many blocks of scan, and of redo, one multiprocessor runs at the same time. */
extern cudaError_t scan_resident_blocks(int *blocks);
extern cudaError_t redo_resident_blocks(int *blocks);

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
 * Begin to copy a tile; each of the block's threads copies 16 bytes of a column.
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

static __device__ __forceinline__ void
stage_tile(struct scan_tile *tile, const struct brute_references *references, uint32_t number)
{
	const uint4 *from = (const uint4 *) references->pieces + (size_t) number * BRUTE_TILE;

#pragma unroll
	for (int i = 0; i < BRUTE_TILE / BLOCK_THREADS; i++)
	{
		uint32_t	place = threadIdx.x + i * BLOCK_THREADS;

		__pipeline_memcpy_async(&tile->pieces[place], &from[place], 16);
	}
}

/*
 * Narrow *first_tile and *end_tile to the segment of this block: the rows of blocks, grid.y, have
 * equal segments.  Then begin to stage the segment's first tile, if it has one.
 */
template<typename Tile>
static __device__ __forceinline__ void
begin_segment(Tile *tiles, const struct brute_references *references,
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
 * Wait for a tile of the segment, and begin to stage the next one.  The block
 * must be done with the tile before.
 */
template<typename Tile>
static __device__ __forceinline__ const Tile *
take_tile(Tile *tiles, const struct brute_references *references,
		  uint32_t number, uint32_t end_tile)
{
	if (number + 1 < end_tile)
		stage_tile(&tiles[(number + 1) % 2], references, number + 1);
	__pipeline_commit();
	__pipeline_wait_prior(1);
	__syncthreads();
	return &tiles[number % 2];
}

#endif							/* GEONN_BRUTE_FILTER_CUH */
