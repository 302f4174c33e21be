/*
 * host_run.h
 *		Runs from host memory to host memory, through the engine.
 */
#ifndef GEONN_BENCH_HOST_RUN_H
#define GEONN_BENCH_HOST_RUN_H

#include <stdio.h>

#include "bench.h"

struct host_run;

/*
 * Start an engine and give it the points.  Returns NULL, with the reason in
 * failure (of 512 bytes), where that does not work.
 */
extern struct host_run *host_run_open(const struct problem *problem, char *failure);

/*
 * Search and check.  The problem may differ from the one given to open in
 * algorithm, repetitions, limit and number of samples.  After a failure the
 * run can only be closed.
 */
extern void host_run_search(struct host_run *run, const struct problem *problem,
							struct outcome *outcome);

/*
 * Search once more, for one neighbour, and write to a file, as float64: the
 * references' latitudes and longitudes, the observations' latitudes and
 * longitudes, the numbers of their nearest references, and the distances.
 */
extern bool host_run_export(struct host_run *run, const struct problem *problem,
							FILE *file, char *failure);

extern void host_run_close(struct host_run *run);

#endif							/* GEONN_BENCH_HOST_RUN_H */
