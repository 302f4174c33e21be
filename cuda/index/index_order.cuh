/*
 * index_order.cuh
 *		Sorts observations into the order of the search by the index.
 *
 * For index_nearest.cu, cuda/arcs, cuda/neighbours and cuda/shapes; index_order.cu has the essay.
 */
#ifndef GEONN_INDEX_ORDER_CUH
#define GEONN_INDEX_ORDER_CUH

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "cuda/index/index_walk.cuh"

/* The curve is cut into ranks, parts with about the same number of references. */
#define INDEX_RANK_BITS 11
#define INDEX_RANKS_MAX (1 << INDEX_RANK_BITS)

/* where on the curve each rank is */
struct index_order_ranks
{
	uint64_t	begin[INDEX_RANKS_MAX];
	float		scale[INDEX_RANKS_MAX]; /* by how much a key's fraction grows for each unit of the
										 * code */
};

struct index_order_tables;

/* Observations to be put in order, and the memory for the sort.  Addresses are the GPU's. */
struct index_order
{
	uint32_t	rows;			/* observations, at least 1 */
	const double *latitude;		/* [rows] degrees */
	const double *longitude;
	uint32_t   *out_of_range;	/* becomes 1 if some coordinates are invalid */
	int			fraction_bits;	/* how many bits of a key are below its rank:
								 * index_order_fraction_bits() */

	/* memory, laid out by index_order_place() */
	struct index_order_tables *tables;
	uint32_t   *key;			/* [rows] keys before the sort; free for other use after it */
	uint32_t   *row;			/* [rows] rows before the sort; free for other use after it */
	void	   *scratch;
	size_t		scratch_bytes;

	/* results */
	const struct index_order_ranks *ranks;
	double2	   *point;			/* [rows] latitude and longitude, by row */
	uint32_t   *sorted_key;		/* [rows] keys of observations, in the order of the search */
	uint32_t   *sorted_row;		/* [rows] rows of observations, in the order of the search */
};

/* Return how many bits of the keys of observations are below the rank. */
extern int	index_order_fraction_bits(const struct index *index);

/*
 * Lay out the memory for this many observations from address memory on, and set *bytes.  With NULL
 * as memory, only compute the bytes.
 */
extern cudaError_t index_order_place(void *memory, uint32_t rows, struct index_order *order,
									 size_t *bytes);

/* Enqueue the kernels that make points and keys, and the sort. */
extern cudaError_t index_order_enqueue(const struct index_order *order, const struct index *index,
									   cudaStream_t stream);

/*
 * Return the first leaf of a rank, and the end of its leaves: an observation of the rank would be
 * among these on the curve.
 */
static __device__ __forceinline__ uint2
index_order_leaves(const struct index *index, uint32_t rank)
{
	uint64_t	leaves = index->shape.nodes[0];

	/* As many ranks as leaves, or more: rank and leaf are the same number. */
	if (leaves <= INDEX_RANKS_MAX)
		return make_uint2(rank, rank + 1);
	return make_uint2((uint32_t) (rank * leaves >> INDEX_RANK_BITS), (uint32_t) ((rank + 1) * leaves >> INDEX_RANK_BITS));
}

/* Return an observation's code, by its key. */
static __device__ __forceinline__ uint64_t
index_order_code(const struct index_order *order, uint32_t key)
{
	uint32_t	rank = key >> order->fraction_bits;
	float		fraction = (float) (key & ((1u << order->fraction_bits) - 1)) + 0.5f;

	return order->ranks->begin[rank] + (uint64_t) (fraction / order->ranks->scale[rank]);
}

/*
 * Return the leaf that is likely to hold an observation's nearest reference:
 * the leaf where the observation would be on the curve.
 */
static __device__ __forceinline__ uint32_t
index_order_home(const struct index *index, const struct index_order *order, uint32_t key)
{
	uint2		leaves = index_order_leaves(index, key >> order->fraction_bits);

	if (leaves.y - leaves.x <= 1)
		return leaves.x;
	return index_home_leaf(index, index_order_code(order, key), leaves.x, leaves.y);
}

#endif							/* GEONN_INDEX_ORDER_CUH */
