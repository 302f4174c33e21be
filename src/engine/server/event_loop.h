/*
 * event_loop.h
 *		What the server's thread waits for: descriptors, and a wake from other threads.
 *
 * All of this is the server thread's alone, but for event_loop_wake.
 */
#ifndef GEONN_EVENT_LOOP_H
#define GEONN_EVENT_LOOP_H

#include <stdbool.h>

/*
 * Open the loop; `wake` is the mark that event_loop_wait gives after a wake.  False with
 * errno.
 */
extern bool event_loop_open(void *wake);

/* Wait for what can be read from this descriptor, too, under this mark.  False with errno. */
extern bool event_loop_watch(int descriptor, void *mark);

/*
 * Watch a descriptor no more, before it is closed.  Closing alone would not end the events:
 * where another process looks at this one's descriptors at that moment, it keeps the file
 * open, and what the mark points to may be freed before.
 */
extern void event_loop_unwatch(int descriptor);

/*
 * Wait until something can be read, for timeout_ms at most, or without end where that is -1.
 * The marks of what can be read go to marks[0 ... room - 1]; returns how many they are, and 0
 * or less where time is up or a signal came.
 */
extern int	event_loop_wait(void **marks, int room, int timeout_ms);

/* Let the server's thread look at what other threads have finished; any thread. */
extern void event_loop_wake(void);

/* Forget the wakes so far. */
extern void event_loop_clear_wake(void);

#endif							/* GEONN_EVENT_LOOP_H */
