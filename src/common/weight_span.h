/*
 * weight_span.h
 *		Which bits a column of weights has, and how many words its exact sums take (engine/search/exact_sum.h).
 */
#ifndef GEONN_WEIGHT_SPAN_H
#define GEONN_WEIGHT_SPAN_H

#include <stdint.h>
#include <string.h>

#include "common/assertion.h"

#ifdef __CUDACC__
#define GEONN_WEIGHT_FUNCTION static __host__ __device__ __forceinline__
#else
#define GEONN_WEIGHT_FUNCTION static inline
#endif

/*
 * Bounds of the weights: all are multiples of 2^lowest, and less than 2^highest.  Both are 0 if no weight is other than 0.
 */
struct geonn_weight_span
{
	int			lowest;
	int			highest;
};

/*
 * A weight as sign, whole number and power of two: (negative ? -1 : 1) number 2^exponent.  NAN, which stands for no
 * weight, has the number 0.
 */
struct geonn_whole
{
	int			negative;
	uint64_t	number;			/* less than 2^53 */
	int			exponent;
};

GEONN_WEIGHT_FUNCTION struct geonn_whole
geonn_whole_of(double weight)
{
	uint64_t	bits;
	int			biased;
	struct geonn_whole whole;

	memcpy(&bits, &weight, sizeof(bits));
	biased = (int) (bits >> 52 & 0x7ff);
	whole.negative = bits >> 63 != 0;
	whole.number = biased == 0x7ff ? 0 : (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t) (biased > 0) << 52;
	whole.exponent = (biased > 0 ? biased : 1) - 1075;
	return whole;
}

/* Widen the span by a weight. */
static inline void
geonn_weight_span_add(struct geonn_weight_span *span, double weight)
{
	struct geonn_whole whole = geonn_whole_of(weight);
	int			low;
	int			high;

	if (whole.number == 0)
		return;
	low = whole.exponent + __builtin_ctzll(whole.number);
	high = whole.exponent + 64 - __builtin_clzll(whole.number);
	geonn_assert(low < high && high - low <= 53);
	if (span->lowest == span->highest)
		*span = (struct geonn_weight_span) {low, high};
	span->lowest = low < span->lowest ? low : span->lowest;
	span->highest = high > span->highest ? high : span->highest;
	geonn_assert(span->lowest < span->highest);
}

/* Return how many words of 64 bits a sum of `count` weights takes. */
static inline uint32_t
geonn_sum_words(struct geonn_weight_span span, uint64_t count)
{
	int			bits = 1;

	while (count >> (bits - 1) != 0)
		bits++;
	return (uint32_t) (span.highest - span.lowest + bits + 63) / 64;
}

#endif							/* GEONN_WEIGHT_SPAN_H */
