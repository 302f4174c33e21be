/*
 * nearest.h
 *		Finds the nearest reference of observations on the CPU, by the index, and
 *		the keys by which all searches sort their observations.
 */
#ifndef GEONN_CPU_NEAREST_H
#define GEONN_CPU_NEAREST_H

#include "engine/cpu/base/curve.h"
#include "engine/cpu/walk/neighbours.h"

/* the greatest number of parts that fits into a key */
#define CPU_NEAREST_PARTS_MAX ((UINT32_C(1) << (64 - CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS))) - 1)

/*
 * The key of an observation or task, from its code with CPU_CURVE_KEY_LEVELS and the number of
 * the part with its candidates.
 */
static inline uint64_t
cpu_nearest_key(uint32_t part, uint64_t code)
{
	return (uint64_t) part << CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS) | code;
}

/* The part of a key. */
static inline uint32_t
cpu_nearest_part(uint64_t key)
{
	return (uint32_t) (key >> CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS));
}

/* The code, with CPU_CURVE_LEVELS, at which a key's cell begins. */
static inline uint64_t
cpu_nearest_code(uint64_t key)
{
	return (key & ((UINT64_C(1) << CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS)) - 1)) <<
		2 * (CPU_CURVE_LEVELS - CPU_CURVE_KEY_LEVELS);
}

/*
 * Answer the piece's next tasks together, of those that are not answered the first piece->bundle at most.  *count
 * becomes how many.  Returns bits of those that are not answered, but have to walk alone.
 * No reference is wanted above the squared chord `widest`.
 */
extern uint32_t CPU_PATH_NAME(cpu_nearest) (struct cpu_neighbours_piece *piece, double widest, uint32_t *count);

#endif							/* GEONN_CPU_NEAREST_H */
