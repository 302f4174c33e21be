/*
 * suites.h
 *		Lists of runs: the published table, and the goals.
 */
#ifndef GEONN_BENCH_SUITES_H
#define GEONN_BENCH_SUITES_H

#include <stdio.h>

#include "bench.h"
#include "report.h"

/*
 * Run a list on whatever this machine has, print it as a table, and put the
 * runs into the JSON file if there is one.  The model gives seed, repetitions,
 * limit, samples and engine of all runs.  False where answers were wrong.
 */
extern bool suite_table(const struct machine *machine, const struct problem *model, FILE *json);
extern bool suite_goals(const struct machine *machine, const struct problem *model, FILE *json);

#endif							/* GEONN_BENCH_SUITES_H */
