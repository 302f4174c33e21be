/*
 * nearest.h
 *		Finds the nearest reference of many observations on the CPU, by the
 *		index.
 */
#ifndef GEONN_CPU_NEAREST_H
#define GEONN_CPU_NEAREST_H

#include "engine/cpu/curve.h"
#include "engine/cpu/index.h"
#include "engine/cpu/path.h"
#include "engine/dataset/dataset.h"

/*
 * A piece of a search: observations that are neighbours, by part of the index
 * and then on the curve, and the columns that take their answers, by row.  For
 * a metric whose chord decides, without identities and ties.
 */
struct cpu_nearest_piece
{
	const struct cpu_index *index;
	enum geonn_metric metric;	/* whose chord decides */
	const int64_t *tags;		/* of the dataset's references */
	const atomic_bool *cancelled;
	int64_t		end_ms;			/* time of now_ms() after which no observation begins */
	double		max_distance;	/* metres, inclusive; may be infinite */
	const struct geonn_vector *from;	/* by row */

	size_t		count;
	const uint64_t *key;		/* [count] cpu_nearest_key()s, rising */
	const uint32_t *row;		/* [count] */

	/* most observations that one walk serves, from 1 to INDEX_WIDTH */
	uint32_t	bundle;

	int64_t    *tag;			/* by row */
	double	   *distance;		/* by row; metres, or infinite: no reference */

	size_t		answered;		/* how many observations are answered: the first ones */

	/* cpu/nearest.c's own: whether to stop, and leaves since the last look at the clock */
	bool		over;
	uint32_t	leaves;
};

/* most parts of an index that an observation's key has room for */
#define CPU_NEAREST_PARTS_MAX ((UINT32_C(1) << (64 - CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS))) - 1)

/*
 * The key of an observation, from its code with CPU_CURVE_KEY_LEVELS and the
 * part where its references are, or index->parts if it has none.
 */
static inline uint64_t
cpu_nearest_key(uint32_t part, uint64_t code)
{
	return (uint64_t) part << CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS) | code;
}

/*
 * Answer the observations of a piece until its time is over, but at least the
 * first one.  Ends early, with answers undefined, once *cancelled is set.
 */
extern void CPU_PATH_NAME(cpu_index_nearest) (struct cpu_nearest_piece *piece);

#endif							/* GEONN_CPU_NEAREST_H */
