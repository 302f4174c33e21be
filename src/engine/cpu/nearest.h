/*
 * nearest.h
 *		Finds the nearest reference of many observations on the CPU, by the
 *		index.
 */
#ifndef GEONN_CPU_NEAREST_H
#define GEONN_CPU_NEAREST_H

#include "engine/cpu/index.h"
#include "engine/cpu/path.h"
#include "engine/dataset/dataset.h"

/*
 * A piece of a search: observations that are neighbours on the curve, and the
 * columns that take their answers, by row.  For a metric whose chord decides,
 * without groups, identities and ties.
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
	const uint64_t *key;		/* [count] codes with CPU_CURVE_KEY_LEVELS, rising */
	const uint32_t *row;		/* [count] */

	/* most observations that one walk serves, from 1 to INDEX_WIDTH */
	uint32_t	group;

	int64_t    *tag;			/* by row */
	double	   *distance;		/* by row; metres, or infinite: no reference */

	size_t		answered;		/* how many observations are answered: the first ones */

	/* cpu/nearest.c's own: whether to stop, and leaves since the last look at the clock */
	bool		over;
	uint32_t	leaves;
};

/*
 * Answer the observations of a piece until its time is over, but at least the
 * first one.  Ends early, with answers undefined, once *cancelled is set.
 */
extern void CPU_PATH_NAME(cpu_index_nearest) (struct cpu_nearest_piece *piece);

#endif							/* GEONN_CPU_NEAREST_H */
