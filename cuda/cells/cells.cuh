/*
 * cells.cuh
 *		A table of squares of the sphere, each with the references that can be the
 *		nearest of a point in it, and the search by it.
 *
 * For the nearest reference alone, in a dataset that is asked about many
 * observations: a search by the table takes observations as they come, where
 * one by the index has to sort them first.  cells_square.h has the geometry,
 * cells_build.cu says how the table is made, cells_search.cu how it is used.
 *
 * The six faces of a cube around the Earth are cut into blocks of 8 x 8 squares,
 * and a square in which too many references are candidates into another block.
 * An entry, 8 bytes, says of its square one of four things:
 *
 *	CELLS_FEW		this position, and up to two others, are the candidates: one alone
 *					is the first for each point of the square.  The others are given
 *					by how far they are from it in the index's order, whose neighbours are
 *					neighbours mostly: in 16 bits each, 0 for none.
 *	CELLS_LIST		these positions, up to 32, are the candidates
 *	CELLS_DIVIDED	this block has the square's squares
 *	CELLS_CROWDED	ask the index
 */
#ifndef GEONN_CELLS_CUH
#define GEONN_CELLS_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

#include "cuda/cells/cells_cost.cuh"
#include "cuda/index/index.cuh"

/* what an entry says, in the first two bits of its x; then follows a position, or a place in lists
 * (after the number of fours, less 1), or a block */
#define CELLS_KIND_SHIFT 30
#define CELLS_FEW 0u
#define CELLS_LIST 1u
#define CELLS_DIVIDED 2u
#define CELLS_CROWDED 3u

/* a list is of 1 to 8 fours of positions; CELLS_NONE fills the last one up */
#define CELLS_FOURS_SHIFT 27
#define CELLS_FOURS_MAX 8
#define CELLS_NONE UINT32_MAX

/* both halves of a crowded square's entry, made of equal bytes */
#define CELLS_CROWDED_ENTRY UINT32_MAX

/* what a search needs of a position: one sector of memory */
struct __align__(32) cells_record
{
	double		x;				/* vector */
	double		y;
	double		z;
	int64_t		tag;			/* of the first of its references */
};

/* reasons to divide a square: cells_build.cu's */
#define CELLS_DIVISIONS 3

/* how much of a table's room is taken, on the GPU */
struct cells_counts
{
	uint32_t	blocks[CELLS_DIVISIONS];	/* of divided squares, asked for */
	uint32_t	fours;			/* of lists, asked for */
};

/*
 * A dataset's table; addresses are the GPU's.  One block of memory, as that of
 * an index.
 */
struct cells
{
	uint32_t	positions;		/* of the index */
	uint32_t	side;			/* blocks along the side of a face */
	uint32_t	face_blocks;	/* of all faces: 6 side^2 */
	uint32_t	blocks_max;		/* with those of divided squares */
	uint32_t	fours_max;		/* of lists */
	double		scale;			/* units in a length of 1 on a face, which is 2 long */

	struct cells_record *record;	/* [positions] */
	uint2	   *entry;			/* [blocks_max * CELLS_BLOCK] row by row, a block after the other */
	uint4	   *four;			/* [fours_max] lists */
	struct cells_counts *counts;
};

/* Whether an index of so many positions can have a table. */
static inline bool
cells_possible(uint32_t positions)
{
	return positions <= CELLS_REFERENCES_MAX;
}

/*
 * Lay out a table for an index of so many positions, cells_possible(), from
 * address memory (NULL to learn only the size).  Returns the bytes taken.
 */
extern size_t cells_place(void *memory, uint32_t positions, struct cells *cells);

/* Bytes of room that cells_build() needs beside the table. */
extern size_t cells_build_room(const struct cells *cells);

/*
 * Enqueue the building of a table, which cells_place() has laid out, from an index
 * without columns, of a metric whose chord decides.  The room, of
 * cells_build_room() bytes, may be freed once the stream has executed it.
 */
extern cudaError_t cells_build(const struct cells *cells, const struct index *index, void *room,
							   cudaStream_t stream);

/* What a search reports to the host, which copies it after a launch. */
struct cells_status
{
	uint32_t	out_of_range;	/* 1 where some coordinates are no point */
	uint32_t	listed;			/* observations in crowded squares */
	uint32_t	decided;		/* how many of these were answered alone, or more than all if all */
	struct index_status index;	/* of the search by the index for them, if they are many */
};

/*
 * Find the nearest reference of each observation, as index_nearest does: the same
 * bytes.
 */
struct cells_search
{
	const struct cells *cells;	/* or NULL: the index answers all */
	const struct index *index;
	uint32_t	rows;			/* observations, at least 1 */
	const double *latitude;		/* [rows] degrees, on the GPU */
	const double *longitude;
	double		max_distance;	/* metres, inclusive; may be infinite */

	/* results on the GPU: infinity and 0 for an observation without a neighbour */
	int64_t    *tag;			/* [rows] */
	double	   *distance;		/* [rows] metres */

	struct cells_status *status;	/* on the GPU; zeroed by cells_search_enqueue */
	void	   *room;			/* of cells_search_room() bytes */
	cudaStream_t stream;

	bool		by_index;		/* cells_search.cu's: the index answers all, or what was listed */
};

/* Bytes of room for searching this many observations at a time. */
extern size_t cells_search_room(uint32_t rows, bool has_table);

/*
 * Enqueue the search.  The caller copies the status, when the stream has executed what
 * was enqueued, and while cells_search_done() says no, calls cells_search_go_on(),
 * which enqueues more, with it.
 */
extern cudaError_t cells_search_enqueue(struct cells_search *search);
extern bool cells_search_out_of_range(const struct cells_search *search,
									  const struct cells_status *status);
extern bool cells_search_done(const struct cells_search *search, const struct cells_status *status);
extern cudaError_t cells_search_go_on(struct cells_search *search, const struct cells_status *status);

#endif							/* GEONN_CELLS_CUH */
