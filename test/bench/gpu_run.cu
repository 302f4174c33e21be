/*
 * gpu_run.cu
 *		Runs on data that is in the GPUs' memory.
 *
 * Each GPU has a thread, all references, and its share of the observations,
 * which it makes itself.  A repetition begins for all threads at a barrier.
 * It covers everything from degrees on the GPU to tags and distances on the
 * GPU: what is searched in is built anew each time, the observations are
 * sorted anew.  Each GPU takes its own time by events, and the slowest one's is
 * the run's.
 *
 *	gpu_index.cu		the nearest reference by the index
 *	gpu_neighbours.cu	k neighbours by the index
 *	gpu_brute.cu		the nearest reference by brute force
 *
 * Before a repetition the answers are overwritten with nonsense.  After the
 * last one a kernel looks at every answer (is each observation there once, with
 * references that exist and distances that can be?), and the oracle at a
 * sample.
 */
#include "gpu_share.cuh"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C"
{
#include "../lib/engine_client.h"
}

/* an answer made of these bytes is none */
#define NONSENSE 0x7F

/* half a great circle, metres, and a little more */
#define DISTANCE_MAX 20015200.0

/* what all threads share */
struct gpu_run
{
	const struct problem *problem;
	const struct gpu_method *method;
	pthread_barrier_t barrier;
	struct gpu_share *shares;
	int			count;
	double		begin_ms;
	bool		enough;			/* no more repetitions; the first thread's */
	struct points_city cities[POINTS_CITY_COUNT];
};

int
gpu_count(char *failure)
{
	int			count = 0;
	cudaError_t error = cudaGetDeviceCount(&count);

	if (error == cudaSuccess && count > 0)
		return count;
	snprintf(failure, 512, "%s", error != cudaSuccess ? cudaGetErrorString(error) :
			 "CUDA shows none");
	return 0;
}

void
gpu_name(int number, char *name)
{
	struct cudaDeviceProp properties;

	name[0] = '\0';
	if (cudaGetDeviceProperties(&properties, number) == cudaSuccess)
		snprintf(name, 256, "%s", properties.name);
}

bool
gpu_fine(struct gpu_share *share, cudaError_t error, const char *what)
{
	if (error != cudaSuccess && share->failure[0] == '\0')
		snprintf(share->failure, sizeof(share->failure), "GPU %d, %s: %s", share->gpu, what,
				 cudaGetErrorString(error));
	return error == cudaSuccess;
}

void *
gpu_allocate(struct gpu_share *share, size_t bytes, const char *what)
{
	void	   *memory = NULL;
	size_t		available = 0;
	size_t		total = 0;

	if (share->failure[0] != '\0')
		return NULL;
	if (share->allocations == GPU_ALLOCATIONS_MAX)
	{
		snprintf(share->failure, sizeof(share->failure), "GPU %d: more than %d allocations",
				 share->gpu, GPU_ALLOCATIONS_MAX);
		return NULL;
	}
	if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess)
	{
		cudaGetLastError();
		cudaMemGetInfo(&available, &total);
		snprintf(share->failure, sizeof(share->failure),
				 "GPU %d: %s needs %zu MiB, and %zu MiB are free", share->gpu, what,
				 bytes >> 20, available >> 20);
		return NULL;
	}
	share->allocation[share->allocations++] = memory;
	return memory;
}

void *
gpu_state(struct gpu_share *share, size_t bytes)
{
	share->state = calloc(1, bytes);
	if (share->state == NULL)
		snprintf(share->failure, sizeof(share->failure), "not enough memory");
	return share->state;
}

static __global__ void
row_kernel(uint64_t rows, uint64_t batch_rows, uint32_t *row)
{
	uint64_t	i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x;

	if (i < rows)
		row[i] = (uint32_t) (i % batch_rows);
}

bool
gpu_number_rows(struct gpu_share *share)
{
	row_kernel<<<(uint32_t) ((share->rows + 255) / 256), 256>>>(share->rows, share->batch_rows,
																share->row);
	return gpu_fine(share, cudaGetLastError(), "answers");
}

/*
 * Points
 */

static __global__ void
fill_kernel(struct points points, uint64_t first, uint64_t count, double *latitude,
			double *longitude)
{
	uint64_t	i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x;

	if (i < count)
	{
		struct point point = points_get(&points, first + i);

		latitude[i] = point.latitude;
		longitude[i] = point.longitude;
	}
}

static __global__ void
tag_kernel(uint32_t count, int64_t *tag)
{
	uint32_t	i = blockIdx.x * blockDim.x + threadIdx.x;

	if (i < count)
		tag[i] = bench_tag(i);
}

bool
gpu_fill(struct gpu_share *share, enum points_set set, uint64_t first, uint64_t count,
		 double *latitude, double *longitude)
{
	struct points points = points_of(share->problem->distribution, share->problem->seed, set,
									 share->cities);

	fill_kernel<<<(uint32_t) ((count + 255) / 256), 256>>>(points, first, count, latitude,
														   longitude);
	return gpu_fine(share, cudaGetLastError(), "points");
}

/*
 * References in degrees, and their tags.
 */
static bool
make_references(struct gpu_share *share, const struct points_city *cities)
{
	uint32_t	count = share->problem->references;

	share->cities = (struct points_city *) gpu_allocate(share, sizeof(struct points_city) *
														POINTS_CITY_COUNT, "the cities");
	share->reference_latitude = (double *) gpu_allocate(share, count * sizeof(double), "references");
	share->reference_longitude = (double *) gpu_allocate(share, count * sizeof(double), "references");
	share->reference_tag = (int64_t *) gpu_allocate(share, count * sizeof(int64_t), "references");
	if (share->failure[0] != '\0' ||
		!gpu_fine(share, cudaMemcpy(share->cities, cities, sizeof(struct points_city) *
									POINTS_CITY_COUNT, cudaMemcpyHostToDevice), "cities") ||
		!gpu_fill(share, POINTS_REFERENCES, 0, count, share->reference_latitude,
				  share->reference_longitude))
		return false;
	tag_kernel<<<(count + 255) / 256, 256>>>(count, share->reference_tag);
	return gpu_fine(share, cudaGetLastError(), "tags");
}

/*
 * Observations in degrees, and room for their answers.
 */
static bool
make_observations(struct gpu_share *share)
{
	uint64_t	pairs = share->rows * share->k;

	share->latitude = (double *) gpu_allocate(share, share->rows * sizeof(double), "observations");
	share->longitude = (double *) gpu_allocate(share, share->rows * sizeof(double), "observations");
	share->tag = (int64_t *) gpu_allocate(share, pairs * sizeof(int64_t), "answers");
	share->distance = (double *) gpu_allocate(share, pairs * sizeof(double), "answers");
	share->row = (uint32_t *) gpu_allocate(share, share->rows * sizeof(uint32_t), "answers");
	return share->failure[0] == '\0' &&
		gpu_fill(share, POINTS_OBSERVATIONS, share->first, share->rows, share->latitude,
				 share->longitude);
}

/*
 * Checks
 */

/*
 * Count answers that can't be, and mark the observations that have one.  Nine
 * parameters: a share is the host's, so a kernel takes what it needs of it.
 */
static __global__ void
look_kernel(uint64_t rows, uint32_t k, uint32_t references, const uint32_t *row,
			const int64_t *tag, const double *distance, uint64_t batch_rows, uint32_t *seen,
			unsigned long long *wrong)
{
	uint64_t	i = blockIdx.x * (uint64_t) blockDim.x + threadIdx.x;
	uint64_t	observation;
	bool		fine;

	if (i >= rows)
		return;
	observation = i / batch_rows * batch_rows + row[i];
	fine = row[i] < batch_rows && observation < rows;
	for (uint64_t j = i * k; fine && j < (i + 1) * k; j++)
		fine = bench_tag((uint64_t) tag[j]) >= 0 && bench_tag((uint64_t) tag[j]) < references &&
			distance[j] >= 0.0 && distance[j] <= DISTANCE_MAX;
	if (!fine || (atomicOr(&seen[observation / 32], 1u << observation % 32) >> observation % 32 & 1))
		atomicAdd(wrong, 1ULL);
}

/*
 * Look at all answers.  As many as there are observations, all sound and no
 * observation twice: so none is missing.
 */
static bool
look_at_all(struct gpu_share *share)
{
	uint64_t	words = share->rows / 32 + 1;
	uint32_t	k = share->k;
	uint32_t   *seen = (uint32_t *) gpu_allocate(share, words * sizeof(uint32_t), "checking");
	unsigned long long *wrong =
		(unsigned long long *) gpu_allocate(share, sizeof(unsigned long long), "checking");
	unsigned long long count = 0;

	if (share->failure[0] != '\0' ||
		!gpu_fine(share, cudaMemset(seen, 0, words * sizeof(uint32_t)), "checking") ||
		!gpu_fine(share, cudaMemset(wrong, 0, sizeof(unsigned long long)), "checking"))
		return false;
	look_kernel<<<(uint32_t) ((share->rows + 255) / 256), 256>>>(share->rows, k,
																 share->problem->references, share->row,
																 share->tag, share->distance,
																 share->batch_rows, seen, wrong);
	if (!gpu_fine(share, cudaGetLastError(), "checking") ||
		!gpu_fine(share, cudaMemcpy(&count, wrong, sizeof(count), cudaMemcpyDeviceToHost), "checking"))
		return false;
	share->nonsense = count;
	return true;
}

/*
 * Copy some answers to the host.
 */
static bool
take_samples(struct gpu_share *share)
{
	uint32_t	k = share->k;

	for (uint32_t i = 0; i < share->sample_count; i++)
	{
		struct sample *sample = &share->samples[i];
		uint64_t	at = (uint64_t) (points_random(share->problem->seed + 3 + (uint64_t) share->gpu, i) *
									 (double) share->rows);
		uint32_t	row;
		size_t		bytes = k * sizeof(int64_t);

		sample->reference = (int64_t *) malloc(bytes);
		sample->distance = (double *) malloc(bytes);
		sample->count = k;
		if (sample->reference == NULL || sample->distance == NULL)
		{
			snprintf(share->failure, sizeof(share->failure), "not enough memory");
			return false;
		}
		if (!gpu_fine(share, cudaMemcpy(&row, share->row + at, sizeof(row),
										cudaMemcpyDeviceToHost), "answers") ||
			!gpu_fine(share, cudaMemcpy(sample->reference, share->tag + at * k, bytes,
										cudaMemcpyDeviceToHost), "answers") ||
			!gpu_fine(share, cudaMemcpy(sample->distance, share->distance + at * k, bytes,
										cudaMemcpyDeviceToHost), "answers"))
			return false;
		sample->observation = share->first + at / share->batch_rows * share->batch_rows + row;
		for (uint32_t j = 0; j < k; j++)
			sample->reference[j] = bench_tag((uint64_t) sample->reference[j]);
	}
	return true;
}

/*
 * Threads
 */

/*
 * All threads come here; whether to go on, which is the same for all.
 */
static bool
meet(struct gpu_run *run)
{
	bool		sound = true;

	pthread_barrier_wait(&run->barrier);
	for (int i = 0; i < run->count; i++)
		sound = sound && run->shares[i].failure[0] == '\0';
	/* nobody may fail before all have looked */
	pthread_barrier_wait(&run->barrier);
	return sound;
}

static bool
prepare(struct gpu_run *run, struct gpu_share *share)
{
	return gpu_fine(share, cudaSetDevice(share->gpu), "device") &&
		gpu_fine(share, cudaEventCreate(&share->started), "event") &&
		gpu_fine(share, cudaEventCreate(&share->built), "event") &&
		gpu_fine(share, cudaEventCreate(&share->sorted), "event") &&
		gpu_fine(share, cudaEventCreate(&share->ended), "event") &&
		make_references(share, run->cities) && make_observations(share) &&
		run->method->prepare(share);
}

/*
 * Before a repetition, the times not running.
 */
static bool
refresh(struct gpu_run *run, struct gpu_share *share)
{
	size_t		pairs = share->rows * share->k;

	return gpu_fine(share, cudaMemset(share->tag, NONSENSE, pairs * sizeof(int64_t)), "answers") &&
		gpu_fine(share, cudaMemset(share->distance, NONSENSE, pairs * sizeof(double)), "answers") &&
		gpu_fine(share, cudaMemset(share->row, NONSENSE, share->rows * sizeof(uint32_t)), "answers") &&
		(run->method->refresh == NULL || run->method->refresh(share)) &&
		gpu_fine(share, cudaDeviceSynchronize(), "answers");
}

static bool
repeat(struct gpu_run *run, struct gpu_share *share, int repetition)
{
	float		build_ms = 0.0f;
	float		sort_ms = 0.0f;
	float		total_ms = 0.0f;

	if (!run->method->repeat(share) ||
		!gpu_fine(share, cudaEventSynchronize(share->ended), "search") ||
		!gpu_fine(share, cudaEventElapsedTime(&build_ms, share->started, share->built), "event") ||
		!gpu_fine(share, cudaEventElapsedTime(&total_ms, share->started, share->ended), "event") ||
		(share->sorts &&
		 !gpu_fine(share, cudaEventElapsedTime(&sort_ms, share->built, share->sorted), "event")))
		return false;
	if (repetition >= 0)
	{
		share->build_ms[repetition] = build_ms;
		share->sort_ms[repetition] = sort_ms;
		share->total_ms[repetition] = total_ms;
		share->repetitions = repetition + 1;
	}
	return true;
}

static void
finish(struct gpu_run *run, struct gpu_share *share)
{
	if (run->method->collect == NULL || run->method->collect(share))
		(void) (look_at_all(share) && take_samples(share));
}

static void
release(struct gpu_run *run, struct gpu_share *share)
{
	if (run->method->release != NULL)
		run->method->release(share);
	free(share->state);
	for (int i = 0; i < share->allocations; i++)
		cudaFree(share->allocation[i]);
	if (share->started != NULL)
		cudaEventDestroy(share->started);
	if (share->built != NULL)
		cudaEventDestroy(share->built);
	if (share->sorted != NULL)
		cudaEventDestroy(share->sorted);
	if (share->ended != NULL)
		cudaEventDestroy(share->ended);
}

static void *
share_main(void *argument)
{
	struct gpu_share *share = (struct gpu_share *) argument;
	struct gpu_run *run = share->run;
	bool		sound;

	prepare(run, share);
	sound = meet(run);
	for (int i = -1; sound && i < run->problem->repetitions && !run->enough; i++)
	{
		refresh(run, share);
		sound = meet(run);
		if (!sound)
			break;
		repeat(run, share, i);
		if (share->gpu == 0)
			run->enough = i >= 0 && now_ms() - run->begin_ms > run->problem->limit_ms;
		sound = meet(run);
	}
	if (sound)
		finish(run, share);
	release(run, share);
	return NULL;
}

/*
 * Hold the samples of all shares against the truth.
 */
static void
check_samples(const struct gpu_run *run, uint32_t count, struct sample *samples,
			  struct outcome *outcome)
{
	const struct problem *problem = run->problem;
	struct points references = points_of(problem->distribution, problem->seed, POINTS_REFERENCES,
										 run->cities);
	struct points observations = points_of(problem->distribution, problem->seed,
										   POINTS_OBSERVATIONS, run->cities);
	double	   *latitude = (double *) malloc(problem->references * sizeof(double));
	double	   *longitude = (double *) malloc(problem->references * sizeof(double));

	if (latitude == NULL || longitude == NULL)
	{
		snprintf(outcome->failure, sizeof(outcome->failure), "not enough memory for the oracle");
		outcome->finished = false;
	}
	else
	{
		points_fill_parallel(&references, 0, problem->references, latitude, longitude);
		for (uint32_t i = 0; i < count; i++)
			points_fill(&observations, samples[i].observation, 1, &samples[i].latitude,
						&samples[i].longitude);
		outcome->verdict = oracle_check(latitude, longitude, problem->references,
										problem->k, samples, count);
	}
	free(latitude);
	free(longitude);
}

/*
 * What the threads found becomes the outcome.
 */
static void
conclude(struct gpu_run *run, uint32_t count, struct sample *samples, struct outcome *outcome)
{
	unsigned long long nonsense = 0;

	for (int i = 0; i < run->count; i++)
	{
		const struct gpu_share *share = &run->shares[i];

		if (share->failure[0] != '\0')
		{
			snprintf(outcome->failure, sizeof(outcome->failure), "%s", share->failure);
			return;
		}
		nonsense += share->nonsense;
		outcome->repetitions = share->repetitions;
		for (int j = 0; j < share->repetitions; j++)
		{
			outcome->total_ms[j] = fmax(outcome->total_ms[j], share->total_ms[j]);
			outcome->build_ms[j] = fmax(outcome->build_ms[j], share->build_ms[j]);
			outcome->sort_ms[j] = fmax(outcome->sort_ms[j], share->sort_ms[j]);
		}
	}
	outcome->finished = true;
	outcome_summarize(outcome);
	check_samples(run, count, samples, outcome);
	if (nonsense > 0)
	{
		outcome->verdict.right = false;
		snprintf(outcome->verdict.wrong, sizeof(outcome->verdict.wrong),
				 "%llu observations have no sound answer, or more than one", nonsense);
	}
}

void
gpu_run(const struct problem *problem, struct outcome *outcome)
{
	struct gpu_run *run = (struct gpu_run *) calloc(1, sizeof(struct gpu_run));
	struct gpu_share *shares = (struct gpu_share *) calloc(problem->gpus, sizeof(struct gpu_share));
	struct sample *samples = (struct sample *) calloc(problem->checked, sizeof(struct sample));
	uint64_t	gpus = (uint64_t) problem->gpus;

	if (run == NULL || shares == NULL || samples == NULL)
	{
		fprintf(stderr, "geonn-bench: not enough memory\n");
		exit(EXIT_FAILURE);
	}
	run->problem = problem;
	run->shares = shares;
	run->count = problem->gpus;
	run->begin_ms = now_ms();
	run->method = problem->algorithm == GEONN_ALGORITHM_BRUTE ? &gpu_brute :
		problem->k > 1 ? &gpu_neighbours : &gpu_index;
	points_make_cities(problem->seed, run->cities);
	pthread_barrier_init(&run->barrier, NULL, (unsigned) problem->gpus);
	for (uint64_t i = 0; i < gpus; i++)
	{
		struct gpu_share *share = &shares[i];
		uint32_t	first_sample = (uint32_t) (problem->checked * i / gpus);

		share->run = run;
		share->problem = problem;
		share->gpu = (int) i;
		share->first = problem->observations * i / gpus;
		share->rows = problem->observations * (i + 1) / gpus - share->first;
		share->k = problem->k < problem->references ? problem->k : problem->references;
		share->samples = samples + first_sample;
		share->sample_count = (uint32_t) (problem->checked * (i + 1) / gpus) - first_sample;
		if (pthread_create(&share->thread, NULL, share_main, share) != 0)
		{
			fprintf(stderr, "geonn-bench: could not start a thread\n");
			exit(EXIT_FAILURE);
		}
	}
	for (uint64_t i = 0; i < gpus; i++)
		pthread_join(shares[i].thread, NULL);
	conclude(run, problem->checked, samples, outcome);

	for (uint32_t i = 0; i < problem->checked; i++)
	{
		free(samples[i].reference);
		free(samples[i].distance);
	}
	pthread_barrier_destroy(&run->barrier);
	free(samples);
	free(shares);
	free(run);
}
