/*
 * lane.cuh
 *		Lanes of a GPU: each answers one search at a time, piece by piece.
 */
#ifndef GEONN_CUDA_LANE_CUH
#define GEONN_CUDA_LANE_CUH

#include <cuda_runtime_api.h>
#include <stddef.h>

extern "C"
{
#include "engine/search/device.h"
}

struct index_conditions;
struct lane;

/* What a lane may do after a piece has enqueued a launch or a copy. */
enum piece_progress
{
	PIECE_AHEAD,				/* enqueue more at once */
	PIECE_WAIT,					/* wait until the GPU has executed all that is enqueued, then go on */
	PIECE_LAST					/* nothing is left to enqueue */
};

/* What the lane does with the search after a piece. */
enum piece_outcome
{
	PIECE_ANSWERED,				/* the search goes back to its queue, to begin another piece later, if observations are left
								 * and the batch has space for a pair; otherwise it ends */
	PIECE_FULL,					/* the search ends: the batch has no space for the next observation's pairs */
	PIECE_REFUSED,				/* the CPU goes on with the search: the next observation's pairs do not fit into an
								 * empty batch or the GPU's memory, its walk is too long (arcs_nearest.cu,
								 * shapes_collect.cu), or the piece was left untried (arcs_refusals.cuh) */
	PIECE_MORE					/* the lane goes on with the same piece, which has more to enqueue */
};

/*
 * How a lane (a CUDA stream) answers a piece: the search's next observations
 * that fit in memory.
 */
struct piece_operations
{
	/* Return how many observations the piece would take if memory were no limit, at least 1. */
	uint32_t	(*rows) (const struct lane *lane);

	/*
	 * Lay out a piece of this many observations from address memory on, get ready to enqueue, and
	 * return the piece's bytes.  With NULL as memory, only compute the bytes.
	 */
	size_t		(*place) (struct lane *lane, uint32_t rows, void *memory);

	/*
	 * Enqueue the next launch or copies: work of 50 ms at most.  If the function makes the search fail, the
	 * lane calls nothing more for this piece.
	 */
	cudaError_t (*enqueue) (struct lane *lane, enum piece_progress *progress);

	/*
	 * Count the answered observations; the lane calls this when the GPU has executed all that was
	 * enqueued, but not for searches that failed or were cancelled.
	 */
	enum piece_outcome (*finish) (struct lane *lane);
};

enum lane_state
{
	LANE_IDLE,
	LANE_SEARCHING,				/* launches are left to enqueue */
	LANE_ENDING					/* all launches are enqueued; the GPU has yet to execute some of them */
};

/* how many launches a lane keeps enqueued, so that the GPU never idles */
#define LAUNCHES_AHEAD 2

struct lane
{
	/* used by pieces */
	struct device *device;
	struct search *search;		/* NULL while idle */
	cudaStream_t stream;

	/*
	 * Memory of the piece, from place() to finish(); the next piece finds what the last one left.
	 * piece_state has LANE_STATE_BYTES, aligned for any type; piece_status has LANE_STATUS_BYTES of
	 * pinned memory, into which the GPU copies reports
	 */
	void	   *piece_state;
	void	   *piece_status;

	/* lane.cu's */
	enum lane_state state;
	const struct piece_operations *piece;
	enum piece_progress progress;
	uint32_t	launches;		/* launches that were enqueued for this piece */
	uint32_t	launches_ended;
	cudaEvent_t ends[LAUNCHES_AHEAD];	/* events at the ends of launches, used in turn */
	void	   *memory;			/* the GPU memory of the lane's pieces, which grows when a piece needs more */
	size_t		bytes;
};

struct cuda_built;

/* Return what the lane's GPU has built of the dataset of the lane's search (dataset.cuh). */
static inline struct cuda_built *
lane_built(const struct lane *lane)
{
	return (struct cuda_built *) lane->search->dataset->built[lane->device->number];
}

/* ---- for the device ---- */

/*
 * cuda_lanes_open() gives a device its lanes, all idle; cuda_lanes_close()
 * frees them, also after an error of cuda_lanes_open().
 */
extern cudaError_t cuda_lanes_open(struct device *device);
extern void cuda_lanes_close(struct device *device);

/* Begin a search in an idle lane, with a piece of this kind.  The caller must know that a lane is idle. */
extern void cuda_lanes_start(struct device *device, struct search *search,
							 const struct piece_operations *piece);

/* Implement advance of device.h, without waiting. */
extern enum device_progress cuda_lanes_advance(struct device *device, struct search **ended);

/* ---- for pieces ---- */

/* how many bytes of state a piece may have in ordinary host memory, and in pinned host memory */
#define LANE_STATE_BYTES 1024
#define LANE_STATUS_BYTES 128

/* Check that a piece's two types of state fit into a lane; malloc and pinned memory are aligned for any standard type. */
#define LANE_HOLDS(state, status) \
	(sizeof(state) <= LANE_STATE_BYTES && alignof(state) <= alignof(max_align_t) && \
	 sizeof(status) <= LANE_STATUS_BYTES && alignof(status) <= alignof(max_align_t))

/* Make the search fail with this code and message, because of a mistake of its client.  Returns cudaSuccess. */
extern cudaError_t fail_piece(struct lane *lane, enum geonn_error_code code,
							  const char *message, enum piece_progress *progress);

/*
 * Enqueue copies of columns of the next `rows` observations from the batch to
 * the GPU; a NULL column is left out.  Each value is read from the batch once.
 */
extern cudaError_t copy_observations(const struct lane *lane, uint32_t rows, double *latitude,
									 double *longitude, int32_t *group,
									 int64_t *excluded_first, int64_t *excluded_last);

/* Enqueue copies of the radiuses and windows of the next `rows` observations to the GPU. */
extern cudaError_t copy_conditions(const struct lane *lane, uint32_t rows,
								const struct index_conditions *conditions);

/*
 * Enqueue copies of a piece's results into the batch, behind the results that
 * the search already has there.  count may be NULL.
 */
extern cudaError_t copy_results(const struct lane *lane, uint32_t observations, uint32_t pairs,
								const uint32_t *count, const int64_t *tag,
								const double *distance);

/* Return how many observations are not yet answered; and how many pairs still fit into the batch. */
extern uint32_t rows_left(const struct search *search);
extern uint32_t room_left(const struct search *search);

#endif							/* GEONN_CUDA_LANE_CUH */
