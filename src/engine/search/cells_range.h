/*
 * cells_range.h
 *		Ranges of squares: which references can be the nearest of a point in a range, as
 *		far as a walk through an index has seen.
 *
 * The notation is that of cells_square.h.  Let m be the middle of a
 * range, rho the greatest distance between m and a point of the range, or more, and b the
 * nearest position to m that has been seen.
 *
 * A position c with |m - c| > |m - b| + 2 rho = reach is left out: for each p of
 * the range |p - c| >= |m - c| - rho > |m - b| + rho >= |p - b|.  Reach is taken 2^-40
 * of itself longer, which makes the squares differ by more than the factor of
 * geonn_chord_limit(), 2^-46, and by more than what roundings of |m - c| and |m - b|
 * amount to, some e of themselves.  m need not be a unit vector for that.  The caller
 * adds 2^-48 = 32 e to rho for roundings of vectors.
 *
 * Of boxes of an index, the walk shows that those left out have no position
 * within the limit, the square of reach.  Where references are far from the range, in
 * terms of its own size, that is not enough: whole regions are within reach of a
 * range that sees only their edge.  So a box is left out as well if b comes before all
 * that can be in it at each corner of the range.  For a corner q and p = q / |q| this is
 * so if the least |p - c|^2 of the box exceeds |p - b|^2 by 1.7322 d + 24.6 e, or, which is
 * better near the antipode, the greatest |p + c|^2 is less than |p + b|^2 by as much: either
 * is 2 p.(b - c) but for 9 e, and |q| >= 1.  Twice the margin is more than that, for roundings
 * of p, 6 e times a chord, too, and 2^-46 = 128 e of the squares is for those of squares.
 *
 * A position in reach is left out if b comes before it in the whole range, or any other
 * position does.
 *
 * All of this holds whatever b is, so which positions are found first makes no
 * difference to answers.
 */
#ifndef GEONN_CELLS_RANGE_H
#define GEONN_CELLS_RANGE_H

#include "engine/search/cells_square.h"

/* A range, and a walk's findings for it so far; vectors are in the face's coordinates (cells_turned). */
struct cells_range
{
	struct cells_square square; /* the whole range */
	struct geonn_vector middle;
	double		rho;
	struct geonn_vector best;	/* the nearest position to the middle */
	double		best_square;	/* the squared chord from the best position to the middle */
	double		limit;			/* the limit on squared chords between the middle and a candidate */
	double		margin;			/* the margin for cells_comes_before() */
};

/* Begin a range.  The caller sets its rho (see the essay). */
GEONN_GEODESY_FUNCTION void
cells_range_begin(struct cells_range *range, struct cells_square square)
{
	range->square = square;
	range->middle = cells_vector_at(square.u, square.v);
	range->best.x = 0.0;
	range->best.y = 0.0;
	range->best.z = 0.0;
	range->best_square = INFINITY;
	range->limit = INFINITY;
	range->margin = INFINITY;
}

/* Note the nearest position to the middle that the walk has seen so far. */
GEONN_GEODESY_FUNCTION void
cells_range_see(struct cells_range *range, struct geonn_vector best, double square)
{
	double		reach = (sqrt(square) + 2.0 * range->rho) * (1.0 + 0x1p-40);

	range->best = best;
	range->best_square = square;
	range->limit = fmin(range->limit, reach * reach * (1.0 + 0x1p-50));
	range->margin = cells_margin(reach, reach + range->rho);
}

/* Return corner number `number` of a range. */
GEONN_GEODESY_FUNCTION struct geonn_vector
cells_range_corner(const struct cells_range *range, uint32_t number)
{
	const struct cells_square *square = &range->square;

	return cells_vector_at(square->u + (number & 1 ? square->half : -square->half),
						   square->v + (number & 2 ? square->half : -square->half));
}

/* Return whether to compare boxes by their chords to corners; otherwise by the chords to the corners' antipodes. */
GEONN_GEODESY_FUNCTION bool
cells_range_is_near(const struct cells_range *range)
{
	return range->best_square <= 2.0;
}

/*
 * Return the limit on squared chords between a corner and a box, or its antipodes, by the best position
 * so far.  The vectors are not in the face's coordinates (cells_turned).
 */
GEONN_GEODESY_FUNCTION double
cells_range_corner_limit(const struct cells_range *range, struct geonn_vector corner,
						 struct geonn_vector best)
{
	return cells_range_is_near(range) ?
		geonn_chord_squared(corner, best) * (1.0 + 0x1p-46) + 2.0 * range->margin :
		(geonn_antichord_squared(corner, best) - 2.0 * range->margin) * (1.0 - 0x1p-46);
}

/* ---- how many squares a table has ---- */

/* Return how many blocks the side of a face has, if all faces together have at most `squares` squares; at least 1. */
GEONN_GEODESY_FUNCTION uint32_t
cells_side_of(double squares)
{
	uint32_t	side = (uint32_t) sqrt(squares / (6.0 * CELLS_BLOCK));

	return side > 0 ? side : 1;
}

/* Return how many units a length of 1 on a face has, if the face's side has this many blocks. */
GEONN_GEODESY_FUNCTION double
cells_scale_of(uint32_t side)
{
	return (double) side * (double) ((uint32_t) 1 << (CELLS_UNIT_BITS - 1));
}

#endif							/* GEONN_CELLS_RANGE_H */
