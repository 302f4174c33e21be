/*
 * turn_pairs.c
 *		A turn that finds the pairs of observations, however many each has.
 *
 * Threads take pieces of a few observations, in the order of rows, and keep
 * the pairs outside of the batch.  When the turn's time is over, or the pairs
 * are more than the batch has room for, each thread stops after its present
 * observation.  Then the observations before the first one that was not
 * reached count as answered, as far as the room goes, and their pairs are
 * packed into the batch in the order of rows, piece by piece.  The turn's
 * first observation is always answered, so every turn makes progress.
 *
 * The threads' pieces are next to each other, so that few pairs that were
 * found are dropped.  The fewer observations the turn before answered, the
 * fewer observations a piece has.
 */
#include "engine/cpu/turn.h"

#include <stdlib.h>

#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/base/host.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/collector.h"

/* the greatest number of observations of a turn, and of a piece */
#define TURN_ROWS 65536
#define PIECE_ROWS_MAX 32

/* how many pieces of a turn each thread should have */
#define PIECES_PER_THREAD 4

struct piece
{
	uint32_t	rows;			/* how many observations are answered */
	size_t		pairs;
	size_t		capacity;
	struct candidate *pair;

	/* how many rows and pairs of the piece are packed into the batch, and from which pair of it on */
	uint32_t	packed_rows;
	uint32_t	packed_pairs;
	uint32_t	offset;
};

struct turn
{
	struct search *search;
	const struct cpu_built *built;
	uint32_t	first;			/* the turn's first observation */
	uint32_t	rows;			/* how many observations the turn tries */
	uint32_t	piece_rows;		/* how many observations a piece has; the last one may have fewer */
	uint32_t	room;			/* how many pairs still fit into the batch */
	int64_t		end_ms;
	double		widest;			/* the limit on squared chords that max_distance gives */
	atomic_bool out_of_range;
	atomic_bool short_of_memory;
	atomic_uint_fast64_t pairs; /* how many pairs all threads have found */

	struct piece *pieces;
	uint32_t   *counts;			/* [rows] how many pairs each observation has */
};

/* read a value once: the batch is shared with the client */
static int32_t
read_once(const int32_t *column, uint32_t row)
{
	return column != NULL ? ((const volatile int32_t *) column)[row] : 0;
}

/*
 * Begin the collector with one observation.  False if its coordinates are not
 * a point.
 */
static bool
take_observation(const struct turn *turn, uint32_t row, struct cpu_collector *collector)
{
	const struct search *search = turn->search;
	uint32_t	observation = turn->first + row;

	collector->latitude = ((const volatile double *) search->columns.latitude)[observation];
	collector->longitude = ((const volatile double *) search->columns.longitude)[observation];
	if (!geonn_coordinates_valid(collector->latitude, collector->longitude))
		return false;
	collector->from = geonn_metric_vector(search->dataset->metric, collector->latitude,
										  collector->longitude);
	collector->group = read_once(search->columns.group, observation);
	if (search->columns.excluded_first != NULL)
	{
		collector->excluded_first = ((const volatile int64_t *) search->columns.excluded_first)[observation];
		collector->excluded_last = ((const volatile int64_t *) search->columns.excluded_last)[observation];
	}
	collector->max_distance = search->question.max_distance;
	if (search->dataset->radius != NULL)
	{
		double		radius = ((const volatile double *) search->columns.radius)[observation];

		/* a negative radius has no candidate, and neither has NaN, which only a faulty client sends */
		if (!(radius >= collector->max_distance))
			collector->max_distance = radius >= 0.0 ? radius : -1.0;
	}
	collector->windows = point_windows_read(&search->columns, observation);
	collector->cutoff = observation == search->first ? search->cutoff : (struct cutoff) {0};
	return true;
}

/*
 * Keep the pairs of an observation: as many as fit into the batch, and one more
 * if the observation has more.
 */
static bool
keep_pairs(const struct turn *turn, struct piece *piece, const struct candidate *pairs,
		   size_t count)
{
	if (count > (size_t) turn->room + 1)
		count = (size_t) turn->room + 1;
	if (piece->pairs + count > piece->capacity)
	{
		size_t		capacity = 2 * (piece->pairs + count);
		struct candidate *larger = realloc(piece->pair, capacity * sizeof(*larger));

		if (larger == NULL)
			return false;
		piece->pair = larger;
		piece->capacity = capacity;
	}
	for (size_t i = 0; i < count; i++)
		piece->pair[piece->pairs++] = pairs[i];
	return true;
}

static bool
is_over(struct turn *turn)
{
	return atomic_load_explicit(&turn->pairs, memory_order_relaxed) >= turn->room ||
		atomic_load_explicit(&turn->short_of_memory, memory_order_relaxed) ||
		atomic_load_explicit(&turn->out_of_range, memory_order_relaxed) ||
		now_ms() >= turn->end_ms;
}

static void
search_piece(void *context, size_t number)
{
	struct turn *turn = context;
	struct search *search = turn->search;
	struct piece *piece = &turn->pieces[number];
	uint32_t	begin = (uint32_t) number * turn->piece_rows;
	uint32_t	end = turn->rows - begin < turn->piece_rows ? turn->rows : begin + turn->piece_rows;
	bool		by_index = search->algorithm == GEONN_ALGORITHM_INDEX;
	struct cpu_collector collector = {
		.dataset = search->dataset,
		.question = &search->question,
		.cancelled = search->cancelled,
		.x = by_index ? turn->built->index->x : turn->built->references.x,
		.y = by_index ? turn->built->index->y : turn->built->references.y,
		.z = by_index ? turn->built->index->z : turn->built->references.z,
		.widest = turn->widest,
		.room = turn->room
	};

	for (uint32_t row = begin; row < end; row++)
	{
		size_t		pairs;

		if ((row > 0 && is_over(turn)) || atomic_load(search->cancelled))
			break;
		if (!take_observation(turn, row, &collector))
		{
			atomic_store(&turn->out_of_range, true);
			break;
		}
		cpu_collector_begin(&collector);
		if (by_index)
			cpu_path->index_collect(turn->built->index, &collector);
		else
			cpu_path->brute_collect(&turn->built->references, &collector);
		pairs = cpu_collector_end(&collector);
		if (collector.short_of_memory || !keep_pairs(turn, piece, collector.chosen, pairs))
		{
			atomic_store(&turn->short_of_memory, true);
			break;
		}
		turn->counts[row] = (uint32_t) (pairs <= turn->room ? pairs : (size_t) turn->room + 1);
		piece->rows++;
		atomic_fetch_add_explicit(&turn->pairs, pairs, memory_order_relaxed);
	}
	cpu_collector_free(&collector);
}

static void
pack_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct piece *piece = &turn->pieces[number];
	const struct search *search = turn->search;

	for (uint32_t i = 0; i < piece->packed_pairs; i++)
	{
		search->columns.tag[piece->offset + i] = search->dataset->tag[piece->pair[i].place];
		search->columns.distance[piece->offset + i] = piece->pair[i].distance;
	}
}

/*
 * Cut off the pairs of the turn's first observation, which are more than fit
 * into an empty batch.
 */
static void
cut_off(struct turn *turn)
{
	struct search *search = turn->search;
	const struct candidate *last = &turn->pieces[0].pair[turn->room - 1];

	turn->pieces[0].offset = 0;
	turn->pieces[0].packed_pairs = turn->room;
	pack_piece(turn, 0);
	search->columns.count[search->first] = turn->room;
	search->pairs = turn->room;
	search->one_each = false;
	search->cutoff = (struct cutoff) {true, last->distance, last->place};
}

/*
 * Pack the pairs into the batch.  Returns whether another turn may follow.
 */
static bool
pack(struct turn *turn, size_t pieces)
{
	struct search *search = turn->search;
	uint32_t	rows = 0;
	uint32_t	pairs = 0;
	bool		all_one = true;
	bool		goes_on = true;

	for (size_t i = 0; i < pieces && goes_on; i++)
	{
		struct piece *piece = &turn->pieces[i];

		piece->offset = search->pairs + pairs;
		while (piece->packed_rows < piece->rows && turn->counts[rows] <= turn->room - pairs)
		{
			all_one = all_one && turn->counts[rows] == 1;
			piece->packed_pairs += turn->counts[rows];
			pairs += turn->counts[rows];
			piece->packed_rows++;
			rows++;
		}
		goes_on = piece->packed_rows == turn->piece_rows;
	}
	if (rows == 0)
	{
		/* an observation was searched for, but its pairs do not fit */
		if (search->answered == 0)
			cut_off(turn);
		return false;
	}
	search->cutoff.present = false;
	thread_pool_run(pack_piece, turn, pieces);

	/* the last piece may have ended as its pairs do not fit */
	goes_on = rows == turn->rows || turn->counts[rows] <= turn->room - pairs;
	cpu_turn_account(search, rows, all_one && search->question.k == 1 ? NULL : turn->counts,
					 pairs);
	return goes_on && search->answered < search->rows - search->first;
}

static bool
fail_memory(struct turn *turn)
{
	turn->search->failed = true;
	fail(&turn->search->failure, GEONN_ERROR_MEMORY,
		 "not enough memory on the host for the pairs of %u observations: "
		 "%llu bytes free, %llu pairs found", turn->rows,
		 (unsigned long long) host_memory_free(), (unsigned long long) atomic_load(&turn->pairs));
	return false;
}

/*
 * How many observations a piece should have, after a turn that answered this
 * many; 0: no turn before.
 */
static uint32_t
piece_rows_after(uint32_t answered)
{
	uint32_t	rows = answered / (PIECES_PER_THREAD * thread_pool_threads());

	return rows < 1 ? 1 : rows < PIECE_ROWS_MAX ? rows : PIECE_ROWS_MAX;
}

bool
cpu_turn_pairs(struct search *search, struct cpu_built *built)
{
	const struct question *question = &search->question;
	struct turn turn = {.search = search,.built = built};
	uint32_t	left = search->rows - search->first - search->answered;
	size_t		pieces;
	bool		goes_on = false;

	turn.first = search->first + search->answered;
	turn.rows = left < TURN_ROWS ? left : TURN_ROWS;
	turn.piece_rows = piece_rows_after(atomic_load(&built->paired));
	turn.room = search->columns.room - search->pairs;
	turn.end_ms = now_ms() + CPU_TURN_MS;
	turn.widest = geonn_metric_radius_limit(search->dataset->metric, question->max_distance);
	if (turn.room == 0)
		return false;

	pieces = (turn.rows + turn.piece_rows - 1) / turn.piece_rows;
	turn.pieces = calloc(pieces, sizeof(*turn.pieces));
	turn.counts = calloc(turn.rows, sizeof(*turn.counts));
	if (turn.pieces == NULL || turn.counts == NULL)
		fail_memory(&turn);
	else
	{
		thread_pool_run(search_piece, &turn, pieces);
		if (atomic_load(&turn.out_of_range))
			cpu_turn_out_of_range(search);
		else if (atomic_load(&turn.short_of_memory))
			fail_memory(&turn);
		else if (!atomic_load(search->cancelled))
		{
			goes_on = pack(&turn, pieces);
			atomic_store(&built->paired, search->first + search->answered - turn.first);
		}
		for (size_t i = 0; i < pieces; i++)
			free(turn.pieces[i].pair);
	}
	free(turn.pieces);
	free(turn.counts);
	return goes_on;
}
