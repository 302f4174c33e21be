/*
 * bench.c
 *		One run, wherever its data is, and what its times amount to.
 */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu_run.h"
#include "host_run.h"

static int
compare_times(const void *left, const void *right)
{
	double		a = *(const double *) left;
	double		b = *(const double *) right;

	return (a > b) - (a < b);
}

static double
smallest(const double *times, size_t count)
{
	double		least = times[0];

	for (size_t i = 1; i < count; i++)
		least = fmin(least, times[i]);
	return least;
}

void
bench_summarize(const double *times, size_t count, double *least, double *median, double *greatest)
{
	double		sorted[BENCH_REPETITIONS_MAX];

	memcpy(sorted, times, count * sizeof(double));
	qsort(sorted, count, sizeof(double), compare_times);
	*least = sorted[0];
	*median = 0.5 * (sorted[(count - 1) / 2] + sorted[count / 2]);
	*greatest = sorted[count - 1];
}

void
outcome_summarize(struct outcome *outcome)
{
	size_t		count = (size_t) outcome->repetitions;

	bench_summarize(outcome->total_ms, count, &outcome->best_ms, &outcome->median_ms, &outcome->worst_ms);
	bench_summarize(outcome->build_ms, count, &outcome->best_build_ms, &outcome->median_build_ms,
					&outcome->worst_build_ms);
	outcome->best_sort_ms = smallest(outcome->sort_ms, count);
}

void
bench_run(const struct problem *problem, struct outcome *outcome)
{
	struct host_run *run;

	memset(outcome, 0, sizeof(*outcome));
	if (problem->data == BENCH_DATA_DEVICE)
	{
		gpu_run(problem, outcome);
		return;
	}
	run = host_run_open(problem, outcome->failure);
	if (run == NULL)
		return;
	host_run_search(run, problem, outcome);
	host_run_close(run);
}

void *
bench_allocate(size_t count, size_t size)
{
	void	   *memory = calloc(count, size);

	if (memory == NULL)
	{
		fprintf(stderr, "geonn-bench: not enough memory for %zu times %zu bytes\n", count, size);
		exit(EXIT_FAILURE);
	}
	return memory;
}
