/*
 * sums.c
 *		Exact sums of weights, over any range of the index's positions.
 *
 * exact_sum.h has the form of sums.  Each position has the sum of all positions before it in the index.  A range's sum
 * is the difference of two of these: all are computed modulo 2^(64 words), in which the difference is right even where
 * one of them wrapped around.
 */
#include "engine/cpu/index/sums.h"

#include <string.h>

#include "engine/base/memory_block.h"

/* After adding up this many positions, look whether the search is cancelled. */
#define POSITIONS_UNTIL_LOOK 65536

bool
cpu_sums_build(struct cpu_sums *sums, const struct search *search, const struct cpu_index *index, int weight,
			   struct failure *failure)
{
	const struct dataset *dataset = search->dataset;
	const double *values = dataset->weight[weight];
	uint32_t	positions = index->shape.positions;

	sums->form = exact_sum_form_of(values, dataset->count);
	sums->bytes = ((size_t) positions + 1) * sums->form.words * sizeof(uint64_t);
	sums->before = memory_block_allocate(sums->bytes, failure, "the sums of %zu weights", dataset->count);
	if (sums->before == NULL)
		return false;
	for (uint32_t position = 0; position < positions; position++)
	{
		uint64_t   *before = sums->before + (size_t) position * sums->form.words;
		uint64_t   *after = before + sums->form.words;

		if (position % POSITIONS_UNTIL_LOOK == 0 && atomic_load_explicit(search->cancelled, memory_order_relaxed))
		{
			cpu_sums_free(sums);
			return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
		}
		memcpy(after, before, sums->form.words * sizeof(uint64_t));
		for (uint32_t i = index->start[position]; i < index->start[position + 1]; i++)
			exact_sum_add(sums->form, after, values[index->place[i]], false);
	}
	return true;
}

void
cpu_sums_free(struct cpu_sums *sums)
{
	memory_block_release(sums->before, sums->bytes);
	memset(sums, 0, sizeof(*sums));
}

void
cpu_sums_take_off(const struct cpu_sums *sums, struct cpu_sum *sum, double weight)
{
	exact_sum_add(sums->form, sum->word, weight, true);
}

double
cpu_sums_rounded(const struct cpu_sums *sums, const struct cpu_sum *sum)
{
	struct cpu_sum size = *sum;

	return exact_sum_rounded(sums->form, size.word);
}
