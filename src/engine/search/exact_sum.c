/*
 * exact_sum.c
 *		Finds the form for exact sums of a column of weights.
 */
#include "engine/search/exact_sum.h"

#include "common/assertion.h"

struct exact_sum_form
exact_sum_form_of(const double *weight, size_t count)
{
	struct geonn_weight_span span = {0};

	for (size_t i = 0; i < count; i++)
		geonn_weight_span_add(&span, weight[i]);
	geonn_assert(geonn_sum_words(span, count) <= EXACT_SUM_WORDS);
	return (struct exact_sum_form) {
		.unit = span.lowest,
		.words = geonn_sum_words(span, count)
	};
}
