/*
 * nearest.h
 *		The nearest reference on the CPU, by the index, for many observations.
 */
#ifndef GEONN_CPU_NEAREST_H
#define GEONN_CPU_NEAREST_H

#include "engine/cpu/index.h"
#include "engine/cpu/path.h"
#include "engine/dataset/dataset.h"

/*
 * Observations that are neighbours on the curve, and where their answers go:
 * to their rows.  By a metric whose chord decides, without groups, identities and ties.
 */
struct cpu_nearest_piece
{
	const struct cpu_index *index;
	enum geonn_metric metric;	/* whose chord decides */
	const int64_t *tags;		/* of the dataset's references */
	const atomic_bool *cancelled;
	int64_t		end_ms;			/* of now_ms(): begin no observation later */
	double		max_distance;	/* metres, inclusive; may be infinite */
	const struct geonn_vector *from;	/* by row */

	size_t		count;
	const uint64_t *key;		/* [count] codes with CPU_CURVE_KEY_LEVELS, rising */
	const uint32_t *row;		/* [count] */

	/* observations that one walk serves at most, from 1 to INDEX_WIDTH */
	uint32_t	group;

	int64_t    *tag;			/* by row */
	double	   *distance;		/* by row; metres, or infinite: no reference */

	size_t		answered;		/* the first so many, and no others */

	/* cpu/nearest.c's: whether to stop, and leaves since it last asked the clock */
	bool		over;
	uint32_t	leaves;
};

/*
 * Answer the observations of a piece, the first one whatever the time is.  Ends
 * early, with answers undefined, once *cancelled is set.
 */
extern void CPU_PATH_NAME(cpu_index_nearest) (struct cpu_nearest_piece *piece);

#endif							/* GEONN_CPU_NEAREST_H */
