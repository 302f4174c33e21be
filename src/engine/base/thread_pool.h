/*
 * thread_pool.h
 *		The CPU device's threads, which share one job at a time piece by piece.
 */
#ifndef GEONN_THREAD_POOL_H
#define GEONN_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/atomics.h"

/* more than any machine at hand has; geonn.cpu_threads has the same bound */
#define THREAD_POOL_MAX 1024

typedef void (*thread_pool_piece) (void *context, size_t number);

/*
 * How many threads the next job may use, the caller's included: 0 ...
 * THREAD_POOL_MAX; 0 means host_cores() of them.  Any thread may call it.
 */
extern void thread_pool_set_threads(uint64_t threads);
extern unsigned thread_pool_threads(void);

/*
 * Run piece(context, 0 ... pieces - 1), in any order, on all threads, and
 * return when all have ended.  Any thread may call it, though no piece may; it
 * waits while the jobs run that others asked for before.  Where threads can't be
 * created, fewer do the work.
 */
extern void thread_pool_run(thread_pool_piece piece, void *context, size_t pieces);

/*
 * The same as jobs of `turn` pieces each, the lower ones first, so that others'
 * jobs come in between.  False, with the rest left out, once *cancelled is set; it
 * may be NULL.
 */
extern bool thread_pool_run_turns(thread_pool_piece piece, void *context, size_t pieces,
								  size_t turn, const atomic_bool *cancelled);

/* End the threads; jobs that come later have their caller's thread alone. */
extern void thread_pool_close(void);

/* Let the calling thread yield to backends: PostgreSQL's work comes first. */
extern void thread_pool_lower_priority(void);

#endif							/* GEONN_THREAD_POOL_H */
