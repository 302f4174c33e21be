/*
 * brute.cuh
 *		Every pair on a GPU: the exact nearest reference by brute force.
 */
#ifndef GEONN_BRUTE_CUH
#define GEONN_BRUTE_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

extern "C"
{
#include "common/protocol.h"
}

/* references that a block stages in shared memory at a time */
#define BRUTE_TILE 1024

/* What the kernels' launches are fitted to; of one GPU, immutable. */
struct brute_machine
{
	uint32_t	scan_blocks;	/* that the GPU runs at the same time */
	uint32_t	redo_blocks;
	uint64_t	scan_pairs;		/* of one launch, about */
	uint64_t	redo_pairs;
};

/* How scan sees references: moved from a centre to 0, and magnified. */
struct brute_frame
{
	double		x;
	double		y;
	double		z;
	double		scale;
};

/* A dataset's references; addresses are the GPU's. */
struct brute_references
{
	uint32_t	count;			/* at least 1 */
	uint32_t	tiles;
	enum geonn_metric metric;	/* whose chord decides */
	double	   *x;				/* [count] unit vectors */
	double	   *y;
	double	   *z;
	int64_t    *tag;			/* [count] */
	float	   *x_single;		/* [tiles * BRUTE_TILE] the same in float32, or
								 * NaN: of another's vector, or no reference */
	float	   *y_single;
	float	   *z_single;
	uint32_t   *pieces;			/* [4 * tiles * BRUTE_TILE] the same in float16,
								 * in the frame, as brute_scan.cu has them */
	int		   *box;			/* [6] around them; see brute_search.cu */
	struct brute_frame *frame;
};

/* What decide tells the host. */
struct brute_status
{
	uint32_t	ambiguous;		/* observations that must be redone */
	uint32_t	out_of_range;	/* 1 where some coordinates are no point */
};

/*
 * Room on the GPU for searching up to `capacity` observations at a time.
 */
struct brute_room
{
	uint32_t	capacity;
	uint32_t	scan_states;	/* partial results that there is room for */
	uint32_t	redo_states;
	double	   *latitude;		/* [capacity] in: degrees; out: distance */
	double	   *longitude;		/* [capacity] in: degrees; out: tag */
	uint32_t   *count;			/* [capacity] out: pairs of an observation */
	double	   *x;				/* [capacity] unit vectors */
	double	   *y;
	double	   *z;
	uint32_t   *ambiguous;		/* [capacity] observations to be redone */
	float	   *floor;			/* [capacity] dot products that these need */
	void	   *states;			/* of scan, then of redo */
	struct brute_status *status;
};

enum brute_phase
{
	BRUTE_SCAN,					/* launches of scan are left */
	BRUTE_DECIDE,
	BRUTE_WAIT,					/* for the status to arrive */
	BRUTE_REDO,					/* launches of redo are left */
	BRUTE_MERGE,
	BRUTE_DONE
};

/*
 * One search.  The caller fills in the first part, zeroes the rest, and calls
 * brute_enqueue until the phase is BRUTE_DONE.
 */
struct brute_search
{
	/* immutable */
	const struct brute_machine *machine;
	const struct brute_references *references;
	const struct brute_room *room;
	struct brute_status *status;	/* pinned host memory */
	uint32_t	rows;			/* observations, at least 1 */
	cudaStream_t stream;

	/* brute_enqueue's */
	enum brute_phase phase;
	uint32_t	next_tile;		/* of scan, then of redo */
	uint32_t	segments;		/* partial results of an observation */
	uint32_t	launch_tiles;	/* of one launch */
};

/* Learn what launches fit the current GPU. */
extern cudaError_t brute_measure(struct brute_machine *machine);

/*
 * Lay out references, or room, from address memory (NULL to learn only the
 * size).  Returns the bytes taken.
 */
extern size_t brute_place_references(void *memory, uint32_t count, enum geonn_metric metric,
									 struct brute_references *references);
extern size_t brute_place_room(void *memory, uint32_t capacity,
							   const struct brute_machine *machine,
							   struct brute_room *room);

/*
 * Enqueue the making of unit vectors, in place: of references that have
 * latitude in x and longitude in y, of observations from the room's columns.
 */
extern cudaError_t brute_prepare_references(const struct brute_references *references,
											cudaStream_t stream);
extern cudaError_t brute_prepare_observations(const struct brute_search *search);

/*
 * Enqueue the next launch.  In BRUTE_WAIT, which follows decide, call it again
 * once all that was enqueued has been executed.  Where the status then says
 * that coordinates are out of range, the search is done, without results.
 */
extern cudaError_t brute_enqueue(struct brute_search *search);

#endif							/* GEONN_BRUTE_CUH */
