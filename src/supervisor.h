/*
 * supervisor.h
 *		The background worker that owns the engine.
 */
#ifndef GEONN_SUPERVISOR_H
#define GEONN_SUPERVISOR_H

#include "postmaster/bgworker.h"

/* whether this process has the module from the server's start */
extern bool geonn_preloaded;

/* Have it started with the server; while shared_preload_libraries load. */
extern void geonn_supervisor_register(void);

/*
 * Have it started now.  Returns NULL where no background worker can be had.
 */
extern BackgroundWorkerHandle *geonn_supervisor_launch(void);

extern PGDLLEXPORT void geonn_supervisor_main(Datum main_arg);

#endif							/* GEONN_SUPERVISOR_H */
