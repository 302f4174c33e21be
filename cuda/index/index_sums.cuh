/*
 * index_sums.cuh
 *		Exact sums of weights, over any range of an index's references.
 */
#ifndef GEONN_INDEX_SUMS_CUH
#define GEONN_INDEX_SUMS_CUH

#include "cuda/index/index.cuh"

extern "C"
{
#include "engine/dataset/dataset.h"
#include "engine/search/exact_sum.h"
}

/* A sum on a GPU has this many words at most; the CPU adds up weights that need more. */
#define INDEX_SUM_WORDS 3

/* the sums of one of a dataset's weights; the address is the GPU's */
struct index_sums
{
	struct exact_sum_form form;
	uint64_t   *before;			/* [(references + 1) * form.words] of each reference, the sum of all references
								 * before it in the index's order */
};

struct index_weights
{
	uint32_t	count;			/* how many weights the dataset has; 0: index_weights_find() has not run */
	bool		fit;			/* whether the sums of every weight take at most INDEX_SUM_WORDS words */
	struct index_sums sums[GEONN_WEIGHTS_MAX];	/* [count] */
};

/* Find the forms of the sums of a dataset's weights; the dataset has at least one weight. */
extern void index_weights_find(struct index_weights *weights, const struct dataset *dataset);

/*
 * Lay out the sums of an index of so many references from address memory on, and return their bytes.  The sums must
 * fit.  With NULL as memory, only compute the bytes.
 */
extern size_t index_weights_place(void *memory, uint32_t references, struct index_weights *weights);

/* Return the bytes of memory that index_weights_build() needs beside the sums and the weights. */
extern size_t index_weights_room(uint32_t references, const struct index_weights *weights);

/*
 * Enqueue the kernels that compute the sums.  weight[i], on the GPU, has weight number i of each reference, by place in
 * the dataset.  `room` has index_weights_room() bytes; it and the weights may be freed once the stream has executed what
 * was enqueued.
 */
extern cudaError_t index_weights_build(const struct index_weights *weights, const struct index *index,
									   const double *const *weight, void *room, cudaStream_t stream);

/* ---- for kernels ---- */

/* word += more, for sums of `words` words, at most MOST. */
template <uint32_t MOST>
static __device__ __forceinline__ void
index_sums_add(uint64_t *word, const uint64_t *more, uint32_t words)
{
	uint64_t	carry = 0;

#pragma unroll
	for (uint32_t i = 0; i < MOST; i++)
	{
		uint64_t	with_carry = more[i] + carry;

		if (i >= words)
			break;
		word[i] += with_carry;
		carry = (with_carry < carry) + (word[i] < with_carry);
	}
}

/*
 * Set the words to the sum of references first ... end - 1, in the index's order; if end is less than first, to that of
 * references end ... first - 1 with the other sign.
 */
static __device__ __forceinline__ void
index_sums_of_range(const struct index_sums *sums, uint32_t first, uint32_t end, uint64_t *word)
{
	uint32_t	words = sums->form.words;
	const uint64_t *before_first = sums->before + (size_t) first * words;
	const uint64_t *before_end = sums->before + (size_t) end * words;
	uint64_t	borrow = 0;

#pragma unroll
	for (uint32_t i = 0; i < INDEX_SUM_WORDS; i++)
	{
		uint64_t	difference;

		if (i >= words)
			break;
		difference = before_end[i] - before_first[i];
		word[i] = difference - borrow;
		borrow = (before_end[i] < before_first[i]) + (difference < borrow);
	}
}

#endif							/* GEONN_INDEX_SUMS_CUH */
