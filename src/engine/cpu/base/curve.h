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

/*
 * References' codes have this many halvings, down to cells of 4 cm; keys of observations have
 * fewer, down to cells of 150 m.
 */
#define CPU_CURVE_LEVELS 28
#define CPU_CURVE_KEY_LEVELS 16

/* the number of bits of a code with this many levels; the first three are the face */
#define CPU_CURVE_BITS(levels) (3 + 2 * (levels))

/*
 * The table of steps along the curve.  By the curve's orientation, and some bits of column and row,
 * it has bits of the code, and above them the orientation in the cell that the step reaches.
 */
extern uint16_t cpu_curve_table[4][1 << 2 * CPU_CURVE_STEP];

/* Fill in the table.  The probe of the CPU calls this once, before any thread asks for a code. */
extern void cpu_curve_initialize(void);

/*
 * Return the code of a cell of the curve, from its face and the first `levels` bits of its column
 * and row on that face; levels is a multiple of CPU_CURVE_STEP.
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
