/*
 * nearest.h
 *		Finds the nearest reference of many observations on the CPU, by the
 *		index.
 */
#ifndef GEONN_CPU_NEAREST_H
#define GEONN_CPU_NEAREST_H

#include "engine/cpu/base/curve.h"
#include "engine/cpu/index/index.h"
#include "engine/cpu/base/path.h"
#include "engine/dataset/dataset.h"

/*
 * A piece of a search: tasks in the order of the index's parts, and in each
 * along the curve; and columns for their answers, by task.  A task is an
 * observation in one part of the index, or in all parts of its group.  Without
 * windows, an observation is one task, and its row is the task's number.  It
 * needs geonn_metric_chord_decides(), no excluded tags or ties, and no
 * radiuses of references.
 */
struct cpu_nearest_piece
{
	const struct cpu_index *index;
	enum geonn_metric metric;	/* chords alone give its order */
	const atomic_bool *cancelled;
	int64_t		end_ms;			/* when now_ms() is past this, no more tasks begin */
	double		max_distance;	/* metres, inclusive; may be infinite */
	const struct geonn_vector *from;	/* vectors of the observations, by row */
	const struct geonn_batch_columns *columns;	/* the batch's columns; row 0 has
												 * index `first` there */
	uint32_t	first;

	size_t		count;
	const uint64_t *key;		/* [count] the tasks' keys by cpu_nearest_key(), rising */
	const uint32_t *task;		/* [count] the tasks' numbers, in the order of the keys */
	const uint32_t *row;		/* rows by task, or NULL: tasks are rows */

	/* how many tasks one walk serves at most, from 1 to INDEX_WIDTH */
	uint32_t	bundle;

	int64_t    *tag;			/* by task: tags, or with `row` indexes in the dataset */
	double	   *distance;		/* metres by task, or infinite: no reference */

	size_t		answered;		/* how many tasks are answered: the first ones */

	/* used by cpu/nearest.c alone: whether to stop, and how many leaves were searched since the
	 * last look at the clock */
	bool		over;
	uint32_t	leaves;
};

/* the greatest number of parts that fits into a key */
#define CPU_NEAREST_PARTS_MAX ((UINT32_C(1) << (64 - CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS))) - 1)

/*
 * The key of a task, from the observation's code with CPU_CURVE_KEY_LEVELS and a
 * number.  That is the part with its candidates; index->parts if it has none; or
 * cpu_nearest_all_parts() for all parts of its group.
 */
static inline uint64_t
cpu_nearest_key(uint32_t part, uint64_t code)
{
	return (uint64_t) part << CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS) | code;
}

/* The code, with CPU_CURVE_LEVELS, at which a key's cell begins. */
static inline uint64_t
cpu_nearest_code(uint64_t key)
{
	return (key & ((UINT64_C(1) << CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS)) - 1)) <<
		2 * (CPU_CURVE_LEVELS - CPU_CURVE_KEY_LEVELS);
}

static inline uint32_t
cpu_nearest_all_parts(const struct cpu_index *index, uint32_t group)
{
	return index->parts + 1 + group;
}

/*
 * Answer the tasks of a piece until its time is over, but at least the first
 * one.  Ends early, with answers undefined, once *cancelled is set.
 */
extern void CPU_PATH_NAME(cpu_index_nearest) (struct cpu_nearest_piece *piece);

#endif							/* GEONN_CPU_NEAREST_H */
