/*
 * bench.h
 *		The benchmark's vocabulary: what is run, and what came out of it.
 */
#ifndef GEONN_BENCH_H
#define GEONN_BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/protocol.h"
#include "../lib/oracle.h"
#include "conditions.h"

#define BENCH_REPETITIONS_MAX 1000
#define BENCH_GPUS_MAX 64

/* where the points are before a run, and the answers after it */
enum bench_data
{
	BENCH_DATA_HOST,			/* in the engine's batches: host memory that the
								 * client shares with it */
	BENCH_DATA_DEVICE			/* in the GPUs' memory */
};

/* One line of a table. */
struct problem
{
	uint64_t	observations;	/* at least 1 */
	uint32_t	references;		/* at least 1 */
	uint32_t	k;				/* 1 ... GEONN_K_MAX; of a count: how many
								 * pairs an observation has */
	uint32_t	radii;			/* for data on the host: references are counted within so many
								 * radii; 0: no count */
	double		radius[GEONN_RADII_MAX];	/* metres, rising */
	enum points_distribution distribution;
	struct conditions conditions;	/* all 0: none */
	enum geonn_metric metric;	/* other than the sphere for data on the host alone */
	uint64_t	seed;
	enum geonn_algorithm algorithm;
	enum geonn_device_choice device;	/* CPU or CUDA */
	enum bench_data data;
	int			gpus;			/* that take part; 0 on the CPU */
	int			threads;		/* of the CPU's; 0: one for each core */
	uint32_t	batch_rows;		/* observations of a batch; 0: as suits */
	int			repetitions;	/* timed, after one that is not */
	double		limit_ms;		/* no repetition begins later than this; may be
								 * INFINITY */
	uint32_t	checked;		/* observations whose answers are checked; at
								 * least 1 */
	const char *engine;			/* its program, for data on the host */
};

/* What came of it; times in milliseconds. */
struct outcome
{
	bool		finished;
	char		failure[512];	/* why not, where it is not */

	int			repetitions;	/* that there was time for, in their order: */
	double		total_ms[BENCH_REPETITIONS_MAX];
	double		build_ms[BENCH_REPETITIONS_MAX];	/* on GPUs: the building's share */
	double		sort_ms[BENCH_REPETITIONS_MAX]; /* on GPUs: the sorting of the
												 * observations, where known */
	double		best_ms;		/* of all repetitions */
	double		median_ms;
	double		worst_ms;
	double		best_build_ms;
	double		median_build_ms;
	double		worst_build_ms;
	double		best_sort_ms;

	/* on the host, before the repetitions */
	double		sent_ms;		/* references sent and sealed */
	double		first_ms;		/* the first search, which builds */

	struct verdict verdict;
};

/* The least, the median and the greatest of at most BENCH_REPETITIONS_MAX times, or other numbers. */
extern void bench_summarize(const double *times, size_t count, double *least, double *median, double *greatest);

/*
 * Fill in the times of the best, the median and the worst repetition.
 */
extern void outcome_summarize(struct outcome *outcome);

/*
 * Run a problem.  Where that does not work the outcome is not finished, and
 * its failure says why.
 */
extern void bench_run(const struct problem *problem, struct outcome *outcome);

/* Memory for so many things of this size, all 0; without it, end the program with a message. */
extern void *bench_allocate(size_t count, size_t size);

/* the tag of a reference, so that none is its own number */
POINTS_FUNCTION int64_t
bench_tag(uint64_t reference)
{
	return -1 - (int64_t) reference;
}

#endif							/* GEONN_BENCH_H */
