/*
 * engine_start.h
 *		Connect a backend to the engine, and start the engine if none runs.
 */
#ifndef GEONN_ENGINE_START_H
#define GEONN_ENGINE_START_H

#include <sys/types.h>

/*
 * Return a connected socket, or raise the error that keeps the engine from running.  *engine_pid: before, an engine's
 * process that this backend has seen end, or 0; afterwards, the engine's process.
 */
extern int	geonn_engine_connect(pid_t *engine_pid);

#endif							/* GEONN_ENGINE_START_H */
