/*
 * index_resident.cu
 *		The index on data that is on the GPU already: is it right, how fast is it?
 *
 * Usage: index_resident check [seed [rounds]]
 *		index_resident time OBSERVATIONS REFERENCES LAYOUT [seed]
 *
 * check compares, round by round, the answers for random numbers of
 * observations and references in random layouts with those of a plain loop
 * over all pairs, on the GPU, and some of them with one on the host.  Any
 * difference is fatal, and printed with what reproduces it.
 *
 * time prints what building the index and searching it take, the best of
 * several runs, and checks a sample.  "2^N" is understood.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#include "../../cuda/index.cuh"
#include "../../src/common/geodesy.h"

#define RUNS 5
#define SAMPLE 512
#define HOST_SAMPLE 16
#define DEGREES_PER_RADIAN 57.29577951308232
#define CITIES 4096

enum layout
{
	UNIFORM,
	CITY,						/* most around some places of very different size */
	DENSE,						/* within a hundredth of a degree */
	COINCIDENT,					/* all in one place */
	TURNS,						/* of three places within a centimetre, in turns */
	CELL,						/* within a metre */
	EQUATOR,					/* on a line */
	TRACK,						/* along a great circle, nearly */
	POLE,						/* within a degree */
	ANTIMERIDIAN,				/* within a degree */
	WHOLE_DEGREES,				/* many coincide, many ties */
	LAYOUTS
};

static const char *const layout_names[] = {
	"uniform", "city", "dense", "coincident", "turns", "cell", "equator", "track", "pole",
	"antimeridian", "degrees"
};

struct points
{
	uint32_t	count;
	double	   *latitude;		/* on the GPU */
	double	   *longitude;
	int64_t    *tag;
};

struct answers
{
	int64_t    *tag;			/* on the GPU */
	double	   *distance;
	uint32_t   *row;
};

static void
check(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
	exit(2);
}

static void *
allocate(size_t bytes)
{
	void	   *memory;

	check(cudaMalloc(&memory, bytes), "cudaMalloc");
	check(cudaMemset(memory, 0xA5, bytes), "cudaMemset");
	return memory;
}

static void *
download(const void *from, size_t bytes)
{
	void	   *to = malloc(bytes);

	check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost), "download");
	return to;
}

/* a number in [0, 1) that belongs to (seed, index): splitmix64 */
static __host__ __device__ double
random_number(uint64_t seed, uint64_t index)
{
	uint64_t	bits = seed * 0xD1342543DE82EF95 + (index + 1) * 0x9E3779B97F4A7C15;

	bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9;
	bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EB;
	bits ^= bits >> 31;
	return (double) (bits >> 11) * 0x1p-53;
}

static __global__ void
fill_kernel(struct points points, uint64_t seed, uint64_t place_seed, enum layout layout)
{
	uint32_t	row = blockIdx.x * 256 + threadIdx.x;
	double		a = random_number(seed, 4 * (uint64_t) row);
	double		b = random_number(seed, 4 * (uint64_t) row + 1);
	double		c = random_number(seed, 4 * (uint64_t) row + 2);
	double		d = random_number(seed, 4 * (uint64_t) row + 3);
	double		latitude = asin(2.0 * a - 1.0) * DEGREES_PER_RADIAN;
	double		longitude = 360.0 * b - 180.0;
	uint64_t	city;
	double		size;

	if (row >= points.count)
		return;
	switch (layout)
	{
		case UNIFORM:
		case LAYOUTS:
			break;
		case CITY:
			if (d < 0.03)
				break;
			city = (uint64_t) (CITIES * c * c);
			size = 0.02 + 0.3 * random_number(place_seed, 3 * city + 2);
			latitude = 140.0 * random_number(place_seed, 3 * city) - 60.0;
			longitude = 360.0 * random_number(place_seed, 3 * city + 1) - 180.0;
			size *= sqrt(-2.0 * log(1.0 - a));
			latitude += size * sinpi(2.0 * b);
			longitude += size * cospi(2.0 * b) / cos(latitude / DEGREES_PER_RADIAN);
			longitude = fmax(-180.0, fmin(360.0, longitude));
			break;
		case DENSE:
			latitude = 48.0 + 0.01 * a;
			longitude = 11.0 + 0.01 * b;
			break;
		case COINCIDENT:
			latitude = 48.0;
			longitude = 11.0;
			break;
		case TURNS:
			latitude = 48.0 + 3e-8 * (row % 3);
			longitude = 11.0;
			break;
		case CELL:
			latitude = 48.0 + 1e-5 * a;
			longitude = 11.0 + 1e-5 * b;
			break;
		case EQUATOR:
			latitude = 0.0;
			break;
		case TRACK:
			latitude = 80.0 * sin(longitude / DEGREES_PER_RADIAN) + 1e-4 * a;
			break;
		case POLE:
			latitude = 90.0 - a * a;
			break;
		case ANTIMERIDIAN:
			latitude = 10.0 * a;
			longitude = b < 0.5 ? 180.0 + b : b - 180.5;
			break;
		case WHOLE_DEGREES:
			latitude = rint(latitude);
			longitude = rint(longitude);
			break;
	}
	points.latitude[row] = latitude;
	points.longitude[row] = longitude;
	if (points.tag != NULL)
		points.tag[row] = 1000000007 * (int64_t) row + 1;
}

static struct points
make_points(uint32_t count, uint64_t seed, uint64_t place_seed, enum layout layout, bool tags)
{
	struct points points;

	points.count = count;
	points.latitude = (double *) allocate(count * sizeof(double));
	points.longitude = (double *) allocate(count * sizeof(double));
	points.tag = tags ? (int64_t *) allocate(count * sizeof(int64_t)) : NULL;
	fill_kernel<<<(count + 255) / 256, 256>>> (points, seed, place_seed, layout);
	check(cudaGetLastError(), "fill");
	check(cudaDeviceSynchronize(), "fill");
	return points;
}

static void
free_points(struct points *points)
{
	cudaFree(points->latitude);
	cudaFree(points->longitude);
	cudaFree(points->tag);
}

/* the plain loop: a block for each of the observations 0, step, 2 * step ... */
static __global__ void
oracle_kernel(struct points observations, struct points references, uint32_t step,
			  double max_distance, int64_t *tag, double *distance)
{
	__shared__ double best_distances[256];
	__shared__ uint32_t best_places[256];
	uint32_t	row = blockIdx.x * step;
	struct geonn_vector from = geonn_unit_vector(observations.latitude[row],
												 observations.longitude[row]);
	double		best = INFINITY;
	uint32_t	best_place = UINT32_MAX;

	for (uint32_t i = threadIdx.x; i < references.count; i += 256)
	{
		double		d = geonn_distance_of(from, geonn_unit_vector(references.latitude[i],
																  references.longitude[i]));

		if (d < best)
		{
			best = d;
			best_place = i;
		}
	}
	best_distances[threadIdx.x] = best;
	best_places[threadIdx.x] = best_place;
	__syncthreads();
	if (threadIdx.x > 0)
		return;
	for (int i = 1; i < 256; i++)
		if (best_distances[i] < best || (best_distances[i] == best && best_places[i] < best_place))
		{
			best = best_distances[i];
			best_place = best_places[i];
		}
	if (best > max_distance)
		best = INFINITY;
	distance[blockIdx.x] = best;
	tag[blockIdx.x] = best == INFINITY ? 0 : references.tag[best_place];
}

static bool
check_on_host(const struct points *observations, const struct points *references, uint32_t step,
			  uint32_t samples, double max_distance, const int64_t *tag, const double *distance)
{
	double	   *latitude = (double *) download(observations->latitude, observations->count * 8);
	double	   *longitude = (double *) download(observations->longitude, observations->count * 8);
	double	   *to_latitude = (double *) download(references->latitude, references->count * 8);
	double	   *to_longitude = (double *) download(references->longitude, references->count * 8);
	bool		right = true;

	for (uint32_t i = 0; i < samples && i < HOST_SAMPLE; i++)
	{
		double		best = INFINITY;
		int64_t		best_tag = 0;

		for (uint32_t j = 0; j < references->count; j++)
		{
			double		d = geonn_distance_degrees(latitude[i * step], longitude[i * step],
												   to_latitude[j], to_longitude[j]);

			if (d < best && d <= max_distance)
			{
				best = d;
				best_tag = 1000000007 * (int64_t) j + 1;
			}
		}
		right = right && memcmp(&best, &distance[i], sizeof(best)) == 0 && best_tag == tag[i];
	}
	free(latitude);
	free(longitude);
	free(to_latitude);
	free(to_longitude);
	return right;
}

/*
 * Compare answers, in the order of rows, with the oracle's for a sample.
 */
static bool
compare(const struct points *observations, const struct points *references, uint32_t samples,
		double max_distance, const int64_t *tag, const double *distance)
{
	uint32_t	step = observations->count / samples;
	int64_t    *right_tag = (int64_t *) allocate(samples * sizeof(int64_t));
	double	   *right_distance = (double *) allocate(samples * sizeof(double));
	int64_t    *host_tag;
	double	   *host_distance;
	uint32_t	differences = 0;

	oracle_kernel<<<samples, 256>>> (*observations, *references, step, max_distance, right_tag,
									 right_distance);
	check(cudaGetLastError(), "oracle");
	host_tag = (int64_t *) download(right_tag, samples * sizeof(int64_t));
	host_distance = (double *) download(right_distance, samples * sizeof(double));
	for (uint32_t i = 0; i < samples; i++)
		if (host_tag[i] != tag[i * step] ||
			memcmp(&host_distance[i], &distance[i * step], sizeof(double)) != 0)
		{
			if (differences++ < 5)
				printf("row %u: tag %lld distance %.17g instead of %lld %.17g\n", i * step,
					   (long long) tag[i * step], distance[i * step], (long long) host_tag[i],
					   host_distance[i]);
		}
	if (differences == 0 && references->count <= 100000 &&
		!check_on_host(observations, references, step, samples, max_distance, host_tag,
					   host_distance))
	{
		printf("the oracle differs from the host's\n");
		differences++;
	}
	cudaFree(right_tag);
	cudaFree(right_distance);
	free(host_tag);
	free(host_distance);
	if (differences > 0)
		printf("%u of %u differ\n", differences, samples);
	return differences == 0;
}

static void *
build(const struct points *references, struct index *index, void **room)
{
	size_t		bytes = index_place(NULL, references->count, GEONN_METRIC_SPHERE, 0, index);
	void	   *memory = allocate(bytes);

	index_place(memory, references->count, GEONN_METRIC_SPHERE, 0, index);
	*room = allocate(index_build_room(references->count, 0));
	return memory;
}

static struct index_source
source_of(const struct points *references)
{
	struct index_source source = {};

	source.latitude = references->latitude;
	source.longitude = references->longitude;
	source.tag = references->tag;
	return source;
}

/* a search with memory of its own */
static struct index_nearest
make_search(const struct index *index, const struct points *observations, double max_distance)
{
	struct index_nearest search = {};
	size_t		rows = observations->count;

	search.index = index;
	search.rows = observations->count;
	search.latitude = observations->latitude;
	search.longitude = observations->longitude;
	search.max_distance = max_distance;
	search.tag = (int64_t *) allocate(rows * sizeof(int64_t));
	search.distance = (double *) allocate(rows * sizeof(double));
	search.row = (uint32_t *) allocate(rows * sizeof(uint32_t));
	search.status = (struct index_status *) allocate(sizeof(struct index_status));
	search.room = allocate(index_nearest_room(observations->count));
	return search;
}

static void
free_search(const struct index_nearest *search)
{
	cudaFree(search->tag);
	cudaFree(search->distance);
	cudaFree(search->row);
	cudaFree(search->status);
	cudaFree(search->room);
}

static double
number_between(uint64_t seed, uint64_t *index, double low, double high)
{
	return low + (high - low) * random_number(seed, (*index)++);
}

static bool
check_round(uint64_t seed)
{
	uint64_t	index_of = 0;
	enum layout layout = (enum layout) number_between(seed, &index_of, 0, LAYOUTS);
	enum layout observation_layout = number_between(seed, &index_of, 0, 1) < 0.6 ? layout :
		(enum layout) number_between(seed, &index_of, 0, LAYOUTS);
	uint32_t	reference_count = (uint32_t) exp2(number_between(seed, &index_of, 0, 17));
	uint32_t	observation_count = (uint32_t) exp2(number_between(seed, &index_of, 0, 18));
	double		max_distance = number_between(seed, &index_of, 0, 1) < 0.6 ? INFINITY :
		exp2(number_between(seed, &index_of, -20, 25));
	bool		by_row = number_between(seed, &index_of, 0, 1) < 0.5;
	struct points references = make_points(reference_count, seed, seed, layout, true);
	struct points observations = make_points(observation_count, seed + 1, seed,
											 observation_layout, false);
	struct index index;
	void	   *room;
	void	   *memory = build(&references, &index, &room);
	struct index_source source = source_of(&references);
	struct index_nearest search = make_search(&index, &observations, max_distance);
	struct index_nearest asked = search;
	struct index_status *status;
	int64_t    *tag;
	double	   *distance;
	uint32_t	samples = observation_count < 4096 ? observation_count : 4096;
	bool		right;
	uint32_t	unmatched = 0;

	check(index_build(&index, &source, room, 0), "index_build");
	check(cudaDeviceSynchronize(), "index_build");
	if (by_row)
		asked.row = NULL;
	check(index_nearest_enqueue(&asked), "index_nearest");
	status = (struct index_status *) download(search.status, sizeof(*status));
	while (status->decided < status->ambiguous)
	{
		check(index_nearest_decide(&asked), "index_nearest");
		free(status);
		status = (struct index_status *) download(search.status, sizeof(*status));
	}
	tag = (int64_t *) download(search.tag, observation_count * sizeof(int64_t));
	distance = (double *) download(search.distance, observation_count * sizeof(double));
	if (!by_row)
	{
		uint32_t   *row = (uint32_t *) download(search.row, observation_count * sizeof(uint32_t));
		int64_t    *row_tag = (int64_t *) calloc(observation_count, sizeof(int64_t));
		double	   *row_distance = (double *) calloc(observation_count, sizeof(double));

		for (uint32_t i = 0; i < observation_count; i++)
		{
			if (row[i] >= observation_count)
			{
				printf("seed %llu: slot %u has row %u\n", (unsigned long long) seed, i, row[i]);
				exit(1);
			}
			row_tag[row[i]] = tag[i];
			row_distance[row[i]] = distance[i];
		}
		free(row);
		free(tag);
		free(distance);
		tag = row_tag;
		distance = row_distance;
	}
	for (uint32_t i = 0; i < observation_count; i++)
		unmatched += distance[i] == INFINITY;
	right = compare(&observations, &references, samples, max_distance, tag, distance) &&
		status->unmatched == unmatched && status->out_of_range == 0;
	printf("%s: seed %llu: %u %s observations, %u %s references, %u positions, max_distance %g, %u ambiguous, %u unmatched\n",
		   right ? "ok" : "WRONG", (unsigned long long) seed, observation_count,
		   layout_names[observation_layout], reference_count, layout_names[layout],
		   index.shape.positions, max_distance, status->ambiguous, status->unmatched);
	free(tag);
	free(distance);
	free(status);
	free_search(&search);
	cudaFree(memory);
	cudaFree(room);
	free_points(&references);
	free_points(&observations);
	return right;
}

static float
elapsed(cudaEvent_t start, cudaEvent_t end)
{
	float		milliseconds;

	check(cudaEventSynchronize(end), "event");
	check(cudaEventElapsedTime(&milliseconds, start, end), "event");
	return milliseconds;
}

static bool
time_search(uint32_t observation_count, uint32_t reference_count, enum layout layout,
			uint64_t seed)
{
	struct points references = make_points(reference_count, seed, seed, layout, true);
	struct points observations = make_points(observation_count, seed + 1, seed, layout, false);
	struct index index;
	void	   *build_room;
	void	   *memory = build(&references, &index, &build_room);
	struct index_source source = source_of(&references);
	struct index_nearest search = make_search(&index, &observations, INFINITY);
	struct index_status *status;
	float		build_time = INFINITY;
	float		search_time = INFINITY;
	float		by_row_time = INFINITY;
	float		both_time = INFINITY;
	int64_t    *tag;
	double	   *distance;
	cudaEvent_t events[4];
	bool		right;

	for (int i = 0; i < 4; i++)
		check(cudaEventCreate(&events[i]), "event");
	for (int i = 0; i < RUNS; i++)
	{
		struct index_nearest by_row = search;

		by_row.row = NULL;
		check(cudaEventRecord(events[0]), "event");
		check(index_build(&index, &source, build_room, 0), "index_build");
		check(cudaEventRecord(events[1]), "event");
		check(index_nearest_enqueue(&search), "index_nearest");
		check(cudaEventRecord(events[2]), "event");
		check(index_nearest_enqueue(&by_row), "index_nearest");
		check(cudaEventRecord(events[3]), "event");
		by_row_time = fminf(by_row_time, elapsed(events[2], events[3]));
		build_time = fminf(build_time, elapsed(events[0], events[1]));
		search_time = fminf(search_time, elapsed(events[1], events[2]));
		both_time = fminf(both_time, elapsed(events[0], events[2]));
	}
	tag = (int64_t *) download(search.tag, observation_count * sizeof(int64_t));
	distance = (double *) download(search.distance, observation_count * sizeof(double));
	status = (struct index_status *) download(search.status, sizeof(*status));
	right = compare(&observations, &references, observation_count < SAMPLE ? 1 : SAMPLE, INFINITY,
					tag, distance);
	printf("%s %9u x %9u %-10s build %7.3f search %8.3f both %8.3f by row %8.3f ms, ambiguous %u of a million\n",
		   right ? "ok" : "WRONG", observation_count, reference_count, layout_names[layout],
		   build_time, search_time, both_time, by_row_time,
		   (uint32_t) (1e6 * status->ambiguous / observation_count));
	free(tag);
	free(distance);
	free(status);
	free_search(&search);
	cudaFree(memory);
	cudaFree(build_room);
	free_points(&references);
	free_points(&observations);
	return right;
}

static uint32_t
parse_count(const char *text)
{
	return strncmp(text, "2^", 2) == 0 ? (uint32_t) 1 << atoi(text + 2) :
		(uint32_t) strtoul(text, NULL, 10);
}

int
main(int argc, char **argv)
{
	if (argc >= 2 && strcmp(argv[1], "check") == 0)
	{
		uint64_t	seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
		int			rounds = argc > 3 ? atoi(argv[3]) : 50;
		int			wrong = 0;

		for (int i = 0; i < rounds; i++)
			wrong += !check_round(seed + 1000 * i);
		printf("%d of %d rounds are wrong\n", wrong, rounds);
		return wrong > 0;
	}
	if (argc >= 5 && strcmp(argv[1], "time") == 0)
		for (int i = 0; i < LAYOUTS; i++)
			if (strcmp(argv[4], layout_names[i]) == 0)
				return !time_search(parse_count(argv[2]), parse_count(argv[3]), (enum layout) i,
									argc > 5 ? strtoull(argv[5], NULL, 10) : 1);
	fprintf(stderr, "usage: index_resident check [seed [rounds]]\n"
			"       index_resident time OBSERVATIONS REFERENCES LAYOUT [seed]\n");
	return 2;
}
