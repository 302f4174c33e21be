/*
 * scaling.h
 *		How many times as much several threads of this machine compute as one
 *		does, whatever program they run.
 */
#ifndef GEONN_BENCH_SCALING_H
#define GEONN_BENCH_SCALING_H

#include <stdbool.h>

/* of the repetitions */
struct scaling
{
	double		median;
	double		least;
	double		greatest;
};

/*
 * Measure arithmetic in registers alone, by at least 2 threads: what cores share, such as their clock and the two
 * threads of a core, is what keeps the result below the number of threads.  False if threads cannot be created.
 */
extern bool measure_scaling(int threads, struct scaling *scaling);

#endif							/* GEONN_BENCH_SCALING_H */
