/*
 * gpu_share.cuh
 *		One GPU's share of a run, for the sources of gpu_run.cu.
 */
#ifndef GEONN_BENCH_GPU_SHARE_CUH
#define GEONN_BENCH_GPU_SHARE_CUH

#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

#include "cuda/index/index.cuh"

extern "C"
{
#include "bench.h"
#include "gpu_run.h"
}

#define GPU_ALLOCATIONS_MAX 4096

struct gpu_run;

struct gpu_share
{
	struct gpu_run *run;
	const struct problem *problem;
	int			gpu;
	pthread_t	thread;
	char		failure[512];	/* empty: none so far */

	uint64_t	first;			/* of all observations */
	uint64_t	rows;
	uint32_t	k;				/* of each observation, no more than there are */

	/* on the GPU */
	struct points_city *cities;
	double	   *reference_latitude; /* degrees */
	double	   *reference_longitude;
	int64_t    *reference_tag;
	double	   *latitude;		/* [rows] degrees */
	double	   *longitude;

	/*
	 * Answers on the GPU, in any order: the i-th ones are those of observation
	 * row[i] of the batch of batch_rows that i is in.
	 */
	int64_t    *tag;			/* [rows * k] */
	double	   *distance;
	uint32_t   *row;			/* [rows] */
	uint64_t	batch_rows;		/* the method's */
	bool		sorts;			/* it records `sorted` */

	void	   *state;			/* the method's; freed with free() */
	cudaEvent_t started;
	cudaEvent_t built;
	cudaEvent_t sorted;			/* (optional) */
	cudaEvent_t ended;

	int			repetitions;
	double		total_ms[BENCH_REPETITIONS_MAX];
	double		build_ms[BENCH_REPETITIONS_MAX];
	double		sort_ms[BENCH_REPETITIONS_MAX];
	unsigned long long nonsense;	/* answers that can't be */
	struct sample *samples;
	uint32_t	sample_count;

	int			allocations;
	void	   *allocation[GPU_ALLOCATIONS_MAX];
};

/*
 * A way to search.  All but release say whether it worked; where not, the
 * share's failure tells.
 */
struct gpu_method
{
	/* allocate, and set state and batch_rows */
	bool		(*prepare) (struct gpu_share *share);

	/* (optional) before each repetition, not timed */
	bool		(*refresh) (struct gpu_share *share);

	/* enqueue it all, and record the events, in the default stream */
	bool		(*repeat) (struct gpu_share *share);

	/* (optional) after the last repetition: put the answers in place */
	bool		(*collect) (struct gpu_share *share);

	/* (optional) give back what gpu_allocate did not give */
	void		(*release) (struct gpu_share *share);
};

extern const struct gpu_method gpu_index;
extern const struct gpu_method gpu_neighbours;
extern const struct gpu_method gpu_brute;

/* Is this success?  Else the failure says what did not work. */
extern bool gpu_fine(struct gpu_share *share, cudaError_t error, const char *what);

/* Memory of the GPU until the run ends, or NULL with the failure. */
extern void *gpu_allocate(struct gpu_share *share, size_t bytes, const char *what);

/* Zeroed memory for the share's state, or NULL with the failure. */
extern void *gpu_state(struct gpu_share *share, size_t bytes);

/* Make points of a set on the GPU. */
extern bool gpu_fill(struct gpu_share *share, enum points_set set, uint64_t first,
					 uint64_t count, double *latitude, double *longitude);

/* For a method whose answers are in the order of the observations: row. */
extern bool gpu_number_rows(struct gpu_share *share);

/* An index of the references that can be built again and again (gpu_index.cu). */
struct gpu_built_index
{
	struct index index;
	struct index_source source;
	void	   *room;			/* for building */
};

extern bool gpu_index_prepare(struct gpu_share *share, struct gpu_built_index *built);

/* Enqueue the building, between the events started and built. */
extern bool gpu_index_build(struct gpu_share *share, struct gpu_built_index *built);

#endif							/* GEONN_BENCH_GPU_SHARE_CUH */
