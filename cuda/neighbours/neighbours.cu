/*
 * neighbours.cu
 *		Answers any question on a GPU: k neighbours, ties, all within a
 *		distance.
 *
 * This file answers the questions that nearest.cu does not: more than one
 * neighbour, ties, all within max_distance, counts within radii, groups, identities,
 * radiuses, windows.  Where bundles.cu does not, a warp searches for one observation at a time, in
 * float64 from the start, with the nearest leaves of the index first.
 *
 *
 * Phases
 *
 * copy in	the observations; their vectors, and the order of search.  In this
 *			order bundles.cu looks at 32 of them at a time, if the
 *			question is simple, and leaves few of them to
 * select	the first k candidates of each observation, into slots of its own.
 *			Without ties these are the answer, and
 *			where besides each observation has k neighbours the slots are copied
 *			out as they are.
 * count	If candidates are to be counted within radii, counts.cu does so, in place of
 * within	all that follows but the copies out.
 * count	Otherwise the candidates up to a bound, which is known now, are
 *			counted for each observation
 * fit		and added up: for how many observations does the room suffice?
 * collect	writes their candidates, adjacent for each.
 * pack		puts them in order, and moves all pairs together, with their tags.
 * copy out	the counts and pairs.
 *
 * A launch ends after some 25 ms, even if observations are left; launches are
 * repeated until none is left.
 *
 * If even the first observation's candidates do not fit into the room, the CPU
 * goes on with the search.
 *
 *
 * Why the answer is exact
 *
 * A leaf or position is left out only if its squared
 * chord exceeds geonn_metric_radius_limit() of a distance D, hence its
 * distance exceeds D.  D is max_distance, or the distance of the k-th of some
 * candidates, which the k-th of all does not exceed.  All other positions are
 * compared by (distance, place).
 *
 * No answer depends on the order of search or the size of pieces.
 */
#include "common/metric.h"
#include "cuda/base/columns.cuh"
#include "cuda/base/phase.cuh"
#include "cuda/base/try.cuh"
#include "cuda/lane/dataset.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/neighbours/neighbours.cuh"

/* the greatest number of selected neighbours of a piece */
#define PIECE_SLOTS ((uint32_t) 1 << 23)

enum neighbours_phase
{
	NEIGHBOURS_COPY_IN,
	NEIGHBOURS_COUNT_WITHIN,	/* count the candidates of each observation within radii */
	NEIGHBOURS_SELECT,			/* select the first k candidates of each observation */
	NEIGHBOURS_COUNT,			/* count the candidates of each observation */
	NEIGHBOURS_FIT,				/* find out how many observations' candidates fit into the memory */
	NEIGHBOURS_COLLECT,
	NEIGHBOURS_PACK,
	NEIGHBOURS_COPY_OUT
};

struct neighbours_piece
{
	enum neighbours_phase phase;
	struct neighbours work;
	bool		collects;		/* the answers have more pairs than the first k: a collecting kernel writes all pairs */
	bool		fills;			/* the columns of selected neighbours are the result, without packing */
	bool		launched;		/* at least one launch of this phase's kernel has been enqueued */
};

/* What kernels report to the host, in pinned memory. */
struct neighbours_piece_status
{
	struct neighbours_status neighbours;
	struct results_status results;
};

static_assert(LANE_HOLDS(struct neighbours_piece, struct neighbours_piece_status),
			  "a lane has no room for this piece's state");

static struct neighbours_piece *
piece_of(const struct lane *lane)
{
	return (struct neighbours_piece *) lane->piece_state;
}

static struct neighbours_piece_status *
status_of(const struct lane *lane)
{
	return (struct neighbours_piece_status *) lane->piece_status;
}

/* Return the mean number of pairs of an observation so far; before the first answer pairs_each, which is 0 if unknown. */
static double
pairs_so_far(const struct search *search)
{
	return search->answered > 0 ? (double) search->pairs / search->answered : search->pairs_each;
}

/*
 * Return the expected number of pairs of an observation within max_distance: the mean so far, or
 * the number that references spread evenly over the earth would give.
 */
static double
expected_within(const struct search *search)
{
	/* a cap's share of the sphere is a quarter of its squared chord */
	double		share = geonn_radius_limit(search->question.max_distance) / 4.0;

	if (pairs_so_far(search) > 0.0)
		return pairs_so_far(search);
	return (double) search->dataset->count * (share < 1.0 ? share : 1.0);
}

static uint32_t
neighbours_rows(const struct lane *lane)
{
	const struct search *search = lane->search;
	uint32_t	k = search->question.k;
	uint32_t	rows = rows_left(search);
	double		room = room_left(search);
	double		expected;

	if (k > 0)
	{
		if (rows > PIECE_SLOTS / k)
			rows = PIECE_SLOTS / k;
		expected = k < search->dataset->count ? k : (double) search->dataset->count;
		/* some observations may have fewer pairs */
		if (search->dataset->columns != 0 || !isinf(search->question.max_distance))
			expected = pairs_so_far(search) > 0.0 ? pairs_so_far(search) : 1.0;
	}
	else
		expected = search->question.radii > 0 ? search_counts_each(search) : expected_within(search);
	if (rows * expected > room)
		rows = (uint32_t) (room / expected);
	return rows > 0 ? rows : 1;
}

/*
 * Lay out, from this offset on, the columns of this many observations, the order of search, and
 * slots for the first neighbours.  fills: the slots are the result, and have tags.  counts: the
 * search counts; if it also excludes tags, it needs one column more.
 */
static size_t
place_observations(struct neighbours *work, uint32_t columns, bool fills, bool counts, void *memory,
				   size_t offset)
{
	uint32_t	rows = work->rows;
	size_t		slots = (size_t) rows * work->k;

	place_columns(memory, &offset, rows, &work->latitude, &work->longitude);
	if (columns & GEONN_COLUMN_GROUP)
		place_columns(memory, &offset, rows, &work->group);
	if (columns & GEONN_COLUMN_EXCLUDED)
		place_columns(memory, &offset, rows, &work->excluded_first, &work->excluded_last);
	if ((columns & GEONN_COLUMN_EXCLUDED) && counts)
		place_columns(memory, &offset, work->index.references, &work->by_place);
	index_place_conditions(memory, &offset, rows, columns, &work->conditions);
	offset += column_room(neighbours_place_order((char *) memory + offset, rows, columns, work));
	place_columns(memory, &offset, slots, &work->value);
	if (fills)
		place_columns(memory, &offset, slots, &work->tag);
	else
		place_columns(memory, &offset, slots, &work->reference);
	place_columns(memory, &offset, 1, &work->status);
	return offset + results_place((char *) memory + offset, rows, &work->results);
}

/*
 * Lay out the memory for this many entries, the collected pairs.
 */
static size_t
place_entries(struct neighbours *work, uint32_t room, void *memory, size_t offset)
{
	struct results *results = &work->results;

	place_columns(memory, &offset, work->rows, &work->selected);
	entries_place(memory, &offset, room, &work->entries);
	results->stride = 0;
	results->distance_step = sizeof(struct entry) / sizeof(double);
	return offset;
}

/*
 * Lay out the memory for a piece of this many observations.
 */
static size_t
neighbours_place(struct lane *lane, uint32_t rows, void *memory)
{
	const struct search *search = lane->search;
	const struct question *question = &search->question;
	const struct dataset *dataset = search->dataset;
	struct neighbours_piece *piece = piece_of(lane);
	struct neighbours *work = &piece->work;
	struct results *results = &work->results;
	const struct cuda_built *built = lane_built(lane);
	uint32_t	room = room_left(search);
	uint32_t	full_rows = neighbours_rows(lane);
	size_t		slots = (size_t) rows * question->k;
	size_t		offset;

	/* if memory is short, `room` shrinks too */
	if (rows < full_rows)
		room = (uint32_t) ((uint64_t) room * rows / full_rows);
	if (room < 1)
		room = 1;
	*piece = {};
	piece->collects = question->ties || question->k == 0;
	if (!piece->collects && slots < room)
		room = (uint32_t) slots;
	work->index = built->index;
	work->rows = rows;
	work->k = question->k;
	work->ties = question->ties;
	work->max_distance = question->max_distance;
	work->stream = lane->stream;
	piece->fills = !piece->collects && slots <= room && bundles_fill(work);

	offset = place_observations(work, dataset->columns, piece->fills, question->radii > 0, memory, 0);
	results->rows = rows;
	results->room = room;
	results->tag = work->index.tag;
	if (question->radii > 0 && (dataset->columns & GEONN_COLUMNS_WEIGHTS))
	{
		work->weights = built->weights;

		/* Let the CPU answer: sums that do not fit are treated as pairs without room in the GPU's memory. */
		if (!work->weights.fit)
			results->room = 0;
	}
	if (question->radii > 0)
		place_columns(memory, &offset, (size_t) rows * search_counts_each(search), &results->packed_tag,
					  &results->packed_distance);
	else if (piece->collects)
		offset = place_entries(work, room, memory, offset);
	else
	{
		work->selected = results->count;
		results->packed_tag = work->tag;
		results->packed_distance = work->value;
		results->stride = work->k;
		results->reference = work->reference;
		results->distance = work->value;
		results->distance_step = 1;
	}
	if (!piece->fills && question->radii == 0)
		place_columns(memory, &offset, room, &results->packed_tag, &results->packed_distance);
	return offset;
}

/* Go on to a phase that launches kernels over the observations. */
static cudaError_t
begin_launches(struct lane *lane, enum neighbours_phase phase)
{
	struct neighbours_piece *piece = piece_of(lane);

	piece->phase = phase;
	piece->launched = false;
	return cudaMemsetAsync(&piece->work.status->next, 0, sizeof(uint32_t), lane->stream);
}

/* Return whether the launches of the phase's kernel have taken all observations. */
static bool
all_taken(const struct lane *lane)
{
	return piece_of(lane)->launched &&
		status_of(lane)->neighbours.next >= piece_of(lane)->work.rows;
}

/*
 * After launches, let the host wait for their status.
 */
static cudaError_t
ask(struct lane *lane, enum piece_progress *progress)
{
	piece_of(lane)->launched = true;
	*progress = PIECE_WAIT;
	return cudaMemcpyAsync(&status_of(lane)->neighbours, piece_of(lane)->work.status,
						   sizeof(struct neighbours_status), cudaMemcpyDeviceToHost,
						   lane->stream);
}

static cudaError_t
ask_results(struct lane *lane, enum piece_progress *progress)
{
	*progress = PIECE_WAIT;
	return cudaMemcpyAsync(&status_of(lane)->results, piece_of(lane)->work.results.status,
						   sizeof(struct results_status), cudaMemcpyDeviceToHost, lane->stream);
}

static cudaError_t
enqueue_copy_in(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_piece *piece = piece_of(lane);
	struct neighbours *work = &piece->work;

	if (lane->search->question.radii > 0 && work->results.room < search_counts_each(lane->search))
	{
		status_of(lane)->results = {};
		*progress = PIECE_LAST;
		return cudaSuccess;
	}
	*progress = PIECE_AHEAD;
	CUDA_TRY(copy_observations(lane, work->rows, work->latitude, work->longitude, work->group,
							   work->excluded_first, work->excluded_last));
	CUDA_TRY(copy_conditions(lane, work->rows, &work->conditions));
	{
		struct phase phase("sort");

		CUDA_TRY(neighbours_sort(work));
	}
	struct phase phase("search");

	/* The next phase's launches begin at observation status->next. */
	if (lane->search->question.radii > 0)
	{
		piece->phase = NEIGHBOURS_COUNT_WITHIN;
		return counts_prepare(work);
	}
	CUDA_TRY(bundles_enqueue(work));
	piece->phase = work->k > 0 ? NEIGHBOURS_SELECT : NEIGHBOURS_COUNT;
	return cudaSuccess;
}

static cudaError_t
copy_out(struct lane *lane, enum piece_progress *progress)
{
	const struct results *results = &piece_of(lane)->work.results;
	const struct results_status *fitting = &status_of(lane)->results;

	*progress = PIECE_LAST;
	return copy_results(lane, fitting->observations, fitting->pairs, results->count,
						results->packed_tag, results->packed_distance);
}

/*
 * Count within radii.  Each observation has the same number of pairs, and all have room.
 */
static cudaError_t
enqueue_count_within(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_piece *piece = piece_of(lane);
	struct results_status *fitting = &status_of(lane)->results;
	uint32_t	each = search_counts_each(lane->search);
	struct phase phase("count within radii");

	if (all_taken(lane))
	{
		fitting->observations = piece->work.rows;
		fitting->pairs = piece->work.rows * each;
		return copy_out(lane, progress);
	}
	CUDA_TRY(counts_enqueue(&piece->work, &lane->search->question));
	return ask(lane, progress);
}

static cudaError_t
enqueue_select(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_piece *piece = piece_of(lane);
	struct phase phase("search");

	if (all_taken(lane))
	{
		if (piece->fills)
		{
			status_of(lane)->results.observations = piece->work.rows;
			status_of(lane)->results.pairs = piece->work.rows * piece->work.k;
			return copy_out(lane, progress);
		}
		*progress = PIECE_AHEAD;
		return begin_launches(lane, piece->collects ? NEIGHBOURS_COUNT : NEIGHBOURS_PACK);
	}
	CUDA_TRY(neighbours_select(&piece->work));
	return ask(lane, progress);
}

static cudaError_t
enqueue_count(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_piece *piece = piece_of(lane);
	struct phase phase("count");

	if (all_taken(lane))
	{
		piece->phase = NEIGHBOURS_FIT;
		CUDA_TRY(results_scan(&piece->work.results, lane->stream));
		return ask_results(lane, progress);
	}
	CUDA_TRY(neighbours_count(&piece->work));
	return ask(lane, progress);
}

static cudaError_t
enqueue_collect(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_piece *piece = piece_of(lane);
	struct phase phase("collect");

	if (all_taken(lane))
	{
		*progress = PIECE_AHEAD;
		piece->phase = NEIGHBOURS_PACK;
		piece->launched = false;
		return cudaSuccess;
	}
	CUDA_TRY(neighbours_collect(&piece->work, status_of(lane)->results.observations));
	return ask(lane, progress);
}

static cudaError_t
enqueue_pack(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_piece *piece = piece_of(lane);
	struct entries *entries = &piece->work.entries;
	struct results *results = &piece->work.results;
	struct phase phase("pack");

	piece->phase = NEIGHBOURS_COPY_OUT;
	if (piece->collects)
	{
		*progress = PIECE_AHEAD;
		CUDA_TRY(entries_sort(entries, status_of(lane)->results.pairs, piece->work.rows, lane->stream));
		results->distance = (const double *) entries->entry;
		results->reference = entries->reference;
	}
	else
	{
		CUDA_TRY(results_scan(results, lane->stream));
		CUDA_TRY(ask_results(lane, progress));
	}
	return results_pack(results, lane->stream);
}

static cudaError_t
neighbours_enqueue(struct lane *lane, enum piece_progress *progress)
{
	struct neighbours_piece *piece = piece_of(lane);

	if (piece->launched && status_of(lane)->neighbours.out_of_range != 0)
		return fail_piece(lane, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range",
						  progress);
	switch (piece->phase)
	{
		case NEIGHBOURS_COPY_IN:
			return enqueue_copy_in(lane, progress);
		case NEIGHBOURS_COUNT_WITHIN:
			return enqueue_count_within(lane, progress);
		case NEIGHBOURS_SELECT:
			return enqueue_select(lane, progress);
		case NEIGHBOURS_COUNT:
			return enqueue_count(lane, progress);
		case NEIGHBOURS_FIT:
			if (status_of(lane)->results.observations == 0)
			{
				*progress = PIECE_LAST;
				return cudaSuccess;
			}
			CUDA_TRY(begin_launches(lane, NEIGHBOURS_COLLECT));
			return enqueue_collect(lane, progress);
		case NEIGHBOURS_COLLECT:
			return enqueue_collect(lane, progress);
		case NEIGHBOURS_PACK:
			return enqueue_pack(lane, progress);
		case NEIGHBOURS_COPY_OUT:
			return copy_out(lane, progress);
	}
	return cudaErrorUnknown;
}

static enum piece_outcome
neighbours_finish(struct lane *lane)
{
	const struct neighbours_piece *piece = piece_of(lane);
	const struct results_status *fitting = &status_of(lane)->results;
	struct search *search = lane->search;
	bool		all_room = piece->work.results.room == room_left(search);	/* the batch's room limits the pairs */

	/* the observation's pairs do not fit into an empty batch, or into the GPU's memory */
	if (fitting->observations == 0 && (search->answered == 0 || !all_room))
		return PIECE_REFUSED;
	search_account(search, fitting->observations, fitting->pairs, search_counts_each(search) == 1);
	return fitting->observations < piece->work.rows && all_room ? PIECE_FULL : PIECE_ANSWERED;
}

const struct piece_operations neighbours_operations = {
	.rows = neighbours_rows,
	.place = neighbours_place,
	.enqueue = neighbours_enqueue,
	.finish = neighbours_finish
};
