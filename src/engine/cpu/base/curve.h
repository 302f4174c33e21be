/*
 * curve.h
 *		Computes space_curve.h's codes quickly: for blocks of vectors, by a
 *		table.
 */
#ifndef GEONN_CPU_CURVE_H
#define GEONN_CPU_CURVE_H

#include <stdint.h>

/* how many halvings one look-up covers */
#define CPU_CURVE_STEP 4

/* references' codes have this many halvings, to cells of 4 cm; observations' keys fewer, to cells
 * of 150 m */
#define CPU_CURVE_LEVELS 28
#define CPU_CURVE_KEY_LEVELS 16

/* how many bits a code with this many levels has; the face takes three */
#define CPU_CURVE_BITS(levels) (3 + 2 * (levels))

/*
 * The table of steps: [how the curve lies][bits of column and row] gives bits
 * of the code and, above them, how the curve lies in the cell that the step
 * reaches.
 */
extern uint16_t cpu_curve_table[4][1 << 2 * CPU_CURVE_STEP];

/* Fill in the table; called once, before any thread asks for a code. */
extern void cpu_curve_initialize(void);

/*
 * The code of a cell of the curve, from its face and the first `levels` bits
 * of its column and row on that face; levels is a multiple of CPU_CURVE_STEP.
 */
static inline uint64_t
cpu_curve_code(uint32_t face, uint32_t column, uint32_t row, int levels)
{
	const uint32_t mask = (1u << CPU_CURVE_STEP) - 1;
	uint64_t	code = face;
	uint32_t	state = 0;

	for (int shift = levels - CPU_CURVE_STEP; shift >= 0; shift -= CPU_CURVE_STEP)
	{
		uint32_t	cell = (column >> shift & mask) << CPU_CURVE_STEP | (row >> shift & mask);
		uint32_t	entry = cpu_curve_table[state][cell];

		code = code << (2 * CPU_CURVE_STEP) | (entry & 0xFF);
		state = entry >> 8;
	}
	return code;
}

#endif							/* GEONN_CPU_CURVE_H */
