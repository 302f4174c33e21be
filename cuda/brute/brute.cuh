/*
 * brute.cuh
 *		Brute force on a GPU: finds the exact nearest reference by looking at
 *		every pair.
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

/* how many references a block of threads copies into shared memory at a time */
#define BRUTE_TILE 1024

/* The sizes of launches that fit one GPU; immutable. */
struct brute_machine
{
	uint32_t	scan_blocks;	/* how many blocks of scan the GPU runs at the same time */
	uint32_t	redo_blocks;
	uint64_t	scan_pairs;		/* how many pairs one launch of scan compares, roughly */
	uint64_t	redo_pairs;
};

/* How scan_kernel() sees the references: their vectors minus the centre (x, y, z), times scale. */
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
	enum geonn_metric metric;	/* chords alone give its order */
	double	   *x;				/* [count] unit vectors */
	double	   *y;
	double	   *z;
	int64_t    *tag;			/* [count] */
	float	   *x_single;		/* [tiles * BRUTE_TILE] the vectors in float32; NaN
								 * where an earlier reference has the same vector, and
								 * after the last reference */
	float	   *y_single;
	float	   *z_single;
	uint32_t   *pieces;			/* [4 * tiles * BRUTE_TILE] the vectors in the frame,
								 * in float16 pieces (brute_scan.cu) */
	int		   *box;			/* [6] the box around all references (brute_search.cu) */
	struct brute_frame *frame;
};

/* What decide reports to the host. */
struct brute_status
{
	uint32_t	ambiguous;		/* how many observations must be redone */
	uint32_t	out_of_range;	/* 1 if some coordinates are invalid */
};

/*
 * Memory on the GPU for searching up to `capacity` observations at a time.
 */
struct brute_room
{
	uint32_t	capacity;
	uint32_t	scan_states;	/* how many partial results of scan fit into `states` */
	uint32_t	redo_states;
	double	   *latitude;		/* [capacity] in: degrees; out: distance in metres */
	double	   *longitude;		/* [capacity] in: degrees; out: tag */
	uint32_t   *count;			/* [capacity] out: how many pairs an observation has, 0 or 1 */
	double	   *x;				/* [capacity] unit vectors */
	double	   *y;
	double	   *z;
	uint32_t   *ambiguous;		/* [capacity] observations to be redone */
	float	   *floor;			/* [capacity] a lower bound of an ambiguous observation's dot
								 * product with its nearest */
	void	   *states;			/* partial results of scan, then of redo */
	struct brute_status *status;
};

enum brute_phase
{
	BRUTE_SCAN,					/* launches of scan are left */
	BRUTE_DECIDE,
	BRUTE_WAIT,					/* the status is being copied to the host */
	BRUTE_REDO,					/* launches of redo are left */
	BRUTE_MERGE,
	BRUTE_DONE
};

/*
 * A search of a batch.  The caller fills in the immutable part, zeroes the rest, and calls
 * brute_enqueue() until the phase is BRUTE_DONE.
 */
struct brute_search
{
	/* immutable */
	const struct brute_machine *machine;
	const struct brute_references *references;
	const struct brute_room *room;
	struct brute_status *status;	/* pinned host memory */
	uint32_t	rows;			/* how many observations the batch has, at least 1 */
	cudaStream_t stream;

	/* used by brute_enqueue alone */
	enum brute_phase phase;
	uint32_t	next_tile;		/* the next tile for scan, then for redo */
	uint32_t	segments;		/* how many partial results each observation has */
	uint32_t	launch_tiles;	/* how many tiles one launch takes */
};

/* Find out which sizes of launches fit the current GPU. */
extern cudaError_t brute_measure(struct brute_machine *machine);

/*
 * Lay out the references, or the memory of a search, from address memory on, and return the bytes.
 * With NULL as memory, only compute the bytes.
 */
extern size_t brute_place_references(void *memory, uint32_t count, enum geonn_metric metric,
									 struct brute_references *references);
extern size_t brute_place_room(void *memory, uint32_t capacity,
							   const struct brute_machine *machine,
							   struct brute_room *room);

/*
 * Enqueue the kernels that make unit vectors.  Those of references replace the
 * degrees: the caller has put latitudes in x, and longitudes in y.  Those of
 * observations are computed from the latitude and longitude of search->room.
 */
extern cudaError_t brute_prepare_references(const struct brute_references *references,
											cudaStream_t stream);
extern cudaError_t brute_prepare_observations(const struct brute_search *search);

/*
 * Enqueue the next launch.  In BRUTE_WAIT, which follows decide, call it again
 * once all that was enqueued has been executed.  If the status then says that
 * coordinates are out of range, the search is done, without results.
 */
extern cudaError_t brute_enqueue(struct brute_search *search);

#endif							/* GEONN_BRUTE_CUH */
