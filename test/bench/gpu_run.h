/*
 * gpu_run.h
 *		Runs on data that is in the GPUs' memory.
 */
#ifndef GEONN_BENCH_GPU_RUN_H
#define GEONN_BENCH_GPU_RUN_H

#include "bench.h"

#ifdef __cplusplus
extern "C"
{
#endif

/*
 * How many GPUs CUDA shows; where there are none, the reason is in failure (of
 * 512 bytes).
 */
extern int	gpu_count(char *failure);

/* The name of a GPU, of at most 256 bytes. */
extern void gpu_name(int number, char *name);

/* Run a problem whose data is on the devices. */
extern void gpu_run(const struct problem *problem, struct outcome *outcome);

#ifdef __cplusplus
}
#endif

#endif							/* GEONN_BENCH_GPU_RUN_H */
