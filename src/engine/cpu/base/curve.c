/*
 * curve.c
 *		Computes space_curve.h's codes quickly: for blocks of vectors, by a
 *		table.
 *
 * Where a halving turns the curve, space_curve_code() swaps the rest of column
 * and row, or complements both, or does both.  So the curve lies in a cell in
 * one of four ways, and a table gives the result of several halvings at once.
 */
#include "engine/cpu/base/curve.h"

#define SWAPPED 1u
#define COMPLEMENTED 2u

uint16_t	cpu_curve_table[4][1 << 2 * CPU_CURVE_STEP];

void
cpu_curve_initialize(void)
{
	const uint32_t mask = (1u << CPU_CURVE_STEP) - 1;

	for (uint32_t lies = 0; lies < 4; lies++)
		for (uint32_t cell = 0; cell < (1u << 2 * CPU_CURVE_STEP); cell++)
		{
			uint32_t	column = cell >> CPU_CURVE_STEP;
			uint32_t	row = cell & mask;
			uint32_t	state = lies;
			uint32_t	code = 0;

			for (int level = CPU_CURVE_STEP - 1; level >= 0; level--)
			{
				uint32_t	complement = state & COMPLEMENTED ? 1 : 0;
				uint32_t	right = ((state & SWAPPED ? row : column) >> level & 1) ^ complement;
				uint32_t	up = ((state & SWAPPED ? column : row) >> level & 1) ^ complement;

				code = code << 2 | ((3 * right) ^ up);
				if (!up)
					state ^= SWAPPED | (right ? COMPLEMENTED : 0);
			}
			cpu_curve_table[lies][cell] = (uint16_t) (state << 8 | code);
		}
}
