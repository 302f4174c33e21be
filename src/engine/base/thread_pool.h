/*
 * thread_pool.h
 *		How many threads work at a time, and the jobs that they share.
 */
#ifndef GEONN_THREAD_POOL_H
#define GEONN_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/atomics.h"

typedef void (*thread_pool_piece) (void *context, size_t number);

/*
 * Set, and get, how many threads may work at a time: 0 ... GEONN_CPU_THREADS_MAX (protocol.h); 0
 * means host_cores() threads.  Any thread may call these functions.
 */
extern void thread_pool_set_threads(uint64_t threads);
extern unsigned thread_pool_threads(void);

/*
 * thread_pool_enter() waits for a free seat, and takes it for the calling thread, which keeps the seat for its jobs and
 * for its work between them.  A thread that has a seat already keeps it, unless other threads wait for one: then the
 * thread goes to the end of their line.  thread_pool_leave() gives the thread's seat back, if it has one.
 */
extern void thread_pool_enter(void);
extern void thread_pool_leave(void);

/*
 * Run piece(context, 0 ... pieces - 1), in any order, on the calling thread and on as many others as may work, and return
 * when all pieces have ended.  A calling thread without a seat first waits for one, and gives it back after the job.  Any
 * thread may call this function, but a piece must not.  If threads cannot be created, fewer threads do the work.
 */
extern void thread_pool_run(thread_pool_piece piece, void *context, size_t pieces);

/*
 * Run the pieces as several jobs of `turn` pieces each, the lower numbers first, so that jobs of other callers run in
 * between.  Once *cancelled is set, returns false; pieces that have not begun do not run.  cancelled may be NULL.
 */
extern bool thread_pool_run_turns(thread_pool_piece piece, void *context, size_t pieces,
								  size_t turn, const atomic_bool *cancelled);

/* End the pool's threads; a later job runs on its caller's thread alone. */
extern void thread_pool_close(void);

/* Lower the priority of the calling thread, so that PostgreSQL's backends come first. */
extern void thread_pool_lower_priority(void);

#endif							/* GEONN_THREAD_POOL_H */
