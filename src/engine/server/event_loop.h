/*
 * event_loop.h
 *		Lets the server's thread wait for descriptors, and for a wake from
 *		other threads.
 *
 * Only the server's thread uses these functions; event_loop_wake is for any
 * thread.
 */
#ifndef GEONN_EVENT_LOOP_H
#define GEONN_EVENT_LOOP_H

#include <stdbool.h>

/*
 * Open the loop.  After event_loop_wake(), event_loop_run() calls handle() with the mark `wake`.
 * Returns false with errno on failure.
 */
extern bool event_loop_open(void *wake);

/*
 * Let event_loop_run() call handle() with this mark whenever the descriptor can be read.  Returns
 * false with errno on failure.
 */
extern bool event_loop_watch(int descriptor, void *mark);

/*
 * Stop watching a descriptor, before it is closed.  Closing alone does not
 * reliably end its events: a process that inspects this one's descriptors at
 * that moment keeps the file open.  Then an event could come after the object
 * behind the mark has been freed.
 */
extern void event_loop_unwatch(int descriptor);

/*
 * Wait until a descriptor can be read, for timeout_ms at most (-1: without limit).  Then call
 * handle() with the mark of each descriptor that can be read, up to a fixed number.
 */
extern void event_loop_run(int timeout_ms, void (*handle) (void *mark));

/* Wake the server's thread, so that it looks for finished work of other threads.  Any thread may call this. */
extern void event_loop_wake(void);

/* Forget the wakes so far. */
extern void event_loop_clear_wake(void);

#endif							/* GEONN_EVENT_LOOP_H */
