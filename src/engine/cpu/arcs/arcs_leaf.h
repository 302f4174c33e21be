/*
 * arcs_leaf.h
 *		The arcs of a leaf, as vectors of float64.
 *
 * For the sources of CPU paths.
 */
#ifndef GEONN_CPU_ARCS_LEAF_H
#define GEONN_CPU_ARCS_LEAF_H

#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/base/floats.h"

_Static_assert(sizeof(struct geonn_vector) == 3 * sizeof(double), "a vertex and the next one are six numbers");

/* as many as a register of the processor has, with AVX2 or more */
#ifdef __AVX512F__
#define DOUBLES 8
#else
#define DOUBLES 4
#endif

typedef double doubles __attribute__((vector_size(8 * DOUBLES)));
typedef int64_t double_bits __attribute__((vector_size(8 * DOUBLES)));

FLOATS_INLINE doubles
doubles_load(const double *from)
{
	doubles		a;

	memcpy(&a, from, sizeof(a));
	return a;
}

FLOATS_INLINE void doubles_store(double *to, doubles a) { memcpy(to, &a, sizeof(a)); }
FLOATS_INLINE doubles doubles_all(double value) { return value - (doubles) {0}; }

/* Return bits: bit i is set if lane i of a is at most lane i of b. */
FLOATS_INLINE uint32_t
doubles_within(doubles a, doubles b)
{
	uint32_t	bits = 0;

#ifdef __AVX2__
	for (int at = 0; at < DOUBLES; at += 4)
		bits |= (uint32_t) _mm256_movemask_pd(_mm256_cmp_pd(_mm256_loadu_pd((const double *) &a + at),
															 _mm256_loadu_pd((const double *) &b + at), _CMP_LE_OQ)) << at;
#else
	for (int i = 0; i < DOUBLES; i++)
		bits |= (uint32_t) (a[i] <= b[i]) << i;
#endif
	return bits;
}

/*
 * Load x, y and z of the ends of arcs: first of the vertices where the arcs begin, which have these numbers, then of those
 * where they end.
 */
FLOATS_INLINE void
doubles_load_ends(const struct geonn_vector *vertex, const uint32_t *number, doubles *part)
{
#ifdef __AVX2__
	/* The six numbers of a lane follow each other in memory: load two at a time. */
	for (int i = 0; i < 6; i += 2)
	{
		__m256d		even[DOUBLES / 4];
		__m256d		odd[DOUBLES / 4];

		for (int four = 0; four < DOUBLES / 4; four++)
		{
			__m256d		lanes[2];	/* 0 and 2 of the four, 1 and 3 */

			for (int lane = 0; lane < 2; lane++)
			{
				const uint32_t *first = number + 4 * four + lane;

				lanes[lane] = _mm256_castpd128_pd256(_mm_loadu_pd((const double *) &vertex[first[0]] + i));
				lanes[lane] = _mm256_insertf128_pd(lanes[lane], _mm_loadu_pd((const double *) &vertex[first[2]] + i), 1);
			}
			even[four] = _mm256_unpacklo_pd(lanes[0], lanes[1]);
			odd[four] = _mm256_unpackhi_pd(lanes[0], lanes[1]);
		}
		memcpy(&part[i], even, sizeof(part[i]));
		memcpy(&part[i + 1], odd, sizeof(part[i + 1]));
	}
#else
	for (int lane = 0; lane < DOUBLES; lane++)
		for (int i = 0; i < 6; i++)
			part[i][lane] = ((const double *) &vertex[number[lane]])[i];
#endif
}

FLOATS_INLINE doubles
doubles_dot(const doubles *u, const doubles *v)
{
	return u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
}

/* Return the squares of the distances of the places w from the chords that go from 0 to d. */
FLOATS_INLINE doubles
doubles_chord_squares(const doubles *w, const doubles *d, doubles chord)
{
	/* The small number avoids 0 / 0: for an arc without length any fraction will do, except NaN. */
	doubles		t = doubles_dot(w, d) / (chord + 0x1p-200);
	double_bits within = t < 1.0;
	doubles		rest[3];

	t = (doubles) (((double_bits) t & within) | ((double_bits) doubles_all(1.0) & ~within));
	t = (doubles) ((double_bits) t & (t > 0.0));
	for (int axis = 0; axis < 3; axis++)
		rest[axis] = w[axis] - t * d[axis];
	return doubles_dot(rest, rest);
}

/* how far eight arcs are from something, by their chords */
struct chord_squares
{
	double		square[CPU_ARCS_LEAF];	/* of the distance to the chord */
	double		sagitta[CPU_ARCS_LEAF];	/* the arc is farther or nearer by this at most */
};

/* Find the squares of the distances of a place from the chords of a leaf's arcs, and the arcs' sagittas. */
FLOATS_INLINE void
doubles_leaf_squares(const struct geonn_vector *vertex, const struct cpu_arcs_leaf *leaf, const double *place,
					 struct chord_squares *squares)
{
	for (int at = 0; at < CPU_ARCS_LEAF; at += DOUBLES)
	{
		doubles		end[6];
		doubles		d[3];
		doubles		w[3];
		doubles		chord;

		doubles_load_ends(vertex, leaf->vertex + at, end);
		for (int axis = 0; axis < 3; axis++)
		{
			d[axis] = end[3 + axis] - end[axis];
			w[axis] = place[axis] - end[axis];
		}
		chord = doubles_dot(d, d);
		doubles_store(squares->square + at, doubles_chord_squares(w, d, chord));
		doubles_store(squares->sagitta + at, SHAPE_ARCS_SAGITTA * chord);
	}
}

/* Return bits: bit i is set if arc i may be within a limit, a chord. */
FLOATS_INLINE uint32_t
chord_squares_within(const struct chord_squares *squares, double limit)
{
	uint32_t	bits = 0;

	for (int at = 0; at < CPU_ARCS_LEAF; at += DOUBLES)
	{
		doubles		bound = limit + doubles_load(squares->sagitta + at);

		bits |= doubles_within(doubles_load(squares->square + at), bound * bound) << at;
	}
	return bits;
}

/* Return which arc has the nearest chord, of those whose bits are set: there is one. */
static inline uint32_t
chord_squares_nearest(const struct chord_squares *squares, uint32_t bits)
{
	uint32_t	nearest = (uint32_t) __builtin_ctz(bits);

	for (uint32_t rest = bits & (bits - 1); rest != 0; rest &= rest - 1)
		nearest = squares->square[__builtin_ctz(rest)] < squares->square[nearest] ? (uint32_t) __builtin_ctz(rest) : nearest;
	return nearest;
}

#endif							/* GEONN_CPU_ARCS_LEAF_H */
