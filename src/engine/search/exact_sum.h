/*
 * exact_sum.h
 *		Exact sums of float64 values, rounded once.
 *
 * A float64 is a whole multiple of a power of two, from 2^-1074 to 2^971.  So a column of weights has a unit, the
 * greatest power of two of which all are multiples, and a sum of any of them is a whole number of units: it is
 * kept as that, without rounding, and rounded once at the end.  So a sum depends neither on the order of its
 * weights nor on how they were grouped, nor on the device that adds them up.
 *
 * A sum is a two's complement of as many words as its form says, the lowest word first.  Let the greatest weight be
 * less than 2^b units.  n weights, n < 2^31, then sum up to less than n 2^b: the words have b bits, as many as n has,
 * and one for the sign.  Whole numbers below 2^32 take one word, fractions of a common size two; weights from the
 * least float64 to the greatest would take 2098 + 31 + 1 bits, which are 34 words.
 */
#ifndef GEONN_EXACT_SUM_H
#define GEONN_EXACT_SUM_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/weight_span.h"

#ifdef __CUDACC__
#define EXACT_SUM_FUNCTION static __host__ __device__ __forceinline__
#else
#define EXACT_SUM_FUNCTION static inline
#endif

/* the greatest number of words of a sum */
#define EXACT_SUM_WORDS 34

/* the form of the sums of some weights */
struct exact_sum_form
{
	int			unit;			/* a unit is 2^unit */
	uint32_t	words;			/* how many words a sum has */
};

/* Find the form for sums of these weights.  The weights are finite; NAN stands for no weight and adds nothing. */
extern struct exact_sum_form exact_sum_form_of(const double *weight, size_t count);

/* Return the number of bits of a number up to its highest 1; the number must be at least 1. */
EXACT_SUM_FUNCTION uint32_t
exact_sum_bits(uint64_t number)
{
#ifdef __CUDA_ARCH__
	return 64 - (uint32_t) __clzll((long long) number);
#else
	return 64 - (uint32_t) __builtin_clzll(number);
#endif
}

/* Add a weight to a sum, or subtract it (take_off); the carry or borrow goes up as many words as needed. */
EXACT_SUM_FUNCTION void
exact_sum_add(struct exact_sum_form form, uint64_t *word, double weight, bool take_off)
{
	struct geonn_whole whole = geonn_whole_of(weight);
	int			shift = whole.exponent - form.unit;
	unsigned __int128 number = whole.number;
	bool		subtract = (whole.negative != 0) != take_off;

	if (number == 0)
		return;

	/* The weight is a multiple of the unit, so bits below the unit are zeros and can be shifted out. */
	number = shift < 0 ? number >> -shift : number << shift % 64;
	for (uint32_t i = shift < 0 ? 0 : (uint32_t) shift / 64; i < form.words && number != 0; i++)
	{
		uint64_t	low = (uint64_t) number;
		uint64_t	before = word[i];

		word[i] = subtract ? before - low : before + low;
		number = (number >> 64) + (subtract ? before < low : word[i] < before);
	}
}

/* Add a sum to another of the same form. */
EXACT_SUM_FUNCTION void
exact_sum_plus(struct exact_sum_form form, uint64_t *word, const uint64_t *more)
{
	unsigned __int128 sum = 0;

	for (uint32_t i = 0; i < form.words; i++)
	{
		sum = (sum >> 64) + word[i] + more[i];
		word[i] = (uint64_t) sum;
	}
}

/* Return 64 bits of a number of some words, from bit `first` on; bits beyond the words are 0. */
EXACT_SUM_FUNCTION uint64_t
exact_sum_bits_from(const uint64_t *word, uint32_t words, uint32_t first)
{
	uint32_t	i = first / 64;
	unsigned __int128 two = word[i];

	if (i + 1 < words)
		two |= (unsigned __int128) word[i + 1] << 64;
	return (uint64_t) (two >> first % 64);
}

/*
 * Return the float64 nearest to a sum; of two equally near the one with the even last bit; infinite beyond the
 * greatest float64.  The words become the absolute value of the sum.
 */
EXACT_SUM_FUNCTION double
exact_sum_rounded(struct exact_sum_form form, uint64_t *word)
{
	uint32_t	top = form.words;
	bool		negative = word[form.words - 1] >> 63 != 0;
	bool		carry = true;
	uint32_t	dropped;
	uint64_t	kept;
	double		rounded;

	for (uint32_t i = 0; negative && i < form.words; i++)
	{
		word[i] = ~word[i] + carry;
		carry = carry && word[i] == 0;
	}
	while (top > 0 && word[top - 1] == 0)
		top--;
	if (top == 0)
		return 0.0;

	/* A float64 has 53 bits; the unit is never less than the least float64, so the kept bits are exact. */
	top = 64 * (top - 1) + exact_sum_bits(word[top - 1]);
	dropped = top > 53 ? top - 53 : 0;
	kept = exact_sum_bits_from(word, form.words, dropped);
	if (dropped > 0)
	{
		bool		half = exact_sum_bits_from(word, form.words, dropped - 1) & 1;
		uint64_t	rest = (dropped - 1) % 64 > 0 ? word[(dropped - 1) / 64] << (64 - (dropped - 1) % 64) : 0;

		for (uint32_t i = 0; i < (dropped - 1) / 64; i++)
			rest |= word[i];
		kept += half && (rest != 0 || (kept & 1) != 0);
	}
	rounded = ldexp((double) kept, form.unit + (int) dropped);
	return negative ? -rounded : rounded;
}

#endif							/* GEONN_EXACT_SUM_H */
