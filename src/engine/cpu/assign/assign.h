/*
 * assign.h
 *		Assigns the observations of a search to references with a capacity, on the CPU (protocol_search.h).
 */
#ifndef GEONN_CPU_ASSIGN_H
#define GEONN_CPU_ASSIGN_H

#include "engine/cpu/index/index.h"
#include "engine/search/device.h"

/* the work on the assignment for which one search asks, and its answer */
struct cpu_assign;

/* where an observation without a reference has none */
#define ASSIGN_NONE UINT32_MAX

/*
 * Begin with the assignment that a search asks for, by an index of its dataset, which must stay until the end, as must the
 * columns of the search's observations.  It takes at most GEONN_ASSIGN_BYTES for each observation and for each reference, and
 * 2048 more.  It first sorts the observations, on all threads that are free.  Returns NULL with the failure if memory is short.
 */
extern struct cpu_assign *cpu_assign_create(const struct search *search, const struct cpu_index *index, struct failure *failure);

/* Return how many bytes of memory it takes. */
extern size_t cpu_assign_bytes(const struct cpu_assign *assign);

/*
 * Work on the assignment of a search, on all threads that are free, until a time on the clock of now_ms(), or until the search is
 * cancelled, but do some work in any case.  Returns whether it is complete.  If memory is short, the search fails.
 */
extern bool cpu_assign_go_on(struct cpu_assign *assign, struct search *search, int64_t end_ms);

/*
 * Return the place of the reference to which an observation is assigned, once the assignment is complete, and set their
 * distance in metres.  ASSIGN_NONE: the observation has none.
 */
extern uint32_t cpu_assign_of(const struct cpu_assign *assign, uint32_t observation, double *distance);

/* Free the assignment; NULL is allowed. */
extern void cpu_assign_free(struct cpu_assign *assign);

/*
 * Have so many observations of a list, a part of those that look for references, find the first ones by (distance, place) that
 * have room for them, until the turn ends or the search is cancelled (assign_walk.c).
 */
extern void CPU_PATH_NAME(cpu_assign_find) (struct cpu_assign *assign, const uint32_t *list, uint32_t count);

#endif							/* GEONN_CPU_ASSIGN_H */
