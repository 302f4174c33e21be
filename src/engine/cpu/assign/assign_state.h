/*
 * assign_state.h
 *		What the work on an assignment has at any time, for the files of this room.
 *
 * A taker is a reference whose capacity is above 0.  It holds observations, at most as many as its capacity, and with each its
 * distance.  Those that it holds are a heap, a binary tree in which none is above a worse one; an observation is worse than
 * another if it comes later in the order (distance, observation).
 */
#ifndef GEONN_CPU_ASSIGN_STATE_H
#define GEONN_CPU_ASSIGN_STATE_H

#include "engine/cpu/assign/assign.h"

struct cpu_assign
{
	const struct dataset *dataset;
	const struct cpu_index *index;
	struct geonn_batch_columns columns; /* of the observations */
	uint32_t	observations;
	double		max_distance;	/* metres, inclusive; may be infinite */
	const atomic_bool *cancelled;	/* of the present turn */

	/* takers, in the order of the index: those of a position follow each other, in the order of the dataset */
	uint32_t   *first_taker;	/* [positions + 1] the first taker of each position */
	uint32_t   *place;			/* [takers] the reference's place */
	uint32_t   *room;			/* [takers] how many more observations it could hold */
	uint32_t   *worst;			/* [takers] the worst observation that it holds: the top of its heap; or ASSIGN_NONE */

	/*
	 * No squared chord above these is that of an observation that a taker of the position, or of a position below the node, would
	 * take.  Negative: none takes any.  They only fall.
	 */
	double	   *reach;			/* [positions, padded] */
	double	   *node_reach;		/* [nodes of all levels + INDEX_WIDTH] */

	/* [observations] */
	uint32_t   *taker;			/* the taker that holds it, or to which it proposes; or ASSIGN_NONE */
	double	   *distance;		/* its distance from that taker, in metres; of a free one no taker nearer than that takes it */
	uint32_t   *left;			/* the two trees below it in the heap, each ASSIGN_NONE if empty */
	uint32_t   *right;

	uint32_t   *twin;			/* the observation before it at the same place, with the same conditions; or ASSIGN_NONE */
	uint32_t	found;			/* how many observations have looked for their first taker */
	uint32_t   *queue;			/* those that have one, in the order (distance, observation); made once all have looked */
	uint32_t	queue_count;
	uint32_t	proposed;		/* how many of the queue have proposed */
	bool		has_queue;
	uint32_t   *free;			/* observations that takers have refused or given up: the last one looks first */
	uint32_t	free_count;
	uint32_t	chunk;			/* how many of them look for takers at a time, unless that takes too long */
	uint32_t	most;			/* so many can look in good time, free ones or those without a first taker yet */
	uint32_t	looking;		/* how many do now: they are behind the free ones in the list */
	uint32_t	piece;			/* how many of these one thread takes at a time */

	void	   *memory;
	size_t		bytes;
};

/* Is the first of two observations worse, each at its distance from a taker? */
static inline bool
assign_is_worse(double distance, uint32_t observation, double other_distance, uint32_t other)
{
	return distance > other_distance || (distance == other_distance && observation > other);
}

/* Would a taker take an observation at this distance: has it room, or does it hold a worse one? */
static inline bool
assign_would_take(const struct cpu_assign *assign, uint32_t taker, uint32_t observation, double distance)
{
	uint32_t	worst = assign->worst[taker];

	return assign->room[taker] > 0 || assign_is_worse(assign->distance[worst], worst, distance, observation);
}

#endif							/* GEONN_CPU_ASSIGN_STATE_H */
