/*
 * backend_shim.h
 *		As much of a PostgreSQL backend as the module's client of the engine calls.
 */
#ifndef GEONN_BACKEND_SHIM_H
#define GEONN_BACKEND_SHIM_H

#include "postgres.h"

/*
 * Run this in a memory context of its own, which is deleted afterwards, as that of a
 * statement.  Returns whether it came to its end, and did not raise an error.
 */
extern bool backend_run(void (*statement) (void *argument), void *argument);

/* The message of the last error. */
extern const char *backend_error(void);

/* The statement is cancelled, as soon as it asks. */
extern void backend_cancel(void);

/*
 * What the engine is to a backend: a peer to connect to, which acts while the backend
 * waits.  The caller's.
 */
extern int	engine_connect(void);
extern void engine_turn(void);

#endif							/* GEONN_BACKEND_SHIM_H */
