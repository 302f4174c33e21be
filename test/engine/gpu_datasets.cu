/*
 * gpu_datasets.cu
 *		Datasets on GPUs: built on one and copied to the others, limited, handed
 *		on where a GPU fails.
 *
 * Each GPU has a thread, as in the engine, and all of them ask for the same
 * dataset at once.  What they then hold must be the same, and what they have
 * taken must be free again in the end.
 *
 * Usage: gpu_datasets [seed].  Exits with 0 if all is as it should be, 1 if
 * not, 2 without a GPU.
 *
 * rooms: cuda/lane cuda/index
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/geodesy.h"
#include "common/window.h"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/probe.cuh"
#include "../lib/random.h"

/* enough for several threads to upload */
#define MANY 3000000

static struct device devices[GEONN_DEVICES_MAX];
static int	gpus;				/* devices 1 ... gpus */
static int	failed;

/* what all GPUs' threads do at the same time, and what came of it */
static struct dataset *dataset;
static struct search search;
static atomic_bool cancelled;
static bool done[GEONN_DEVICES_MAX];
static double milliseconds[GEONN_DEVICES_MAX];
static struct failure failures[GEONN_DEVICES_MAX];

static void
check(bool right, const char *what)
{
	printf("%s - %s\n", right ? "ok" : "not ok", what);
	failed += !right;
}

static double
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double) time.tv_sec * 1e3 + (double) time.tv_nsec * 1e-6;
}

static void *
probe_main(void *argument)
{
	struct device *device = (struct device *) argument;
	bool		usable = cuda_device_operations.probe(device, &failures[device->number]);

	atomic_store(&device->usable, usable);
	return NULL;
}

static void *
build_main(void *argument)
{
	struct device *device = (struct device *) argument;
	double		begin = now();

	cudaSetDevice(device->ordinal);
	done[device->number] = cuda_device_operations.build(device, &search,
														&failures[device->number]);
	milliseconds[device->number] = now() - begin;
	return NULL;
}

static void *
discard_main(void *argument)
{
	struct device *device = (struct device *) argument;

	cudaSetDevice(device->ordinal);
	if (dataset->built[device->number] != NULL)
		cuda_device_operations.discard(device, dataset->built[device->number]);
	dataset->built[device->number] = NULL;
	return NULL;
}

static void
on_every_gpu(void *(*main) (void *))
{
	pthread_t	threads[GEONN_DEVICES_MAX];

	for (int i = 1; i <= gpus; i++)
		pthread_create(&threads[i], NULL, main, &devices[i]);
	for (int i = 1; i <= gpus; i++)
		pthread_join(threads[i], NULL);
}

static uint64_t
taken_by(int number)
{
	return cuda_device_of(&devices[number])->taken;
}

/*
 * Radiuses, and windows of different lengths; few of them, so that references at
 * one place often have the same.
 */
static void
make_conditions(uint32_t count, uint32_t columns)
{
	if (columns & GEONN_COLUMN_RADIUS)
		dataset->radius = (double *) malloc(count * sizeof(double));
	for (uint32_t i = 0; dataset->radius != NULL && i < count; i++)
		dataset->radius[i] = random_below(2) ? INFINITY : 1000.0 * random_below(3);
	if (columns & GEONN_COLUMNS_WINDOWS)
		dataset->edges = (uint16_t *) calloc(count, sizeof(uint16_t));
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		if ((columns & GEONN_COLUMN_WINDOW << window) == 0)
			continue;
		dataset->low[window] = (int64_t *) malloc(count * sizeof(int64_t));
		dataset->high[window] = (int64_t *) malloc(count * sizeof(int64_t));
		for (uint32_t i = 0; i < count; i++)
		{
			dataset->low[window][i] = random_below(5) - 2;
			dataset->high[window][i] = dataset->low[window][i] + (random_below(3) << 20 * window);
			dataset->edges[i] |= geonn_edges_of(window, GEONN_EDGE_INCLUSIVE,
												(enum geonn_edge) random_below(2));
		}
	}
}

/*
 * Random references, a third of which stand where another one does.
 */
static void
make_dataset(uint32_t count, uint32_t columns, enum geonn_algorithm algorithm)
{
	static uint64_t id;

	dataset = dataset_create(++id, GEONN_METRIC_SPHERE, columns);
	dataset->count = count;
	dataset->latitude = (double *) malloc(count * sizeof(double));
	dataset->longitude = (double *) malloc(count * sizeof(double));
	dataset->tag = (int64_t *) malloc(count * sizeof(int64_t));
	if (columns & GEONN_COLUMN_GROUP)
		dataset->group = (int32_t *) malloc(count * sizeof(int32_t));
	make_conditions(count, columns);
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	like = i > 0 && random_below(3) == 0 ? i - 1 : i;

		dataset->latitude[i] = like < i ? dataset->latitude[like] : random_between(-90, 90);
		dataset->longitude[i] = like < i ? dataset->longitude[like] : random_between(-180, 360);
		dataset->tag[i] = (int64_t) random_bits();
		if (dataset->group != NULL)
			dataset->group[i] = random_below(7) - 3;
	}
	memset(&search, 0, sizeof(search));
	search.dataset = dataset;
	search.question.k = 1;
	search.question.algorithm = algorithm;
	search.algorithm = algorithm;
	search.question.max_distance = INFINITY;
	search.cancelled = &cancelled;
}

/* Put an arc behind those of the dataset. */
static void
add_arc(double latitude, double longitude, double end_latitude, double end_longitude, int32_t shape, int32_t polygon)
{
	size_t		i = dataset->count++;

	dataset->latitude[i] = latitude;
	dataset->longitude[i] = longitude;
	dataset->end_latitude[i] = end_latitude;
	dataset->end_longitude[i] = end_longitude;
	dataset->tag[i] = (int64_t) random_bits();
	dataset->shape[i] = shape;
	dataset->polygon[i] = polygon;
}

/* Random triangles, with a line of one arc for each third one, as long as a quarter circle or longer. */
static void
make_shapes(uint32_t count)
{
	make_dataset(0, GEONN_COLUMN_ARC, GEONN_ALGORITHM_INDEX);
	free(dataset->latitude);
	free(dataset->longitude);
	free(dataset->tag);
	dataset->latitude = (double *) malloc((count + 4) * sizeof(double));
	dataset->longitude = (double *) malloc((count + 4) * sizeof(double));
	dataset->end_latitude = (double *) malloc((count + 4) * sizeof(double));
	dataset->end_longitude = (double *) malloc((count + 4) * sizeof(double));
	dataset->tag = (int64_t *) malloc((count + 4) * sizeof(int64_t));
	dataset->shape = (int32_t *) malloc((count + 4) * sizeof(int32_t));
	dataset->polygon = (int32_t *) malloc((count + 4) * sizeof(int32_t));
	for (int32_t shape = 0; dataset->count < count; shape++)
	{
		double		latitude = random_between(-80, 80);
		double		longitude = random_between(-170, 170);
		double		size = fabs(random_magnitude(1e-4, 1));

		if (shape % 3 == 0)
		{
			add_arc(latitude, longitude, -latitude, longitude + random_between(80, 120), shape, 0);
			continue;
		}
		dataset->last_polygon++;
		add_arc(latitude, longitude, latitude, longitude + size, shape, dataset->last_polygon);
		add_arc(latitude, longitude + size, latitude + size, longitude, shape, dataset->last_polygon);
		add_arc(latitude + size, longitude, latitude, longitude, shape, dataset->last_polygon);
	}
}

static bool
all_done(void)
{
	for (int i = 1; i <= gpus; i++)
		if (!done[i])
		{
			printf("# device %d: %s %s\n", i, failures[i].message, failures[i].detail);
			return false;
		}
	return true;
}

static void
end_dataset(void)
{
	on_every_gpu(discard_main);
	dataset_free(dataset);
}

/*
 * Whether a column of the first GPU and of another one are the same.
 */
static bool
same(const void *first, const void *others, int other, size_t bytes)
{
	void	   *copies[2] = {malloc(bytes), malloc(bytes)};
	bool		equal = cudaSetDevice(devices[1].ordinal) == cudaSuccess &&
		cudaMemcpy(copies[0], first, bytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
		cudaSetDevice(devices[other].ordinal) == cudaSuccess &&
		cudaMemcpy(copies[1], others, bytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
		memcmp(copies[0], copies[1], bytes) == 0;

	cudaSetDevice(devices[1].ordinal);
	free(copies[0]);
	free(copies[1]);
	return equal;
}

static bool
same_conditions(const struct index *a, const struct index *b, int other)
{
	size_t		positions = a->shape.positions;
	size_t		nodes = a->shape.all_nodes;
	bool		equal = true;

	if (a->conditions.radius != NULL)
		equal = same(a->conditions.radius, b->conditions.radius, other, positions * sizeof(double)) &&
			same(a->node_limit, b->node_limit, other, nodes * sizeof(float));
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (a->conditions.low[i] != NULL)
			equal = equal &&
				same(a->conditions.low[i], b->conditions.low[i], other, positions * sizeof(int64_t)) &&
				same(a->conditions.high[i], b->conditions.high[i], other, positions * sizeof(int64_t)) &&
				same(a->node_low[i], b->node_low[i], other, nodes * sizeof(int64_t)) &&
				same(a->node_high[i], b->node_high[i], other, nodes * sizeof(int64_t));
	if (a->conditions.edges != NULL)
		equal = equal &&
			same(a->conditions.edges, b->conditions.edges, other, positions * sizeof(uint16_t)) &&
			same(a->exclusive, b->exclusive, other, sizeof(uint32_t)) &&
			same(a->order, b->order, other, sizeof(struct window_order));
	return equal;
}

/*
 * Whether what the first GPU's index holds of each reference's conditions is
 * what the host has, and its nodes enclose that.
 */
static bool
conditions_as_on_the_host(void)
{
	const struct index *index = &((const struct cuda_built *) dataset->built[1])->index;
	size_t		positions = index->shape.positions;
	size_t		leaves = index->shape.nodes[0];
	uint32_t   *start = (uint32_t *) malloc((positions + 1) * sizeof(uint32_t));
	uint32_t   *place = (uint32_t *) malloc(dataset->count * sizeof(uint32_t));
	int64_t    *columns[4];		/* low, high, node_low, node_high */
	uint16_t   *edges = (uint16_t *) malloc(positions * sizeof(uint16_t));
	double	   *radius = (double *) malloc(positions * sizeof(double));
	bool		right = true;

	for (int i = 0; i < 4; i++)
		columns[i] = (int64_t *) malloc((positions + leaves) * sizeof(int64_t));
	cudaMemcpy(start, index->start, (positions + 1) * sizeof(uint32_t), cudaMemcpyDeviceToHost);
	cudaMemcpy(place, index->place, dataset->count * sizeof(uint32_t), cudaMemcpyDeviceToHost);
	if (index->conditions.edges != NULL)
		cudaMemcpy(edges, index->conditions.edges, positions * sizeof(uint16_t),
				   cudaMemcpyDeviceToHost);
	if (index->conditions.radius != NULL)
		cudaMemcpy(radius, index->conditions.radius, positions * sizeof(double),
				   cudaMemcpyDeviceToHost);
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		if (index->conditions.low[window] == NULL)
			continue;
		cudaMemcpy(columns[0], index->conditions.low[window], positions * sizeof(int64_t),
				   cudaMemcpyDeviceToHost);
		cudaMemcpy(columns[1], index->conditions.high[window], positions * sizeof(int64_t),
				   cudaMemcpyDeviceToHost);
		cudaMemcpy(columns[2], index->node_low[window], leaves * sizeof(int64_t),
				   cudaMemcpyDeviceToHost);
		cudaMemcpy(columns[3], index->node_high[window], leaves * sizeof(int64_t),
				   cudaMemcpyDeviceToHost);
		for (size_t i = 0; i < positions; i++)
			for (uint32_t j = start[i]; j < start[i + 1]; j++)
			{
				int64_t		high = dataset->high[window][place[j]];
				bool		exclusive = geonn_high_edge(dataset->edges[place[j]], window) ==
					GEONN_EDGE_EXCLUSIVE;

				right = right && columns[0][i] == dataset->low[window][place[j]] &&
					columns[1][i] == high && edges[i] == dataset->edges[place[j]] &&
					columns[2][i / INDEX_WIDTH] <= columns[0][i] &&
					columns[3][i / INDEX_WIDTH] >= high - exclusive;
			}
	}
	for (size_t i = 0; index->conditions.radius != NULL && i < positions; i++)
		for (uint32_t j = start[i]; j < start[i + 1]; j++)
			right = right && radius[i] == dataset->radius[place[j]];
	for (int i = 0; i < 4; i++)
		free(columns[i]);
	free(start);
	free(place);
	free(edges);
	free(radius);
	return right;
}

static bool
same_index(const struct index *a, const struct index *b, int other)
{
	size_t		positions = a->shape.positions;
	size_t		nodes = a->shape.all_nodes;

	return memcmp(&a->shape, &b->shape, sizeof(a->shape)) == 0 &&
		a->references == b->references && a->columns == b->columns && a->metric == b->metric &&
		same(a->x, b->x, other, positions * sizeof(double)) &&
		same(a->y, b->y, other, positions * sizeof(double)) &&
		same(a->z, b->z, other, positions * sizeof(double)) &&
		same(a->start, b->start, other, (positions + 1) * sizeof(uint32_t)) &&
		same(a->place, b->place, other, a->references * sizeof(uint32_t)) &&
		same(a->tag, b->tag, other, a->references * sizeof(int64_t)) &&
		same(a->low_x, b->low_x, other, nodes * sizeof(double)) &&
		same(a->high_z, b->high_z, other, nodes * sizeof(double)) &&
		same_conditions(a, b, other) &&
		(a->group == NULL || same(a->group, b->group, other, positions * sizeof(int32_t)));
}

static bool
same_everywhere(enum cuda_part part)
{
	const struct cuda_built *first = (const struct cuda_built *) dataset->built[1];

	for (int i = 2; i <= gpus; i++)
	{
		const struct cuda_built *other = (const struct cuda_built *) dataset->built[i];
		size_t		bytes = dataset->count * sizeof(double);

		if (part == CUDA_INDEX ? !same_index(&first->index, &other->index, i) :
			!same(first->references.x, other->references.x, i, bytes) ||
			!same(first->references.z, other->references.z, i, bytes) ||
			!same(first->references.tag, other->references.tag, i, bytes))
			return false;
	}
	return true;
}

/*
 * Whether the first GPU has what the host has: tags where their places say, or
 * the vectors.
 */
static bool
as_on_the_host(enum cuda_part part)
{
	const struct cuda_built *built = (const struct cuda_built *) dataset->built[1];
	size_t		count = dataset->count;
	int64_t    *tag = (int64_t *) malloc(count * sizeof(int64_t));
	double	   *z = (double *) malloc(count * sizeof(double));
	uint32_t   *place = (uint32_t *) malloc(count * sizeof(uint32_t));
	bool		right = true;

	if (part == CUDA_INDEX)
	{
		cudaMemcpy(tag, built->index.tag, count * sizeof(int64_t), cudaMemcpyDeviceToHost);
		cudaMemcpy(place, built->index.place, count * sizeof(uint32_t), cudaMemcpyDeviceToHost);
		for (size_t i = 0; i < count && right; i++)
			right = place[i] < count && tag[i] == dataset->tag[place[i]];
	}
	else
	{
		cudaMemcpy(tag, built->references.tag, count * sizeof(int64_t), cudaMemcpyDeviceToHost);
		cudaMemcpy(z, built->references.z, count * sizeof(double), cudaMemcpyDeviceToHost);
		for (size_t i = 0; i < count && right; i++)
			right = tag[i] == dataset->tag[i] &&
				z[i] == geonn_unit_vector(dataset->latitude[i], dataset->longitude[i]).z;
	}
	free(tag);
	free(z);
	free(place);
	return right;
}

static void
test_sharing(void)
{
	static const uint32_t counts[] = {1, 33, 1000, 70000, 500000, 500000, MANY};
	static const uint32_t columns[] = {
		0, GEONN_COLUMNS_ALL & ~(GEONN_COLUMNS_WEIGHTS | GEONN_COLUMNS_PARTIES | GEONN_COLUMNS_OF_ARCS), 0, GEONN_COLUMN_GROUP,
		GEONN_COLUMN_RADIUS, GEONN_COLUMN_WINDOW, 0
	};
	const int	cases = sizeof(counts) / sizeof(counts[0]);
	bool		right = true;

	for (int i = 0; i < cases && right; i++)
		for (int j = CUDA_BRUTE; j <= CUDA_INDEX && right; j++)
		{
			enum cuda_part part = (enum cuda_part) j;

			if (part == CUDA_BRUTE && columns[i] != 0)
				continue;
			make_dataset(counts[i], columns[i],
						 part == CUDA_BRUTE ? GEONN_ALGORITHM_BRUTE : GEONN_ALGORITHM_INDEX);
			on_every_gpu(build_main);
			right = all_done() && as_on_the_host(part) && same_everywhere(part) &&
				(part == CUDA_BRUTE || conditions_as_on_the_host());
			printf("# %u references, %s:", counts[i], part == CUDA_BRUTE ? "brute" : "index");
			for (int k = 1; k <= gpus; k++)
				printf(" %.2f", milliseconds[k]);
			printf(" ms\n");
			end_dataset();
		}
	check(right, "every GPU holds the same, and what the host has");
}

/* Whether a GPU's column of the dataset is the host's. */
static bool
same_as_host(const void *column, const void *of_host, size_t bytes)
{
	void	   *copy = malloc(bytes);
	bool		right = cudaMemcpy(copy, column, bytes, cudaMemcpyDeviceToHost) == cudaSuccess &&
		memcmp(copy, of_host, bytes) == 0;

	free(copy);
	return right;
}

/* Whether all GPUs have the same index of arcs, with the host's tags and shapes, and the same polygons. */
static bool
same_shapes_everywhere(void)
{
	const struct cuda_built *first = (const struct cuda_built *) dataset->built[1];
	const struct arcs_shape *shape = &first->arcs.shape;
	size_t		tags = dataset->count * sizeof(int64_t);
	size_t		shapes = dataset->count * sizeof(int32_t);
	bool		right = same_as_host(first->arcs.tag, dataset->tag, tags) &&
		same_as_host(first->arcs.shape_of, dataset->shape, shapes);

	for (int i = 2; i <= gpus && right; i++)
	{
		const struct cuda_built *other = (const struct cuda_built *) dataset->built[i];

		right = memcmp(shape, &other->arcs.shape, sizeof(*shape)) == 0 &&
			same(first->arcs.leaf, other->arcs.leaf, i, shape->leaves * sizeof(struct arcs_leaf)) &&
			same(first->arcs.node, other->arcs.node, i, shape->all_nodes * sizeof(struct shape_boxes_node)) &&
			same(first->arcs.curve.leaf_code, other->arcs.curve.leaf_code, i, shape->leaves * sizeof(uint64_t)) &&
			same(first->arcs.tag, other->arcs.tag, i, tags) &&
			same(first->arcs.shape_of, other->arcs.shape_of, i, shapes) &&
			first->polygons_shape.bytes == other->polygons_shape.bytes &&
			same(first->blocks[CUDA_POLYGONS].memory, other->blocks[CUDA_POLYGONS].memory, i, first->polygons_shape.bytes);
	}
	return right;
}

/* Arcs and polygons: shared, limited, and free again. */
static void
test_shapes(void)
{
	static const uint32_t counts[] = {1, 4, 300, 70000, 1000000};
	bool		right = true;
	uint64_t	before;
	uint64_t	arcs;

	for (int i = 0; i < 5 && right; i++)
	{
		make_shapes(counts[i]);
		on_every_gpu(build_main);
		right = all_done() && same_shapes_everywhere();
		end_dataset();
	}
	check(right, "every GPU holds the same arcs and polygons");

	make_shapes(1000000);
	atomic_store(&gpu_memory_limit, 1);
	on_every_gpu(build_main);
	before = taken_by(1);
	atomic_store(&gpu_memory_limit, before + (16 << 20));
	on_every_gpu(build_main);
	printf("# %s\n# %s\n# %s\n", failures[1].message, failures[1].detail, failures[1].hint);
	check(!done[1] && failures[1].code == GEONN_ERROR_LIMIT && taken_by(1) == before,
		  "arcs beyond geonn.gpu_memory_limit are refused");
	atomic_store(&gpu_memory_limit, 0);
	on_every_gpu(build_main);
	arcs = ((const struct cuda_built *) dataset->built[1])->blocks[CUDA_ARCS].bytes;
	printf("# arcs of %llu kB, polygons of %llu kB\n", (unsigned long long) arcs / 1024,
		   (unsigned long long) (taken_by(1) - before - arcs) / 1024);
	check(all_done() && same_shapes_everywhere(), "they are built once the limit is raised");
	end_dataset();
	check(taken_by(1) == before, "and their memory is free again");

	make_shapes(1000);
	atomic_store(&cancelled, true);
	on_every_gpu(build_main);
	atomic_store(&cancelled, false);
	check(!done[1] && taken_by(1) == before, "a cancelled search builds neither arcs nor polygons");
	end_dataset();
}

/*
 * Whether the order's slabs are within their room, and each class's begin one
 * after the other; and whether the references' windows are in slabs that have
 * not ended.
 */
static bool
order_right(const struct window_order *order)
{
	const int64_t *low = dataset->low[order->window];
	const int64_t *high = dataset->high[order->window];
	bool		right = true;

	for (int i = 0; i < WINDOW_CLASSES; i++)
	{
		uint32_t	last = order->first[order->class_of[i]] + order->slabs[order->class_of[i]];

		right = right && order->class_of[i] >= i && order->slabs[order->class_of[i]] > 0 &&
			last <= WINDOW_SLABS_MAX;
		for (uint32_t j = order->first[order->class_of[i]] + 1; j < last && right; j++)
			right = order->begin[j - 1] < order->begin[j];
	}
	for (size_t i = 0; i < dataset->count && right; i++)
	{
		uint32_t	class_number = order->class_of[window_length_bits(low[i], high[i])];
		uint32_t	slab = window_slab_of(order, low[i], high[i]);
		uint32_t	end = order->first[class_number] + order->slabs[class_number];

		right = slab >= order->first[class_number] && slab < end &&
			(slab == order->first[class_number] || order->begin[slab] <= low[i]) &&
			(slab + 1 == end || low[i] < order->begin[slab + 1]);
	}
	return right;
}

/*
 * Windows of all lengths, of one length, of few steps, and in groups.
 */
static void
test_orders(void)
{
	static struct window_order order;
	bool		right = true;

	for (int i = 0; i < 40 && right; i++)
	{
		/* one that would have more slabs than there may be */
		bool		most = i == 2;
		uint32_t	count = most ? 2 * MANY : 1 + (uint32_t) fabs(random_magnitude(1, 1e6));
		double		longest = most ? 1e9 : fabs(random_magnitude(1, 1e18));
		int64_t		step = random_below(2) ? 1 : (int64_t) fabs(random_magnitude(1, 1e12));

		make_dataset(count, GEONN_COLUMN_WINDOW | (i % 2 ? GEONN_COLUMN_GROUP : 0),
					 GEONN_ALGORITHM_INDEX);
		for (uint32_t j = 0; j < count; j++)
		{
			int64_t		length = i % 3 == 0 ? 0 : (int64_t) fabs(random_magnitude(1, longest));

			dataset->low[0][j] = (int64_t) random_between(-1e18, 1e18) / step * step;
			dataset->high[0][j] = i % 3 == 1 ? dataset->low[0][j] + step : dataset->low[0][j] + length;
		}
		window_order_choose(&search, &order);
		right = order_right(&order);
		if (!right)
			printf("# %u references, step %lld, longest %g\n", count, (long long) step, longest);
		dataset_free(dataset);
	}
	check(right, "each window is in its slab");
}

static void
test_limit(void)
{
	uint64_t	before;

	/* a refusal, for idle lanes to give back what they hold */
	make_dataset(MANY, 0, GEONN_ALGORITHM_INDEX);
	atomic_store(&gpu_memory_limit, 1);
	on_every_gpu(build_main);
	before = taken_by(1);
	atomic_store(&gpu_memory_limit, before + (64 << 20));
	on_every_gpu(build_main);
	printf("# %s\n# %s\n# %s\n", failures[1].message, failures[1].detail, failures[1].hint);
	check(!done[1] && failures[1].code == GEONN_ERROR_LIMIT && taken_by(1) == before &&
		  strstr(failures[1].message, "geonn.gpu_memory_limit") != NULL &&
		  strstr(failures[1].message, "kB") != NULL,
		  "a dataset beyond geonn.gpu_memory_limit is refused with both numbers");
	atomic_store(&gpu_memory_limit, 0);
	on_every_gpu(build_main);
	check(all_done(), "the same dataset is built once the limit is raised");
	atomic_store(&gpu_memory_limit, 1);
	on_every_gpu(build_main);
	check(all_done(), "what is held stays when the limit is lowered");
	atomic_store(&gpu_memory_limit, 0);
	end_dataset();
	check(taken_by(1) == before, "discarded memory is free again");
}

/*
 * Another process has taken the first GPU's memory.
 */
static void
test_shortage(void)
{
	size_t		free_bytes;
	size_t		total_bytes;
	void	   *others = NULL;
	uint64_t	before = taken_by(1);
	bool		rest = true;

	cudaSetDevice(devices[1].ordinal);
	cudaDeviceSynchronize();
	cudaMemPoolTrimTo(cuda_device_of(&devices[1])->pool, 0);
	if (cudaMemGetInfo(&free_bytes, &total_bytes) != cudaSuccess ||
		cudaMalloc(&others, free_bytes - total_bytes / 64 - (64 << 20)) != cudaSuccess)
	{
		check(false, "most of the GPU's memory can be taken");
		return;
	}
	make_dataset(MANY, 0, GEONN_ALGORITHM_INDEX);
	on_every_gpu(build_main);
	printf("# %s\n# %s\n# %s\n", failures[1].message, failures[1].detail, failures[1].hint);
	check(!done[1] && failures[1].code == GEONN_ERROR_MEMORY && taken_by(1) == before &&
		  atomic_load(&devices[1].usable),
		  "a dataset that does not fit is refused, and the GPU stays usable");
	for (int i = 2; i <= gpus; i++)
		rest = rest && done[i];
	check(rest, "the other GPUs build it without the first");
	cudaSetDevice(devices[1].ordinal);
	cudaFree(others);
	on_every_gpu(build_main);
	check(all_done() && same_everywhere(CUDA_INDEX), "with memory again every GPU has it");
	end_dataset();
}

static void
test_cancelled(void)
{
	bool		none = true;

	make_dataset(1000, 0, GEONN_ALGORITHM_INDEX);
	atomic_store(&cancelled, true);
	on_every_gpu(build_main);
	for (int i = 1; i <= gpus; i++)
		none = none && !done[i];
	atomic_store(&cancelled, false);
	on_every_gpu(build_main);
	check(none && all_done(), "a cancelled search builds nothing, the next one does");
	end_dataset();
}

int
main(int argument_count, char **words)
{
	struct failure failure;

	if (argument_count > 1)
		random_state = strtoull(words[1], NULL, 10);
	printf("seed %llu\n", (unsigned long long) random_state);
	test_orders();
	gpus = cuda_device_count(&failure);
	if (gpus == 0)
	{
		printf("%s\n", failure.message);
		return 2;
	}
	for (int i = 1; i <= gpus; i++)
	{
		devices[i].operations = &cuda_device_operations;
		devices[i].number = i;
		devices[i].ordinal = i - 1;
	}
	on_every_gpu(probe_main);
	for (int i = 1; i <= gpus; i++)
	{
		printf("# device %d: %s\n", i, devices[i].name);
		if (!atomic_load(&devices[i].usable))
		{
			printf("not ok - %s %s\n", failures[i].message, failures[i].detail);
			return 1;
		}
	}
	test_sharing();
	test_shapes();
	test_limit();
	test_shortage();
	test_cancelled();
	return failed > 0;
}
