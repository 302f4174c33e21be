/*
 * shapes_within.cu
 *		Finds all shapes within a distance of each observation on a GPU.
 *
 * copy in	the observations, and the order of the search.
 * count	the polygons that each observation is in (shapes_polygons.cu), and with them the arcs that may be within max_distance,
 *			those of a shape that come one after the other mostly once (shapes_collect.cu).
 * fit		adds the counts up: for how many observations does the room suffice?
 * collect	writes what these find, with its distances, adjacent for each.
 * pack		puts it in order, keeps of each shape what comes first, and moves the pairs together (shapes_pack.cu), of
 *			as many observations as fit into the batch.
 * copy out	the counts and pairs.
 *
 * The limit on chords is that of max_distance, and does not change.  Arcs beyond it are farther (arcs_measure.cuh has the
 * margin); the distances of all others are measured by common/arc.h, and decide, as on the CPU.
 *
 * The CPU goes on from the first observation that needs too much: more than SHAPES_WITHIN_MAX entries, too many arcs
 * or stretches of polygons, or it is in a warp whose observations need too many boxes.  arcs_refusals.cuh says what follows;
 * a question within a shorter distance than the last one that was refused is tried all the same.
 */
#include "cuda/shapes/shapes_within.cuh"

#include <math.h>

#include "cuda/arcs/arcs_measure.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/phase.cuh"
#include "cuda/base/try.cuh"
#include "cuda/lane/dataset.cuh"

/* the greatest numbers of observations and of entries of a piece; an entry takes 44 bytes */
#define PIECE_ROWS_MAX ((uint32_t) 1 << 20)
#define PIECE_ENTRIES_MAX ((uint32_t) 1 << 24)

/* About so many entries become one pair. */
#define ENTRIES_OF_PAIR 2

/* A search keeps, as its device_state, the mean number of entries of its observations, in this unit. */
#define ENTRIES_UNIT 0x1p-16

enum within_phase
{
	WITHIN_COPY_IN,
	WITHIN_COUNT,
	WITHIN_FIT,					/* find out how many observations' entries fit into the memory */
	WITHIN_COLLECT,
	WITHIN_PACK,
	WITHIN_COPY_OUT
};

struct within_piece
{
	enum within_phase phase;
	bool		launched;		/* at least one launch of this phase's kernel has been enqueued */
	struct shapes_within work;
};

/* What kernels report to the host, in pinned memory. */
struct within_status
{
	struct shapes_within_status search;
	struct results_status found;	/* entries that fit */
	struct results_status results;	/* pairs that fit */
};

static_assert(LANE_HOLDS(struct within_piece, struct within_status), "a lane has no room for this piece's state");

static struct within_piece *
piece_of(const struct lane *lane)
{
	return (struct within_piece *) lane->piece_state;
}

static struct within_status *
status_of(const struct lane *lane)
{
	return (struct within_status *) lane->piece_status;
}

/* Return whether the next piece goes to the CPU without a try on the GPU. */
static bool
is_left_untried(const struct lane *lane)
{
	const struct cuda_built *built = lane_built(lane);

	return arcs_leaves_untried(&built->within_refusals) &&
		lane->search->question.max_distance >= built->within_refused_distance;
}

/*
 * Return how many entries a piece of so many rows should have room for.  An answered observation has at most
 * SHAPES_WITHIN_MAX.
 */
static uint32_t
entries_wanted(const struct lane *lane, uint32_t rows)
{
	uint64_t	entries = (uint64_t) ENTRIES_OF_PAIR * room_left(lane->search);

	if (entries < SHAPES_WITHIN_MAX)
		entries = SHAPES_WITHIN_MAX;
	if (entries > (uint64_t) rows * SHAPES_WITHIN_MAX)
		entries = (uint64_t) rows * SHAPES_WITHIN_MAX;
	return entries < PIECE_ENTRIES_MAX ? (uint32_t) entries : PIECE_ENTRIES_MAX;
}

/* Return the expected number of entries of an observation. */
static double
entries_each(const struct search *search)
{
	if (search->device_state != 0)
		return ENTRIES_UNIT * search->device_state;
	return ENTRIES_OF_PAIR * (search->answered > 0 ? (double) search->pairs / search->answered : search->pairs_each);
}

static uint32_t
within_rows(const struct lane *lane)
{
	uint32_t	rows = rows_left(lane->search) < PIECE_ROWS_MAX ? rows_left(lane->search) : PIECE_ROWS_MAX;
	double		room = entries_wanted(lane, rows);

	/* a piece that goes to the CPU untried needs almost no memory */
	if (is_left_untried(lane))
		return 1;
	if (rows * entries_each(lane->search) > room)
		rows = (uint32_t) (room / entries_each(lane->search));
	return rows > 0 ? rows : 1;
}

static size_t
within_place(struct lane *lane, uint32_t rows, void *memory)
{
	const struct search *search = lane->search;
	struct within_piece *piece = piece_of(lane);
	struct shapes_within *work = &piece->work;
	uint32_t	full_rows = within_rows(lane);
	uint32_t	room = entries_wanted(lane, rows);
	size_t		offset = 0;
	size_t		bytes;

	/* if memory is short, the room shrinks with the rows */
	if (rows < full_rows && room > SHAPES_WITHIN_MAX)
		room = (uint32_t) ((uint64_t) room * rows / full_rows);
	if (room < SHAPES_WITHIN_MAX)
		room = SHAPES_WITHIN_MAX;
	*piece = {};
	work->arcs = lane_built(lane)->arcs;
	work->polygons = search->dataset->last_polygon != 0 ? &lane_built(lane)->polygons : NULL;
	work->rows = rows;
	work->max_distance = search->question.max_distance;
	work->limit = arcs_limit_of(work->max_distance);
	work->stream = lane->stream;
	place_columns(memory, &offset, rows, &work->latitude, &work->longitude);
	if (index_order_place((char *) memory + offset, rows, &work->order, &bytes) != cudaSuccess)
		return INDEX_NO_ROOM;
	offset += column_room(bytes);
	place_columns(memory, &offset, rows, &work->inside);
	place_columns(memory, &offset, 1, &work->status);
	offset += column_room(results_place((char *) memory + offset, rows, &work->found));
	offset += column_room(results_place((char *) memory + offset, rows, &work->results));
	entries_place(memory, &offset, room, &work->entries);
	shapes_place_ranks(memory, &offset, work);
	work->found.rows = rows;
	work->found.room = room;
	work->results.room = room < room_left(search) ? room : room_left(search);
	place_columns(memory, &offset, work->results.room, &work->results.packed_tag, &work->results.packed_distance);
	return offset;
}

/* Go on to a phase that launches kernels over the observations. */
static cudaError_t
begin_launches(struct lane *lane, enum within_phase phase)
{
	struct within_piece *piece = piece_of(lane);

	piece->phase = phase;
	piece->launched = false;
	return cudaMemsetAsync(&piece->work.status->next, 0, sizeof(uint32_t), lane->stream);
}

/* Return whether the launches of the phase's kernel have taken all bundles of observations. */
static bool
all_taken(const struct lane *lane)
{
	return piece_of(lane)->launched && status_of(lane)->search.next >= (piece_of(lane)->work.rows + 31) / 32;
}

/* After launches, let the host wait for their status. */
static cudaError_t
wait_for_launch(struct lane *lane, enum piece_progress *progress)
{
	piece_of(lane)->launched = true;
	*progress = PIECE_WAIT;
	return cudaMemcpyAsync(&status_of(lane)->search, piece_of(lane)->work.status, sizeof(struct shapes_within_status),
						   cudaMemcpyDeviceToHost, lane->stream);
}

static cudaError_t
copy_status(struct lane *lane, struct results_status *status, const struct results *results, enum piece_progress *progress)
{
	*progress = PIECE_WAIT;
	return cudaMemcpyAsync(status, results->status, sizeof(*status), cudaMemcpyDeviceToHost, lane->stream);
}

static cudaError_t
enqueue_copy_in(struct lane *lane, enum piece_progress *progress)
{
	struct shapes_within *work = &piece_of(lane)->work;

	if (is_left_untried(lane))
	{
		arcs_note_untried(&lane_built(lane)->within_refusals);
		*progress = PIECE_LAST;
		return cudaSuccess;
	}
	CUDA_TRY(copy_observations(lane, work->rows, work->latitude, work->longitude, NULL, NULL, NULL));

	struct phase phase("sort");

	work->order.rows = work->rows;
	work->order.latitude = work->latitude;
	work->order.longitude = work->longitude;
	work->order.out_of_range = &work->status->out_of_range;
	work->order.fraction_bits = index_order_fraction_bits(&work->arcs.curve);
	CUDA_TRY(cudaMemsetAsync(&work->status->out_of_range, 0, sizeof(uint32_t), lane->stream));
	CUDA_TRY(cudaMemsetAsync(&work->status->refused, 0xFF, sizeof(uint32_t), lane->stream));
	CUDA_TRY(index_order_enqueue(&work->order, &work->arcs.curve, lane->stream));
	if (work->polygons != NULL)
		CUDA_TRY(shapes_count_polygons(work));
	return begin_launches(lane, WITHIN_COUNT);
}

static cudaError_t
enqueue_count(struct lane *lane, enum piece_progress *progress)
{
	struct within_piece *piece = piece_of(lane);
	struct phase phase("count");

	if (!all_taken(lane))
	{
		CUDA_TRY(shapes_count(&piece->work));
		return wait_for_launch(lane, progress);
	}
	piece->phase = WITHIN_FIT;
	CUDA_TRY(results_scan(&piece->work.found, lane->stream));
	return copy_status(lane, &status_of(lane)->found, &piece->work.found, progress);
}

/* Go on with the observations whose entries fit, or end the piece if none fit. */
static cudaError_t
enqueue_fit(struct lane *lane, enum piece_progress *progress)
{
	uint32_t	rows = status_of(lane)->found.observations;

	if (rows == 0)
	{
		*progress = PIECE_LAST;
		return cudaSuccess;
	}
	if (piece_of(lane)->work.polygons != NULL)
		CUDA_TRY(shapes_collect_polygons(&piece_of(lane)->work, rows));
	return begin_launches(lane, WITHIN_COLLECT);
}

static cudaError_t
enqueue_collect(struct lane *lane, enum piece_progress *progress)
{
	struct within_piece *piece = piece_of(lane);
	const struct results_status *found = &status_of(lane)->found;
	struct phase phase("collect");

	if (!all_taken(lane))
	{
		CUDA_TRY(shapes_collect(&piece->work, found->observations));
		return wait_for_launch(lane, progress);
	}
	piece->phase = WITHIN_PACK;
	CUDA_TRY(shapes_pack(&piece->work, found->observations, found->pairs));
	return copy_status(lane, &status_of(lane)->results, &piece->work.results, progress);
}

static cudaError_t
copy_out(struct lane *lane, enum piece_progress *progress)
{
	const struct results *results = &piece_of(lane)->work.results;
	const struct results_status *fitting = &status_of(lane)->results;

	piece_of(lane)->phase = WITHIN_COPY_OUT;
	*progress = PIECE_LAST;
	return copy_results(lane, fitting->observations, fitting->pairs, results->count, results->packed_tag,
						results->packed_distance);
}

static cudaError_t
within_enqueue(struct lane *lane, enum piece_progress *progress)
{
	struct within_piece *piece = piece_of(lane);

	if (piece->launched && status_of(lane)->search.out_of_range != 0)
		return fail_piece(lane, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range", progress);
	*progress = PIECE_AHEAD;
	switch (piece->phase)
	{
		case WITHIN_COPY_IN:
			return enqueue_copy_in(lane, progress);
		case WITHIN_COUNT:
			return enqueue_count(lane, progress);
		case WITHIN_FIT:
			return enqueue_fit(lane, progress);
		case WITHIN_COLLECT:
			return enqueue_collect(lane, progress);
		case WITHIN_PACK:
			return copy_out(lane, progress);
		case WITHIN_COPY_OUT:
			break;
	}
	return cudaErrorUnknown;
}

static enum piece_outcome
within_finish(struct lane *lane)
{
	const struct within_piece *piece = piece_of(lane);
	const struct within_status *status = status_of(lane);
	struct cuda_built *built = lane_built(lane);
	struct search *search = lane->search;
	uint32_t	rows = 0;
	bool		is_refused;

	if (piece->phase == WITHIN_COPY_IN)
		return PIECE_REFUSED;
	if (piece->phase == WITHIN_COPY_OUT)
	{
		rows = status->results.observations;
		search_account(search, rows, status->results.pairs, false);
		search->device_state = (uint64_t) ceil(status->found.pairs / (ENTRIES_UNIT * status->found.observations));
	}
	is_refused = rows == status->search.refused;
	arcs_note_refusal(&built->within_refusals, is_refused && rows <= piece->work.rows / 2);
	if (is_refused)
		built->within_refused_distance = search->question.max_distance;

	/* The batch has no space for the next observation's pairs; an empty batch goes to the CPU, which answers in parts. */
	if (search->answered > 0 && (room_left(search) == 0 || rows < status->found.observations))
		return PIECE_FULL;
	return rows == 0 || is_refused ? PIECE_REFUSED : PIECE_ANSWERED;
}

const struct piece_operations shapes_within_operations = {
	.rows = within_rows,
	.place = within_place,
	.enqueue = within_enqueue,
	.finish = within_finish
};
