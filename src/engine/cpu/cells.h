/*
 * cells.h
 *		A table of squares of the sphere, each with the references that can be the
 *		nearest of a point in it, on the CPU.
 *
 * For the nearest reference alone, in a dataset that is asked about many
 * observations: a search by the table takes observations as they come, where
 * one by the index sorts them and walks.  engine/search/cells_square.h has the
 * geometry, cells.c says how the table is made, cells_nearest.c how it is used.
 * A GPU has a table of the same squares in a form of its own (cuda/cells).
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

#include "engine/cpu/index.h"
#include "engine/search/cells_range.h"

/* what an entry says, in its first two bits; then follows a position, or a block, or for a list its
 * length, less 1, and its place */
#define CPU_CELLS_KIND_SHIFT 30
#define CPU_CELLS_ONE 0u
#define CPU_CELLS_LIST 1u
#define CPU_CELLS_DIVIDED 2u
#define CPU_CELLS_CROWDED 3u

#define CPU_CELLS_LENGTH_SHIFT 25
#define CPU_CELLS_LIST_MAX 32

#define CPU_CELLS_CROWDED_ENTRY UINT32_MAX

/* what a search needs of a position: half a line of a cache */
struct cpu_cells_record
{
	double		x;				/* vector */
	double		y;
	double		z;
	int64_t		tag;			/* of the first of its references */
};

/* a block of squares, while the table is made */
struct cpu_cells_block
{
	uint32_t	u;				/* units of its first corner */
	uint32_t	v;
	uint8_t		face;
	uint8_t		shift;			/* a square's side is 2^shift units */
};

struct cpu_cells
{
	uint32_t	side;			/* blocks along the side of a face */
	uint32_t	face_blocks;	/* of all faces: 6 side^2 */
	uint32_t	blocks;			/* with those of divided squares, and how many there may be */
	uint32_t	blocks_max;
	uint32_t	list_max;		/* positions in lists */
	double		scale;			/* units in a length of 1 on a face, which is 2 long */

	struct cpu_cells_record *record;	/* [positions] */
	uint32_t   *entry;			/* [blocks_max * CELLS_BLOCK] row by row, a block after the other */
	uint32_t   *list;			/* [list_max] positions */

	/* the block of memory that holds all, and how many bytes of it are used: what is never
	 * touched costs nothing */
	void	   *memory;
	size_t		bytes;
	size_t		used;
};

/* a table that is being made */
struct cpu_cells_building
{
	const struct cpu_index *index;
	struct cpu_cells *cells;
	uint32_t	first;			/* block that is filled next */
	uint32_t	end;			/* of the blocks that are being filled */
	uint32_t	round_end;		/* of those whose squares are known */

	/* of divided squares: where they are, by number less face_blocks, and how many were asked for */
	struct cpu_cells_block *block;
	atomic_uint_fast32_t blocks;
	atomic_uint_fast64_t listed;	/* positions in lists, asked for */
};

/*
 * Set the entries of a block, and ask for blocks of the squares that it divides.
 */
extern void CPU_PATH_NAME(cpu_cells_fill) (struct cpu_cells_building *building, uint32_t number);

/*
 * Begin a table of a dataset without columns, of a metric whose chord decides, from
 * its index, which has to stay.  NULL if memory is short: it takes an eighth of what is free at most.
 */
extern struct cpu_cells_building *cpu_cells_begin(const struct dataset *dataset,
												  const struct cpu_index *index);

/*
 * Go on with it, on all threads, until a time of now_us() or somewhat longer.  Whether it
 * is complete.
 */
extern bool cpu_cells_go_on(struct cpu_cells_building *building, int64_t end_us);

/* The complete table. */
extern struct cpu_cells *cpu_cells_finish(struct cpu_cells_building *building);

/* Whether a table answers enough to be of use: nearly all squares are crowded otherwise. */
extern bool cpu_cells_help(const struct cpu_cells *cells);

/* Free one that is not complete; NULL is allowed. */
extern void cpu_cells_abandon(struct cpu_cells_building *building);

/* Most bytes that a table of so many positions takes. */
extern size_t cpu_cells_bytes(uint32_t positions);

/* NULL is allowed. */
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

	/* results: an infinite distance for an observation without a neighbour */
	int64_t    *tag;			/* [count] */
	double	   *distance;		/* [count] metres */
	uint32_t   *left;			/* [count] those that the index has to answer */
};

/*
 * Find the nearest reference of each observation, as cpu_index_nearest() does: the
 * same bytes.  Returns how many are left to the index.
 */
extern uint32_t CPU_PATH_NAME(cpu_cells_nearest) (const struct cpu_cells_search *search);

#endif							/* GEONN_CPU_CELLS_H */
