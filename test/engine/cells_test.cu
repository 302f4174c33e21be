/*
 * cells_test.cu
 *		The table of squares against brute force: the same bytes, whatever the
 *		references and observations are like.
 *
 * The oracle is a kernel that computes all distances, and takes the first by (distance,
 * place).  Each property is tried with several seeds.  A part of it needs no GPU: whether the
 * geometry is right, on the host.
 *
 * Usage: cells_test [seed [sanitized]].  "sanitized": fewer points, for compute-sanitizer.
 * Exits with 0 if all is as it should be, 1 if not, 2 without a GPU.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/geodesy.h"
#include "cuda/cells/cells.cuh"
#include "cuda/lane/dataset.cuh"
#include "cuda/probe.cuh"
#include "engine/search/cells_square.h"
#include "../lib/random.h"
#include "cells_points.h"

#define THREADS 256

/* of each property */
#define SEEDS 4

static int	failed;
static int	passed;

static double
blocks_along_face(const struct places *references)
{
	struct cells cells;

	cells_place(NULL, references->count, &cells);
	return cells.side;
}

static double
squares_along_block(void)
{
	return (double) (1u << CELLS_UNIT_BITS);
}

static void
check(bool right, const char *what)
{
	printf("%s - %s\n", right ? "ok" : "not ok", what);
	failed += !right;
	passed += right;
}

/* the program cannot go on where CUDA fails */
static void
fine(cudaError_t error, const char *what)
{
	if (error == cudaSuccess)
		return;
	printf("not ok - %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

/* ---- on the GPU ---- */

static __global__ void
vector_kernel(uint32_t count, const double *latitude, const double *longitude,
			  struct geonn_vector *vector)
{
	uint32_t	i = blockIdx.x * THREADS + threadIdx.x;

	if (i < count)
		vector[i] = geonn_unit_vector(latitude[i], longitude[i]);
}

/*
 * Count the answers that differ from those of brute force.  An answer's tag is its place
 * plus 1000.
 */
static __global__ void
compare_kernel(uint32_t rows, const double *latitude, const double *longitude, uint32_t references,
			   const struct geonn_vector *reference, double max_distance, const int64_t *tag,
			   const double *distance, unsigned long long *different)
{
	uint32_t	row = blockIdx.x * THREADS + threadIdx.x;
	struct geonn_vector from;
	double		least = INFINITY;
	int64_t		first = 0;

	if (row >= rows)
		return;
	from = geonn_unit_vector(latitude[row], longitude[row]);
	for (uint32_t i = 0; i < references; i++)
	{
		double		other = geonn_distance_of(from, reference[i]);

		if (other < least)
		{
			least = other;
			first = 1000 + (int64_t) i;
		}
	}
	if (!(least <= max_distance))
	{
		least = INFINITY;
		first = 0;
	}
	if (tag[row] != first || distance[row] != least)
		atomicAdd(different, 1ULL);
}

static void *
room_on_gpu(size_t bytes)
{
	void	   *memory = NULL;

	fine(cudaMalloc(&memory, bytes > 0 ? bytes : 1), "memory");
	return memory;
}

static double *
copy_to_gpu(const double *column, uint32_t count)
{
	double	   *copy = (double *) room_on_gpu(count * sizeof(double));

	fine(cudaMemcpy(copy, column, count * sizeof(double), cudaMemcpyHostToDevice), "copy");
	return copy;
}

static uint32_t
blocks_for(uint32_t count)
{
	return (count + THREADS - 1) / THREADS;
}

/* an index and a table on the GPU, and what they are of */
struct tables
{
	uint32_t	count;
	double	   *latitude;
	double	   *longitude;
	int64_t    *tag;
	void	   *index_memory;
	struct index index;
	void	   *cells_memory;
	struct cells cells;
};

static struct tables
build(const struct places *references)
{
	struct tables tables = {};
	struct index_source source = {};
	int64_t    *tag = (int64_t *) malloc(references->count * sizeof(int64_t));
	void	   *room;

	tables.count = references->count;
	tables.latitude = copy_to_gpu(references->latitude, references->count);
	tables.longitude = copy_to_gpu(references->longitude, references->count);
	for (uint32_t i = 0; i < references->count; i++)
		tag[i] = 1000 + (int64_t) i;
	tables.tag = (int64_t *) copy_to_gpu((const double *) tag, references->count);
	free(tag);

	source.latitude = tables.latitude;
	source.longitude = tables.longitude;
	source.tag = tables.tag;
	tables.index_memory = room_on_gpu(index_place(NULL, tables.count, GEONN_METRIC_SPHERE, 0,
												  &tables.index));
	index_place(tables.index_memory, tables.count, GEONN_METRIC_SPHERE, 0, &tables.index);
	room = room_on_gpu(index_build_room(tables.count));
	fine(index_build(&tables.index, &source, room, 0), "building the index");
	fine(cudaDeviceSynchronize(), "building the index");
	cudaFree(room);

	tables.cells_memory = room_on_gpu(cells_place(NULL, tables.index.shape.positions,
												  &tables.cells));
	cells_place(tables.cells_memory, tables.index.shape.positions, &tables.cells);
	room = room_on_gpu(cells_build_room(&tables.cells));
	fine(cells_build(&tables.cells, &tables.index, room, 0), "building the table");
	fine(cudaDeviceSynchronize(), "building the table");
	cudaFree(room);
	return tables;
}

static void
forget(const struct tables *tables)
{
	cudaFree(tables->latitude);
	cudaFree(tables->longitude);
	cudaFree(tables->tag);
	cudaFree(tables->index_memory);
	cudaFree(tables->cells_memory);
}

/* a search's columns on the GPU, with room for the answers */
static struct cells_search
open_search(const struct tables *tables, const double *latitude, const double *longitude,
			uint32_t rows, double max_distance)
{
	struct cells_search search = {};

	search.cells = &tables->cells;
	search.index = &tables->index;
	search.rows = rows;
	search.latitude = copy_to_gpu(latitude, rows);
	search.longitude = copy_to_gpu(longitude, rows);
	search.max_distance = max_distance;
	search.tag = (int64_t *) room_on_gpu(rows * sizeof(int64_t));
	search.distance = (double *) room_on_gpu(rows * sizeof(double));
	search.status = (struct cells_status *) room_on_gpu(sizeof(struct cells_status));
	search.room = room_on_gpu(cells_search_room(rows, true));
	return search;
}

static void
close_search(const struct cells_search *search)
{
	cudaFree((void *) search->latitude);
	cudaFree((void *) search->longitude);
	cudaFree(search->tag);
	cudaFree(search->distance);
	cudaFree(search->status);
	cudaFree(search->room);
}

/*
 * Search by the table until all is decided; the last status.
 */
static struct cells_status
search_all(struct cells_search *search)
{
	struct cells_status status;

	fine(cells_search_enqueue(search), "search");
	for (;;)
	{
		fine(cudaMemcpy(&status, search->status, sizeof(status), cudaMemcpyDeviceToHost), "search");
		if (cells_search_done(search, &status))
			return status;
		fine(cells_search_go_on(search, &status), "search");
	}
}

static void
try_sets(const struct sets *sets, double max_distance, struct outcome *outcome)
{
	struct tables tables = build(&sets->references);
	uint32_t	rows = sets->observations.count;
	struct cells_search search = open_search(&tables, sets->observations.latitude,
											 sets->observations.longitude, rows, max_distance);
	struct cells_status status;
	struct geonn_vector *vectors =
		(struct geonn_vector *) room_on_gpu(tables.count * sizeof(struct geonn_vector));
	unsigned long long *counter = (unsigned long long *) room_on_gpu(sizeof(*counter));
	unsigned long long different = 0;

	fine(cudaMemset(search.tag, 0x7F, rows * sizeof(int64_t)), "answers");
	fine(cudaMemset(search.distance, 0x7F, rows * sizeof(double)), "answers");
	status = search_all(&search);

	vector_kernel<<<blocks_for(tables.count), THREADS>>> (tables.count, tables.latitude,
														  tables.longitude, vectors);
	fine(cudaMemset(counter, 0, sizeof(*counter)), "oracle");
	compare_kernel<<<blocks_for(rows), THREADS>>> (rows, search.latitude, search.longitude,
												   tables.count, vectors, max_distance, search.tag,
												   search.distance, counter);
	fine(cudaMemcpy(&different, counter, sizeof(different), cudaMemcpyDeviceToHost), "oracle");
	outcome->different += different;
	outcome->left += status.listed;
	outcome->rows += rows;
	if (status.out_of_range != 0)
		outcome->different += rows;

	close_search(&search);
	cudaFree(vectors);
	cudaFree(counter);
	forget(&tables);
}

static void
tell(const char *line, bool holds)
{
	check(holds, line);
}

/*
 * Coordinates that are no point are found out, and nothing else happens.
 */
static void
test_range(void)
{
	static const struct place places[] = {{NAN, 0}, {0, NAN}, {90.5, 0}, {0, -180.5}, {0, 360.5},
	{INFINITY, 0}, {0, -INFINITY}, {-91, 400}};
	struct places references = room_for(1000);
	struct tables tables;
	bool		found = true;

	add_anywhere(&references, 1000);
	tables = build(&references);
	for (const struct place &bad : places)
	{
		double		latitude[300];
		double		longitude[300];
		struct cells_search search;

		for (int i = 0; i < 300; i++)
		{
			struct place other = anywhere();

			latitude[i] = other.latitude;
			longitude[i] = other.longitude;
		}
		latitude[217] = bad.latitude;
		longitude[217] = bad.longitude;
		search = open_search(&tables, latitude, longitude, 300, INFINITY);
		found = found && search_all(&search).out_of_range == 1;
		close_search(&search);
	}
	forget(&tables);
	free(references.latitude);
	free(references.longitude);
	check(found, "coordinates that are no point are found out");
}

/* ---- the geometry, on the host ---- */

/*
 * A point is in the square to which it is taken, at any division.
 */
static void
test_spots(void)
{
	struct cells cells;
	struct places places = room_for(1000);
	long		outside = 0;
	uint32_t	units;

	add_special(&places);
	add_on_cube(&places, 500);
	add_anywhere(&places, 400);
	for (uint32_t positions = 1; positions <= 4000000; positions *= 7)
	{
		cells_place(NULL, positions, &cells);
		units = cells_side_units(cells.side);
		for (uint32_t i = 0; i < places.count; i++)
		{
			struct geonn_vector vector = geonn_unit_vector(places.latitude[i], places.longitude[i]);
			struct cells_spot spot = cells_spot_of(vector, cells.scale, units);
			struct geonn_vector turned = cells_turned(spot.face, vector);
			struct geonn_vector back = cells_turned_back(spot.face, turned);

			outside += spot.u >= units || spot.v >= units || turned.x < fabs(turned.y) ||
				turned.x < fabs(turned.z) || memcmp(&back, &vector, sizeof(vector)) != 0;
			for (int shift = 0; shift <= CELLS_UNIT_BITS; shift += CELLS_SIDE_BITS)
			{
				struct cells_square square = cells_square_of(spot.u >> shift << shift,
															 spot.v >> shift << shift,
															 1u << shift, cells.scale);
				/* on the face, to 64 bits */
				long double u = (long double) turned.y / turned.x - square.u;
				long double v = (long double) turned.z / turned.x - square.v;

				outside += fabsl(u) > square.half || fabsl(v) > square.half;
			}
		}
	}
	free(places.latitude);
	free(places.longitude);
	check(outside == 0, "a point is in the square to which it is taken");
}

/*
 * Where one of two references comes first in a square, it is nearer to its corners,
 * and to any points of it.
 */
static void
test_order(void)
{
	long		wrong = 0;
	long		decided = 0;
	struct cells cells;

	cells_place(NULL, 65536, &cells);
	for (int i = 0; i < 200000; i++)
	{
		struct places places = room_for(2);
		struct place centre = anywhere();
		double		km = fabs(random_magnitude(1e-6, 20000));
		int			shift = random_below(7) * CELLS_SIDE_BITS;
		struct geonn_vector vectors[2];
		struct cells_square square;
		struct cells_spot spot;
		struct geonn_vector turned[2];
		double		reach;

		add_around(&places, centre, km);
		add_around(&places, centre, random_below(2) ? km : km * 0.001);
		for (int j = 0; j < 2; j++)
			vectors[j] = geonn_unit_vector(places.latitude[j], places.longitude[j]);
		if (random_below(2))
			centre = anywhere();
		spot = cells_spot_of(geonn_unit_vector(centre.latitude, centre.longitude), cells.scale,
							 cells_side_units(cells.side));
		square = cells_square_of(spot.u >> shift << shift, spot.v >> shift << shift, 1u << shift,
								 cells.scale);
		for (int j = 0; j < 2; j++)
			turned[j] = cells_turned(spot.face, vectors[j]);
		reach = sqrt(fmax(geonn_chord_squared(turned[0], cells_vector_at(square.u, square.v)),
						  geonn_chord_squared(turned[1], cells_vector_at(square.u, square.v)))) +
			2.0 * square.half;
		if (cells_comes_before(turned[0], turned[1], &square, cells_margin(reach, reach)))
		{
			decided++;
			for (int j = 0; j < 8; j++)
			{
				double		u = j < 4 ? (j & 1 ? 1 : -1) : random_between(-1, 1);
				double		v = j < 4 ? (j & 2 ? 1 : -1) : j < 6 ? 1 : random_between(-1, 1);
				struct geonn_vector point =
					cells_vector_at(square.u + u * square.half, square.v + v * square.half);

				wrong += !(geonn_distance_of(point, turned[0]) < geonn_distance_of(point, turned[1]));
			}
		}
		free(places.latitude);
		free(places.longitude);
	}
	printf("# %ld of 200000 pairs have an order\n", decided);
	check(wrong == 0 && decided > 1000, "what comes first in a square is nearer to all points of it");
}

/* ---- the device ---- */

#define BATCH ((uint32_t) 1 << 20)

static struct device device;
static atomic_bool cancelled;

static struct search
new_search(struct dataset *dataset, const struct places *places, enum geonn_algorithm algorithm,
		   double max_distance)
{
	struct search search = {};

	search.dataset = dataset;
	search.columns.rows = places->count;
	search.columns.room = places->count;
	search.columns.latitude = places->latitude;
	search.columns.longitude = places->longitude;
	search.columns.tag = (int64_t *) calloc(places->count, sizeof(int64_t));
	search.columns.distance = (double *) calloc(places->count, sizeof(double));
	search.columns.count = (uint32_t *) calloc(places->count, sizeof(uint32_t));
	search.question.k = 1;
	search.question.algorithm = algorithm;
	search.question.max_distance = max_distance;
	search.algorithm = algorithm;
	search.rows = places->count;
	search.cancelled = &cancelled;
	return search;
}

static void
free_search(struct search *search)
{
	free(search->columns.tag);
	free(search->columns.distance);
	free(search->columns.count);
}

/* Build and search, as the scheduler does, as far as the room goes.  Whether it went well. */
static bool
advance(struct search *search)
{
	struct failure failure = {};
	struct search *ended = NULL;

	if (!cuda_device_operations.build(&device, search, &failure))
	{
		printf("# %s %s\n", failure.message, failure.detail);
		return false;
	}
	cuda_device_operations.start(&device, search);
	while (cuda_device_operations.advance(&device, &ended) != DEVICE_FINISHED)
	{
		if (ended != NULL)
			cuda_device_operations.start(&device, ended);
		ended = NULL;
	}
	if (search->failed)
		printf("# %s %s\n", search->failure.message, search->failure.detail);
	return !search->failed;
}

static bool
answer(struct search *search)
{
	return advance(search) && search->answered == search->rows;
}

/* the same where there is room for few answers at a time: each time the rest is asked about */
static bool
answer_in_parts(struct search *search, uint32_t room)
{
	search->columns.room = room;
	while (search->first < search->rows)
	{
		if (!advance(search) || search->answered == 0)
			return false;
		search->first += search->answered;
		search->answered = 0;
		search->pairs = 0;
	}
	return true;
}

static bool
same_answers(const struct search *a, const struct search *b)
{
	if (a->pairs != b->pairs || a->one_each != b->one_each ||
		memcmp(a->columns.tag, b->columns.tag, a->pairs * sizeof(int64_t)) != 0 ||
		memcmp(a->columns.distance, b->columns.distance, a->pairs * sizeof(double)) != 0)
		return false;
	return a->one_each ||
		memcmp(a->columns.count, b->columns.count, a->rows * sizeof(uint32_t)) == 0;
}

/*
 * A batch is not enough for a table, though each part of its answers is asked for by a
 * search with all that is left.
 */
static void
test_parts(struct dataset *dataset, const struct places *observations)
{
	struct search search = new_search(dataset, observations, GEONN_ALGORITHM_INDEX, INFINITY);
	bool		answered = answer_in_parts(&search, BATCH / 16);

	check(answered && !cuda_has_table(&device, &search),
		  "an observation counts once, though searches go on where the room ends");
	free_search(&search);
}

/*
 * The device makes a table once it is worthwhile, and what it answers by it, packed or
 * not, is what brute force answers.
 */
static void
test_device(void)
{
	struct failure failure = {};
	struct places references = room_for(5000);
	struct places observations = room_for(BATCH);
	struct dataset *dataset = dataset_create(1, GEONN_METRIC_SPHERE, 0);
	struct place centre = temperate();
	bool		same = true;
	int			searches = 0;

	device.operations = &cuda_device_operations;
	device.number = 1;
	atomic_store(&device.usable, cuda_device_operations.probe(&device, &failure));
	if (!atomic_load(&device.usable))
	{
		printf("# %s %s\n", failure.message, failure.detail);
		check(false, "the device can be used");
		return;
	}
	add_anywhere(&references, 3000);
	for (int i = 0; i < 2000; i++)
		add_around(&references, centre, 0.0003);
	/* some are crowded */
	add_anywhere(&observations, BATCH - 1000);
	for (int i = 0; i < 1000; i++)
		add_around(&observations, centre, 0.0003);
	dataset->count = references.count;
	dataset->latitude = references.latitude;
	dataset->longitude = references.longitude;
	dataset->tag = (int64_t *) malloc(references.count * sizeof(int64_t));
	for (uint32_t i = 0; i < references.count; i++)
		dataset->tag[i] = 1000 + (int64_t) i;

	test_parts(dataset, &observations);
	for (; searches < 20; searches++)
	{
		double		max_distance = searches % 3 == 0 ? INFINITY : searches % 3 == 1 ? 100000 : 1e-3;
		struct search by_index = new_search(dataset, &observations, GEONN_ALGORITHM_INDEX, max_distance);
		struct search by_brute = new_search(dataset, &observations, GEONN_ALGORITHM_BRUTE, max_distance);

		if (searches == 0)
			same = answer(&by_index) && !cuda_has_table(&device, &by_index);
		else
			same = same && answer(&by_index);
		same = same && answer(&by_brute) && same_answers(&by_index, &by_brute);
		free_search(&by_index);
		free_search(&by_brute);
	}
	check(same, "the device gives the same bytes by index, table and brute force");
	{
		struct search search = new_search(dataset, &observations, GEONN_ALGORITHM_INDEX, INFINITY);

		check(cuda_has_table(&device, &search), "after enough observations it has a table");
		observations.latitude[BATCH - 5] = 91;
		same = !answer(&search) && search.failed && search.failure.code == GEONN_ERROR_PROTOCOL;
		check(same, "coordinates that are no point make a search by the table fail");
		free_search(&search);
	}
	cuda_device_operations.discard(&device, dataset->built[1]);
	dataset->built[1] = NULL;
	dataset_free(dataset);
	free(observations.latitude);
	free(observations.longitude);
}

int
main(int argument_count, char **words)
{
	bool		sanitized = argument_count > 2;
	int			gpus = 0;

	if (argument_count > 1)
		random_state = strtoull(words[1], NULL, 10);
	printf("seed %llu\n", (unsigned long long) random_state);
	test_spots();
	test_order();
	if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0)
	{
		printf("no GPU: %s\n", cudaGetErrorString(cudaGetLastError()));
		return failed > 0 ? 1 : 2;
	}
	if (sanitized)
	{
		many_references = 1024;
		many_observations = 2048;
	}
	test_properties(TABLE_ON_GPU, SEEDS, 1);
	test_range();
	if (!sanitized)
		test_device();
	printf("%d passed, %d failed\n", passed, failed);
	return failed > 0;
}
