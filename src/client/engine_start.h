/*
 * engine_start.h
 *		A backend's connection to the engine, which it starts if need be.
 */
#ifndef GEONN_ENGINE_START_H
#define GEONN_ENGINE_START_H

#include <sys/types.h>

/*
 * Returns a connected socket, or raises an error that says why there is no
 * engine.  *engine_pid is the process of one that this backend has seen end, or
 * 0, and then that of the engine.
 */
extern int	geonn_engine_connect(pid_t *engine_pid);

#endif							/* GEONN_ENGINE_START_H */
