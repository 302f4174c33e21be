/*
 * sums.h
 *		Exact sums of weights, over any range of the index's positions.
 */
#ifndef GEONN_CPU_SUMS_H
#define GEONN_CPU_SUMS_H

#include "engine/cpu/index/index.h"
#include "engine/search/device.h"
#include "engine/search/exact_sum.h"

/* A sum of weights; its cpu_sums has a form that says how many words are in use. */
struct cpu_sum
{
	uint64_t	word[EXACT_SUM_WORDS];
};

/* the sums of one of a dataset's weights, for an index */
struct cpu_sums
{
	struct exact_sum_form form;
	uint64_t   *before;			/* [(positions + 1) * form.words] for each position, the sum of all positions before it */
	size_t		bytes;			/* how many bytes of memory `before` takes */
};

/*
 * Compute the sums of weight number `weight`, which the search's dataset must have.  Returns false with the failure
 * if memory is short, or if the search is cancelled.  cpu_sums_free() frees the sums; all fields may be 0.
 */
extern bool cpu_sums_build(struct cpu_sums *sums, const struct search *search, const struct cpu_index *index,
						   int weight, struct failure *failure);
extern void cpu_sums_free(struct cpu_sums *sums);

/* Subtract the weight of one reference from a sum. */
extern void cpu_sums_take_off(const struct cpu_sums *sums, struct cpu_sum *sum, double weight);

/*
 * Return the float64 nearest to the sum; of two equally near the one with the even last bit; infinite beyond the
 * greatest float64.
 */
extern double cpu_sums_rounded(const struct cpu_sums *sums, const struct cpu_sum *sum);

/* Add the weights of positions first ... end - 1 to a sum. */
static inline void
cpu_sums_add(const struct cpu_sums *sums, struct cpu_sum *sum, uint32_t first, uint32_t end)
{
	const uint64_t *low = sums->before + (size_t) first * sums->form.words;
	const uint64_t *high = sums->before + (size_t) end * sums->form.words;
	uint64_t	carry = 0;

	if (sums->form.words == 1)
	{
		sum->word[0] += *high - *low;
		return;
	}
	for (uint32_t i = 0; i < sums->form.words; i++)
	{
		/* from -2 to 2, in steps of 2^64 */
		__int128	added = (__int128) sum->word[i] + high[i] - low[i] + (int64_t) carry;

		sum->word[i] = (uint64_t) added;
		carry = (uint64_t) (added >> 64);
	}
}

#endif							/* GEONN_CPU_SUMS_H */
