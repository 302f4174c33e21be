/*
 * arcs_leaf.h
 *		The arcs of a leaf, in lanes.
 *
 * For the sources of CPU paths.
 */
#ifndef GEONN_CPU_ARCS_LEAF_H
#define GEONN_CPU_ARCS_LEAF_H

#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/base/lanes.h"

_Static_assert(sizeof(struct geonn_vector) == 3 * sizeof(double), "a vertex and the next one are six numbers");

/*
 * Load x, y and z of the ends of arcs: first of the vertices where the arcs begin, which have these numbers, then of those
 * where they end.
 */
LANES_INLINE void
lanes_load_ends(const struct geonn_vector *vertex, const uint32_t *number, lanes *part)
{
#if LANES >= 4
	/* The six numbers of a lane follow each other in memory: load two at a time. */
	for (int i = 0; i < 6; i += 2)
	{
		__m256d		even[LANES / 4];
		__m256d		odd[LANES / 4];

		for (int four = 0; four < LANES / 4; four++)
		{
			__m256d		pair[2];	/* 0 and 2 of the four, 1 and 3 */

			for (int lane = 0; lane < 2; lane++)
			{
				const uint32_t *first = number + 4 * four + lane;

				pair[lane] = _mm256_castpd128_pd256(_mm_loadu_pd((const double *) &vertex[first[0]] + i));
				pair[lane] = _mm256_insertf128_pd(pair[lane], _mm_loadu_pd((const double *) &vertex[first[2]] + i), 1);
			}
			even[four] = _mm256_unpacklo_pd(pair[0], pair[1]);
			odd[four] = _mm256_unpackhi_pd(pair[0], pair[1]);
		}
		memcpy(&part[i], even, sizeof(part[i]));
		memcpy(&part[i + 1], odd, sizeof(part[i + 1]));
	}
#else
	for (int i = 0; i < 6; i++)
		part[i] = (lanes) {((const double *) &vertex[number[0]])[i], ((const double *) &vertex[number[1]])[i]};
#endif
}

LANES_INLINE lanes
lanes_dot(const lanes *u, const lanes *v)
{
	return u[0] * v[0] + u[1] * v[1] + u[2] * v[2];
}

/* Return the squares of the distances of the places w from the chords that go from 0 to d. */
LANES_INLINE lanes
lanes_chord_squares(const lanes *w, const lanes *d, lanes chord)
{
	/* The small number avoids 0 / 0: for an arc without length any fraction will do, except NaN. */
	lanes		t = lanes_dot(w, d) / (chord + 0x1p-200);
	lanes_of_integers within = t < 1.0;
	lanes		rest[3];

	t = (lanes) (((lanes_of_integers) t & within) | ((lanes_of_integers) lanes_all(1.0) & ~within));
	t = (lanes) ((lanes_of_integers) t & (t > 0.0));
	for (int axis = 0; axis < 3; axis++)
		rest[axis] = w[axis] - t * d[axis];
	return lanes_dot(rest, rest);
}

/* how far eight arcs are from something, by their chords */
struct chord_squares
{
	double		square[CPU_ARCS_LEAF];	/* of the distance to the chord */
	double		sagitta[CPU_ARCS_LEAF];	/* the arc is farther or nearer by this at most */
};

/* Find the squares of the distances of a place from the chords of a leaf's arcs, and the arcs' sagittas. */
LANES_INLINE void
leaf_chord_squares(const struct geonn_vector *vertex, const struct cpu_arcs_leaf *leaf, const double *place,
				   struct chord_squares *squares)
{
	for (int at = 0; at < CPU_ARCS_LEAF; at += LANES)
	{
		lanes		end[6];
		lanes		d[3];
		lanes		w[3];
		lanes		chord;

		lanes_load_ends(vertex, leaf->vertex + at, end);
		for (int axis = 0; axis < 3; axis++)
		{
			d[axis] = end[3 + axis] - end[axis];
			w[axis] = place[axis] - end[axis];
		}
		chord = lanes_dot(d, d);
		lanes_store(squares->square + at, lanes_chord_squares(w, d, chord));
		lanes_store(squares->sagitta + at, SHAPE_ARCS_SAGITTA * chord);
	}
}

/* Return bits: bit i is set if arc i may be within a limit, a chord. */
LANES_INLINE uint32_t
chord_squares_within(const struct chord_squares *squares, double limit)
{
	uint32_t	bits = 0;

	for (int at = 0; at < CPU_ARCS_LEAF; at += LANES)
	{
		lanes		bound = limit + lanes_load(squares->sagitta + at);

		bits |= lanes_within(lanes_load(squares->square + at), bound * bound) << at;
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
