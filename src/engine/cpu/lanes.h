/*
 * lanes.h
 *		Vectors of a few float64, as wide as the vector unit of the path's
 *		processors.
 *
 * For the sources of CPU paths, where compilers do not vectorize plain loops.
 * In every lane, each operation is + - * fma or comparison of IEEE 754;
 * minimum and maximum take numbers, not NaN.  lanes_of_integers has as many
 * int64.
 */
#ifndef GEONN_CPU_LANES_H
#define GEONN_CPU_LANES_H

#include <math.h>
#include <stdint.h>

#define LANES_INLINE static inline __attribute__((always_inline))

#if defined(__AVX512F__) && defined(__AVX512VL__)

#include <immintrin.h>

#define LANES 8
typedef __m512d lanes;

LANES_INLINE lanes lanes_load(const double *from) { return _mm512_loadu_pd(from); }
LANES_INLINE void lanes_store(double *to, lanes a) { _mm512_storeu_pd(to, a); }
LANES_INLINE lanes lanes_all(double value) { return _mm512_set1_pd(value); }
LANES_INLINE lanes lanes_minus(lanes a, lanes b) { return _mm512_sub_pd(a, b); }
LANES_INLINE lanes lanes_times(lanes a, lanes b) { return _mm512_mul_pd(a, b); }
LANES_INLINE lanes lanes_fused(lanes a, lanes b, lanes c) { return _mm512_fmadd_pd(a, b, c); }
LANES_INLINE lanes lanes_smaller(lanes a, lanes b) { return _mm512_min_pd(a, b); }
LANES_INLINE lanes lanes_larger(lanes a, lanes b) { return _mm512_max_pd(a, b); }

/* bit i: lane i of a is at most lane i of b */
LANES_INLINE uint32_t
lanes_within(lanes a, lanes b)
{
	return _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ);
}

LANES_INLINE double
lanes_smallest(lanes a)
{
	return _mm512_reduce_min_pd(a);
}

/* lane i of a where bit i is set, otherwise infinity */
LANES_INLINE lanes
lanes_keep(lanes a, uint32_t bits)
{
	return _mm512_mask_mov_pd(_mm512_set1_pd(INFINITY), (__mmask8) bits, a);
}

typedef __m512i lanes_of_integers;

LANES_INLINE lanes_of_integers
lanes_load_integers(const int64_t *from)
{
	return _mm512_loadu_si512(from);
}

LANES_INLINE lanes_of_integers
lanes_all_integers(int64_t value)
{
	return _mm512_set1_epi64(value);
}

/* bit i: lane i of a is above lane i of b; or equal to it */
LANES_INLINE uint32_t
lanes_above(lanes_of_integers a, lanes_of_integers b)
{
	return _mm512_cmpgt_epi64_mask(a, b);
}

LANES_INLINE uint32_t
lanes_equal(lanes_of_integers a, lanes_of_integers b)
{
	return _mm512_cmpeq_epi64_mask(a, b);
}

#elif defined(__AVX2__) && defined(__FMA__)

#include <immintrin.h>

#define LANES 4
typedef __m256d lanes;

LANES_INLINE lanes lanes_load(const double *from) { return _mm256_loadu_pd(from); }
LANES_INLINE void lanes_store(double *to, lanes a) { _mm256_storeu_pd(to, a); }
LANES_INLINE lanes lanes_all(double value) { return _mm256_set1_pd(value); }
LANES_INLINE lanes lanes_minus(lanes a, lanes b) { return _mm256_sub_pd(a, b); }
LANES_INLINE lanes lanes_times(lanes a, lanes b) { return _mm256_mul_pd(a, b); }
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
	const __m256i places = _mm256_set_epi64x(8, 4, 2, 1);
	__m256i		kept = _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(bits), places), places);

	return _mm256_blendv_pd(_mm256_set1_pd(INFINITY), a, _mm256_castsi256_pd(kept));
}

typedef __m256i lanes_of_integers;

LANES_INLINE lanes_of_integers
lanes_load_integers(const int64_t *from)
{
	return _mm256_loadu_si256((const __m256i *) from);
}

LANES_INLINE lanes_of_integers
lanes_all_integers(int64_t value)
{
	return _mm256_set1_epi64x(value);
}

LANES_INLINE uint32_t
lanes_above(lanes_of_integers a, lanes_of_integers b)
{
	return (uint32_t) _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(a, b)));
}

LANES_INLINE uint32_t
lanes_equal(lanes_of_integers a, lanes_of_integers b)
{
	return (uint32_t) _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(a, b)));
}

#else

#define LANES 2
typedef struct
{
	double		at[2];
}			lanes;

LANES_INLINE lanes lanes_load(const double *from) { return (lanes) {{from[0], from[1]}}; }
LANES_INLINE void lanes_store(double *to, lanes a) { to[0] = a.at[0]; to[1] = a.at[1]; }
LANES_INLINE lanes lanes_all(double value) { return (lanes) {{value, value}}; }

LANES_INLINE lanes
lanes_minus(lanes a, lanes b)
{
	return (lanes) {{a.at[0] - b.at[0], a.at[1] - b.at[1]}};
}

LANES_INLINE lanes
lanes_times(lanes a, lanes b)
{
	return (lanes) {{a.at[0] * b.at[0], a.at[1] * b.at[1]}};
}

/* a product and a sum: this path's processors may have no fused operation */
LANES_INLINE lanes
lanes_fused(lanes a, lanes b, lanes c)
{
	return (lanes) {{a.at[0] * b.at[0] + c.at[0], a.at[1] * b.at[1] + c.at[1]}};
}

LANES_INLINE lanes
lanes_smaller(lanes a, lanes b)
{
	return (lanes) {{a.at[0] < b.at[0] ? a.at[0] : b.at[0],
			a.at[1] < b.at[1] ? a.at[1] : b.at[1]}};
}

LANES_INLINE lanes
lanes_larger(lanes a, lanes b)
{
	return (lanes) {{a.at[0] > b.at[0] ? a.at[0] : b.at[0],
			a.at[1] > b.at[1] ? a.at[1] : b.at[1]}};
}

LANES_INLINE uint32_t
lanes_within(lanes a, lanes b)
{
	return (a.at[0] <= b.at[0]) | (uint32_t) (a.at[1] <= b.at[1]) << 1;
}

LANES_INLINE double
lanes_smallest(lanes a)
{
	return a.at[0] < a.at[1] ? a.at[0] : a.at[1];
}

LANES_INLINE lanes
lanes_keep(lanes a, uint32_t bits)
{
	return (lanes) {{bits & 1 ? a.at[0] : INFINITY, bits & 2 ? a.at[1] : INFINITY}};
}

typedef struct
{
	int64_t		at[2];
}			lanes_of_integers;

LANES_INLINE lanes_of_integers
lanes_load_integers(const int64_t *from)
{
	return (lanes_of_integers) {{from[0], from[1]}};
}

LANES_INLINE lanes_of_integers
lanes_all_integers(int64_t value)
{
	return (lanes_of_integers) {{value, value}};
}

LANES_INLINE uint32_t
lanes_above(lanes_of_integers a, lanes_of_integers b)
{
	return (a.at[0] > b.at[0]) | (uint32_t) (a.at[1] > b.at[1]) << 1;
}

LANES_INLINE uint32_t
lanes_equal(lanes_of_integers a, lanes_of_integers b)
{
	return (a.at[0] == b.at[0]) | (uint32_t) (a.at[1] == b.at[1]) << 1;
}

#endif

/*
 * A squared chord from differences, or from gaps; geonn_chord_limit() allows
 * any order of the sum.
 */
LANES_INLINE lanes
lanes_chord(lanes dx, lanes dy, lanes dz)
{
	return lanes_fused(dz, dz, lanes_fused(dy, dy, lanes_times(dx, dx)));
}

/*
 * How far the interval p lies outside of [low, high], or 0; an interval may be
 * one point.
 */
LANES_INLINE lanes
lanes_gap(lanes low, lanes p_low, lanes p_high, lanes high)
{
	lanes		outside = lanes_larger(lanes_minus(low, p_high), lanes_minus(p_low, high));

	return lanes_larger(outside, lanes_all(0.0));
}

#endif							/* GEONN_CPU_LANES_H */
