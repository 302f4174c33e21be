/*
 * assign_state.h
 *		What the work on an assignment has at any time, for the files of this room.
 *
 * A taker is a reference whose capacity is above 0.  An observation waits until it has its taker for good, with the first taker
 * that had room when it looked for one last.
 */
#ifndef GEONN_CPU_ASSIGN_STATE_H
#define GEONN_CPU_ASSIGN_STATE_H

#include "engine/base/radix_sort.h"
#include "engine/cpu/assign/assign.h"

/* one that waits, and its distance from its taker in metres; INFINITY: there is none */
struct assign_waiting
{
	double		distance;
	uint32_t	observation;
};

enum assign_phase
{
	PHASE_FIRST,				/* the first ones of twins look for their first takers */
	PHASE_ORDER,				/* bring these in order */
	PHASE_TAKE					/* observations get their takers, in the order of the answer */
};

struct cpu_assign
{
	const struct dataset *dataset;
	const struct cpu_index *index;
	struct geonn_batch_columns columns; /* of the observations */
	uint32_t	observations;
	double		max_distance;	/* metres, inclusive; may be infinite */
	const atomic_bool *cancelled;	/* of the present turn */
	int64_t		end_ms;			/* when the present turn ends */

	/* takers, in the order of the index: those of a position follow each other, in the order of the dataset */
	uint32_t   *first_taker;	/* [positions + 1] the first taker of each position */
	uint32_t   *place;			/* [takers] the reference's place */
	uint32_t   *room;			/* [takers] how many more observations it can have */
	uint32_t   *open;			/* [positions] its first taker with room; the first one of the next position: there is none */

	/*
	 * No squared chord above these is that of an observation that a taker of the position, or of a position below the node, would
	 * take.  Negative: all are full.
	 */
	double	   *reach;			/* [positions, padded] */
	double	   *node_reach;		/* [nodes of all levels + INDEX_WIDTH] */

	/* [observations] */
	uint32_t   *taker;			/* the taker that it has for good, or waits for; or ASSIGN_NONE */
	double	   *distance;		/* in metres from it; before the first look negative */
	uint32_t   *twin;			/* the next observation with the same coordinates and conditions; or ASSIGN_NONE */

	enum assign_phase phase;
	uint32_t   *queue;			/* those that begin to wait, by number; after PHASE_ORDER by (distance, number) */
	uint32_t	queue_count;
	uint32_t	queue_first;	/* the first one of the queue that has not been taken out */
	struct assign_waiting *heap;	/* [observations] all others that wait: none comes before the one above it */
	uint32_t	heap_count;
	struct radix_sort sort;		/* in the memory of the heap, before that is used */

	uint32_t   *looking;		/* [at most ASSIGN_LOOKS_MAX] observations that look for takers at a time */
	uint32_t   *entry;			/* [as many] where they are in the heap */
	uint32_t	looks;			/* how many do */
	uint32_t	piece;			/* how many of these one thread takes at a time */
	uint32_t	ahead;			/* at most so many look again at a time */
	uint32_t	taken;			/* how many observations have got their takers since the last look */

	void	   *memory;
	size_t		bytes;
};

/* at most so many observations look for takers at a time */
#define ASSIGN_LOOKS_MAX 8192

#endif							/* GEONN_CPU_ASSIGN_STATE_H */
