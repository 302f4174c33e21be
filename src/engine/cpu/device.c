/*
 * device.c
 *		The CPU as a device: each thread takes a search of its own, or helps
 *		others with theirs.
 *
 * A thread works on a search in turns of some 50 ms.  A turn covers as many
 * observations as its time and the batch's room allow, cut into pieces.  Then
 * the search goes back to its session's queue unless it is done.
 *
 * While as many searches wait as threads may work, each thread does its turns
 * alone: it sorts, walks and packs a batch in its core's cache, and shares the
 * dataset with the others and nothing else.  That scales with the cores,
 * however small the batches are.  While fewer searches wait, the thread pool's
 * workers have the seats of the threads that are idle (thread_pool.c), and
 * take pieces of the turns under way.  A search that comes then waits for the
 * end of one piece.  So one large search still has all cores.
 *
 * The device learns from earlier turns on the same dataset how much a turn can
 * do; if it takes too much, each thread ends the turn after the observation
 * that it is working on.
 *
 *	cpu/built.c			what is built of a dataset
 *	cpu/turn.c			what a turn is; cpu/turn_cells.c, cpu/turn_tasks.c,
 *						cpu/turn_pairs.c, cpu/turn_counts.c, cpu/turn_clusters.c and
 *						cpu/turn_assign.c
 *	cpu/index			the index of points, and exact sums and extremes of the weights in any part of it
 *	cpu/walk			walks through the index, and one observation's candidates
 *	cpu/squares			the table of squares
 *	cpu/arcs			the index of arcs, with shapes/boxes.c and shapes/polygons.c; its searches, counts and places, and
 *						what observations are that are shapes
 *	cpu/counts			counts within radii
 *	cpu/clusters		clusters of references
 *	cpu/assign			observations assigned to references
 *	cpu/base/path.c		the hot loops' versions for kinds of processors
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/sysinfo.h>

#include "engine/base/clock.h"
#include "engine/base/host.h"
#include "engine/base/memory_block.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/arcs/arcs_probe.h"
#include "engine/cpu/assign/assign.h"
#include "engine/cpu/clusters/clusters.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/base/curve.h"
#include "engine/cpu/turn.h"
#include "engine/search/ways.h"

/*
 * Brute force answers searches of up to BRUTE_ROWS_MAX observations before an index is built, until it has taken 1 /
 * BRUTE_SHARE of the time of a build: INDEX_NS nanoseconds for each reference, divided by the threads.
 */
#define BRUTE_ROWS_MAX 16
#define BRUTE_SHARE 4
#define INDEX_NS 100

/* An index, or vectors, of this many references take longer to build than some milliseconds. */
#define LONG_INDEX 65536
#define LONG_VECTORS 1048576

/* a turn's room of more bytes is large */
#define LARGE_ROOM ((size_t) 1 << 21)

struct cpu_device
{
	pthread_mutex_t lock;
	struct cpu_turn_room *rooms;	/* rooms that no turn is using; guarded by lock */
};

/* Read the processor's name, as the processor itself reports it. */
static void
read_processor_name(char *name, size_t size)
{
	FILE	   *file = fopen("/proc/cpuinfo", "r");
	char		line[256];

	snprintf(name, size, "CPU");
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
	{
		char	   *colon = strchr(line, ':');

		if (strncmp(line, "model name", 10) == 0 && colon != NULL)
		{
			colon[strcspn(colon, "\n")] = '\0';
			snprintf(name, size, "%s", colon + 1 + (colon[1] == ' '));
			break;
		}
	}
	fclose(file);
}

static bool
cpu_device_probe(struct device *device, struct failure *failure)
{
	/* The CPU is a single device, with all cores of the host. */
	static struct cpu_device cpu = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct sysinfo system;

	(void) failure;
	device->private_data = &cpu;
	read_processor_name(device->name, sizeof(device->name));
	cpu_curve_initialize();
	if (sysinfo(&system) == 0)
		device->memory_total = (uint64_t) system.totalram * system.mem_unit;
	thread_pool_lower_priority();
	return true;
}

static uint64_t
cpu_device_memory_free(struct device *device)
{
	uint64_t	free_bytes = host_memory_free();

	(void) device;
	return free_bytes < UINT64_MAX ? free_bytes : 0;
}

struct preparation
{
	const struct cpu_references *references;
	const struct dataset *dataset;
	const atomic_bool *cancelled;
};

static void
prepare_piece(void *context, size_t number)
{
	struct preparation *preparation = context;
	const struct cpu_references *references = preparation->references;
	const struct dataset *dataset = preparation->dataset;
	size_t		first = number * PIECE_ROWS;
	size_t		end = piece_end(number, references->padded);

	if (atomic_load_explicit(preparation->cancelled, memory_order_relaxed))
		return;
	cpu_path->vectors(dataset->metric, dataset->latitude + first, dataset->longitude + first,
					  (end < references->count ? end : references->count) - first,
					  references->x + first, references->y + first, references->z + first);

	/* The last piece repeats the last reference up to its end. */
	for (size_t i = references->count; i < end; i++)
	{
		references->x[i] = references->x[references->count - 1];
		references->y[i] = references->y[references->count - 1];
		references->z[i] = references->z[references->count - 1];
	}
}

/* Build the references' vectors, in the dataset's order, for brute force. */
static bool
build_references(struct cpu_built *built, struct dataset *dataset,
				 const atomic_bool *cancelled, struct failure *failure)
{
	struct cpu_references *references = &built->references;
	struct preparation preparation = {references, dataset, cancelled};
	size_t		padded = geonn_align(dataset->count, CPU_BRUTE_GROUP);

	built->references_bytes = 3 * padded * sizeof(double);
	references->count = dataset->count;
	references->padded = padded;
	references->x = memory_block_allocate(built->references_bytes, failure, "%zu references",
										  dataset->count);
	if (references->x == NULL)
		return false;
	references->y = references->x + padded;
	references->z = references->y + padded;
	thread_pool_run(prepare_piece, &preparation, pieces_of(padded));
	if (!atomic_load(cancelled))
	{
		atomic_fetch_add(&dataset->built_bytes, built->references_bytes);
		return true;
	}
	memory_block_release(references->x, built->references_bytes);
	references->x = NULL;
	return fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
}

static bool
build_arcs(struct cpu_built *built, struct dataset *dataset, const atomic_bool *cancelled, struct failure *failure)
{
	built->arcs = cpu_arcs_build(dataset, cancelled, failure);
	if (built->arcs == NULL)
		return false;
	atomic_fetch_add(&dataset->built_bytes, cpu_arcs_bytes(built->arcs));

	/*
	 * A count of shapes looks at the weight of each shape, and needs only the forms of sums: no
	 * sums of ranges, no extremes.
	 */
	for (int i = 0; i < GEONN_WEIGHTS_MAX && dataset->weight[i] != NULL; i++)
		built->sums[i].form = exact_sum_form_of(dataset->weight[i], dataset->count);
	return true;
}

/* Return whether all is built of the dataset that a search needs for an algorithm; a table of squares may still be wanted. */
static bool
suffices(struct cpu_built *built, const struct search *search, enum geonn_algorithm algorithm)
{
	if (built == NULL)
		return false;
	if (built->arcs != NULL)
		return !cpu_arcs_wants_fractions(built->arcs, search) && !cpu_arcs_wants_parts(built->arcs, search);
	if (algorithm == GEONN_ALGORITHM_BRUTE)
		return built->references.x != NULL || cpu_turn_by_columns(search);
	return built->index != NULL && !cpu_built_wants_index(built, search) && !cpu_built_wants_weights(built, search);
}

/*
 * Chooses between algorithms that give the same bytes.  With both built, brute force is never much faster; it pays where
 * it saves the building of an index, which takes INDEX_NS of a core for each reference.  Over columns, brute force takes
 * 2 ns for each reference, and 8 where latitudes leave none out.  The engine does not know how many searches of the
 * dataset will follow.  So small searches go by brute force until their turns have taken 1 / BRUTE_SHARE of the time of a
 * build; no more than that is wasted.  If references are too many for that, only the first search goes by brute force,
 * over vectors that are built for it, unless the dataset is kept.  Arcs need their index for either algorithm.
 */
static enum geonn_algorithm
cpu_device_choose(const struct search *search, bool is_first)
{
	const struct dataset *dataset = search->dataset;
	const struct cpu_built *built = dataset->built[CPU_NUMBER];
	uint64_t	build_us = (uint64_t) dataset->count * INDEX_NS / 1000 / thread_pool_threads();
	bool		pays = built == NULL || (built->index == NULL && atomic_load(&built->brute_us) < build_us / BRUTE_SHARE);

	/* after the first turn the vectors are built */
	if (dataset->count > CPU_COLUMNS_MAX)
		pays = is_first || (search->algorithm == GEONN_ALGORITHM_BRUTE && search->device == CPU_NUMBER);
	return pays && (dataset->columns & GEONN_COLUMN_ARC) == 0 && search->rows - search->first <= BRUTE_ROWS_MAX ?
		GEONN_ALGORITHM_BRUTE : GEONN_ALGORITHM_INDEX;
}

static bool
cpu_device_is_built(const struct device *device, const struct search *search,
					enum geonn_algorithm algorithm)
{
	struct cpu_built *built = search->dataset->built[device->number];

	return suffices(built, search, algorithm) &&
		(algorithm == GEONN_ALGORITHM_BRUTE || !cpu_built_wants_cells(built, search));
}

/* Tables of squares do not count: they are made in steps, each shorter than a turn. */
static bool
cpu_device_builds_long(const struct device *device, const struct search *search, enum geonn_algorithm algorithm)
{
	const struct dataset *dataset = search->dataset;
	bool		is_brute = algorithm == GEONN_ALGORITHM_BRUTE && (dataset->columns & GEONN_COLUMN_ARC) == 0;

	if (suffices(dataset->built[device->number], search, algorithm))
		return search->shapes != NULL && search->shapes->built[device->number] == NULL &&
			(search->arcs >= LONG_INDEX ||
			 ((search->question.thins || search->question.assigns) &&
			  (dataset->count >= LONG_INDEX || search->rows >= LONG_INDEX)));
	return dataset->count >= (is_brute ? LONG_VECTORS : LONG_INDEX) && !(is_brute && cpu_turn_by_columns(search));
}

/*
 * Copy the shapes of a search, and make its probes; or begin with its clusters, thinning or assignment, by an index of its
 * dataset.
 */
static bool
build_shapes(const struct search *search, struct failure *failure)
{
	struct cpu_built *built = calloc(1, sizeof(*built));
	const struct cpu_index *index = NULL;
	bool		fits;

	if (built == NULL)
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
	if (search->question.min_points > 0 || search->question.assigns)
		index = cpu_built_for(search->dataset->built[CPU_NUMBER], search, &fits)->index;
	if (search->question.assigns)
		built->assign = cpu_assign_create(search, index, failure);
	else if (search->question.min_points > 0)
		built->clusters = cpu_clusters_create(search, index, failure);
	else
		built->probes = cpu_probes_build(search, failure);
	if (built->assign == NULL && built->clusters == NULL && built->probes == NULL)
	{
		free(built);
		return false;
	}
	search->shapes->built[CPU_NUMBER] = built;
	atomic_store(&search->shapes->built_bytes, built->assign != NULL ? cpu_assign_bytes(built->assign) :
				 built->clusters != NULL ? cpu_clusters_bytes(built->clusters) : cpu_probes_bytes(built->probes));
	return true;
}

static bool
cpu_device_build(struct device *device, const struct search *search, struct failure *failure)
{
	struct dataset *dataset = search->dataset;
	struct cpu_built *built = dataset->built[device->number];

	/*
	 * A search may find that one more index is wanted only after the scheduler has asked: leave the index to a search
	 * whose build excludes others.  What was built at the scheduler's question never goes away.
	 */
	if (search->builds == NULL)
		return true;

	/* A build may take long: give the seat back, so that other threads may work between the build's jobs. */
	thread_pool_leave();
	if (search->builds == search->shapes)
		return build_shapes(search, failure);
	if (built == NULL)
	{
		built = calloc(1, sizeof(*built));
		if (built == NULL)
			return fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a dataset");
		dataset->built[device->number] = built;
	}
	if (dataset->columns & GEONN_COLUMN_ARC)
		return (built->arcs != NULL || build_arcs(built, dataset, search->cancelled, failure)) &&
			(!cpu_arcs_wants_fractions(built->arcs, search) || cpu_arcs_add_fractions(built->arcs, search, failure)) &&
			(!cpu_arcs_wants_parts(built->arcs, search) || cpu_arcs_add_parts(built->arcs, search, failure));
	if (search->algorithm == GEONN_ALGORITHM_BRUTE)
		return cpu_turn_by_columns(search) || build_references(built, dataset, search->cancelled, failure);
	if (cpu_built_wants_cells(built, search))
	{
		cpu_built_add_cells(built, search);
		return true;
	}
	if ((built->index == NULL || cpu_built_wants_index(built, search)) &&
		!cpu_built_add_index(built, search, failure))
		return false;
	return !cpu_built_wants_weights(built, search) || cpu_built_add_weights(built, search, failure);
}

static void
cpu_device_discard(struct device *device, void *opaque)
{
	(void) device;
	cpu_built_free(opaque);
}

/* Take a room for a turn: the one that was given back last, because a cache may still hold it. */
static struct cpu_turn_room *
take_room(struct cpu_device *cpu)
{
	struct cpu_turn_room *room;

	pthread_mutex_lock(&cpu->lock);
	room = cpu->rooms;
	if (room != NULL)
		cpu->rooms = room->next;
	pthread_mutex_unlock(&cpu->lock);
	return room != NULL ? room : calloc(1, sizeof(*room));
}

static void
free_room(struct cpu_turn_room *room)
{
	memory_block_release(room->memory, room->bytes);
	free(room);
}

/*
 * Keep a room for later turns.  Free it if it is large and another large one is kept: idle threads
 * should not hold much memory.
 */
static void
give_room(struct cpu_device *cpu, struct cpu_turn_room *room)
{
	struct cpu_turn_room *large = NULL;

	pthread_mutex_lock(&cpu->lock);
	if (room->bytes > LARGE_ROOM)
		for (large = cpu->rooms; large != NULL && large->bytes <= LARGE_ROOM;)
			large = large->next;
	if (large == NULL)
	{
		room->next = cpu->rooms;
		cpu->rooms = room;
	}
	pthread_mutex_unlock(&cpu->lock);
	if (large != NULL)
		free_room(room);
}

/* Do a turn by the way that suits the search.  Returns whether another turn may follow. */
static bool
do_turn(struct cpu_device *cpu, struct search *search, struct cpu_built *built)
{
	const struct cpu_cells *cells = cpu_built_cells(built, search);
	int64_t		began_us = now_us();
	struct cpu_turn_room *room;
	bool		goes_on;

	search->ways[GEONN_KIND_CPU] |= 1u << (cells != NULL ? GEONN_WAY_SQUARES : way_gone(search, GEONN_KIND_CPU));
	if (cells != NULL)
		return cpu_turn_cells(search, built, cells);
	if (way_of(search, GEONN_KIND_CPU) == WAY_CPU_CLUSTERS)
		return cpu_turn_clusters(search);
	if (way_of(search, GEONN_KIND_CPU) == WAY_CPU_ASSIGN)
		return cpu_turn_assign(search);
	room = take_room(cpu);
	if (room == NULL)
	{
		search->failed = true;
		return fail(&search->failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
	}
	goes_on = (way_of(search, GEONN_KIND_CPU) == WAY_CPU_COUNTS ? cpu_turn_counts : cpu_turn_pairs) (search, built, room);
	give_room(cpu, room);
	cpu_built_note_turn(built, search, now_us() - began_us);
	return goes_on;
}

static enum device_progress
cpu_device_turn(struct device *device, struct search *search)
{
	struct cpu_built *first = search->dataset->built[device->number];
	struct cpu_built *built;
	int64_t		began_us;
	bool		fits;
	bool		goes_on;

	/*
	 * The scheduler has the shapes, the clusters or the assignment built after the dataset, and then what the dataset lacks for
	 * such shapes.
	 */
	if (search->shapes != NULL && (search->shapes->built[CPU_NUMBER] == NULL ||
								   (search->arcs > 0 && !suffices(first, search, search->algorithm))))
		return DEVICE_YIELDED;
	/* no way has been gone yet: the search begins, or begins again */
	if (search->arcs > 0 && search->ways[GEONN_KIND_CPU] == 0)
		cpu_probes_forget_left(cpu_turn_probes(search));
	built = cpu_built_for(first, search, &fits);
	thread_pool_enter();
	began_us = now_us();
	goes_on = do_turn(device->private_data, search, built);
	if (search->algorithm == GEONN_ALGORITHM_BRUTE)
		atomic_fetch_add(&built->brute_us, (uint64_t) (now_us() - began_us));
	/* clusters and assignments stay with the index that they began with, so one more index would be of no use to them */
	if (!fits && search->question.min_points == 0 && !search->question.assigns)
		atomic_fetch_add(&first->misfit_us, (uint64_t) (now_us() - began_us));
	return goes_on ? DEVICE_YIELDED : DEVICE_FINISHED;
}

static void
cpu_device_close(struct device *device)
{
	struct cpu_device *cpu = device->private_data;

	thread_pool_close();
	while (cpu->rooms != NULL)
	{
		struct cpu_turn_room *room = cpu->rooms;

		cpu->rooms = room->next;
		free_room(room);
	}
}

const struct device_operations cpu_device_operations = {
	.kind = GEONN_KIND_CPU,
	.threads = thread_pool_threads,
	.probe = cpu_device_probe,
	.memory_free = cpu_device_memory_free,
	.choose = cpu_device_choose,
	.is_built = cpu_device_is_built,
	.builds_long = cpu_device_builds_long,
	.build = cpu_device_build,
	.discard = cpu_device_discard,
	.turn = cpu_device_turn,
	.close = cpu_device_close
};
