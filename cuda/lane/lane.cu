/*
 * lane.cu
 *		Lanes of a GPU: each answers one search at a time, piece by piece.
 *
 * A lane has a stream and memory of its own.  It answers its search piece by
 * piece; a piece is the next observations, as many as memory allows.  After a
 * piece the search goes back to its session's queue, if it is not done.  A
 * piece's operations say what it does: all kinds of pieces copy the
 * observations in, launch kernels, and copy the results out, in the order of
 * the stream.  With several lanes busy, the copies of one overlap the kernels
 * of another, and kernels of different lanes together fill the GPU when one
 * would leave it partly idle.
 *
 * Only a build waits for the GPU.  The host thread keeps LAUNCHES_AHEAD
 * launches of every lane enqueued, or just one if the next depends on its
 * result, and learns by events which have ended.  That bounds the cost of a
 * cancelled search: it ends when these launches have ended.
 *
 * A lane's GPU memory is one allocation, which grows to the largest piece so
 * far.  If it cannot grow, the piece is halved until it fits.  An idle lane
 * gives its memory back when memory is short.
 *
 * A lane only knows its piece's operations.  It has one block of bytes for the
 * state of any kind of piece, and another one in pinned memory, so no kind of
 * piece knows of another.
 */
#include <stdio.h>
#include <stdlib.h>

extern "C"
{
#include "engine/search/ways.h"
}
#include "cuda/base/phase.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/lane/memory.cuh"

/* ---- what pieces have in common ---- */

uint32_t
rows_left(const struct search *search)
{
	return search->rows - search->first - search->answered;
}

uint32_t
room_left(const struct search *search)
{
	return search->columns.room - search->pairs;
}

cudaError_t
fail_piece(struct lane *lane, enum geonn_error_code code, const char *message,
		   enum piece_progress *progress)
{
	lane->search->failed = true;
	fail(&lane->search->failure, code, "%s", message);
	*progress = PIECE_LAST;
	return cudaSuccess;
}

/* Enqueue a copy of a column's next rows; with NULL as target do nothing. */
static cudaError_t
copy_column(const struct lane *lane, void *target, const void *column, uint32_t rows,
			size_t row_bytes)
{
	uint32_t	first = lane->search->first + lane->search->answered;

	if (target == NULL)
		return cudaSuccess;
	return cudaMemcpyAsync(target, (const char *) column + first * row_bytes, rows * row_bytes,
						   cudaMemcpyHostToDevice, lane->stream);
}

cudaError_t
copy_observations(const struct lane *lane, uint32_t rows, double *latitude, double *longitude,
				  int32_t *group, int64_t *excluded_first, int64_t *excluded_last)
{
	const struct geonn_batch_columns *columns = &lane->search->columns;
	struct phase phase("copy in");

	CUDA_TRY(copy_column(lane, latitude, columns->latitude, rows, sizeof(double)));
	CUDA_TRY(copy_column(lane, longitude, columns->longitude, rows, sizeof(double)));
	CUDA_TRY(copy_column(lane, group, columns->group, rows, sizeof(int32_t)));
	CUDA_TRY(copy_column(lane, excluded_first, columns->excluded_first, rows, sizeof(int64_t)));
	return copy_column(lane, excluded_last, columns->excluded_last, rows, sizeof(int64_t));
}

cudaError_t
copy_conditions(const struct lane *lane, uint32_t rows, const struct index_conditions *conditions)
{
	const struct geonn_batch_columns *columns = &lane->search->columns;

	CUDA_TRY(copy_column(lane, conditions->radius, columns->radius, rows, sizeof(double)));
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		CUDA_TRY(copy_column(lane, conditions->low[i], columns->low[i], rows, sizeof(int64_t)));
		CUDA_TRY(copy_column(lane, conditions->high[i], columns->high[i], rows, sizeof(int64_t)));
	}
	return copy_column(lane, conditions->edges, columns->edges, rows, sizeof(uint16_t));
}

cudaError_t
copy_results(const struct lane *lane, uint32_t observations, uint32_t pairs,
			 const uint32_t *count, const int64_t *tag, const double *distance)
{
	const struct search *search = lane->search;
	const struct geonn_batch_columns *columns = &search->columns;
	struct phase phase("copy out");

	if (count != NULL)
		CUDA_TRY(cudaMemcpyAsync(columns->count + search->first + search->answered, count,
								 observations * sizeof(uint32_t), cudaMemcpyDeviceToHost,
								 lane->stream));
	if (pairs == 0)
		return cudaSuccess;
	CUDA_TRY(cudaMemcpyAsync(columns->tag + search->pairs, tag, pairs * sizeof(int64_t),
							 cudaMemcpyDeviceToHost, lane->stream));
	return cudaMemcpyAsync(columns->distance + search->pairs, distance, pairs * sizeof(double),
						   cudaMemcpyDeviceToHost, lane->stream);
}

/* ---- searches ---- */

static void
fail_search(struct lane *lane, cudaError_t error)
{
	lane->search->failed = true;
	cuda_fail(lane->device, &lane->search->failure, error);
	lane->state = LANE_ENDING;
}

/*
 * Lay the next piece out in the lane's memory, for as many rows as the piece wants, or as memory
 * allows.  The lane's memory grows if the piece needs more.
 */
static void
begin_piece(struct lane *lane, const struct piece_operations *piece)
{
	struct device *device = lane->device;
	uint32_t	rows;
	char		purpose[64];

	lane->piece = piece;
	lane->progress = PIECE_AHEAD;
	lane->launches = 0;
	lane->launches_ended = 0;
	lane->state = LANE_SEARCHING;
	for (rows = piece->rows(lane);; rows /= 2)
	{
		size_t		bytes = piece->place(lane, rows, NULL);

		if (bytes > lane->bytes)
		{
			cuda_release(device, lane->memory, lane->bytes);
			lane->bytes = 0;
			snprintf(purpose, sizeof(purpose), "searching for %u observations", rows);
			lane->memory = cuda_allocate(device, bytes, CUDA_FOR_SEARCH, purpose,
										 &lane->search->failure);
			if (lane->memory != NULL)
				lane->bytes = bytes;
		}
		if (lane->memory != NULL)
			break;
		if (rows == 1 || !atomic_load(&device->usable))
		{
			lane->search->failed = true;
			lane->state = LANE_ENDING;
			return;
		}
	}
	if (piece->place(lane, rows, lane->memory) <= lane->bytes)
		return;
	/* The piece now needs more memory than it said: CUDA could not tell how much it needs. */
	lane->search->failed = true;
	cuda_fail(device, &lane->search->failure, cudaErrorUnknown);
	lane->state = LANE_ENDING;
}

/*
 * Count the launches that have ended.
 */
static cudaError_t
poll_launches(struct lane *lane)
{
	while (lane->launches_ended < lane->launches)
	{
		cudaError_t error = cudaEventQuery(lane->ends[lane->launches_ended % LAUNCHES_AHEAD]);

		if (error == cudaErrorNotReady)
			return cudaSuccess;
		CUDA_TRY(error);
		lane->launches_ended++;
	}
	return cudaSuccess;
}

/*
 * Keep a lane's next launches enqueued.
 */
static cudaError_t
enqueue_launches(struct lane *lane)
{
	while (lane->progress != PIECE_LAST &&
		   lane->launches - lane->launches_ended < LAUNCHES_AHEAD)
	{
		if (lane->progress == PIECE_WAIT && lane->launches_ended < lane->launches)
			return cudaSuccess;
		CUDA_TRY(lane->piece->enqueue(lane, &lane->progress));
		CUDA_TRY(cudaEventRecord(lane->ends[lane->launches % LAUNCHES_AHEAD], lane->stream));
		lane->launches++;
	}
	if (lane->progress == PIECE_LAST)
		lane->state = LANE_ENDING;
	return cudaSuccess;
}

/* Count what a lane has answered, once the GPU has executed all of its work.  Returns whether to hand the search back. */
static bool
end_piece(struct lane *lane, enum device_progress *progress)
{
	struct search *search = lane->search;
	enum piece_outcome outcome = PIECE_FULL;
	bool		goes_on;

	if (!search->failed && lane->progress == PIECE_LAST)
		outcome = lane->piece->finish(lane);
	if (outcome == PIECE_MORE)
	{
		lane->state = LANE_SEARCHING;
		lane->progress = PIECE_AHEAD;
		return false;
	}

	lane->state = LANE_IDLE;
	lane->search = NULL;
	goes_on = outcome == PIECE_ANSWERED && rows_left(search) > 0 && room_left(search) > 0;
	if (search->answered > 0)
		search->ways[GEONN_KIND_CUDA] |= 1u << way_gone(search, GEONN_KIND_CUDA);
	if (outcome == PIECE_REFUSED)
	{
		search_leave_to_cpu(search, search->question.radii > 0 ? GEONN_CPU_WEIGHTS : GEONN_CPU_HARD);
		goes_on = true;
	}
	*progress = goes_on ? DEVICE_YIELDED : DEVICE_FINISHED;
	return true;
}

static enum device_progress
advance_lane(struct lane *lane, struct search **ended)
{
	struct search *search = lane->search;
	enum device_progress progress = DEVICE_IDLE;
	cudaError_t error;

	if (lane->state == LANE_SEARCHING)
	{
		error = poll_launches(lane);
		if (error == cudaSuccess && atomic_load(search->cancelled))
			lane->state = LANE_ENDING;
		else if (error == cudaSuccess)
			error = enqueue_launches(lane);
		if (error != cudaSuccess)
			fail_search(lane, error);
	}
	if (lane->state == LANE_ENDING)
	{
		error = cudaStreamQuery(lane->stream);
		if (error == cudaErrorNotReady)
			return DEVICE_IDLE;
		if (error != cudaSuccess && !search->failed)
			fail_search(lane, error);
		if (end_piece(lane, &progress))
			*ended = search;
	}
	return progress;
}

enum device_progress
cuda_lanes_advance(struct device *device, struct search **ended)
{
	struct cuda_device *cuda = cuda_device_of(device);

	for (int i = 0; i < CUDA_LANES; i++)
	{
		int			number = (cuda->next_lane + i) % CUDA_LANES;
		enum device_progress progress = advance_lane(cuda->lanes[number], ended);

		if (progress != DEVICE_IDLE)
		{
			cuda->next_lane = (number + 1) % CUDA_LANES;
			return progress;
		}
	}
	return DEVICE_IDLE;
}

void
cuda_lanes_start(struct device *device, struct search *search,
				 const struct piece_operations *piece)
{
	struct lane **lane = cuda_device_of(device)->lanes;

	while ((*lane)->state != LANE_IDLE)
		lane++;
	(*lane)->search = search;
	begin_piece(*lane, piece);
}

/* ---- a device's lanes ---- */

/*
 * Free the memory of idle lanes.  Returns whether any lane had memory.
 */
static bool
empty_idle_lanes(struct device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);
	bool		any = false;

	for (int i = 0; i < CUDA_LANES; i++)
	{
		struct lane *lane = cuda->lanes[i];

		if (lane->state != LANE_IDLE || lane->memory == NULL)
			continue;
		cuda_release(device, lane->memory, lane->bytes);
		lane->memory = NULL;
		lane->bytes = 0;
		any = true;
	}
	return any;
}

static cudaError_t
open_lane(struct lane *lane)
{
	lane->piece_state = malloc(LANE_STATE_BYTES);
	if (lane->piece_state == NULL)
		return cudaErrorMemoryAllocation;
	CUDA_TRY(cudaStreamCreateWithFlags(&lane->stream, cudaStreamNonBlocking));
	CUDA_TRY(cudaMallocHost(&lane->piece_status, LANE_STATUS_BYTES));
	for (int i = 0; i < LAUNCHES_AHEAD; i++)
		CUDA_TRY(cudaEventCreateWithFlags(&lane->ends[i], cudaEventDisableTiming));
	return cudaSuccess;
}

cudaError_t
cuda_lanes_open(struct device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);

	for (int i = 0; i < CUDA_LANES; i++)
	{
		cuda->lanes[i] = (struct lane *) calloc(1, sizeof(struct lane));
		if (cuda->lanes[i] == NULL)
			return cudaErrorMemoryAllocation;
		cuda->lanes[i]->device = device;
		CUDA_TRY(open_lane(cuda->lanes[i]));
	}
	cuda->make_room = empty_idle_lanes;
	return cudaSuccess;
}

void
cuda_lanes_close(struct device *device)
{
	struct cuda_device *cuda = cuda_device_of(device);

	cuda->make_room = NULL;
	for (int i = 0; i < CUDA_LANES; i++)
	{
		struct lane *lane = cuda->lanes[i];

		if (lane == NULL)
			continue;
		cuda_release(device, lane->memory, lane->bytes);
		cudaFreeHost(lane->piece_status);
		for (int j = 0; j < LAUNCHES_AHEAD; j++)
			if (lane->ends[j] != NULL)
				cudaEventDestroy(lane->ends[j]);
		if (lane->stream != NULL)
			cudaStreamDestroy(lane->stream);
		free(lane->piece_state);
		free(lane);
		cuda->lanes[i] = NULL;
	}
}
