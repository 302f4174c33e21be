/*
 * device.cuh
 *		The CUDA device's own state: lanes and what they search in.
 */
#ifndef GEONN_CUDA_DEVICE_CUH
#define GEONN_CUDA_DEVICE_CUH

#include <cuda_runtime_api.h>

#include "brute.cuh"
#include "nearest.cuh"
#include "neighbours.cuh"

extern "C"
{
#include "../src/engine/device.h"
}

/* searches that may be under way on one GPU: copies in, kernels, copies out */
#define CUDA_LANES 3

/* launches that a lane has enqueued ahead, so that the GPU never idles */
#define LAUNCHES_AHEAD 2

enum lane_state
{
	LANE_IDLE,
	LANE_SEARCHING,				/* launches are left to enqueue */
	LANE_ENDING					/* what was enqueued has yet to be executed */
};

struct lane;

/* what a lane may do after it has enqueued something */
enum piece_progress
{
	PIECE_AHEAD,				/* enqueue more at once */
	PIECE_WAIT,					/* go on when all of it has been executed */
	PIECE_LAST					/* that was all */
};

/* what follows a piece, where observations are left */
enum piece_outcome
{
	PIECE_ANSWERED,				/* others, if there is room for a pair */
	PIECE_FULL,					/* nothing: the next one's pairs have no room */
	PIECE_ALONE,				/* the next, first one has more pairs than fit */
	PIECE_MORE					/* not yet: it has more to enqueue */
};

/*
 * How a lane answers a piece of a search: its next observations, as many as
 * its memory allows.
 */
struct piece_operations
{
	/* observations to take, at least 1; fewer than that are taken where memory
	 * is short */
	uint32_t	(*rows) (const struct lane *lane);

	/*
	 * Lay out a piece of so many rows from address memory (NULL to learn only
	 * the size) and get ready to enqueue.  Returns the bytes taken.
	 */
	size_t		(*place) (struct device *device, struct lane *lane, uint32_t rows, void *memory);

	/*
	 * Enqueue the next launch or copies, or do the next work of the host, for
	 * 50 ms at most.  It may fail the search itself; that was all then.
	 */
	cudaError_t (*enqueue) (struct lane *lane, enum piece_progress *progress);

	/*
	 * Everything has been executed, and the search neither failed nor was
	 * cancelled: write down what is answered.
	 */
	enum piece_outcome (*finish) (struct lane *lane);

	/* (optional) free what the piece took, whatever became of it */
	void		(*close) (struct lane *lane);
};

/* what kernels tell the host, in pinned memory */
struct lane_status
{
	struct brute_status brute;
	struct index_status index;
	struct neighbours_status neighbours;
	struct results_status results;
	struct neighbours_entry last;	/* the last pair of a part */
};

struct lane
{
	enum lane_state state;
	struct search *search;		/* NULL while idle */
	const struct piece_operations *piece;
	enum piece_progress progress;
	uint32_t	launches;		/* enqueued of this piece */
	uint32_t	launches_ended;
	union
	{
		struct nearest_piece nearest;
		struct neighbours_piece neighbours;
		struct neighbours_part part;
	};

	/* immutable once probed */
	cudaStream_t stream;
	cudaEvent_t ends[LAUNCHES_AHEAD];	/* of launches, in turn */
	struct lane_status *status;

	/* grows with the pieces */
	void	   *memory;			/* on the GPU */
	size_t		bytes;
};

/* device->private_data */
struct cuda_device
{
	struct brute_machine machine;
	cudaStream_t building;		/* of datasets; memory comes in its order */
	cudaMemPool_t pool;			/* NULL: this GPU has none */
	atomic_uint_fast64_t taken; /* bytes that cuda_allocate gave */
	void	   *staging;		/* upload.cu's pinned memory, once it has any */
	struct lane lanes[CUDA_LANES];
	int			next_lane;		/* that advance looks at first */
};

/*
 * Fill in the failure for a call that returned this error, and find out
 * whether the device is lost.  Returns false.
 */
extern bool cuda_fail(struct device *device, struct failure *failure, cudaError_t error);

/* the search fails for this reason of its client's; returns cudaSuccess */
extern cudaError_t fail_piece(struct lane *lane, enum geonn_error_code code,
							  const char *message, enum piece_progress *progress);

/*
 * Enqueue copies of a piece's next observations to the GPU, where there are
 * such columns (not NULL).  They are read from the batch once.
 */
extern cudaError_t copy_observations(const struct lane *lane, uint32_t rows, double *latitude,
									 double *longitude, int32_t *group, int32_t *identity);

/*
 * Enqueue copies of a piece's results to where the search's next ones belong;
 * counts may be NULL.
 */
extern cudaError_t copy_results(const struct lane *lane, uint32_t observations, uint32_t pairs,
								const uint32_t *count, const int64_t *tag,
								const double *distance);

/* observations not yet answered, and pairs that there is still room for */
extern uint32_t rows_left(const struct search *search);
extern uint32_t room_left(const struct search *search);

/* in nearest.cu, neighbours.cu, neighbours_part.cu */
extern const struct piece_operations nearest_brute_operations;
extern const struct piece_operations nearest_index_operations;
extern const struct piece_operations neighbours_operations;
extern const struct piece_operations neighbours_part_operations;

/* in probe.cu */
extern int	cuda_device_count(struct failure *failure);
extern bool cuda_device_probe(struct device *device, struct failure *failure);

#endif							/* GEONN_CUDA_DEVICE_CUH */
