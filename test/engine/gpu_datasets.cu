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
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/geodesy.h"
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
	if (columns & GEONN_COLUMN_IDENTITY)
		dataset->identity = (int32_t *) malloc(count * sizeof(int32_t));
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	like = i > 0 && random_below(3) == 0 ? i - 1 : i;

		dataset->latitude[i] = like < i ? dataset->latitude[like] : random_between(-90, 90);
		dataset->longitude[i] = like < i ? dataset->longitude[like] : random_between(-180, 360);
		dataset->tag[i] = (int64_t) random_bits();
		if (dataset->group != NULL)
			dataset->group[i] = random_below(7) - 3;
		if (dataset->identity != NULL)
			dataset->identity[i] = random_below(1000);
	}
	memset(&search, 0, sizeof(search));
	search.dataset = dataset;
	search.question.k = 1;
	search.question.algorithm = algorithm;
	search.question.max_distance = INFINITY;
	search.cancelled = &cancelled;
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
		(a->group == NULL || same(a->group, b->group, other, positions * sizeof(int32_t))) &&
		(a->identity == NULL || same(a->identity, b->identity, other, a->references * sizeof(int32_t)));
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
	static const uint32_t counts[] = {1, 33, 1000, 70000, MANY};
	static const uint32_t columns[] = {0, GEONN_COLUMNS_ALL, 0, GEONN_COLUMN_GROUP, 0};
	bool		right = true;

	for (int i = 0; i < 5 && right; i++)
		for (int j = 0; j < CUDA_PARTS && right; j++)
		{
			enum cuda_part part = (enum cuda_part) j;

			if (part == CUDA_BRUTE && columns[i] != 0)
				continue;
			make_dataset(counts[i], columns[i],
						 part == CUDA_BRUTE ? GEONN_ALGORITHM_BRUTE : GEONN_ALGORITHM_INDEX);
			on_every_gpu(build_main);
			right = all_done() && as_on_the_host(part) && same_everywhere(part);
			printf("# %u references, %s:", counts[i], part == CUDA_BRUTE ? "brute" : "index");
			for (int k = 1; k <= gpus; k++)
				printf(" %.2f", milliseconds[k]);
			printf(" ms\n");
			end_dataset();
		}
	check(right, "every GPU holds the same, and what the host has");
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
	test_limit();
	test_shortage();
	test_cancelled();
	return failed > 0;
}
