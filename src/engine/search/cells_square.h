/*
 * cells_square.h
 *		Squares on the faces of a cube around the Earth: which one a point is in, and
 *		which references can be the nearest of a point in a square.
 *
 * For the table of these squares (cpu/squares/cells.h).
 *
 * A face of the cube [-1, 1]^3 is seen from the centre through the point (1, u, v),
 * in coordinates that are turned so that the first is across the face.  A square
 * is |u - u0| <= h, |v - v0| <= h there.  In this picture the points as far from one
 * reference as from another are on a straight line, so what holds for all four
 * corners of a square holds for each point in it.
 *
 * e stands for 2^-53, as in geodesy.h.
 *
 *
 * The square of a point
 *
 * Let p be a vector of geonn_unit_vector(), and u = p_u / |p_a| its exact place on the
 * face of its largest coordinate, |u| <= 1.  A search (src/engine/cpu/squares/cells_nearest.c) divides the scale of
 * units by |p_a|, multiplies by p_u and adds the scale, and rounds each once.  Units are 2^-20
 * and less, and their number, below 2^31, is rounded by at most e of itself, 2 e as a length on
 * the face, as are both factors.  So the unit of a point has it within 6 e of its bounds, far less than
 * CELLS_WIDER = 2^-42, and these are off by 3 e.  Numbers beyond the face, by as little, are its last
 * unit.  Squares are wider than their units by CELLS_WIDER on each side, 1.4
 * micrometres, and so the square to which a search takes a point has the point.
 *
 *
 * Which of two references comes first
 *
 * Let b and c be vectors of references, and w = b - c.  For each p
 *
 *		|p - c|^2 - |p - b|^2 = 2 p.w + |c|^2 - |b|^2
 *
 * and with q = (1, u, v) = p |q| / |p|, |q| < 1.7321, p of a length of 1 but for 2.25 e, and
 * the squares of lengths of b and c within 9 e of each other, b is nearer than c by more
 * than d in squared chords if
 *
 *		q.w > 0.8661 (d + 9 e)												(1)
 *
 * q.w is linear in u and v.  Its least value in the square is
 *
 *		w_a + u0 w_u + v0 w_v - h (|w_u| + |w_v|)							(2)
 *
 * By geonn_chord_limit()'s implication the distance to c exceeds that to b, as computed,
 * if the computed s_c > s_b (1 + 2^-46) + 2^-1000.  Computed squares are off by 3 e
 * relatively (geodesy.h: three sums, differences included 5 e), so this holds if d is
 * 1.1 * 2^-46 times the greatest squared chord between b and the square, and something
 * for what underflows, which 9 e covers.
 *
 * Computing (2) takes 3 differences, off by e relatively, and 5 operations on
 * numbers that are not greater than |w_a| + |w_u| + |w_v| <= 1.7321 |w|: below 11 e |w|.
 * If the chords of b and c to some point are at most `reach`, |w| <= 2 reach: 22 e reach.
 *
 * cells_margin() has more than the sum of these: 2^-45 times the greatest squared chord,
 * 16 e where 8 e would do, 32 e reach.
 *
 * (2) above the margin is a strict order, as it says that in truth q.b > q.c for
 * each q of the square.  So of some candidates all can be left out at the same time that
 * another one comes before, even one that is left out itself: the one that remains comes
 * before by more than either.
 */
#ifndef GEONN_CELLS_SQUARE_H
#define GEONN_CELLS_SQUARE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/geodesy.h"

/* how many squares a block has along its side, and as a whole */
#define CELLS_SIDE_BITS 3
#define CELLS_SIDE (1u << CELLS_SIDE_BITS)
#define CELLS_BLOCK (CELLS_SIDE * CELLS_SIDE)

/* a block's side has 2^CELLS_UNIT_BITS units; the finest squares have a side of 1 unit */
#define CELLS_UNIT_BITS 21

/* a block's squares have sides of 2^CELLS_FIRST_SHIFT units; the squares in a divided square have sides 1/8 as long */
#define CELLS_FIRST_SHIFT (CELLS_UNIT_BITS - CELLS_SIDE_BITS)

static_assert(CELLS_FIRST_SHIFT % CELLS_SIDE_BITS == 0, "the finest squares have a side of 1");

/* by how much squares are wider than their units on each side */
#define CELLS_WIDER 0x1p-42

struct cells_square
{
	double		u;				/* the coordinates of the square's middle on the face */
	double		v;
	double		half;			/* half the length of the square's side, plus CELLS_WIDER */
};

/* Return a vector in the coordinates of a face: x is across the face, y along u, z along v. */
GEONN_GEODESY_FUNCTION struct geonn_vector
cells_turned(uint32_t face, struct geonn_vector vector)
{
	uint32_t	axis = face >> 1;
	struct geonn_vector turned;

	turned.x = axis == 0 ? vector.x : axis == 1 ? vector.y : vector.z;
	turned.y = axis == 0 ? vector.y : axis == 1 ? vector.z : vector.x;
	turned.z = axis == 0 ? vector.z : axis == 1 ? vector.x : vector.y;
	turned.x = face & 1 ? -turned.x : turned.x;
	return turned;
}

/* the inverse of cells_turned() */
GEONN_GEODESY_FUNCTION struct geonn_vector
cells_turned_back(uint32_t face, struct geonn_vector turned)
{
	uint32_t	axis = face >> 1;
	double		across = face & 1 ? -turned.x : turned.x;
	struct geonn_vector vector;

	vector.x = axis == 0 ? across : axis == 1 ? turned.z : turned.y;
	vector.y = axis == 0 ? turned.y : axis == 1 ? across : turned.z;
	vector.z = axis == 0 ? turned.z : axis == 1 ? turned.y : across;
	return vector;
}

/* Return how many units the side of a face has, if it has this many blocks. */
GEONN_GEODESY_FUNCTION uint32_t
cells_side_units(uint32_t side)
{
	return side << CELLS_UNIT_BITS;
}

/* Return the square whose first corner is at units (u, v), and whose side is `units` units long. */
GEONN_GEODESY_FUNCTION struct cells_square
cells_square_of(uint32_t u, uint32_t v, uint32_t units, double scale)
{
	double		inverse = 1.0 / scale;
	struct cells_square square;

	square.u = ((double) u + 0.5 * units) * inverse - 1.0;
	square.v = ((double) v + 0.5 * units) * inverse - 1.0;
	square.half = 0.5 * units * inverse + CELLS_WIDER;
	return square;
}

/* Return the unit vector through (1, u, v), within a few e (2^-53). */
GEONN_GEODESY_FUNCTION struct geonn_vector
cells_vector_at(double u, double v)
{
	double		inverse = 1.0 / sqrt(fma(v, v, fma(u, u, 1.0)));
	struct geonn_vector turned;

	turned.x = inverse;
	turned.y = u * inverse;
	turned.z = v * inverse;
	return turned;
}

/*
 * Return the margin by which (2) of the essay must exceed 0.  The chords of both references to some point of the square,
 * or to its middle, are at most `reach`; all chords between the square and references are at most `greatest`.
 */
GEONN_GEODESY_FUNCTION double
cells_margin(double reach, double greatest)
{
	return fma(greatest * greatest, 0x1p-45, fma(reach, 0x1p-48, 0x1p-49));
}

/* Return whether b is nearer than c to all points of a square, by (2) of the essay; b and c come from cells_turned(). */
GEONN_GEODESY_FUNCTION bool
cells_comes_before(struct geonn_vector b, struct geonn_vector c, const struct cells_square *square,
				   double margin)
{
	double		across = b.x - c.x;
	double		u = b.y - c.y;
	double		v = b.z - c.z;
	double		middle = fma(square->v, v, fma(square->u, u, across));

	return fma(-square->half, fabs(u) + fabs(v), middle) > margin;
}

#endif							/* GEONN_CELLS_SQUARE_H */
