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

/* The first two bits of an entry's x say what it is.  The other bits are a position; or the number
 * of fours of a list, less 1, and the list's index in `four`; or the number of a block. */
#define CELLS_KIND_SHIFT 30
#define CELLS_FEW 0u
#define CELLS_LIST 1u
#define CELLS_DIVIDED 2u
#define CELLS_CROWDED 3u

/* a list has 1 to 8 fours of positions; CELLS_NONE fills up the last one */
#define CELLS_FOURS_SHIFT 27
#define CELLS_FOURS_MAX 8
#define CELLS_NONE UINT32_MAX

/* each half of a crowded square's entry; its bytes are equal */
#define CELLS_CROWDED_ENTRY UINT32_MAX

/* what a search reads of a position: 32 bytes, one sector of memory */
struct __align__(32) cells_record
{
	double		x;				/* vector */
	double		y;
	double		z;
	int64_t		tag;			/* the tag of the first reference at the position */
};

/* how many reasons enum division has */
#define CELLS_DIVISIONS 3

/* how much of a table's memory the build has used so far; on the GPU */
struct cells_counts
{
	uint32_t	blocks[CELLS_DIVISIONS];	/* blocks that the build has asked for, for divided
											 * squares */
	uint32_t	fours;			/* fours of positions that the build has asked for, for lists */
};

/*
 * A dataset's table; addresses are the GPU's.  The table is one block of
 * memory, as an index is.
 */
struct cells
{
	uint32_t	positions;		/* how many positions the index has */
	uint32_t	side;			/* how many blocks the side of a face has */
	uint32_t	face_blocks;	/* how many blocks all six faces have: 6 side^2 */
	uint32_t	blocks_max;		/* the greatest number of blocks: those of the faces, then those of
								 * divided squares */
	uint32_t	fours_max;		/* the greatest number of fours in lists */
	double		scale;			/* how many units a face has for a length of 1; the face's side is 2
								 * long */

	struct cells_record *record;	/* [positions] what searches read of each position */
	uint2	   *entry;			/* [blocks_max * CELLS_BLOCK] entries, block by block, within a
								 * block row by row */
	uint4	   *four;			/* [fours_max] positions of lists, four at a time */
	struct cells_counts *counts;
};

/* Whether an index with this many positions can have a table. */
static inline bool
cells_possible(uint32_t positions)
{
	return positions <= CELLS_REFERENCES_MAX;
}

/*
 * Lay out a table for an index with this many positions, for which
 * cells_possible() is true, from address memory on (NULL to learn only the
 * size).  Returns the bytes that the table takes.
 */
extern size_t cells_place(void *memory, uint32_t positions, struct cells *cells);

/* The bytes of memory that cells_build() needs beside the table. */
extern size_t cells_build_room(const struct cells *cells);

/*
 * Enqueue the kernels that build a table, which cells_place() has laid out, from
 * an index with `columns` 0 whose metric passes geonn_metric_chord_decides().
 * `room` has cells_build_room() bytes; it may be freed when the kernels end.
 */
extern cudaError_t cells_build(const struct cells *cells, const struct index *index, void *room,
							   cudaStream_t stream);

/* What a search reports to the host, which copies it after a launch. */
struct cells_status
{
	uint32_t	out_of_range;	/* 1 if some coordinates are invalid */
	uint32_t	listed;			/* how many observations are in crowded squares */
	struct index_status index;	/* the status of the search by the index, which answers these */
};

/*
 * A search for the nearest reference of each observation, with the same results,
 * byte for byte, as an index_nearest gives.
 */
struct cells_search
{
	const struct cells *cells;	/* the table; NULL: the index answers all observations */
	const struct index *index;
	uint32_t	rows;			/* how many observations it has, at least 1 */
	const double *latitude;		/* [rows] degrees, on the GPU */
	const double *longitude;
	double		max_distance;	/* metres, inclusive; may be infinite */

	/* results on the GPU: infinity and 0 for an observation without a neighbour */
	int64_t    *tag;			/* [rows] */
	double	   *distance;		/* [rows] metres */

	struct cells_status *status;	/* on the GPU; zeroed by cells_search_enqueue */
	void	   *room;			/* memory of cells_search_room() bytes */
	cudaStream_t stream;

	bool		by_index;		/* used by cells_search.cu alone: the index is answering all
								 * observations, or the listed ones */
};

/* The bytes of memory that a search for this many observations needs. */
extern size_t cells_search_room(uint32_t rows, bool has_table);

/*
 * cells_search_enqueue() enqueues the search.  When the stream has executed what was
 * enqueued, the caller copies the status to the host.  While cells_search_done() is
 * false of that status, the caller gives it to cells_search_go_on(), which enqueues
 * more.
 */
extern cudaError_t cells_search_enqueue(struct cells_search *search);
extern bool cells_search_out_of_range(const struct cells_search *search,
									  const struct cells_status *status);
extern bool cells_search_done(const struct cells_search *search, const struct cells_status *status);
extern cudaError_t cells_search_go_on(struct cells_search *search, const struct cells_status *status);

#endif							/* GEONN_CELLS_CUH */
