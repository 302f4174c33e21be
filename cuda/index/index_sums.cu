/*
 * index_sums.cu
 *		Exact sums of weights, over any range of an index's references.
 *
 * exact_sum.h has the form of sums.  Each reference has the sum of all references before it in the index's order.  A
 * range's sum is the difference of two of these: all are computed modulo 2^(64 words), in which the difference is right
 * even where one of them wrapped around.
 */
#include <cub/device/device_scan.cuh>

#include "cuda/base/blocks.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index_sums.cuh"

#define BLOCK_THREADS 256

/* A sum of WORDS words, the lowest first. */
template <int WORDS>
struct sum
{
	uint64_t	word[WORDS];
};

template <int WORDS>
struct add_sums
{
	__device__ __forceinline__ struct sum<WORDS>
	operator() (const struct sum<WORDS> &a, const struct sum<WORDS> &b) const
	{
		struct sum<WORDS> both = a;

		index_sums_add<WORDS>(both.word, b.word, WORDS);
		return both;
	}
};

void
index_weights_find(struct index_weights *weights, const struct dataset *dataset)
{
	weights->fit = true;
	for (weights->count = 0; weights->count < GEONN_WEIGHTS_MAX && dataset->weight[weights->count] != NULL;
		 weights->count++)
	{
		struct exact_sum_form *form = &weights->sums[weights->count].form;

		*form = exact_sum_form_of(dataset->weight[weights->count], dataset->count);
		weights->fit = weights->fit && form->words <= INDEX_SUM_WORDS;
	}
}

size_t
index_weights_place(void *memory, uint32_t references, struct index_weights *weights)
{
	size_t		bytes = 0;

	for (uint32_t i = 0; i < weights->count; i++)
		place_columns(memory, &bytes, ((size_t) references + 1) * weights->sums[i].form.words,
					  &weights->sums[i].before);
	return bytes;
}

/*
 * Add up sums in place: each becomes the sum of all sums before it.  With NULL as room, only set *bytes to the
 * bytes of the room.
 */
template <int WORDS>
static cudaError_t
scan(uint64_t *before, size_t count, void *room, size_t *bytes, cudaStream_t stream)
{
	struct sum<WORDS> *sums = (struct sum<WORDS> *) before;

	return cub::DeviceScan::ExclusiveScan(room, *bytes, sums, sums, add_sums<WORDS>(), sum<WORDS>{}, count, stream);
}

static cudaError_t
scan_words(const struct index_sums *sums, size_t count, void *room, size_t *bytes, cudaStream_t stream)
{
	static_assert(INDEX_SUM_WORDS == 3, "a case for each number of words");

	switch (sums->form.words)
	{
		case 1:
			return scan<1>(sums->before, count, room, bytes, stream);
		case 2:
			return scan<2>(sums->before, count, room, bytes, stream);
		default:
			return scan<3>(sums->before, count, room, bytes, stream);
	}
}

size_t
index_weights_room(uint32_t references, const struct index_weights *weights)
{
	size_t		most = 0;

	for (uint32_t i = 0; i < weights->count; i++)
	{
		size_t		bytes = 0;

		if (scan_words(&weights->sums[i], (size_t) references + 1, NULL, &bytes, 0) != cudaSuccess)
			return INDEX_NO_ROOM;
		most = bytes > most ? bytes : most;
	}
	return most;
}

/*
 * Write each reference's weight, as a sum of it alone, and behind the last one 0.
 */
static __global__ void
weights_kernel(struct index_sums sums, const double *weight, const uint32_t *place, uint32_t references)
{
	uint32_t	reference = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint64_t	word[INDEX_SUM_WORDS] = {};

	if (reference > references)
		return;
	if (reference < references)
		exact_sum_add(sums.form, word, weight[place[reference]], false);
#pragma unroll
	for (uint32_t i = 0; i < INDEX_SUM_WORDS; i++)
		if (i < sums.form.words)
			sums.before[(size_t) reference * sums.form.words + i] = word[i];
}

cudaError_t
index_weights_build(const struct index_weights *weights, const struct index *index, const double *const *weight,
					void *room, cudaStream_t stream)
{
	size_t		count = (size_t) index->references + 1;
	size_t		bytes = index_weights_room(index->references, weights);

	for (uint32_t i = 0; i < weights->count; i++)
	{
		weights_kernel<<<blocks_for(count, BLOCK_THREADS), BLOCK_THREADS, 0, stream>>>
			(weights->sums[i], weight[i], index->place, index->references);
		CUDA_TRY(cudaGetLastError());
		CUDA_TRY(scan_words(&weights->sums[i], count, room, &bytes, stream));
	}
	return cudaSuccess;
}
