/*
 * cells.c
 *		Makes a dataset's table of squares on the CPU, from its index.
 *
 * Blocks are filled in the order of their numbers, those of the faces first,
 * each by one thread (cells_fill.c).  A square with many candidates is divided: it
 * takes the next free block, which is filled in the next round.  So where
 * references are dense squares become small, and all places of the Earth get
 * their next smaller squares at the same time.  All entries say
 * CPU_CELLS_CROWDED before the first round.  What has no room keeps its list, or
 * if that would be too long stays crowded; so do blocks that are not filled in
 * time, in case a form of references takes very long.
 */
#include "engine/cpu/cells.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/memory_block.h"
#include "engine/base/thread_pool.h"
#include "engine/search/device.h"

/* squares of the faces for each reference, and of divided squares */
#define FACE_SQUARES 8
#define FINE_SQUARES 24

/* so few divided squares always have room */
#define FINE_SQUARES_MIN ((uint32_t) 1 << 14)

/* positions in lists for each square, and in all: an entry has so many bits for their place */
#define LISTED_OF_SQUARE 2
#define LISTED_MAX ((size_t) 1 << CPU_CELLS_LENGTH_SHIFT)

/* blocks of one piece of the work, and pieces of one job: some 20 ms */
#define PIECE_BLOCKS 8
#define JOB_PIECES 128

/* longest time, a part of it for so many references: several times what it takes */
#define BUILD_MS 200
#define BUILD_MS_REFERENCES 128

static size_t
bytes_of(uint32_t positions, size_t blocks, size_t listed)
{
	return positions * sizeof(struct cpu_cells_record) +
		(blocks * CELLS_BLOCK + listed) * sizeof(uint32_t);
}

static struct cpu_cells *
allocate(uint32_t positions, struct failure *failure)
{
	struct cpu_cells *cells = calloc(1, sizeof(*cells));
	uint32_t	fine = positions * FINE_SQUARES;
	size_t		squares;
	char	   *memory;

	if (cells == NULL)
	{
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a table of squares");
		return NULL;
	}
	cells->side = (uint32_t) sqrt((double) positions * FACE_SQUARES / (6.0 * CELLS_BLOCK));
	if (cells->side == 0)
		cells->side = 1;
	cells->scale = (double) cells->side * (double) ((uint32_t) 1 << (CELLS_UNIT_BITS - 1));
	cells->face_blocks = 6 * cells->side * cells->side;
	cells->blocks_max = cells->face_blocks +
		(fine > FINE_SQUARES_MIN ? fine : FINE_SQUARES_MIN) / CELLS_BLOCK;
	squares = (size_t) cells->blocks_max * CELLS_BLOCK;
	cells->list_max = (uint32_t) (squares * LISTED_OF_SQUARE < LISTED_MAX ?
								  squares * LISTED_OF_SQUARE : LISTED_MAX);
	cells->bytes = bytes_of(positions, cells->blocks_max, cells->list_max);
	memory = memory_block_allocate(cells->bytes, failure, "a table of squares of %u references",
								   positions);
	if (memory == NULL)
	{
		free(cells);
		return NULL;
	}
	cells->memory = memory;
	cells->record = (struct cpu_cells_record *) memory;
	memory += positions * sizeof(*cells->record);
	cells->entry = (uint32_t *) memory;
	cells->list = cells->entry + squares;
	memset(cells->entry, 0xff, cells->face_blocks * CELLS_BLOCK * sizeof(*cells->entry));
	return cells;
}

static void
fill_records(const struct search *search, const struct cpu_index *index, struct cpu_cells *cells)
{
	for (uint32_t i = 0; i < index->shape.positions; i++)
		cells->record[i] = (struct cpu_cells_record) {
			index->x[i], index->y[i], index->z[i],
			search->dataset->tag[index->place[index->start[i]]]
		};
}

static void
fill_piece(void *context, size_t number)
{
	struct cpu_cells_building *building = context;
	uint32_t	first = building->first + (uint32_t) number * PIECE_BLOCKS;
	uint32_t	end = building->end - first < PIECE_BLOCKS ? building->end : first + PIECE_BLOCKS;

	for (uint32_t block = first; block < end; block++)
		if (!atomic_load_explicit(building->cancelled, memory_order_relaxed) &&
			now_ms() < building->end_ms)
			cpu_path->cells_fill(building, block);
}

static void
fill_blocks(struct cpu_cells_building *building)
{
	const struct cpu_cells *cells = building->cells;

	building->end = cells->face_blocks;
	while (building->first < building->end)
	{
		uint64_t	asked;

		(void) thread_pool_run_turns(fill_piece, building,
									 (building->end - building->first + PIECE_BLOCKS - 1) / PIECE_BLOCKS,
									 JOB_PIECES, building->cancelled);
		building->first = building->end;
		asked = cells->face_blocks + atomic_load(&building->blocks);
		building->end = asked < cells->blocks_max ? (uint32_t) asked : cells->blocks_max;
		memset(cells->entry + (size_t) building->first * CELLS_BLOCK, 0xff,
			   (size_t) (building->end - building->first) * CELLS_BLOCK * sizeof(*cells->entry));
	}
}

static size_t
listed_of(struct cpu_cells_building *building)
{
	uint64_t	asked = atomic_load(&building->listed);

	return asked < building->cells->list_max ? asked : building->cells->list_max;
}

struct cpu_cells *
cpu_cells_build(const struct search *search, const struct cpu_index *index, struct failure *failure)
{
	uint32_t	positions = index->shape.positions;
	struct cpu_cells_building building = {.index = index,.cancelled = search->cancelled};

	building.cells = allocate(positions, failure);
	if (building.cells == NULL)
		return NULL;
	building.block = malloc((building.cells->blocks_max - building.cells->face_blocks) *
							sizeof(*building.block));
	if (building.block == NULL)
		fail(failure, GEONN_ERROR_MEMORY, "not enough memory for a table of squares");
	else
	{
		building.end_ms = now_ms() + BUILD_MS + positions / BUILD_MS_REFERENCES;
		fill_records(search, index, building.cells);
		fill_blocks(&building);
		building.cells->used = bytes_of(positions, building.end, listed_of(&building));
		free(building.block);
		if (!atomic_load(search->cancelled))
			return building.cells;
		fail(failure, GEONN_ERROR_DEVICE, "the search has been cancelled");
	}
	cpu_cells_free(building.cells);
	return NULL;
}

void
cpu_cells_free(struct cpu_cells *cells)
{
	if (cells == NULL)
		return;
	memory_block_release(cells->memory, cells->bytes);
	free(cells);
}
