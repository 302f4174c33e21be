/*
 * brute_resident.cu
 *		How fast is brute force on data that is on the GPU already?
 *
 * Makes references and observations on the GPU from a seed, searches them
 * repeatedly and prints the median rate in pairs a second, from unit vectors
 * to answers, and the share of observations that had to be redone.  The
 * observations are cut into batches of 2^22, all of which are under way at the
 * same time.  A sample of the answers is compared with the host's own brute
 * force; any difference is fatal.
 *
 * Usage: brute_resident [observations [references [layout [seed]]]]
 *
 *		observations, references	2^24 and 2^16 unless given; "2^N" is understood
 *		layout						of the references: uniform (unless given) on
 *									the sphere; cities, of a fifth of a degree,
 *									1,000 of them; clustered, within a hundredth
 *									of a degree; repeated, 1,000 places in turn;
 *									coincident, all in one place
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cuda_runtime.h>

#include "../../cuda/brute.cuh"
#include "../../src/common/geodesy.h"

#define BATCH_OBSERVATIONS ((uint32_t) 1 << 22)
#define RUNS 7
#define DEGREES_PER_RADIAN 57.29577951308232

enum layout
{
	UNIFORM,
	CITIES,
	CLUSTERED,
	REPEATED,
	COINCIDENT
};

static const char *const layout_names[] =
	{"uniform", "cities", "clustered", "repeated", "coincident"};

/* one batch, and the lane that it is searched in */
struct batch
{
	uint64_t	first;			/* observation */
	struct brute_room room;
	struct brute_search search;
};

static void
check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
	exit(2);
}

/* a number in [0, 1) that belongs to (seed, index): splitmix64 */
static __host__ __device__ double
random_number(uint64_t seed, uint64_t index)
{
	uint64_t	bits = seed + (index + 1) * 0x9E3779B97F4A7C15;

	bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
	bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
	bits ^= bits >> 31;
	return (double) (bits >> 11) * 0x1p-53;
}

static __device__ void
uniform_point(double a, double b, double *latitude, double *longitude)
{
	*latitude = asin(2.0 * a - 1.0) * DEGREES_PER_RADIAN;
	*longitude = 360.0 * b - 180.0;
}

static __global__ void
fill_kernel(double *latitude, double *longitude, uint64_t first, uint32_t rows, uint64_t seed,
			enum layout layout)
{
	uint32_t	row = blockIdx.x * 256 + threadIdx.x;
	uint64_t	place = (first + row) % 1000;
	double		a = random_number(seed, 2 * (first + row));
	double		b = random_number(seed, 2 * (first + row) + 1);

	if (row >= rows)
		return;
	switch (layout)
	{
		case UNIFORM:
			uniform_point(a, b, &latitude[row], &longitude[row]);
			break;
		case CITIES:
			uniform_point(random_number(seed + 3, 2 * place), random_number(seed + 3, 2 * place + 1),
						  &latitude[row], &longitude[row]);
			latitude[row] = fmin(fmax(latitude[row] + 0.2 * (a - 0.5), -90.0), 90.0);
			longitude[row] += 0.2 * b;
			break;
		case CLUSTERED:
			latitude[row] = 48.0 + 0.01 * a;
			longitude[row] = 11.0 + 0.01 * b;
			break;
		case REPEATED:
			uniform_point(random_number(seed, 2 * place), random_number(seed, 2 * place + 1),
						  &latitude[row], &longitude[row]);
			break;
		case COINCIDENT:
			latitude[row] = 48.0;
			longitude[row] = 11.0;
			break;
	}
}

static void
fill(double *latitude, double *longitude, uint64_t first, uint32_t rows, uint64_t seed,
	 enum layout layout)
{
	fill_kernel<<<(rows + 255) / 256, 256>>>(latitude, longitude, first, rows, seed, layout);
	check(cudaGetLastError(), "fill");
}

static void *
allocate(size_t bytes)
{
	void	   *memory;

	check(cudaMalloc(&memory, bytes), "cudaMalloc");
	return memory;
}

static double *
download(const double *from, uint64_t count)
{
	double	   *to = (double *) malloc(count * sizeof(double));

	check(cudaMemcpy(to, from, count * sizeof(double), cudaMemcpyDeviceToHost), "download");
	return to;
}

static uint64_t
parse_count(const char *text)
{
	return strncmp(text, "2^", 2) == 0 ? (uint64_t) 1 << atoi(text + 2) : strtoull(text, NULL, 10);
}

static int
compare_times(const void *a, const void *b)
{
	float		x = *(const float *) a;
	float		y = *(const float *) b;

	return (x > y) - (x < y);
}

/*
 * Search all batches once; milliseconds.
 */
static float
run(struct batch *batches, uint32_t batch_count)
{
	cudaEvent_t start;
	cudaEvent_t end;
	float		milliseconds;

	check(cudaEventCreate(&start), "event");
	check(cudaEventCreate(&end), "event");
	check(cudaDeviceSynchronize(), "prepare");
	check(cudaEventRecord(start, 0), "event");

	/* the default stream's events enclose what blocking streams do */
	for (uint32_t i = 0; i < batch_count; i++)
		while (batches[i].search.phase != BRUTE_WAIT)
			check(brute_enqueue(&batches[i].search), "scan");
	for (uint32_t i = 0; i < batch_count; i++)
	{
		check(cudaStreamSynchronize(batches[i].search.stream), "scan");
		while (batches[i].search.phase != BRUTE_DONE)
			check(brute_enqueue(&batches[i].search), "redo");
	}
	check(cudaEventRecord(end, 0), "event");
	check(cudaEventSynchronize(end), "redo");
	check(cudaEventElapsedTime(&milliseconds, start, end), "event");
	check(cudaEventDestroy(start), "event");
	check(cudaEventDestroy(end), "event");
	return milliseconds;
}

/*
 * Compare some of a batch's answers with the host's; tags are indexes.
 */
static void
check_answers(const struct batch *batch, uint32_t samples, uint64_t seed,
			  const struct geonn_vector *vectors, uint32_t references)
{
	uint32_t	rows = batch->search.rows;
	double	   *distances = download(batch->room.latitude, rows);
	int64_t    *tags = (int64_t *) download(batch->room.longitude, rows);
	double	   *x = download(batch->room.x, rows);
	double	   *y = download(batch->room.y, rows);
	double	   *z = download(batch->room.z, rows);

	for (uint32_t i = 0; i < samples; i++)
	{
		uint32_t	row = (uint32_t) (random_number(seed + 2, batch->first + i) * rows);
		struct geonn_vector observation = {x[row], y[row], z[row]};
		double		distance = INFINITY;
		int64_t		first = -1;

		for (uint32_t j = 0; j < references; j++)
		{
			double		other = geonn_distance_of(observation, vectors[j]);

			if (other < distance)
			{
				distance = other;
				first = j;
			}
		}
		if (tags[row] != first || distances[row] != distance)
		{
			fprintf(stderr, "observation %llu: reference %lld at %.10f m, but the nearest is %lld at %.10f m\n",
					(unsigned long long) (batch->first + row), (long long) tags[row],
					distances[row], (long long) first, distance);
			exit(1);
		}
	}
	free(distances);
	free(tags);
	free(x);
	free(y);
	free(z);
}

int
main(int argument_count, char **arguments)
{
	uint64_t	observations = argument_count > 1 ? parse_count(arguments[1]) : (uint64_t) 1 << 24;
	uint32_t	references = (uint32_t) (argument_count > 2 ? parse_count(arguments[2]) : 1 << 16);
	const char *layout_name = argument_count > 3 ? arguments[3] : layout_names[UNIFORM];
	uint64_t	seed = argument_count > 4 ? strtoull(arguments[4], NULL, 10) : (uint64_t) time(NULL);
	uint32_t	batch_count = (uint32_t) ((observations + BATCH_OBSERVATIONS - 1) / BATCH_OBSERVATIONS);
	uint32_t	samples = (uint32_t) ((1 << 25) / (references + 1) + 1);
	struct batch *batches = (struct batch *) calloc(batch_count, sizeof(struct batch));
	struct geonn_vector *vectors = (struct geonn_vector *) malloc(references * sizeof(struct geonn_vector));
	int64_t    *tags = (int64_t *) malloc(references * sizeof(int64_t));
	struct brute_machine machine;
	struct brute_references built;
	struct cudaDeviceProp properties;
	enum layout layout = UNIFORM;
	float		times[RUNS];
	uint64_t	ambiguous = 0;
	double	   *x;
	double	   *y;
	double	   *z;

	while (strcmp(layout_name, layout_names[layout]) != 0)
	{
		if (layout == COINCIDENT)
		{
			fprintf(stderr, "no such layout: %s\n", layout_name);
			return 2;
		}
		layout = (enum layout) (layout + 1);
	}

	check(cudaGetDeviceProperties(&properties, 0), "device");
	check(brute_measure(&machine), "device");

	brute_place_references(allocate(brute_place_references(NULL, references, &built)),
						   references, &built);
	fill(built.x, built.y, 0, references, seed, layout);
	for (uint32_t i = 0; i < references; i++)
		tags[i] = i;
	check(cudaMemcpy(built.tag, tags, references * sizeof(int64_t), cudaMemcpyHostToDevice), "tags");
	check(brute_prepare_references(&built, 0), "references");
	x = download(built.x, references);
	y = download(built.y, references);
	z = download(built.z, references);
	for (uint32_t i = 0; i < references; i++)
		vectors[i] = {x[i], y[i], z[i]};

	for (uint32_t i = 0; i < batch_count; i++)
	{
		struct batch *batch = &batches[i];
		uint64_t	left = observations - (uint64_t) i * BATCH_OBSERVATIONS;
		uint32_t	rows = left < BATCH_OBSERVATIONS ? (uint32_t) left : BATCH_OBSERVATIONS;

		batch->first = (uint64_t) i * BATCH_OBSERVATIONS;
		brute_place_room(allocate(brute_place_room(NULL, rows, &machine, &batch->room)),
						 rows, &machine, &batch->room);
		batch->search.machine = &machine;
		batch->search.references = &built;
		batch->search.room = &batch->room;
		batch->search.rows = rows;
		check(cudaMallocHost((void **) &batch->search.status, sizeof(struct brute_status)), "status");
		check(cudaStreamCreate(&batch->search.stream), "stream");
	}

	/* results take the place of the degrees, so these are made anew each time */
	for (int i = 0; i < RUNS; i++)
	{
		for (uint32_t j = 0; j < batch_count; j++)
		{
			struct batch *batch = &batches[j];

			fill(batch->room.latitude, batch->room.longitude, batch->first, batch->search.rows,
				 seed + 1, UNIFORM);
			batch->search.phase = BRUTE_SCAN;
			batch->search.next_tile = 0;
			batch->search.segments = 0;
			check(brute_prepare_observations(&batch->search), "observations");
		}
		times[i] = run(batches, batch_count);
	}
	qsort(times, RUNS, sizeof(times[0]), compare_times);

	for (uint32_t i = 0; i < batch_count; i++)
	{
		ambiguous += batches[i].search.status->ambiguous;
		check_answers(&batches[i], samples / batch_count + 1, seed, vectors, references);
	}
	printf("%s, seed %llu: %llu observations x %u references, %s: %.2f ms (%.2f to %.2f), "
		   "%.3f T pairs/s, %.3f %% redone, %u answers checked\n",
		   properties.name, (unsigned long long) seed, (unsigned long long) observations, references,
		   layout_names[layout], times[RUNS / 2], times[0], times[RUNS - 1],
		   (double) observations * references / times[RUNS / 2] / 1e9,
		   100.0 * (double) ambiguous / (double) observations,
		   batch_count * (samples / batch_count + 1));
	return 0;
}
