/*
 * dataset.cu
 *		Builds datasets on one GPU, and copies them to the others.
 *
 * A part of a dataset (its references for brute force, its index, the sums of
 * its weights, the index of its arcs, or its polygons) is one block of memory.  The first GPU
 * that needs the part gets the columns and builds it; polygons it copies as the CPU builds them.
 * GPUs that are linked to that one wait meanwhile and copy the finished block, which takes a
 * fraction of the time; then they only recompute its addresses.  GPUs without a link build for themselves.
 *
 * One lock guards which GPU has, or builds, which part.  The only slow work
 * under it is to link GPUs when they are probed, which takes some 10 ms for a
 * pair, too much for a search.  A GPU that builds waits for no other GPU, so
 * no cycle of waits can arise.  If a build fails, the part is absent again,
 * and the next GPU that waits builds it.  The wait is bounded, in case a driver
 * hangs, and ends when the search is cancelled.
 *
 * A GPU copies from another one's block only within cuda_build, for a search
 * whose session holds the dataset, and datasets are discarded when no session
 * holds them any more.  So no block is freed while it is read.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cuda/base/columns.cuh"
#include "cuda/base/phase.cuh"
#include "cuda/base/try.cuh"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/memory.cuh"
#include "cuda/lane/upload.cuh"

extern "C"
{
#include "engine/base/clock.h"
}

/* A device waits at most this many ms for another GPU's build: half of the time that the scheduler allows a build. */
#define WAIT_MS 30000

/* A waiting device checks after this many ns whether the search has been cancelled. */
#define LOOK_NANOSECONDS 20000000

static struct
{
	pthread_mutex_t lock;
	pthread_cond_t changed;		/* signalled when a part has been built, or its build has failed */

	/* guarded by lock */
	struct device *joined[GEONN_DEVICES_MAX];
	int			joined_count;
	bool		linked[GEONN_DEVICES_MAX][GEONN_DEVICES_MAX];	/* [owner][user]: the user can copy
																 * from the owner */
}			sharing = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.joined = {},
	.joined_count = 0,
	.linked = {}
};

enum cuda_part
cuda_part_of(const struct search *search, enum geonn_algorithm algorithm)
{
	if (search->dataset->columns & GEONN_COLUMN_ARC)
		return CUDA_ARCS;
	return algorithm == GEONN_ALGORITHM_BRUTE ? CUDA_BRUTE : CUDA_INDEX;
}

/* ---- building ---- */

/*
 * Lay a part out from address memory on (NULL to learn only the size).
 */
static size_t
place_part(struct cuda_built *built, enum cuda_part part, const struct dataset *dataset,
		   void *memory)
{
	uint32_t	count = (uint32_t) dataset->count;

	if (part == CUDA_BRUTE)
		return brute_place_references(memory, count, dataset->metric, &built->references);
	if (part == CUDA_SUMS)
		return index_weights_place(memory, count, &built->weights);
	if (part == CUDA_ARCS)
		return arcs_place(memory, &built->arcs_shape, &built->arcs);
	if (part == CUDA_POLYGONS)
		return polygons_place(memory, &built->polygons_shape, &built->polygons);
	return index_place(memory, count, dataset->metric, dataset->columns, &built->index);
}

/* Allocate memory for a part, or for its build.  An error names the part and the number of references, or of arcs. */
static void *
allocate_for(struct cuda_built *built, enum cuda_part part, const struct dataset *dataset,
			 bool building, size_t bytes, struct failure *failure)
{
	static const char *const names[] = {"brute force over", "the index of",
	"the sums of the weights of", "the index of", "the polygons of"};
	enum cuda_purpose kind = building ? CUDA_FOR_SEARCH : CUDA_FOR_DATASET;
	char		purpose[64];

	snprintf(purpose, sizeof(purpose), "%s%s %zu %s", building ? "building " : "",
			 names[part], dataset->count, part == CUDA_ARCS || part == CUDA_POLYGONS ? "arcs" : "references");
	return cuda_allocate(built->device, bytes, kind, purpose, failure);
}

/*
 * Allocate a part's block and lay it out there.
 */
static bool
allocate_part(struct cuda_built *built, enum cuda_part part, const struct dataset *dataset,
			  struct failure *failure)
{
	struct cuda_block *block = &built->blocks[part];

	block->bytes = place_part(built, part, dataset, NULL);
	block->memory = allocate_for(built, part, dataset, false, block->bytes, failure);
	if (block->memory == NULL)
		return false;
	place_part(built, part, dataset, block->memory);
	return true;
}

static cudaError_t
make_references(struct cuda_built *built, const struct dataset *dataset)
{
	struct cuda_device *cuda = cuda_device_of(built->device);
	const struct brute_references *references = &built->references;
	struct upload upload = {};

	/* The degrees go into the memory of the vectors; the kernel of brute_prepare_references() replaces them. */
	upload_add(&upload, references->x, dataset->latitude, dataset->count);
	upload_add(&upload, references->y, dataset->longitude, dataset->count);
	upload_add(&upload, references->tag, dataset->tag, dataset->count);
	CUDA_TRY(upload_run(built->device, &upload));
	return brute_prepare_references(references, cuda->building);
}

/* Lay out the columns from which an index is built; returns the bytes that they take. */
static size_t
place_source(void *memory, const struct dataset *dataset, struct index_source *source)
{
	size_t		count = dataset->count;
	size_t		bytes = 0;

	*source = {};
	place_columns(memory, &bytes, count, &source->latitude, &source->longitude, &source->tag);
	if (dataset->group != NULL)
		place_columns(memory, &bytes, count, &source->group);
	index_place_conditions(memory, &bytes, (uint32_t) count, dataset->columns,
						   &source->conditions);
	return bytes;
}

static cudaError_t
make_index(struct cuda_built *built, const struct search *search, char *room)
{
	const struct dataset *dataset = search->dataset;
	struct cuda_device *cuda = cuda_device_of(built->device);
	size_t		count = dataset->count;
	struct window_order order;
	struct index_source source;
	struct upload upload = {};
	size_t		offset = place_source(room, dataset, &source);

	upload_add(&upload, source.latitude, dataset->latitude, count);
	upload_add(&upload, source.longitude, dataset->longitude, count);
	upload_add(&upload, source.tag, dataset->tag, count);
	upload_add(&upload, source.group, dataset->group, count);
	upload_add(&upload, source.conditions.radius, dataset->radius, count);
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		upload_add(&upload, source.conditions.low[i], dataset->low[i], count);
		upload_add(&upload, source.conditions.high[i], dataset->high[i], count);
	}
	upload_add(&upload, source.conditions.edges, dataset->edges, count);
	if (built->index.order != NULL)
	{
		window_order_choose(search, &order);
		upload_add(&upload, built->index.order, &order, 1);
	}
	CUDA_TRY(upload_run(built->device, &upload));
	return index_build(&built->index, &source, room + offset, cuda->building);
}

/* Lay out the columns of a dataset's weights; returns the bytes that they take. */
static size_t
place_weights(void *memory, const struct dataset *dataset, const double **weight)
{
	size_t		bytes = 0;

	for (int i = 0; i < GEONN_WEIGHTS_MAX && dataset->weight[i] != NULL; i++)
		place_columns(memory, &bytes, dataset->count, &weight[i]);
	return bytes;
}

static cudaError_t
make_sums(struct cuda_built *built, const struct dataset *dataset, char *room)
{
	const double *weight[GEONN_WEIGHTS_MAX] = {};
	struct upload upload = {};
	size_t		offset = place_weights(room, dataset, weight);

	for (uint32_t i = 0; i < built->weights.count; i++)
		upload_add(&upload, weight[i], dataset->weight[i], dataset->count);
	CUDA_TRY(upload_run(built->device, &upload));
	return index_weights_build(&built->weights, &built->index, weight, room + offset,
							   cuda_device_of(built->device)->building);
}

/* Lay out the columns from which an index of arcs is built; returns the bytes that they take. */
static size_t
place_arcs(void *memory, const struct arcs_shape *shape, struct arcs_source *source)
{
	size_t		bytes = 0;

	place_columns(memory, &bytes, shape->arcs, &source->latitude, &source->longitude, &source->end_latitude,
				  &source->end_longitude);
	place_columns(memory, &bytes, shape->long_arcs, &source->long_arc, &source->middle);
	return bytes;
}

static cudaError_t
make_arcs(struct cuda_built *built, const struct dataset *dataset, char *room)
{
	const struct arcs_shape *shape = &built->arcs_shape;
	struct arcs_source source;
	struct upload upload = {};
	size_t		offset = place_arcs(room, shape, &source);

	upload_add(&upload, source.latitude, dataset->latitude, shape->arcs);
	upload_add(&upload, source.longitude, dataset->longitude, shape->arcs);
	upload_add(&upload, source.end_latitude, dataset->end_latitude, shape->arcs);
	upload_add(&upload, source.end_longitude, dataset->end_longitude, shape->arcs);
	upload_add(&upload, built->arcs.tag, dataset->tag, shape->arcs);
	upload_add(&upload, built->arcs.shape_of, dataset->shape, shape->arcs);
	if (shape->long_arcs > 0)
	{
		upload_add(&upload, source.long_arc, built->long_of_host.arc, shape->long_arcs);
		upload_add(&upload, source.middle, built->long_of_host.middle, shape->long_arcs);
	}
	CUDA_TRY(upload_run(built->device, &upload));
	return arcs_build(&built->arcs, &source, room + offset, cuda_device_of(built->device)->building);
}

/* Copy the polygons that the host has built. */
static cudaError_t
make_polygons(struct cuda_built *built)
{
	const struct polygons_of_host *host = &built->polygons_of_host;
	char	   *memory = (char *) built->blocks[CUDA_POLYGONS].memory;
	struct upload upload = {};

	upload_add(&upload, memory, (const char *) host->polygons.memory, host->polygons.bytes);
	upload_add(&upload, memory + built->polygons_shape.vertex, (const char *) host->vertices.vertex, host->vertices.bytes);
	return upload_run(built->device, &upload);
}

/*
 * Find the shape of a part whose size depends on more than the number of references.  With a source, copy the source's
 * shape; with NULL, look at the dataset: list its long arcs, or build its polygons.
 */
static bool
find_shape(struct cuda_built *built, enum cuda_part part, const struct cuda_built *source, const struct search *search,
		   struct failure *failure)
{
	if (part == CUDA_ARCS && source != NULL)
		built->arcs_shape = source->arcs_shape;
	else if (part == CUDA_ARCS)
	{
		if (!arcs_list_long(search->dataset, search->cancelled, &built->long_of_host, failure))
			return false;
		built->arcs_shape = arcs_shape_of((uint32_t) search->dataset->count, built->long_of_host.count);
	}
	else if (part == CUDA_POLYGONS && source != NULL)
		built->polygons_shape = source->polygons_shape;
	else if (part == CUDA_POLYGONS)
	{
		if (!polygons_build(search->dataset, search->cancelled, &built->polygons_of_host, failure))
			return false;
		built->polygons_shape = polygons_shape_of(&built->polygons_of_host);
	}
	return true;
}

/* Build a part from the host's columns; its block is allocated.  Sums also need the index, which is built before them. */
static bool
make_part(struct cuda_built *built, enum cuda_part part, const struct search *search,
		  struct failure *failure)
{
	const struct dataset *dataset = search->dataset;
	struct cuda_device *cuda = cuda_device_of(built->device);
	struct phase phase("build dataset");
	struct index_source source;
	struct arcs_source arcs;
	const double *weight[GEONN_WEIGHTS_MAX];
	size_t		bytes = 0;
	char	   *room = NULL;
	cudaError_t error;

	if (part == CUDA_INDEX)
		bytes = place_source(NULL, dataset, &source) + index_build_room((uint32_t) dataset->count);
	else if (part == CUDA_SUMS)
		bytes = place_weights(NULL, dataset, weight) +
			index_weights_room((uint32_t) dataset->count, &built->weights);
	else if (part == CUDA_ARCS)
		bytes = place_arcs(NULL, &built->arcs_shape, &arcs) + arcs_build_room(&built->arcs_shape);
	if (bytes > 0 &&
		(room = (char *) allocate_for(built, part, dataset, true, bytes, failure)) == NULL)
		return false;
	error = part == CUDA_BRUTE ? make_references(built, dataset) :
		part == CUDA_INDEX ? make_index(built, search, room) :
		part == CUDA_SUMS ? make_sums(built, dataset, room) :
		part == CUDA_ARCS ? make_arcs(built, dataset, room) : make_polygons(built);
	if (error == cudaSuccess)
		error = cudaStreamSynchronize(cuda->building);
	cuda_release(built->device, room, bytes);
	return error == cudaSuccess || cuda_fail(built->device, failure, error);
}

/* Copy a part from another GPU; its block is allocated. */
static cudaError_t
copy_part(struct cuda_built *built, enum cuda_part part, const struct cuda_built *source)
{
	struct cuda_device *cuda = cuda_device_of(built->device);
	struct phase phase("copy dataset from another GPU");

	if (part == CUDA_INDEX)
		built->index.shape = source->index.shape;
	CUDA_TRY(cudaMemcpyPeerAsync(built->blocks[part].memory, built->device->ordinal,
								 source->blocks[part].memory, source->device->ordinal,
								 source->blocks[part].bytes, cuda->building));
	return cudaStreamSynchronize(cuda->building);
}

/* ---- which GPU builds ---- */

void
cuda_join(struct device *device)
{
	pthread_mutex_lock(&sharing.lock);
	for (int i = 0; i < sharing.joined_count; i++)
	{
		struct device *other = sharing.joined[i];

		sharing.linked[other->number][device->number] = cuda_memory_link(other, device);
		sharing.linked[device->number][other->number] = cuda_memory_link(device, other);
	}
	sharing.joined[sharing.joined_count++] = device;
	pthread_mutex_unlock(&sharing.lock);
}

void
cuda_leave(struct device *device)
{
	pthread_mutex_lock(&sharing.lock);
	for (int i = 0; i < sharing.joined_count; i++)
		if (sharing.joined[i] == device)
			sharing.joined[i] = sharing.joined[--sharing.joined_count];
	pthread_mutex_unlock(&sharing.lock);
}

/*
 * Return what this device has built of a dataset so far; at the first call,
 * create it.
 */
static struct cuda_built *
find_built(struct device *device, struct dataset *dataset)
{
	struct cuda_built *built = (struct cuda_built *) dataset->built[device->number];

	if (built != NULL)
		return built;
	built = (struct cuda_built *) calloc(1, sizeof(*built));
	if (built == NULL)
		return NULL;
	built->device = device;
	pthread_mutex_lock(&sharing.lock);
	dataset->built[device->number] = built;
	pthread_mutex_unlock(&sharing.lock);
	return built;
}

/* Look for a linked GPU that has this part.  If none has, tell whether one is building it.  The caller holds the lock. */
static const struct cuda_built *
find_source(const struct cuda_built *built, enum cuda_part part, const struct dataset *dataset,
			bool *one_builds)
{
	*one_builds = false;
	/* device 0 is the CPU */
	for (int i = 1; i < GEONN_DEVICES_MAX; i++)
	{
		const struct cuda_built *other = (const struct cuda_built *) dataset->built[i];

		if (other == NULL || other == built || other->blocks[part].state == PART_ABSENT ||
			!sharing.linked[other->device->number][built->device->number])
			continue;
		if (other->blocks[part].state == PART_BUILT)
			return other;
		*one_builds = true;
	}
	return NULL;
}

/*
 * Wait until a build of some part ends, whether or not it fails.  The caller holds the lock; the
 * wait releases it meanwhile.
 */
static void
wait_for_change(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += LOOK_NANOSECONDS;
	if (until.tv_nsec >= 1000000000)
	{
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_cond_timedwait(&sharing.changed, &sharing.lock, &until);
}

/*
 * Begin to build a part.  If a linked GPU is building it, wait first.  Returns the other GPU's part
 * to copy, or NULL if no linked GPU has the part.
 */
static const struct cuda_built *
begin_part(struct cuda_built *built, enum cuda_part part, const struct search *search)
{
	int64_t		give_up_ms = now_ms() + WAIT_MS;
	const struct cuda_built *source;
	bool		one_builds;

	pthread_mutex_lock(&sharing.lock);
	while ((source = find_source(built, part, search->dataset, &one_builds)) == NULL &&
		   one_builds && now_ms() < give_up_ms && !atomic_load(search->cancelled))
		wait_for_change();
	built->blocks[part].state = PART_BUILDING;
	pthread_mutex_unlock(&sharing.lock);
	return source;
}

static void
end_part(struct cuda_built *built, enum cuda_part part, bool done)
{
	pthread_mutex_lock(&sharing.lock);
	built->blocks[part].state = done ? PART_BUILT : PART_ABSENT;
	pthread_cond_broadcast(&sharing.changed);
	pthread_mutex_unlock(&sharing.lock);
}

/* Forget that two GPUs are linked, because a copy through the link has failed. */
static void
forget_link(const struct device *owner, const struct device *user)
{
	pthread_mutex_lock(&sharing.lock);
	sharing.linked[owner->number][user->number] = false;
	pthread_mutex_unlock(&sharing.lock);
}

static bool
fill_part(struct cuda_built *built, enum cuda_part part, const struct cuda_built *source,
		  const struct search *search, struct failure *failure)
{
	const struct dataset *dataset = search->dataset;
	bool		done = false;

	if (!find_shape(built, part, source, search, failure) || !allocate_part(built, part, dataset, failure))
		return false;
	if (source != NULL)
	{
		cudaError_t error = copy_part(built, part, source);

		done = error == cudaSuccess;
		if (!done)
		{
			cuda_fail(built->device, failure, error);
			forget_link(source->device, built->device);
			place_part(built, part, dataset, built->blocks[part].memory);
		}
	}
	if (!done)
		done = (source == NULL || find_shape(built, part, NULL, search, failure)) && make_part(built, part, search, failure);
	if (!done)
		cuda_release(built->device, built->blocks[part].memory, built->blocks[part].bytes);
	return done;
}

static bool
needs_polygons(const struct search *search)
{
	return (search->dataset->columns & GEONN_COLUMN_ARC) != 0 && search->dataset->last_polygon != 0;
}

static bool
needs_sums(const struct search *search)
{
	return search->question.radii > 0 && (search->dataset->columns & GEONN_COLUMNS_WEIGHTS) != 0;
}

/* Reads the states of blocks without the lock: only the device's own thread changes them, and that thread calls this. */
bool
cuda_is_built(const struct device *device, const struct search *search,
			  enum geonn_algorithm algorithm)
{
	const struct cuda_built *built =
		(const struct cuda_built *) search->dataset->built[device->number];

	return built != NULL && built->blocks[cuda_part_of(search, algorithm)].state == PART_BUILT &&
		(!needs_polygons(search) || built->blocks[CUDA_POLYGONS].state == PART_BUILT) &&
		(!needs_sums(search) || built->blocks[CUDA_SUMS].state == PART_BUILT ||
		 (built->weights.count > 0 && !built->weights.fit));
}

/* Build a part, or copy it, unless it is built. */
static bool
build_part(struct cuda_built *built, enum cuda_part part, const struct search *search,
		   struct failure *failure)
{
	const struct cuda_built *source;
	bool		done;

	/* only this thread changes the state */
	if (built->blocks[part].state == PART_BUILT)
		return true;

	source = begin_part(built, part, search);
	if (atomic_load(search->cancelled))
		done = fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	else
		done = fill_part(built, part, source, search, failure);
	arcs_free_long(&built->long_of_host);
	polygons_free(&built->polygons_of_host);
	end_part(built, part, done);
	return done;
}

/* Build the sums of the weights beside the index, if the search needs sums and they fit. */
static bool
build_sums(struct cuda_built *built, const struct search *search, struct failure *failure)
{
	if (!needs_sums(search))
		return true;
	if (built->weights.count == 0)
		index_weights_find(&built->weights, search->dataset);
	return !built->weights.fit || build_part(built, CUDA_SUMS, search, failure);
}

bool
cuda_build(struct device *device, const struct search *search, struct failure *failure)
{
	enum cuda_part part = cuda_part_of(search, search->algorithm);
	struct cuda_built *built = find_built(device, search->dataset);

	if (built == NULL)
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a dataset's description");
	if (!build_part(built, part, search, failure))
		return false;
	if (needs_polygons(search) && !build_part(built, CUDA_POLYGONS, search, failure))
		return false;
	return build_sums(built, search, failure);
}

void
cuda_discard(struct device *device, void *opaque)
{
	struct cuda_built *built = (struct cuda_built *) opaque;

	for (int part = 0; part < CUDA_PARTS; part++)
		if (built->blocks[part].state == PART_BUILT)
			cuda_release(device, built->blocks[part].memory, built->blocks[part].bytes);
	free(built);
}
