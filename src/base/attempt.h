/*
 * attempt.h
 *		Steps whose errors do not end the statement.
 */
#ifndef GEONN_ATTEMPT_H
#define GEONN_ATTEMPT_H

/* Copy the present error into this memory context, and flush the error state. */
extern ErrorData *geonn_take_error(MemoryContext context);

/*
 * Run a step in a subtransaction, so that only the step is rolled back if it fails.  Returns the error
 * with which it ended, in the current memory context, or NULL.
 */
extern ErrorData *geonn_attempt(void (*step) (void *state), void *state);

#endif							/* GEONN_ATTEMPT_H */
