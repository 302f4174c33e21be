/*
 * floats.h
 *		Vectors of eight float32, and wide ones, of 16 with AVX-512 and else of eight; and a network that sorts
 *		keys of 32 bits.
 *
 * For the sources of CPU paths.  The network is Batcher's bitonic one over
 * wide registers of keys: sorted runs of equal length are merged, the second
 * one reversed, by comparing keys half a run apart, then a quarter, and so on.
 */
#ifndef GEONN_CPU_FLOATS_H
#define GEONN_CPU_FLOATS_H

#include <stdint.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

/*
 * GCC warns that the way to pass vectors depends on the processor; all functions with vectors are
 * inlined, so none is passed.
 */
#pragma GCC diagnostic ignored "-Wpsabi"

#define FLOATS_INLINE static inline __attribute__((always_inline))
#define FLOATS 8

/* the greatest number of keys that the network sorts */
#define SORT_KEYS_MAX 256

typedef float floats __attribute__((vector_size(4 * FLOATS)));
typedef int32_t float_keys __attribute__((vector_size(4 * FLOATS)));

FLOATS_INLINE floats
floats_load(const float *from)
{
	floats		a;

	memcpy(&a, from, sizeof(a));
	return a;
}

FLOATS_INLINE void floats_store(float *to, floats a) { memcpy(to, &a, sizeof(a)); }
FLOATS_INLINE void float_keys_store(int32_t *to, float_keys a) { memcpy(to, &a, sizeof(a)); }
FLOATS_INLINE floats floats_all(float value) { return value - (floats) {0}; }
FLOATS_INLINE float_keys float_keys_all(int32_t value) { return value - (float_keys) {0}; }

/*
 * For each kind of processor:
 *
 *	floats_chord					the sum of three squares, in any order
 *	floats_within					bit i: lane i of a is at most lane i of b
 *	float_keys_smaller, _larger		of each lane
 */
#ifdef __AVX2__

FLOATS_INLINE floats
floats_chord(floats x, floats y, floats z)
{
	return _mm256_fmadd_ps(z, z, _mm256_fmadd_ps(y, y, _mm256_mul_ps(x, x)));
}

FLOATS_INLINE uint32_t
floats_within(floats a, floats b)
{
	return (uint32_t) _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_LE_OQ));
}

FLOATS_INLINE float_keys
float_keys_smaller(float_keys a, float_keys b)
{
	return (float_keys) _mm256_min_epi32((__m256i) a, (__m256i) b);
}

FLOATS_INLINE float_keys
float_keys_larger(float_keys a, float_keys b)
{
	return (float_keys) _mm256_max_epi32((__m256i) a, (__m256i) b);
}

#else

FLOATS_INLINE floats floats_chord(floats x, floats y, floats z) { return x * x + y * y + z * z; }

FLOATS_INLINE uint32_t
floats_within(floats a, floats b)
{
	uint32_t	bits = 0;

	for (int i = 0; i < FLOATS; i++)
		bits |= (uint32_t) (a[i] <= b[i]) << i;
	return bits;
}

FLOATS_INLINE float_keys
float_keys_smaller(float_keys a, float_keys b)
{
	float_keys	less = a < b;

	return (a & less) | (b & ~less);
}

FLOATS_INLINE float_keys
float_keys_larger(float_keys a, float_keys b)
{
	float_keys	less = a < b;

	return (b & less) | (a & ~less);
}

#endif

/*
 * Wide vectors, of WIDE float32.  For each kind of processor:
 *
 *	wide_chord						the sum of three squares, in any order
 *	wide_within						bit i: lane i of a is at most lane i of b
 *	wide_difference					from[i] - minus of each lane i, rounded to float32
 *	wide_keys_smaller, _larger		of each lane
 *	wide_keys_pack					store the lanes whose bits are set one after the other;
 *									what follows them in memory, up to WIDE lanes, may change
 */
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define WIDE 16
#else
#define WIDE FLOATS
#endif

typedef float wide __attribute__((vector_size(4 * WIDE)));
typedef int32_t wide_keys __attribute__((vector_size(4 * WIDE)));

FLOATS_INLINE wide
wide_load(const float *from)
{
	wide		a;

	memcpy(&a, from, sizeof(a));
	return a;
}

FLOATS_INLINE wide wide_all(float value) { return value - (wide) {0}; }
FLOATS_INLINE wide_keys wide_keys_all(int32_t value) { return value - (wide_keys) {0}; }

/* 0, 1, 2, ... */
FLOATS_INLINE wide_keys
wide_keys_numbers(void)
{
	const int32_t number[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
	wide_keys	numbers;

	memcpy(&numbers, number, sizeof(numbers));
	return numbers;
}

#if WIDE == 16

FLOATS_INLINE wide
wide_chord(wide x, wide y, wide z)
{
	return _mm512_fmadd_ps(z, z, _mm512_fmadd_ps(y, y, _mm512_mul_ps(x, x)));
}

FLOATS_INLINE uint32_t wide_within(wide a, wide b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }

FLOATS_INLINE wide_keys
wide_keys_smaller(wide_keys a, wide_keys b)
{
	return (wide_keys) _mm512_min_epi32((__m512i) a, (__m512i) b);
}

FLOATS_INLINE wide_keys
wide_keys_larger(wide_keys a, wide_keys b)
{
	return (wide_keys) _mm512_max_epi32((__m512i) a, (__m512i) b);
}

FLOATS_INLINE wide
wide_difference(const double *from, double minus)
{
	__m256		low = _mm512_cvtpd_ps(_mm512_sub_pd(_mm512_loadu_pd(from), _mm512_set1_pd(minus)));
	__m256		high = _mm512_cvtpd_ps(_mm512_sub_pd(_mm512_loadu_pd(from + 8), _mm512_set1_pd(minus)));

	return _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1);
}

FLOATS_INLINE void
wide_keys_pack(int32_t *to, wide_keys a, uint32_t bits)
{
	_mm512_storeu_si512(to, _mm512_maskz_compress_epi32((__mmask16) bits, (__m512i) a));
}

#else

FLOATS_INLINE wide wide_chord(wide x, wide y, wide z) { return floats_chord(x, y, z); }

FLOATS_INLINE uint32_t wide_within(wide a, wide b) { return floats_within(a, b); }

FLOATS_INLINE wide_keys wide_keys_smaller(wide_keys a, wide_keys b) { return float_keys_smaller(a, b); }

FLOATS_INLINE wide_keys wide_keys_larger(wide_keys a, wide_keys b) { return float_keys_larger(a, b); }

#ifdef __AVX2__

FLOATS_INLINE wide
wide_difference(const double *from, double minus)
{
	__m128		low = _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_loadu_pd(from), _mm256_set1_pd(minus)));
	__m128		high = _mm256_cvtpd_ps(_mm256_sub_pd(_mm256_loadu_pd(from + 4), _mm256_set1_pd(minus)));

	return _mm256_insertf128_ps(_mm256_castps128_ps256(low), high, 1);
}

FLOATS_INLINE void
wide_keys_pack(int32_t *to, wide_keys a, uint32_t bits)
{
	uint64_t	bytes = _pdep_u64(bits, UINT64_C(0x0101010101010101)) * 0xFF;
	__m128i		order = _mm_cvtsi64_si128((int64_t) _pext_u64(UINT64_C(0x0706050403020100), bytes));

	_mm256_storeu_si256((__m256i *) to, _mm256_permutevar8x32_epi32((__m256i) a, _mm256_cvtepu8_epi32(order)));
}

#else

FLOATS_INLINE wide
wide_difference(const double *from, double minus)
{
	wide		difference = {0};

	for (int i = 0; i < WIDE; i++)
		difference[i] = (float) (from[i] - minus);
	return difference;
}

FLOATS_INLINE void
wide_keys_pack(int32_t *to, wide_keys a, uint32_t bits)
{
	for (; bits != 0; bits &= bits - 1, to++)
	{
		int32_t		key = a[__builtin_ctz(bits)];

		/* the lanes may hold float32 (wide_pack), so copy the bytes */
		memcpy(to, &key, sizeof(key));
	}
}

#endif
#endif

FLOATS_INLINE void
wide_pack(float *to, wide a, uint32_t bits)
{
	wide_keys_pack((int32_t *) to, (wide_keys) a, bits);
}

/*
 * Shuffle the lanes of a, numbered from 0, and of b, from WIDE on.  clang lacks __builtin_shuffle; GCC before 12 lacks
 * the other function.
 */
#ifdef __clang__
#define wide_keys_shuffled(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define wide_keys_shuffled(a, b, ...) __builtin_shuffle(a, b, (wide_keys) {__VA_ARGS__})
#endif

/* a list of one expression for each lane */
#define SORT_EIGHT(lane, i, bits) lane(i, bits), lane(i + 1, bits), lane(i + 2, bits), lane(i + 3, bits), \
	lane(i + 4, bits), lane(i + 5, bits), lane(i + 6, bits), lane(i + 7, bits)
#if WIDE == 16
#define SORT_LANES(lane, bits) SORT_EIGHT(lane, 0, bits), SORT_EIGHT(lane, 8, bits)
#else
#define SORT_LANES(lane, bits) SORT_EIGHT(lane, 0, bits)
#endif

#define SORT_PARTNER(i, bits) ((i) ^ (bits))
#define SORT_TAKEN(i, bit) (((i) & (bit)) != 0 ? WIDE + (i) : (i))

/*
 * Compare each key with its partner, in the lane whose number differs in `bits`; the larger key goes to the lane with the
 * bit `upper`.
 */
#define SORT_STEP(keys, bits, upper) do { \
		wide_keys	partner = wide_keys_shuffled(keys, keys, SORT_LANES(SORT_PARTNER, bits)); \
\
		keys = wide_keys_shuffled(wide_keys_smaller(keys, partner), wide_keys_larger(keys, partner), \
								  SORT_LANES(SORT_TAKEN, upper)); \
	} while (0)

FLOATS_INLINE wide_keys
sort_reversed(wide_keys keys)
{
	return wide_keys_shuffled(keys, keys, SORT_LANES(SORT_PARTNER, WIDE - 1));
}

FLOATS_INLINE wide_keys
sort_register(wide_keys keys)
{
	SORT_STEP(keys, 1, 1);
	SORT_STEP(keys, 3, 2);
	SORT_STEP(keys, 1, 1);
	SORT_STEP(keys, 7, 4);
	SORT_STEP(keys, 2, 2);
	SORT_STEP(keys, 1, 1);
#if WIDE == 16
	SORT_STEP(keys, 15, 8);
	SORT_STEP(keys, 4, 4);
	SORT_STEP(keys, 2, 2);
	SORT_STEP(keys, 1, 1);
#endif
	return keys;
}

/* Sort two registers lane by lane: *low gets the smaller keys, *high the larger. */
FLOATS_INLINE void
sort_compare(wide_keys *low, wide_keys *high)
{
	wide_keys	a = *low;
	wide_keys	b = *high;

	*low = wide_keys_smaller(a, b);
	*high = wide_keys_larger(a, b);
}

/* Merge two sorted runs of `run` registers each; the second run follows the first. */
FLOATS_INLINE void
sort_merge(wide_keys *keys, int run)
{
	for (int i = run; i < run + run / 2; i++)
	{
		wide_keys	last = keys[3 * run - 1 - i];

		keys[3 * run - 1 - i] = sort_reversed(keys[i]);
		keys[i] = sort_reversed(last);
	}
	if (run == 1)
		keys[1] = sort_reversed(keys[1]);
	for (int apart = run; apart >= 1; apart /= 2)
		for (int first = 0; first < 2 * run; first += 2 * apart)
			for (int i = first; i < first + apart; i++)
				sort_compare(&keys[i], &keys[i + apart]);
	for (int i = 0; i < 2 * run; i++)
	{
#if WIDE == 16
		SORT_STEP(keys[i], 8, 8);
#endif
		SORT_STEP(keys[i], 4, 4);
		SORT_STEP(keys[i], 2, 2);
		SORT_STEP(keys[i], 1, 1);
	}
}

/* Sort `registers` registers, a constant power of two. */
FLOATS_INLINE void
sort_network(int32_t *key, const int registers)
{
	wide_keys	keys[SORT_KEYS_MAX / WIDE];

	memcpy(keys, key, (size_t) registers * sizeof(*keys));
	for (int i = 0; i < registers; i++)
		keys[i] = sort_register(keys[i]);
#pragma GCC unroll 8
	for (int run = 1; run < registers; run *= 2)
		for (int i = 0; i < registers; i += 2 * run)
			sort_merge(keys + i, run);
	memcpy(key, keys, (size_t) registers * sizeof(*keys));
}

/*
 * Sort `count` keys, at most SORT_KEYS_MAX, none of them INT32_MAX.  `key` must have room for 2 *
 * count keys, at least WIDE; the sort overwrites the room.
 */
static inline void
sort_keys(int32_t *key, uint32_t count)
{
	int			registers = 1;

	while ((uint32_t) (WIDE * registers) < count)
		registers *= 2;
	for (uint32_t i = count; i < (uint32_t) (WIDE * registers); i++)
		key[i] = INT32_MAX;
	switch (registers)
	{
		case 1:
			sort_network(key, 1);
			break;
		case 2:
			sort_network(key, 2);
			break;
		case 4:
			sort_network(key, 4);
			break;
		case 8:
			sort_network(key, 8);
			break;
#if WIDE == 8
		case 16:
			sort_network(key, 16);
			break;
#endif
		default:
			sort_network(key, SORT_KEYS_MAX / WIDE);
	}
}

#endif							/* GEONN_CPU_FLOATS_H */
