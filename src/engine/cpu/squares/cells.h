/*
 * cells.h
 *		A table of squares of the sphere, each with the references that can be the
 *		nearest of a point in it, on the CPU.
 *
 * For the nearest reference alone, in a dataset that is asked about many
 * observations: a search by the table takes observations as they come, where
 * one by the index sorts them and walks.  engine/search/cells_square.h has the
 * geometry, cells.c says how the table is made, cells_nearest.c how it is used.
 *
 * The six faces of a cube around the Earth are cut into blocks of 8 x 8 squares,
 * and a square in which many references are candidates into another block.
 * An entry says of its square one of four things:
 *
 *	CPU_CELLS_ONE		this position is the first for each point of the square
 *	CPU_CELLS_LIST		these positions, up to 32, are the candidates
 *	CPU_CELLS_DIVIDED	this block has the square's squares
 *	CPU_CELLS_CROWDED	ask the index
 */
#ifndef GEONN_CPU_CELLS_H
#define GEONN_CPU_CELLS_H

#include "engine/cpu/index/index.h"
#include "engine/search/cells_range.h"

/*
 * The first two bits of an entry say its kind.  The other bits are a position; or the number of a
 * block; or the length of a list, less 1, with the list's index in `list`.
 */
#define CPU_CELLS_KIND_SHIFT 30
#define CPU_CELLS_ONE 0u
#define CPU_CELLS_LIST 1u
#define CPU_CELLS_DIVIDED 2u
#define CPU_CELLS_CROWDED 3u

#define CPU_CELLS_LENGTH_SHIFT 25
#define CPU_CELLS_LIST_MAX 32

#define CPU_CELLS_CROWDED_ENTRY UINT32_MAX

/* What a search reads of a position: 32 bytes, half a cache line. */
struct cpu_cells_record
{
	double		x;				/* vector */
	double		y;
	double		z;
	int64_t		tag;			/* the tag of the first reference at the position */
};

/* A block of squares, while the CPU makes the table. */
struct cpu_cells_block
{
	uint32_t	u;				/* (u, v), in units, is the block's first corner */
	uint32_t	v;
	uint8_t		face;
	uint8_t		shift;			/* a square's side is 2^shift units */
};

struct cpu_cells
{
	uint32_t	side;			/* how many blocks the side of a face has */
	uint32_t	face_blocks;	/* how many blocks all six faces have: 6 side^2 */
	uint32_t	blocks;			/* how many blocks the table has, including blocks of divided squares; and how many it
								 * can have */
	uint32_t	blocks_max;
	uint32_t	list_max;		/* lists have room for this many positions */
	double		scale;			/* how many units a length of 1 on a face has; the side of a face is 2 long */

	struct cpu_cells_record *record;	/* [positions] what searches read of each position */
	uint32_t   *entry;			/* [blocks_max * CELLS_BLOCK] entries, block by block, and row by row within a block */
	uint32_t   *list;			/* [list_max] positions */

	/*
	 * the block of memory that holds all columns, and how many bytes of it are in use: pages that
	 * are never touched take no memory
	 */
	void	   *memory;
	size_t		bytes;
	size_t		used;
};

/* a table that is being made */
struct cpu_cells_building
{
	const struct cpu_index *index;
	struct cpu_cells *cells;
	uint32_t	first;			/* the block that is filled next */
	uint32_t	end;			/* the end of the blocks that the present job fills */
	uint32_t	round_end;		/* the end of the blocks whose squares are known already; later blocks wait for the
								 * next round */

	/*
	 * blocks of divided squares: block[number - face_blocks] says where each lies; and how many
	 * blocks threads have asked for
	 */
	struct cpu_cells_block *block;
	atomic_uint_fast32_t blocks;
	atomic_uint_fast64_t listed;	/* how many positions in lists threads have asked for */
};

/* Set the entries of block `number`, and ask for a block for each square that is divided. */
extern void CPU_PATH_NAME(cpu_cells_fill) (struct cpu_cells_building *building, uint32_t number);

/*
 * Begin a table from a dataset's index, which the caller must keep as long as the table is being
 * made.  The dataset must have `columns` 0 and a metric with geonn_metric_chord_decides().  Returns
 * NULL if memory is short: the table takes an eighth of the free memory at most.
 */
extern struct cpu_cells_building *cpu_cells_begin(const struct dataset *dataset,
												  const struct cpu_index *index);

/*
 * Go on with making a table, on all threads, until end_us on the clock of now_us(), or somewhat
 * longer.  Returns whether the table is complete.
 */
extern bool cpu_cells_go_on(struct cpu_cells_building *building, int64_t end_us);

/* Return the complete table, and free the rest of `building`. */
extern struct cpu_cells *cpu_cells_finish(struct cpu_cells_building *building);

/* Return whether a table answers enough observations to be of use: it does not if nearly all squares are crowded. */
extern bool cpu_cells_help(const struct cpu_cells *cells);

/* Free a table that is not complete; NULL is allowed. */
extern void cpu_cells_abandon(struct cpu_cells_building *building);

/* Return the greatest number of bytes that a table of this many positions takes. */
extern size_t cpu_cells_bytes(uint32_t positions);

/* Free a complete table; NULL is allowed. */
extern void cpu_cells_free(struct cpu_cells *cells);

/* A few observations in search of their nearest reference. */
struct cpu_cells_search
{
	const struct cpu_cells *cells;
	const struct cpu_index *index;
	enum geonn_metric metric;
	double		max_distance;	/* metres, inclusive; may be infinite */
	uint32_t	count;			/* 1 ... CPU_VECTORS_BLOCK */
	const double *x;			/* [count] vectors */
	const double *y;
	const double *z;

	/* results; an infinite distance: the observation has no neighbour */
	int64_t    *tag;			/* [count] */
	double	   *distance;		/* [count] metres */
	uint32_t   *left;			/* [count] numbers of the observations that the search leaves to the index */
};

/*
 * Find the nearest reference of each observation, with the same bytes as results that cpu_nearest()
 * gives.  Returns how many observations the index has to answer.
 */
extern uint32_t CPU_PATH_NAME(cpu_cells_nearest) (const struct cpu_cells_search *search);

#endif							/* GEONN_CPU_CELLS_H */
