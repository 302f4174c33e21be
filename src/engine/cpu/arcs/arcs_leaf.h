/*
 * arcs_leaf.h
 *		The arcs of a leaf, as vectors of eight float64.
 *
 * For the sources of CPU paths.
 */
#ifndef GEONN_CPU_ARCS_LEAF_H
#define GEONN_CPU_ARCS_LEAF_H

#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/base/floats.h"

_Static_assert(sizeof(struct geonn_vector) == 3 * sizeof(double), "a vertex and the next one are six numbers");

typedef double doubles __attribute__((vector_size(8 * CPU_ARCS_LEAF)));
typedef int64_t double_bits __attribute__((vector_size(8 * CPU_ARCS_LEAF)));

/* Return bits: bit i is set if lane i of a is at most lane i of b. */
FLOATS_INLINE uint32_t
doubles_within(const doubles *a, const doubles *b)
{
#ifdef __AVX2__
	const double *first = (const double *) a;
	const double *second = (const double *) b;
	__m256d		low = _mm256_cmp_pd(_mm256_loadu_pd(first), _mm256_loadu_pd(second), _CMP_LE_OQ);
	__m256d		high = _mm256_cmp_pd(_mm256_loadu_pd(first + 4), _mm256_loadu_pd(second + 4), _CMP_LE_OQ);

	return (uint32_t) _mm256_movemask_pd(low) | (uint32_t) _mm256_movemask_pd(high) << 4;
#else
	uint32_t	bits = 0;

	for (int i = 0; i < CPU_ARCS_LEAF; i++)
		bits |= (uint32_t) ((*a)[i] <= (*b)[i]) << i;
	return bits;
#endif
}

/*
 * Load x, y and z of the ends of a leaf's arcs: first of the vertices where the arcs begin, then of those where they end.
 */
FLOATS_INLINE void
doubles_load_ends(const struct geonn_vector *vertex, const struct cpu_arcs_leaf *leaf, doubles *part)
{
#ifdef __AVX2__
	/* The six numbers of a lane follow each other in memory: load two at a time. */
	for (int i = 0; i < 6; i += 2)
	{
		__m256d		even[2];
		__m256d		odd[2];

		for (int half = 0; half < 2; half++)
		{
			__m256d		lanes[2];	/* 0 and 2 of the half, 1 and 3 */

			for (int lane = 0; lane < 2; lane++)
			{
				const uint32_t *number = leaf->vertex + 4 * half + lane;

				lanes[lane] = _mm256_castpd128_pd256(_mm_loadu_pd((const double *) &vertex[number[0]] + i));
				lanes[lane] = _mm256_insertf128_pd(lanes[lane], _mm_loadu_pd((const double *) &vertex[number[2]] + i), 1);
			}
			even[half] = _mm256_unpacklo_pd(lanes[0], lanes[1]);
			odd[half] = _mm256_unpackhi_pd(lanes[0], lanes[1]);
		}
		memcpy(&part[i], even, sizeof(part[i]));
		memcpy(&part[i + 1], odd, sizeof(part[i + 1]));
	}
#else
	for (int lane = 0; lane < CPU_ARCS_LEAF; lane++)
		for (int i = 0; i < 6; i++)
			part[i][lane] = ((const double *) &vertex[leaf->vertex[lane]])[i];
#endif
}

FLOATS_INLINE doubles
doubles_all(double value)
{
	return value - (doubles) {0};
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

/* Find the squares of the distances of a place from the chords of a leaf's arcs, and the arcs' sagittas. */
FLOATS_INLINE void
doubles_leaf_squares(const struct geonn_vector *vertex, const struct cpu_arcs_leaf *leaf, const double *place, doubles *square,
					 doubles *sagitta)
{
	doubles		end[6];
	doubles		d[3];
	doubles		w[3];
	doubles		chord;

	doubles_load_ends(vertex, leaf, end);
	for (int axis = 0; axis < 3; axis++)
	{
		d[axis] = end[3 + axis] - end[axis];
		w[axis] = place[axis] - end[axis];
	}
	chord = doubles_dot(d, d);
	*square = doubles_chord_squares(w, d, chord);
	*sagitta = SHAPE_ARCS_SAGITTA * chord;
}

#endif							/* GEONN_CPU_ARCS_LEAF_H */
