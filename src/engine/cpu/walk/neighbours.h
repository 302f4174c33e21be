/*
 * neighbours.h
 *		Answers any question for many observations on the CPU.
 */
#ifndef GEONN_CPU_NEIGHBOURS_H
#define GEONN_CPU_NEIGHBOURS_H

#include "engine/cpu/walk/collector.h"
#include "engine/cpu/index/index.h"
#include "engine/cpu/base/path.h"
#include "engine/search/candidates.h"
#include "engine/search/device.h"

struct cpu_arcs;
struct cpu_probes;

/* an observation as a turn read it */
struct cpu_observation
{
	struct geonn_vector vector;
	double		latitude;		/* degrees */
	double		longitude;
};

/*
 * A piece of a search: observations in the order of the index's parts, and in each along the curve; and
 * room for their pairs.
 */
struct cpu_neighbours_piece
{
	const struct search *search;
	const struct cpu_index *index;	/* NULL: by brute force, or of arcs */
	const struct cpu_arcs *arcs;	/* of a dataset of arcs, else NULL; by_index tells how it is used */
	struct cpu_probes *probes;	/* of observations that are shapes, else NULL */
	bool		by_index;
	const struct cpu_references *references;	/* NULL: by the index, or by brute force over the dataset's columns */
	const struct cpu_observation *observation;	/* by row */
	uint32_t	first;			/* row 0 is the search's observation of this number */
	uint32_t	may_leave;		/* the row that probes->left may keep, if that is a shape and the turn is over before its
								 * answer */
	uint32_t	pairs_max;		/* how many pairs of an observation are kept: the room, and one more */
	bool		(*is_over) (void *turn, uint64_t pairs);	/* whether to stop after so many more pairs */
	void	   *turn;

	uint32_t	count;
	const uint64_t *key;		/* [count] cpu_nearest_key(), rising; if by the index */
	uint32_t   *row;			/* [count] rows, put into the order of their answers; or tasks */
	uint32_t   *counts;			/* by row: how many pairs it has, written when it is answered */

	uint32_t	answered;		/* how many are answered: the first ones of `row` */
	bool		short_of_memory;

	/* how many observations the nearest are found of together (nearest.c); 0: the search asks for more than that, or
	 * `tag` and `best` are NULL */
	uint32_t	bundle;

	/* of a search by tasks (turn_tasks.h), rows by task, and answers by task; else NULL */
	const uint32_t *task_row;
	struct candidate *best;		/* task t has k from t * k on, or fewer, and then an infinite distance */

	/* columns of the batch: the pairs of row r go to r * k and on; or NULL: pairs are kept below */
	int64_t    *tag;
	double	   *distance;

	size_t		pairs;
	size_t		capacity;
	struct candidate *pair;		/* [pairs] of the answered rows, in their order */
};

/* The row of one of the piece's observations or tasks. */
static inline uint32_t
cpu_neighbours_row(const struct cpu_neighbours_piece *piece, uint32_t task)
{
	return piece->task_row != NULL ? piece->task_row[task] : task;
}

/*
 * Answer the observations of a piece until it is over, but at least the first one.
 * Where `pair` is too small, it is reallocated; the caller frees it.
 */
extern void CPU_PATH_NAME(cpu_neighbours) (struct cpu_neighbours_piece *piece);

#endif							/* GEONN_CPU_NEIGHBOURS_H */
