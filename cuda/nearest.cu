/*
 * nearest.cu
 *		The pieces of searches for the nearest reference alone.
 *
 * Most searches ask for the nearest reference alone, so this question has the
 * fast ways: brute_search.cu's, and that of the index (index_nearest.cu); of shapes
 * that of the index of arcs (arcs_nearest.cu).  Each finds one
 * reference for each observation, at its row.  If each observation has
 * one, 16 bytes an observation go in and 16 come out, and no counts.
 * Otherwise, with a max_distance, the observations without a neighbour are
 * counted out, and the pairs of the others are packed in place of the degrees.
 */
#include <math.h>

#include "cuda/arcs/arcs.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/phase.cuh"
#include "cuda/base/try.cuh"
#include "cuda/brute/brute.cuh"
#include "cuda/index/index.cuh"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/gpu.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/lane/results.cuh"
#include "cuda/nearest.cuh"

/* the greatest number of observations of a piece: by any algorithm it takes some GB */
#define PIECE_ROWS_MAX ((uint32_t) 1 << 22)

enum nearest_phase
{
	NEAREST_COPY_IN,
	NEAREST_SEARCH,
	NEAREST_GO_ON,				/* decide what the search by index left open; then count the observations with a
								 * neighbour within max_distance */
	NEAREST_COPY_OUT
};

struct nearest_piece
{
	enum nearest_phase phase;
	uint32_t	rows;
	bool		all_matched;	/* every observation has its neighbour */
	double	   *latitude;		/* [rows] degrees, on the GPU; later packed
								 * distances */
	double	   *longitude;		/* [rows] degrees, on the GPU; later packed tags */
	struct results results;		/* results.distance and results.tag are the columns that the search writes */

	/* the search, by one of the algorithms */
	struct brute_search brute;
	struct brute_room brute_room;
	struct index_nearest search;
	struct arcs_nearest arcs;
};

/* What kernels report to the host, in pinned memory. */
struct nearest_status
{
	struct brute_status brute;
	struct index_status search;
	struct arcs_status arcs;
	struct results_status results;
};

static_assert(LANE_HOLDS(struct nearest_piece, struct nearest_status),
			  "a lane has no room for this piece's state");

static struct nearest_piece *
piece_of(const struct lane *lane)
{
	return (struct nearest_piece *) lane->piece_state;
}

static struct nearest_status *
status_of(const struct lane *lane)
{
	return (struct nearest_status *) lane->piece_status;
}

static bool
is_brute(const struct lane *lane)
{
	return lane->search->algorithm == GEONN_ALGORITHM_BRUTE;
}

static bool
is_arcs(const struct lane *lane)
{
	return (lane->search->dataset->columns & GEONN_COLUMN_ARC) != 0;
}

/* Return whether the index of points answers a piece. */
static bool
by_points(const struct lane *lane)
{
	return !is_arcs(lane) && !is_brute(lane);
}

static uint32_t
nearest_rows(const struct lane *lane)
{
	uint32_t	rows = rows_left(lane->search);
	uint32_t	room = room_left(lane->search);

	/* each observation has one pair at most */
	if (rows > room)
		rows = room;
	/* a piece that goes to the CPU untried needs no memory of the GPU */
	if (is_arcs(lane) && arcs_leaves_untried(&lane_built(lane)->nearest_refusals))
		rows = 1;
	return rows < PIECE_ROWS_MAX ? rows : PIECE_ROWS_MAX;
}

/*
 * Lay out the columns that all algorithms need, from this offset on.
 */
static size_t
place_results(struct lane *lane, uint32_t rows, void *memory, size_t offset)
{
	struct nearest_piece *piece = piece_of(lane);
	struct results *results = &piece->results;

	piece->rows = rows;
	piece->all_matched = isinf(lane->search->question.max_distance);
	results->rows = rows;
	results->room = rows;
	results->stride = 1;
	results->distance_step = 1;
	results->packed_distance = piece->latitude;
	results->packed_tag = (int64_t *) piece->longitude;
	return offset + results_place((char *) memory + offset, rows, results);
}

static size_t
brute_place(struct lane *lane, uint32_t rows, void *memory)
{
	const struct cuda_device *cuda = cuda_device_of(lane->device);
	struct nearest_piece *piece = piece_of(lane);
	struct brute_room *room = &piece->brute_room;
	size_t		bytes = brute_place_room(memory, rows, &cuda->machine, room);

	piece->latitude = room->latitude;
	piece->longitude = room->longitude;

	/* The search overwrites the degrees with its results; packed results have columns of their own. */
	piece->results.distance = room->latitude;
	piece->results.tag = (const int64_t *) room->longitude;
	bytes = place_results(lane, rows, memory, bytes);
	piece->results.packed_distance = room->x;
	piece->results.packed_tag = (int64_t *) room->y;

	piece->brute.machine = &cuda->machine;
	piece->brute.references = &lane_built(lane)->references;
	piece->brute.room = room;
	piece->brute.status = &status_of(lane)->brute;
	piece->brute.rows = rows;
	piece->brute.stream = lane->stream;
	return bytes;
}

static size_t
search_place(struct lane *lane, uint32_t rows, void *memory)
{
	struct nearest_piece *piece = piece_of(lane);
	struct index_nearest *search = &piece->search;
	size_t		offset = 0;

	search->index = &lane_built(lane)->index;
	search->rows = rows;
	search->max_distance = lane->search->question.max_distance;
	search->stream = lane->stream;
	place_columns(memory, &offset, rows, &piece->latitude, &piece->longitude, &search->tag,
				  &search->distance);
	place_columns(memory, &offset, 1, &search->status);
	search->room = next_column(memory, &offset, index_nearest_room(rows));
	search->latitude = piece->latitude;
	search->longitude = piece->longitude;
	piece->results.distance = search->distance;
	piece->results.tag = search->tag;
	return place_results(lane, rows, memory, offset);
}

static size_t
arcs_place_piece(struct lane *lane, uint32_t rows, void *memory)
{
	struct nearest_piece *piece = piece_of(lane);
	struct arcs_nearest *arcs = &piece->arcs;
	size_t		offset = 0;

	arcs->arcs = &lane_built(lane)->arcs;
	arcs->polygons = lane->search->dataset->last_polygon != 0 ? &lane_built(lane)->polygons : NULL;
	arcs->rows = rows;
	arcs->max_distance = lane->search->question.max_distance;
	arcs->stream = lane->stream;
	place_columns(memory, &offset, rows, &piece->latitude, &piece->longitude, &arcs->tag, &arcs->distance);
	place_columns(memory, &offset, 1, &arcs->status);
	arcs->room = next_column(memory, &offset, arcs_nearest_room(rows));
	arcs->latitude = piece->latitude;
	arcs->longitude = piece->longitude;
	piece->results.distance = arcs->distance;
	piece->results.tag = arcs->tag;
	return place_results(lane, rows, memory, offset);
}

/* Return whether the search has found coordinates out of range, by whichever algorithm. */
static bool
is_out_of_range(const struct lane *lane)
{
	const struct nearest_status *status = status_of(lane);

	return is_arcs(lane) ? status->arcs.out_of_range != 0 :
		is_brute(lane) ? status->brute.out_of_range != 0 :
		status->search.out_of_range != 0;
}

/* Return whether the search has nothing left to decide; a search by brute force or by arcs never has. */
static bool
all_decided(const struct lane *lane)
{
	const struct index_status *status = &status_of(lane)->search;

	return !by_points(lane) || status->out_of_range != 0 || status->decided >= status->ambiguous;
}

/*
 * Return how many of the first observations the search has answered: all, or with arcs those before the first refused row.
 */
static uint32_t
rows_searched(const struct lane *lane)
{
	uint32_t	rows = piece_of(lane)->rows;
	uint32_t	refused = status_of(lane)->arcs.refused;

	return is_arcs(lane) && refused < rows ? refused : rows;
}

/*
 * Enqueue what follows the search.
 */
static cudaError_t
after_search(struct lane *lane, enum piece_progress *progress)
{
	struct nearest_piece *piece = piece_of(lane);
	struct results *results = &piece->results;

	if (is_out_of_range(lane))
		return fail_piece(lane, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range",
						  progress);
	results->rows = rows_searched(lane);
	if (results->rows == 0)
	{
		*progress = PIECE_LAST;
		return cudaSuccess;
	}
	if (piece->all_matched)
	{
		*progress = PIECE_LAST;
		return copy_results(lane, results->rows, results->rows, NULL, results->tag,
							results->distance);
	}

	struct phase phase("count");

	piece->phase = NEAREST_COPY_OUT;
	*progress = PIECE_WAIT;
	CUDA_TRY(results_count_one(results, lane->search->question.max_distance,
							   lane->stream));
	CUDA_TRY(results_scan(results, lane->stream));
	CUDA_TRY(results_pack(results, lane->stream));
	return cudaMemcpyAsync(&status_of(lane)->results, results->status,
						   sizeof(struct results_status), cudaMemcpyDeviceToHost,
						   lane->stream);
}

static cudaError_t
copy_packed(struct lane *lane, enum piece_progress *progress)
{
	const struct results *results = &piece_of(lane)->results;

	*progress = PIECE_LAST;
	return copy_results(lane, results->rows, status_of(lane)->results.pairs, results->count,
						results->packed_tag, results->packed_distance);
}

static cudaError_t
search_by_brute(struct nearest_piece *piece, enum piece_progress *progress)
{
	struct phase phase("search");

	CUDA_TRY(brute_enqueue(&piece->brute));
	if (piece->brute.phase == BRUTE_WAIT)
		*progress = PIECE_WAIT;
	if (piece->brute.phase == BRUTE_DONE)
		piece->phase = NEAREST_GO_ON;
	return cudaSuccess;
}

/* Enqueue the next slice of a search by arcs; after the last slice, the copy of its status to the host. */
static cudaError_t
search_by_arcs(struct lane *lane, enum piece_progress *progress)
{
	struct nearest_piece *piece = piece_of(lane);
	struct phase phase("search");

	CUDA_TRY(arcs_nearest_enqueue(&piece->arcs));
	if (piece->arcs.enqueued < piece->rows)
		return cudaSuccess;
	piece->phase = NEAREST_GO_ON;
	*progress = PIECE_WAIT;
	return cudaMemcpyAsync(&status_of(lane)->arcs, piece->arcs.status, sizeof(struct arcs_status),
						   cudaMemcpyDeviceToHost, lane->stream);
}

/* Enqueue a search by the index of points, or its next launch, and a copy of its status to the host. */
static cudaError_t
search_or_go_on(struct lane *lane, enum piece_progress *progress)
{
	struct nearest_piece *piece = piece_of(lane);
	bool		is_first = piece->phase == NEAREST_SEARCH;
	struct phase phase(is_first ? "search" : "decide");

	piece->phase = NEAREST_GO_ON;
	*progress = PIECE_WAIT;
	CUDA_TRY(is_first ? index_nearest_enqueue(&piece->search) : index_nearest_decide(&piece->search));
	return cudaMemcpyAsync(&status_of(lane)->search, piece->search.status, sizeof(struct index_status),
						   cudaMemcpyDeviceToHost, lane->stream);
}

/* Return whether a piece with arcs goes to the CPU untried; if so, write the report that a GPU would have written. */
static bool
leave_untried(struct lane *lane)
{
	struct arcs_refusals *refusals = &lane_built(lane)->nearest_refusals;
	struct arcs_status *status = &status_of(lane)->arcs;

	if (!arcs_leaves_untried(refusals))
		return false;
	arcs_note_untried(refusals);
	status->out_of_range = 0;
	status->refused = 0;
	return true;
}

static cudaError_t
nearest_enqueue(struct lane *lane, enum piece_progress *progress)
{
	struct nearest_piece *piece = piece_of(lane);
	bool		brute = is_brute(lane);

	*progress = PIECE_AHEAD;
	switch (piece->phase)
	{
		case NEAREST_COPY_IN:
			if (is_arcs(lane) && leave_untried(lane))
			{
				*progress = PIECE_LAST;
				return cudaSuccess;
			}
			piece->phase = NEAREST_SEARCH;
			CUDA_TRY(copy_observations(lane, piece->rows, piece->latitude, piece->longitude, NULL,
									   NULL, NULL));
			return brute ? brute_prepare_observations(&piece->brute) : cudaSuccess;
		case NEAREST_SEARCH:
			if (brute)
				return search_by_brute(piece, progress);
			CUDA_TRY(is_arcs(lane) ? search_by_arcs(lane, progress) : search_or_go_on(lane, progress));
			if (piece->phase == NEAREST_SEARCH || !piece->all_matched)
				return cudaSuccess;

			/*
			 * Copy the results ahead, before the host has read the status: if the status says that
			 * more is to be done, they are copied again, or not read.
			 */
			*progress = PIECE_LAST;
			return copy_results(lane, piece->rows, piece->rows, NULL, piece->results.tag,
								piece->results.distance);
		case NEAREST_GO_ON:
			if (!all_decided(lane))
				return search_or_go_on(lane, progress);
			return after_search(lane, progress);
		case NEAREST_COPY_OUT:
			return copy_packed(lane, progress);
	}
	return cudaErrorUnknown;
}

/*
 * Finish a piece.  A search by points that is not done goes on, and copies its results again.  From an observation that a
 * search by arcs refuses, the CPU goes on; a piece that was left untried is the CPU's as a whole.
 */
static enum piece_outcome
nearest_finish(struct lane *lane)
{
	const struct nearest_piece *piece = piece_of(lane);
	const struct nearest_status *status = status_of(lane);
	uint32_t	rows = rows_searched(lane);
	enum piece_progress progress;

	if (!all_decided(lane))
		return PIECE_MORE;
	if (is_out_of_range(lane))
	{
		fail_piece(lane, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range",
				   &progress);
		return PIECE_FULL;
	}
	if (is_arcs(lane) && piece->phase != NEAREST_COPY_IN)
		arcs_note_refusal(&lane_built(lane)->nearest_refusals, rows <= piece->rows / 2);
	if (rows > 0 && piece->all_matched)
		search_account(lane->search, rows, rows, true);
	else if (rows > 0)
		search_account(lane->search, rows, status->results.pairs, false);
	return rows < piece->rows ? PIECE_REFUSED : PIECE_ANSWERED;
}

static size_t
nearest_place(struct lane *lane, uint32_t rows, void *memory)
{
	*piece_of(lane) = {};
	return is_arcs(lane) ? arcs_place_piece(lane, rows, memory) :
		is_brute(lane) ? brute_place(lane, rows, memory) : search_place(lane, rows, memory);
}

const struct piece_operations nearest_operations = {
	.rows = nearest_rows,
	.place = nearest_place,
	.enqueue = nearest_enqueue,
	.finish = nearest_finish
};
