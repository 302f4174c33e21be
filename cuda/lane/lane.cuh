/*
 * lane.cuh
 *		Lanes of a GPU: each answers one search at a time, piece by piece.
 */
#ifndef GEONN_CUDA_LANE_CUH
#define GEONN_CUDA_LANE_CUH

#include <cuda_runtime_api.h>

extern "C"
{
#include "engine/search/device.h"
}

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
	size_t		(*place) (struct lane *lane, uint32_t rows, void *memory);

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

	/* what goes on after PIECE_ALONE; NULL where finish never returns that */
	const struct piece_operations *alone;
};

/* ---- for the device ---- */

/*
 * Give a device its lanes, all idle.  After an error, as after use,
 * cuda_lanes_close() frees what there is of them.
 */
extern cudaError_t cuda_lanes_open(struct device *device);
extern void cuda_lanes_close(struct device *device);

/* Begin a search with a piece of this kind, in an idle lane; there is one. */
extern void cuda_lanes_start(struct device *device, struct search *search,
							 const struct piece_operations *piece);

/* device.h's advance, but that it never waits */
extern enum device_progress cuda_lanes_advance(struct device *device, struct search **ended);

/* ---- for pieces ---- */

/* bytes of a piece's own state: of the host's, and of the host's pinned memory */
#define LANE_STATE_BYTES 1024
#define LANE_STATUS_BYTES 128

extern struct device *lane_device(const struct lane *lane);
extern struct search *lane_search(const struct lane *lane);
extern cudaStream_t lane_stream(const struct lane *lane);

/*
 * LANE_STATE_BYTES that are the piece's from place to close, aligned for
 * anything; they hold at first what the last piece left there.
 */
extern void *lane_state(const struct lane *lane);

/* The same, LANE_STATUS_BYTES in pinned memory: what kernels tell the host. */
extern void *lane_status(const struct lane *lane);

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

#endif							/* GEONN_CUDA_LANE_CUH */
