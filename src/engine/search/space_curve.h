/*
 * space_curve.h
 *		The order in which the index keeps points: along a Hilbert curve.
 *
 * A vector's direction is projected onto the cube around the origin; the curve
 * runs through the cube's six faces, one after the other, and on each face it
 * is Hilbert's curve.  Points that are close on the curve are close on the
 * Earth; most points that are close on the Earth are close on the curve.
 *
 * Only speed depends on the curve: the index is exact for any order of its
 * points.  So the code is computed without much care for the last bit.
 */
#ifndef GEONN_SPACE_CURVE_H
#define GEONN_SPACE_CURVE_H

#include <stdint.h>

#include "common/geodesy.h"

/* Codes halve a face's side at most this many times: cells of about a centimetre. */
#define SPACE_CURVE_LEVELS 30

/*
 * Return the number of the curve's cell in which a nonzero vector lies, from 0 to 6 * 4^levels - 1;
 * levels is 1 ... SPACE_CURVE_LEVELS.  A code with fewer levels is the beginning of the code with
 * more: code(m) == code(n) >> 2 * (n - m), except for vectors on the very edge of a cell.
 */
GEONN_GEODESY_FUNCTION uint64_t
space_curve_code(struct geonn_vector vector, int levels)
{
	double		largest = fabs(vector.x);
	double		u = vector.y;
	double		v = vector.z;
	uint64_t	face = vector.x < 0.0;
	double		scale;
	double		cells = (double) (1u << levels);
	uint32_t	last = (1u << levels) - 1;
	uint32_t	column;
	uint32_t	row;
	uint64_t	code = 0;

	if (fabs(vector.y) > largest)
	{
		largest = fabs(vector.y);
		u = vector.z;
		v = vector.x;
		face = 2 + (vector.y < 0.0);
	}
	if (fabs(vector.z) > largest)
	{
		largest = fabs(vector.z);
		u = vector.x;
		v = vector.y;
		face = 4 + (vector.z < 0.0);
	}

	/* Where |u| or |v| equals `largest`, column or row would be 2^levels, one too many. */
	scale = 0.5 / largest;
	column = (uint32_t) (fma(u, scale, 0.5) * cells);
	row = (uint32_t) (fma(v, scale, 0.5) * cells);
	column = column < last ? column : last;
	row = row < last ? row : last;

	for (int level = levels - 1; level >= 0; level--)
	{
		uint32_t	right = column >> level & 1;
		uint32_t	up = row >> level & 1;

		code = code << 2 | ((3 * right) ^ up);
		if (!up)
		{
			uint32_t	flip = right ? last : 0;
			uint32_t	swapped = column ^ flip;

			column = row ^ flip;
			row = swapped;
		}
	}
	return face << (2 * levels) | code;
}

#endif							/* GEONN_SPACE_CURVE_H */
