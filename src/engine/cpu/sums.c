/*
 * sums.c
 *		Exact sums of weights, over any range of the index's positions.
 *
 * A float64 is a whole multiple of a power of two, from 2^-1074 to 2^971.  So a column of weights has a unit, the
 * greatest power of two of which all are multiples, and a sum of any of them is a whole number of units: it is
 * kept as that, without rounding, and rounded once at the end.  So a sum depends neither on the order of its
 * weights nor on how they were grouped.
 *
 * Let the greatest weight be less than 2^b units.  n weights, n < 2^31, then sum up to less than n 2^b: the words
 * have b bits, as many as n has, and one for the sign.  Whole numbers below 2^32 take one word, fractions of a
 * common size two; weights from the least float64 to the greatest would take 2098 + 31 + 1 bits, which are 34 words.
 *
 * Each position has the sum of all positions before it in the index.  A range's sum is the difference of two of these:
 * all are computed modulo 2^(64 words), in which the difference is right even where one of them wrapped around.
 */
#include "engine/cpu/sums.h"

#include <string.h>

#include "engine/base/memory_block.h"

/* positions that are added up between two looks at whether the search is cancelled */
#define POSITIONS_UNTIL_LOOK 65536

/* a weight as sign, whole number and power of two: (negative ? -1 : 1) number 2^exponent */
struct whole
{
	bool		negative;
	uint64_t	number;			/* less than 2^53 */
	int			exponent;
};

static struct whole
whole_of(double weight)
{
	uint64_t	bits;
	int			biased;

	memcpy(&bits, &weight, sizeof(bits));
	biased = (int) (bits >> 52 & 0x7ff);
	return (struct whole) {
		.negative = bits >> 63 != 0,
		.number = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t) (biased > 0) << 52,
		.exponent = (biased > 0 ? biased : 1) - 1075
	};
}

/*
 * Add a weight, or take it off: a borrow or a carry goes up as far as it must.
 */
static void
add(const struct cpu_sums *sums, uint64_t *word, double weight, bool take_off)
{
	struct whole whole = whole_of(weight);
	int			shift = whole.exponent - sums->unit;
	unsigned __int128 number = whole.number;
	bool		subtract = whole.negative != take_off;

	if (number == 0)
		return;

	/* a multiple of the unit has zeros where it is smaller than that */
	number = shift < 0 ? number >> -shift : number << shift % 64;
	for (uint32_t i = shift < 0 ? 0 : (uint32_t) shift / 64; i < sums->words && number != 0; i++)
	{
		uint64_t	low = (uint64_t) number;
		uint64_t	before = word[i];

		word[i] = subtract ? before - low : before + low;
		number = (number >> 64) + (subtract ? before < low : word[i] < before);
	}
}

/*
 * Find the unit and the number of words for these weights.
 */
static void
find_size(struct cpu_sums *sums, const double *weight, size_t count)
{
	int			lowest = INT32_MAX;
	int			highest = INT32_MIN;
	int			bits = 1;

	for (size_t i = 0; i < count; i++)
	{
		struct whole whole = whole_of(weight[i]);
		int			low;
		int			high;

		if (whole.number == 0)
			continue;
		low = whole.exponent + __builtin_ctzll(whole.number);
		high = whole.exponent + 64 - __builtin_clzll(whole.number);
		lowest = low < lowest ? low : lowest;
		highest = high > highest ? high : highest;
	}
	if (highest < lowest)
		lowest = highest = 0;	/* all are 0 */
	while (count >> (bits - 1) != 0)
		bits++;
	sums->unit = lowest;
	sums->words = (uint32_t) (highest - lowest + bits + 63) / 64;
}

bool
cpu_sums_build(struct cpu_sums *sums, const struct search *search, const struct cpu_index *index, int weight,
			   struct failure *failure)
{
	const struct dataset *dataset = search->dataset;
	const double *values = dataset->weight[weight];
	uint32_t	positions = index->shape.positions;

	find_size(sums, values, dataset->count);
	sums->bytes = ((size_t) positions + 1) * sums->words * sizeof(uint64_t);
	sums->before = memory_block_allocate(sums->bytes, failure, "the sums of %zu weights", dataset->count);
	if (sums->before == NULL)
		return false;
	for (uint32_t position = 0; position < positions; position++)
	{
		uint64_t   *before = sums->before + (size_t) position * sums->words;
		uint64_t   *after = before + sums->words;

		if (position % POSITIONS_UNTIL_LOOK == 0 && atomic_load_explicit(search->cancelled, memory_order_relaxed))
		{
			cpu_sums_free(sums);
			return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
		}
		memcpy(after, before, sums->words * sizeof(uint64_t));
		for (uint32_t i = index->start[position]; i < index->start[position + 1]; i++)
			add(sums, after, values[index->place[i]], false);
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
	add(sums, sum->word, weight, true);
}

/*
 * 64 bits of a number from bit `first` on; bits beyond its words are 0.
 */
static uint64_t
bits_from(const uint64_t *word, uint32_t words, uint32_t first)
{
	uint32_t	i = first / 64;
	unsigned __int128 two = word[i];

	if (i + 1 < words)
		two |= (unsigned __int128) word[i + 1] << 64;
	return (uint64_t) (two >> first % 64);
}

double
cpu_sums_rounded(const struct cpu_sums *sums, const struct cpu_sum *sum)
{
	struct cpu_sum size = *sum;
	uint32_t	top = sums->words;
	bool		negative = sum->word[sums->words - 1] >> 63 != 0;
	bool		carry = true;
	uint32_t	dropped;
	uint64_t	kept;
	double		rounded;

	for (uint32_t i = 0; negative && i < sums->words; i++)
	{
		size.word[i] = ~size.word[i] + carry;
		carry = carry && size.word[i] == 0;
	}
	while (top > 0 && size.word[top - 1] == 0)
		top--;
	if (top == 0)
		return 0.0;

	/* a float64 has 53 bits, and no unit is less than its least one */
	top = 64 * top - (uint32_t) __builtin_clzll(size.word[top - 1]);
	dropped = top > 53 ? top - 53 : 0;
	kept = bits_from(size.word, sums->words, dropped);
	if (dropped > 0)
	{
		bool		half = bits_from(size.word, sums->words, dropped - 1) & 1;
		uint64_t	rest = (dropped - 1) % 64 > 0 ? size.word[(dropped - 1) / 64] << (64 - (dropped - 1) % 64) : 0;

		for (uint32_t i = 0; i < (dropped - 1) / 64; i++)
			rest |= size.word[i];
		kept += half && (rest != 0 || (kept & 1) != 0);
	}
	rounded = ldexp((double) kept, sums->unit + (int) dropped);
	return negative ? -rounded : rounded;
}
