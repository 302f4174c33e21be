/*
 * lanes.h
 *		Vectors of a few float64, as wide as the vector unit of the path's
 *		processors.
 *
 * For the sources of CPU paths, where compilers do not vectorize plain loops.
 * In every lane, each operation is + - * fma or comparison of IEEE 754; minimum
 * and maximum take numbers, not NaN.  lanes_of_integers has as many lanes, of
 * int64.
 */
#ifndef GEONN_CPU_LANES_H
#define GEONN_CPU_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512VL__)
#include <immintrin.h>
#define LANES 8
#elif defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#define LANES 4
#else
#define LANES 2
#endif

typedef __attribute__((vector_size(LANES * sizeof(double)))) double lanes;
typedef __attribute__((vector_size(LANES * sizeof(int64_t)))) int64_t lanes_of_integers;

LANES_INLINE lanes
lanes_load(const double *from)
{
	lanes		a;

	memcpy(&a, from, sizeof(a));
	return a;
}

LANES_INLINE lanes_of_integers
lanes_load_integers(const int64_t *from)
{
	lanes_of_integers a;

	memcpy(&a, from, sizeof(a));
	return a;
}

LANES_INLINE void lanes_store(double *to, lanes a) { memcpy(to, &a, sizeof(a)); }
LANES_INLINE lanes lanes_all(double value) { return value - (lanes) {0}; }
LANES_INLINE lanes_of_integers lanes_all_integers(int64_t value) { return value - (lanes_of_integers) {0}; }
LANES_INLINE lanes lanes_minus(lanes a, lanes b) { return a - b; }
LANES_INLINE lanes lanes_times(lanes a, lanes b) { return a * b; }

/*
 * For each kind of processor:
 *
 *	lanes_fused				a * b + c; where processors may have no fused operation, a
 *							product and a sum
 *	lanes_within			bit i: lane i of a is at most lane i of b
 *	lanes_smallest			the smallest of all lanes
 *	lanes_keep				lane i of a where bit i is set, otherwise infinity
 *	lanes_above, _equal		bit i: lane i of a is above lane i of b, or equal to it
 */
#if LANES == 8

LANES_INLINE lanes lanes_fused(lanes a, lanes b, lanes c) { return _mm512_fmadd_pd(a, b, c); }
LANES_INLINE lanes lanes_smaller(lanes a, lanes b) { return _mm512_min_pd(a, b); }
LANES_INLINE lanes lanes_larger(lanes a, lanes b) { return _mm512_max_pd(a, b); }
LANES_INLINE uint32_t lanes_within(lanes a, lanes b) { return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ); }
LANES_INLINE double lanes_smallest(lanes a) { return _mm512_reduce_min_pd(a); }

LANES_INLINE lanes
lanes_keep(lanes a, uint32_t bits)
{
	return _mm512_mask_mov_pd(_mm512_set1_pd(INFINITY), (__mmask8) bits, a);
}

LANES_INLINE uint32_t
lanes_above(lanes_of_integers a, lanes_of_integers b)
{
	return _mm512_cmpgt_epi64_mask((__m512i) a, (__m512i) b);
}

LANES_INLINE uint32_t
lanes_equal(lanes_of_integers a, lanes_of_integers b)
{
	return _mm512_cmpeq_epi64_mask((__m512i) a, (__m512i) b);
}

#elif LANES == 4

LANES_INLINE lanes lanes_fused(lanes a, lanes b, lanes c) { return _mm256_fmadd_pd(a, b, c); }
LANES_INLINE lanes lanes_smaller(lanes a, lanes b) { return _mm256_min_pd(a, b); }
LANES_INLINE lanes lanes_larger(lanes a, lanes b) { return _mm256_max_pd(a, b); }

LANES_INLINE uint32_t
lanes_within(lanes a, lanes b)
{
	return (uint32_t) _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_LE_OQ));
}

LANES_INLINE double
lanes_smallest(lanes a)
{
	__m128d		half = _mm_min_pd(_mm256_castpd256_pd128(a), _mm256_extractf128_pd(a, 1));

	return _mm_cvtsd_f64(_mm_min_sd(half, _mm_unpackhi_pd(half, half)));
}

LANES_INLINE lanes
lanes_keep(lanes a, uint32_t bits)
{
	const lanes_of_integers places = {1, 2, 4, 8};
	lanes_of_integers kept = (lanes_all_integers(bits) & places) == places;

	return _mm256_blendv_pd(_mm256_set1_pd(INFINITY), a, (__m256d) kept);
}

LANES_INLINE uint32_t
lanes_above(lanes_of_integers a, lanes_of_integers b)
{
	return (uint32_t) _mm256_movemask_pd((__m256d) (a > b));
}

LANES_INLINE uint32_t
lanes_equal(lanes_of_integers a, lanes_of_integers b)
{
	return (uint32_t) _mm256_movemask_pd((__m256d) (a == b));
}

#else

LANES_INLINE lanes lanes_fused(lanes a, lanes b, lanes c) { return a * b + c; }
LANES_INLINE uint32_t lanes_within(lanes a, lanes b) { return (a[0] <= b[0]) | (uint32_t) (a[1] <= b[1]) << 1; }
LANES_INLINE double lanes_smallest(lanes a) { return a[0] < a[1] ? a[0] : a[1]; }

LANES_INLINE lanes
lanes_smaller(lanes a, lanes b)
{
	return (lanes) {a[0] < b[0] ? a[0] : b[0], a[1] < b[1] ? a[1] : b[1]};
}

LANES_INLINE lanes
lanes_larger(lanes a, lanes b)
{
	return (lanes) {a[0] > b[0] ? a[0] : b[0], a[1] > b[1] ? a[1] : b[1]};
}

LANES_INLINE lanes
lanes_keep(lanes a, uint32_t bits)
{
	return (lanes) {bits & 1 ? a[0] : INFINITY, bits & 2 ? a[1] : INFINITY};
}

LANES_INLINE uint32_t
lanes_above(lanes_of_integers a, lanes_of_integers b)
{
	return (a[0] > b[0]) | (uint32_t) (a[1] > b[1]) << 1;
}

LANES_INLINE uint32_t
lanes_equal(lanes_of_integers a, lanes_of_integers b)
{
	return (a[0] == b[0]) | (uint32_t) (a[1] == b[1]) << 1;
}

#endif

/* Return a squared chord, computed from differences or gaps; geonn_chord_limit() allows any order of the sum. */
LANES_INLINE lanes
lanes_chord(lanes dx, lanes dy, lanes dz)
{
	return lanes_fused(dz, dz, lanes_fused(dy, dy, lanes_times(dx, dx)));
}

/* Return how far the interval p lies outside of [low, high]; 0 if it does not.  An interval may be a single point. */
LANES_INLINE lanes
lanes_gap(lanes low, lanes p_low, lanes p_high, lanes high)
{
	lanes		outside = lanes_larger(lanes_minus(low, p_high), lanes_minus(p_low, high));

	return lanes_larger(outside, lanes_all(0.0));
}

#endif							/* GEONN_CPU_LANES_H */
