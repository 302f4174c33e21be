/*
 * cpu_device.c
 *		The CPU as a device: all cores share one search at a time.
 *
 * A search is worked on in turns of some 50 ms.  A turn covers as many
 * observations as its pairs allow, cut into pieces that the thread pool's
 * threads take one by one; then the search goes back to its session's queue
 * unless it is done, so that several sessions advance side by side and no
 * thread is ever shared by two searches.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "../common/geodesy.h"
#include "cpu_brute.h"
#include "device.h"
#include "thread_pool.h"

/* pairs that one thread goes through in a turn; a core does 2 to 5 G/s */
#define TURN_PAIRS_PER_THREAD ((size_t) 1 << 27)

/* references that one piece of preparation converts */
#define PREPARE_PIECE ((size_t) 1 << 14)

struct cpu_device
{
	struct search *search;		/* under way */
};

/* what cpu_device_build makes; the columns are one mapping */
struct cpu_built
{
	struct cpu_references references;
	size_t		bytes;
};

/* the processor's own name for itself */
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
	struct cpu_device *cpu = calloc(1, sizeof(*cpu));
	struct sysinfo system;

	if (cpu == NULL)
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to start the CPU device");
	device->private_data = cpu;
	device->lanes = 1;
	read_processor_name(device->name, sizeof(device->name));
	if (sysinfo(&system) == 0)
		device->memory_total = (uint64_t) system.totalram * system.mem_unit;
	thread_pool_lower_priority();
	return true;
}

/*
 * What the kernel says can be allocated without swapping, or 0.
 */
static uint64_t
cpu_device_memory_free(struct device *device)
{
	FILE	   *file = fopen("/proc/meminfo", "r");
	char		line[256];
	unsigned long long kilobytes = 0;

	(void) device;
	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
			break;
	fclose(file);
	return (uint64_t) kilobytes * 1024;
}

struct preparation
{
	const struct cpu_references *references;
	const struct dataset *dataset;
};

static void
prepare_piece(void *context, size_t number)
{
	struct preparation *preparation = context;
	size_t		first = number * PREPARE_PIECE;
	size_t		rows = preparation->references->padded - first;

	cpu_brute_prepare(preparation->references, preparation->dataset->latitude,
					  preparation->dataset->longitude, first,
					  rows < PREPARE_PIECE ? rows : PREPARE_PIECE);
}

static bool
cpu_device_build(struct device *device, const struct search *search, struct failure *failure)
{
	struct dataset *dataset = search->dataset;
	size_t		padded = geonn_align(dataset->count, CPU_BRUTE_TILE);
	size_t		bytes = 3 * padded * sizeof(double);
	struct cpu_built *built = calloc(1, sizeof(*built));
	double	   *columns = MAP_FAILED;
	struct preparation preparation;

	if (dataset->built[device->number] != NULL)
	{
		free(built);
		return true;
	}
	if (built != NULL)
		columns = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (columns == MAP_FAILED)
	{
		free(built);
		return fail(failure, GEONN_ERROR_MEMORY,
					"not enough memory for %zu references on the CPU: %zu bytes needed",
					dataset->count, bytes);
	}

	built->bytes = bytes;
	built->references.count = dataset->count;
	built->references.padded = padded;
	built->references.x = columns;
	built->references.y = columns + padded;
	built->references.z = columns + 2 * padded;

	preparation.references = &built->references;
	preparation.dataset = dataset;
	thread_pool_run(prepare_piece, &preparation,
					(padded + PREPARE_PIECE - 1) / PREPARE_PIECE);
	dataset->built[device->number] = built;
	return true;
}

static void
cpu_device_discard(struct device *device, void *opaque)
{
	struct cpu_built *built = opaque;

	(void) device;
	munmap(built->references.x, built->bytes);
	free(built);
}

static void
cpu_device_start(struct device *device, struct search *search)
{
	struct cpu_device *cpu = device->private_data;

	cpu->search = search;
}

/* one turn of a search */
struct turn
{
	struct search *search;
	const struct cpu_references *references;
	uint32_t	first;			/* observation */
	uint32_t	rows;			/* observations */
	uint32_t	piece_rows;		/* observations of one piece */
	atomic_bool out_of_range;
};

static void
search_piece(void *context, size_t number)
{
	struct turn *turn = context;
	struct search *search = turn->search;
	uint32_t	offset = (uint32_t) number * turn->piece_rows;
	uint32_t	rows = turn->rows - offset;
	uint32_t	first = turn->first + offset;
	uint32_t	index[CPU_BRUTE_OBSERVATIONS];
	double		distance[CPU_BRUTE_OBSERVATIONS];

	if (rows > turn->piece_rows)
		rows = turn->piece_rows;
	if (!cpu_brute_nearest(turn->references, search->columns.latitude + first,
						   search->columns.longitude + first, rows, index,
						   distance, search->cancelled))
	{
		atomic_store(&turn->out_of_range, true);
		return;
	}
	if (atomic_load(search->cancelled))
		return;

	for (uint32_t i = 0; i < rows; i++)
	{
		search->columns.count[first + i] = 1;
		search->columns.tag[first - search->first + i] = search->dataset->tag[index[i]];
		search->columns.distance[first - search->first + i] = distance[i];
	}
}

/*
 * Choose the observations of a turn: as many as fit into its pairs, in pieces
 * small enough that every thread gets several.
 */
static void
plan_turn(struct turn *turn, size_t references)
{
	struct search *search = turn->search;
	unsigned	threads = thread_pool_threads();
	size_t		rows = search->rows - search->first;
	size_t		fitting = TURN_PAIRS_PER_THREAD * threads / references;
	size_t		piece;

	/* one pair an observation: the room bounds what this request answers */
	if (rows > search->columns.room)
		rows = search->columns.room;
	rows -= search->answered;

	if (fitting < threads)
		fitting = threads;
	if (rows > fitting)
		rows = fitting;
	piece = (rows + 4 * threads - 1) / (4 * threads);
	if (piece > CPU_BRUTE_OBSERVATIONS)
		piece = CPU_BRUTE_OBSERVATIONS;

	turn->first = search->first + search->answered;
	turn->rows = (uint32_t) rows;
	turn->piece_rows = (uint32_t) piece;
}

static enum device_progress
cpu_device_advance(struct device *device, struct search **finished)
{
	struct cpu_device *cpu = device->private_data;
	struct search *search = cpu->search;
	struct cpu_built *built;
	struct turn turn;

	if (search == NULL)
		return DEVICE_IDLE;
	*finished = search;
	cpu->search = NULL;

	built = search->dataset->built[device->number];
	turn.search = search;
	turn.references = &built->references;
	atomic_init(&turn.out_of_range, false);
	plan_turn(&turn, built->references.count);
	thread_pool_run(search_piece, &turn,
					(turn.rows + turn.piece_rows - 1) / turn.piece_rows);

	if (atomic_load(&turn.out_of_range))
	{
		search->failed = true;
		fail(&search->failure, GEONN_ERROR_PROTOCOL,
			 "observation coordinates are out of range");
		return DEVICE_FINISHED;
	}
	if (atomic_load(search->cancelled))
		return DEVICE_FINISHED;

	search->answered += turn.rows;
	search->pairs += turn.rows;
	if (search->answered < search->rows - search->first &&
		search->pairs < search->columns.room)
		return DEVICE_YIELDED;
	return DEVICE_FINISHED;
}

static void
cpu_device_close(struct device *device)
{
	thread_pool_close();
	free(device->private_data);
}

const struct device_operations cpu_device_operations = {
	.kind = GEONN_KIND_CPU,
	.probe = cpu_device_probe,
	.memory_free = cpu_device_memory_free,
	.build = cpu_device_build,
	.discard = cpu_device_discard,
	.start = cpu_device_start,
	.advance = cpu_device_advance,
	.close = cpu_device_close
};
