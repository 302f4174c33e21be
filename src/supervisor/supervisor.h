/*
 * supervisor.h
 *		The background worker that owns the engine.
 */
#ifndef GEONN_SUPERVISOR_H
#define GEONN_SUPERVISOR_H

#include "postmaster/bgworker.h"

/* Whether this module was loaded at the server's start, by shared_preload_libraries. */
extern bool geonn_preloaded;

/* Have the supervisor started with the server.  The module calls this while shared_preload_libraries load. */
extern void geonn_supervisor_register(void);

/* Have the supervisor started now.  Returns NULL if no background worker is free. */
extern BackgroundWorkerHandle *geonn_supervisor_launch(void);

extern PGDLLEXPORT void geonn_supervisor_main(Datum main_arg);

#endif							/* GEONN_SUPERVISOR_H */
