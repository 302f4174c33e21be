/*
 * cells.c
 *		Makes a dataset's table of squares on the CPU, from its index.
 *
 * Blocks are filled in the order of their numbers, those of the faces first,
 * each by one thread (cells_fill.c).  A square with many candidates is divided: it
 * takes the next free block, which is filled in the next round.  So where
 * references are dense squares become small, and all places of the Earth get
 * their next smaller squares at the same time.  All entries say
 * CPU_CELLS_CROWDED before their round.  What has no room keeps its list, or
 * if that would be too long stays crowded.
 *
 * It takes two microseconds a reference for evenly spread ones, and tens where they
 * form lines.  So the caller has it made bit by bit (built.c).
 */
#include "engine/cpu/squares/cells.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/host.h"
#include "engine/base/memory_block.h"
#include "engine/base/thread_pool.h"

/* The table has this many squares of faces, and squares within divided ones, for each position. */
#define FACE_SQUARES 8
#define FINE_SQUARES 24

/* every table has at least this many squares within divided ones */
#define FINE_SQUARES_MIN ((uint32_t) 1 << 14)

/*
 * The table has memory for this many listed positions: for each square, and in all.  The total is
 * limited because an entry has CPU_CELLS_LENGTH_SHIFT bits for an index in the lists.
 */
#define LISTED_OF_SQUARE 2
#define LISTED_MAX ((size_t) 1 << CPU_CELLS_LENGTH_SHIFT)

/*
 * A piece of the work has this many blocks, and a job this many pieces for each thread.  A job
 * takes below 1 ms, or some ms where references form lines.
 */
#define PIECE_BLOCKS 4
#define JOB_PIECES 2

/* a table takes at most 1 / FREE_PART of the free memory */
#define FREE_PART 8

/* A table helps if at least one square in this many is not crowded. */
#define HELP_PART 8

static size_t
bytes_of(uint32_t positions, size_t blocks, size_t listed)
{
	return positions * sizeof(struct cpu_cells_record) +
		(blocks * CELLS_BLOCK + listed) * sizeof(uint32_t);
}

/*
 * Set the sizes of a table of this many positions.
 */
static void
lay_out(struct cpu_cells *cells, uint32_t positions)
{
	uint32_t	fine = positions * FINE_SQUARES;
	size_t		listed;

	cells->side = cells_side_of((double) positions * FACE_SQUARES);
	cells->scale = cells_scale_of(cells->side);
	cells->face_blocks = 6 * cells->side * cells->side;
	cells->blocks_max = cells->face_blocks +
		(fine > FINE_SQUARES_MIN ? fine : FINE_SQUARES_MIN) / CELLS_BLOCK;
	listed = (size_t) cells->blocks_max * CELLS_BLOCK * LISTED_OF_SQUARE;
	cells->list_max = (uint32_t) (listed < LISTED_MAX ? listed : LISTED_MAX);
	cells->bytes = bytes_of(positions, cells->blocks_max, cells->list_max);
}

size_t
cpu_cells_bytes(uint32_t positions)
{
	struct cpu_cells cells;

	lay_out(&cells, positions);
	return cells.bytes;
}

/* Allocate a table, with blocks that are not yet filled.  Returns NULL if memory is short. */
static struct cpu_cells *
allocate(uint32_t positions)
{
	struct failure ignored;
	struct cpu_cells *cells = calloc(1, sizeof(*cells));
	char	   *memory;

	if (cells == NULL)
		return NULL;
	lay_out(cells, positions);
	memory = cells->bytes > host_memory_free() / FREE_PART ? NULL :
		memory_block_allocate(cells->bytes, &ignored, "a table of squares of %u references", positions);
	if (memory == NULL)
	{
		free(cells);
		return NULL;
	}
	cells->memory = memory;
	cells->record = (struct cpu_cells_record *) memory;
	cells->entry = (uint32_t *) (cells->record + positions);
	cells->list = cells->entry + (size_t) cells->blocks_max * CELLS_BLOCK;
	memset(cells->entry, 0xff, (size_t) cells->face_blocks * CELLS_BLOCK * sizeof(*cells->entry));
	return cells;
}

static void
fill_records(const struct dataset *dataset, const struct cpu_index *index, struct cpu_cells *cells)
{
	for (uint32_t i = 0; i < index->shape.positions; i++)
		cells->record[i] = (struct cpu_cells_record) {
			index->x[i], index->y[i], index->z[i],
			dataset->tag[index->place[index->start[i]]]
		};
}

static void
fill_piece(void *context, size_t number)
{
	struct cpu_cells_building *building = context;
	uint32_t	first = building->first + (uint32_t) number * PIECE_BLOCKS;
	uint32_t	end = building->end - first < PIECE_BLOCKS ? building->end : first + PIECE_BLOCKS;

	for (uint32_t block = first; block < end; block++)
		cpu_path->cells_fill(building, block);
}

struct cpu_cells_building *
cpu_cells_begin(const struct dataset *dataset, const struct cpu_index *index)
{
	struct cpu_cells *cells = allocate(index->shape.positions);
	struct cpu_cells_building *building = cells != NULL ? calloc(1, sizeof(*building)) : NULL;

	if (building != NULL)
		building->block = malloc((cells->blocks_max - cells->face_blocks) * sizeof(*building->block));
	if (building == NULL || building->block == NULL)
	{
		cpu_cells_free(cells);
		free(building);
		return NULL;
	}
	building->index = index;
	building->cells = cells;
	building->round_end = cells->face_blocks;
	fill_records(dataset, index, cells);
	return building;
}

bool
cpu_cells_go_on(struct cpu_cells_building *building, int64_t end_us)
{
	const struct cpu_cells *cells = building->cells;
	uint32_t	job_blocks = PIECE_BLOCKS * JOB_PIECES * thread_pool_threads();

	do
	{
		uint32_t	left = building->round_end - building->first;

		if (left == 0)
			return true;
		building->end = building->first + (left < job_blocks ? left : job_blocks);
		thread_pool_run(fill_piece, building,
						(building->end - building->first + PIECE_BLOCKS - 1) / PIECE_BLOCKS);
		building->first = building->end;
		if (building->first == building->round_end)
		{
			uint64_t	asked = cells->face_blocks + atomic_load(&building->blocks);

			building->round_end = asked < cells->blocks_max ? (uint32_t) asked : cells->blocks_max;
			memset(cells->entry + (size_t) building->first * CELLS_BLOCK, 0xff,
				   (size_t) (building->round_end - building->first) * CELLS_BLOCK *
				   sizeof(*cells->entry));
		}
	} while (now_us() < end_us);
	return building->first == building->round_end;
}

struct cpu_cells *
cpu_cells_finish(struct cpu_cells_building *building)
{
	struct cpu_cells *cells = building->cells;
	uint64_t	listed = atomic_load(&building->listed);

	cells->blocks = building->end;
	cells->used = bytes_of(building->index->shape.positions, cells->blocks,
						   listed < cells->list_max ? listed : cells->list_max);
	free(building->block);
	free(building);
	return cells;
}

bool
cpu_cells_help(const struct cpu_cells *cells)
{
	size_t		squares = (size_t) cells->blocks * CELLS_BLOCK;
	size_t		crowded = 0;

	for (size_t i = 0; i < squares; i++)
		crowded += cells->entry[i] == CPU_CELLS_CROWDED_ENTRY;
	return crowded <= squares - squares / HELP_PART;
}

void
cpu_cells_abandon(struct cpu_cells_building *building)
{
	if (building == NULL)
		return;
	cpu_cells_free(building->cells);
	free(building->block);
	free(building);
}

void
cpu_cells_free(struct cpu_cells *cells)
{
	if (cells == NULL)
		return;
	memory_block_release(cells->memory, cells->bytes);
	free(cells);
}
