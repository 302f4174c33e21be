/*
 * exact_sum.c
 *		Finds the form for exact sums of a column of weights.
 */
#include "engine/search/exact_sum.h"

struct exact_sum_form
exact_sum_form_of(const double *weight, size_t count)
{
	int			lowest = INT32_MAX;
	int			highest = INT32_MIN;
	int			bits = 1;

	for (size_t i = 0; i < count; i++)
	{
		struct exact_weight whole = exact_weight_of(weight[i]);
		int			low;
		int			high;

		if (whole.number == 0)
			continue;
		low = whole.exponent + __builtin_ctzll(whole.number);
		high = whole.exponent + (int) exact_sum_bits(whole.number);
		lowest = low < lowest ? low : lowest;
		highest = high > highest ? high : highest;
	}
	if (highest < lowest)
		lowest = highest = 0;	/* all are 0 */
	while (count >> (bits - 1) != 0)
		bits++;
	return (struct exact_sum_form) {
		.unit = lowest,
		.words = (uint32_t) (highest - lowest + bits + 63) / 64
	};
}
