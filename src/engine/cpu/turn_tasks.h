/*
 * turn_tasks.h
 *		Tasks: what a turn that finds k neighbours makes of observations with windows.
 *
 * With windows an observation may have its candidates in several parts of the
 * index (cpu/index/slabs.c).  Each of these parts is a task: tasks are sorted as observations are
 * otherwise, so that neighbours in one part walk together.  When they have ended, the first k of
 * their answers in the order (distance, place) are the observation's.  An observation that reaches more than
 * CPU_TASKS_MAX parts has one task instead, a walk through all parts of its group.
 */
#ifndef GEONN_CPU_TURN_TASKS_H
#define GEONN_CPU_TURN_TASKS_H

#include "engine/cpu/turn.h"
#include "engine/search/candidates.h"

/* an observation becomes at most this many tasks */
#define CPU_TASKS_MAX 8

struct cpu_turn_tasks
{
	const struct search *search;
	const struct cpu_index *index;
	uint32_t	first;			/* row 0 is the search's observation with this number */

	/* columns by row; a row's tasks follow each other */
	uint32_t   *made;			/* how many tasks each row has */
	uint32_t   *first_task;

	/*
	 * columns by task, with room for CPU_TASKS_MAX a row: few observations have that many, and pages that
	 * are never touched take no memory
	 */
	atomic_uint claimed;		/* how many tasks have been made */
	uint64_t   *key;
	uint32_t   *number;			/* the task itself, for the sort */
	uint32_t   *row;
	struct candidate *best;		/* its k answers, or fewer and one of an infinite distance; of a negative one: none yet */
};

/* Make the tasks of `count` rows, at most CPU_VECTORS_BLOCK, which have these codes. */
extern void cpu_turn_make_tasks(struct cpu_turn_tasks *tasks, const uint32_t *row, const uint64_t *code, uint32_t count);

/*
 * Give a row's k nearest references, or fewer, from the answers of its tasks.  False if a task has no answer.
 */
extern bool cpu_turn_end_tasks(const struct cpu_turn_tasks *tasks, uint32_t row, struct candidate *best,
							   uint32_t *count);

#endif							/* GEONN_CPU_TURN_TASKS_H */
