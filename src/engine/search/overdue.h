/*
 * overdue.h
 *		Whether the operations of devices' threads end in time.
 */
#ifndef GEONN_OVERDUE_H
#define GEONN_OVERDUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * An operation of a device may take this many ms, of the time that the engine is given.  A build may take one microsecond
 * more for each reference, and may spend half of this time waiting for another device's build.
 */
#define OPERATION_PATIENCE_MS 60000

/* A thread's present operation.  Its owner zeroes it before first use. */
struct operation
{
	atomic_llong due_ms;		/* when the operation should be over, in ms of the time that the engine was given; 0:
								 * no operation is under way */
};

/* Begin to measure the time that the engine is given. */
extern void overdue_open(void);

/* Note that an operation begins, which may take patience_ms; and that it ends. */
extern void operation_begin(struct operation *operation, int64_t patience_ms);
extern void operation_end(struct operation *operation);

/* Read the time that the engine was given.  Only for the server's thread. */
extern void overdue_look(void);

/* Return whether an operation should have been over at the last overdue_look().  Only for the server's thread. */
extern bool operation_is_overdue(const struct operation *operation);

#endif							/* GEONN_OVERDUE_H */
