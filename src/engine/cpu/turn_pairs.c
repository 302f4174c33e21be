/*
 * turn_pairs.c
 *		A turn that finds the pairs of observations, however many each has.
 *
 * By index, the observations of a turn are sorted by the part of the index that
 * has their group, and then along the curve, so that neighbours go through the
 * index together, in whatever order they came.  By brute force they are taken in
 * the order of rows.  Threads take pieces of them.  Where the batch has room for k
 * pairs of each observation, they go there at once, as if each had k.  Otherwise
 * threads keep the pairs outside of the batch.  Then the observations before the
 * first one without an answer count as answered, as far as the room goes, and their
 * pairs are put together in the batch in the order of rows.  The batch is shared with the
 * client; a client that writes there meanwhile spoils its own answers and nothing else.
 *
 * A turn takes as many observations as its time and the batch's room should be
 * enough for, as earlier turns say.  Where either is not enough after all, each
 * thread stops after its present observation, and most of what it found may be
 * lost; so the next turn takes few observations.  The turn's first observation is always
 * answered, so every turn makes progress.
 */
#include "engine/cpu/turn.h"

#include <stdlib.h>
#include <string.h>

#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/base/host.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/base/columns.h"
#include "engine/cpu/walk/nearest.h"
#include "engine/cpu/walk/neighbours.h"
#include "engine/cpu/base/vectors.h"

/* a turn takes at most ROWS_MAX observations; a dataset's first turn those with PAIRS_FIRST pairs, or
 * ROWS_FIRST */
#define ROWS_MAX 262144
#define PAIRS_FIRST 262144.0
#define ROWS_FIRST 2048

/* greatest numbers of observations of a piece, and pieces for each thread */
#define PREPARE_ROWS 4096
#define PIECE_ROWS_MAX 1024
#define PIECES_PER_THREAD 4

/* tags are fetched into the cache this many pairs ahead */
#define TAGS_AHEAD 16

/* and where the pairs of an observation go, this many observations ahead */
#define ROWS_AHEAD 4

/* a turn stops with this many pairs beyond the batch's room */
#define PAIRS_BEYOND (UINT64_C(1) << 16)

/* how long a turn should take: with more observations, closer ones, each takes less time */
#define TURN_MS (3 * CPU_TURN_MS)

#define UNANSWERED UINT32_MAX

struct turn
{
	struct search *search;
	const struct cpu_built *built;
	bool		by_index;
	uint32_t	first;			/* observation */
	uint32_t	rows;			/* observations to try */
	uint32_t	piece_rows;		/* rows of each piece but the last */
	uint32_t	room;			/* pairs that the batch has room for */
	int64_t		end_ms;
	atomic_bool out_of_range;
	atomic_uint_fast64_t pairs; /* found by all threads */

	struct cpu_neighbours_piece *pieces;
	struct cpu_observation *observation;	/* [rows] */
	uint32_t   *counts;			/* [rows] pairs of each */
	uint32_t   *offset;			/* [rows] where they go in the batch */
	uint32_t	packed;			/* rows that count as answered */
	uint32_t	first_row;		/* 0 */
	struct radix_sort sort;		/* keys, and rows */
	bool		in_batch;		/* pairs go to the batch at once: it has room for k of each row */
};

/*
 * Lay out the memory for a turn from `memory` on (NULL to learn only the size).
 * Returns its bytes.
 */
static size_t
place_room(struct turn *turn, void *memory)
{
	struct column_block block = {memory, 0};

	COLUMN_PLACE(&block, turn->observation, turn->rows);
	COLUMN_PLACE(&block, turn->sort.key, turn->rows);
	COLUMN_PLACE(&block, turn->sort.room_key, turn->rows);
	COLUMN_PLACE(&block, turn->sort.value, turn->rows);
	COLUMN_PLACE(&block, turn->sort.room_value, turn->rows);
	COLUMN_PLACE(&block, turn->counts, turn->rows);
	COLUMN_PLACE(&block, turn->offset, turn->rows);
	return block.bytes;
}

static void
prepare_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct search *search = turn->search;
	uint32_t	begin = (uint32_t) number * PREPARE_ROWS;
	uint32_t	end = turn->rows - begin < PREPARE_ROWS ? turn->rows : begin + PREPARE_ROWS;

	for (uint32_t at = begin; at < end; at += CPU_VECTORS_BLOCK)
	{
		uint32_t	count = end - at < CPU_VECTORS_BLOCK ? end - at : CPU_VECTORS_BLOCK;
		double		degrees[2][CPU_VECTORS_BLOCK];
		double		x[CPU_VECTORS_BLOCK];
		double		y[CPU_VECTORS_BLOCK];
		double		z[CPU_VECTORS_BLOCK];

		if (!cpu_turn_read_points(search, turn->first + at, NULL, count, degrees, x, y, z))
		{
			atomic_store(&turn->out_of_range, true);
			return;
		}
		for (uint32_t i = 0; i < count; i++)
			turn->observation[at + i] = (struct cpu_observation) {
				{x[i], y[i], z[i]}, degrees[0][i], degrees[1][i]
			};
		if (turn->by_index)
			cpu_path->curve_codes(x, y, z, count, CPU_CURVE_KEY_LEVELS, turn->sort.key + at);
		for (uint32_t i = at; i < at + count; i++)
		{
			turn->sort.value[i] = i;
			if (turn->by_index && search->dataset->group != NULL && turn->built->arcs == NULL)
				turn->sort.key[i] = cpu_nearest_key(cpu_turn_part(search, turn->built->index, turn->first + i),
													 turn->sort.key[i]);
		}
	}
}

/*
 * Add a piece's new pairs.  Returns whether it should stop.
 */
static bool
is_over(void *context, uint64_t pairs)
{
	struct turn *turn = context;

	return atomic_fetch_add_explicit(&turn->pairs, pairs, memory_order_relaxed) + pairs >=
		turn->room + PAIRS_BEYOND || now_ms() >= turn->end_ms;
}

static void
answer(struct cpu_neighbours_piece *piece)
{
	(piece->arcs != NULL ? cpu_path->arcs_search : cpu_path->neighbours) (piece);
}

static void
search_piece(void *context, size_t number)
{
	struct turn *turn = context;
	struct cpu_neighbours_piece *piece = &turn->pieces[number];
	uint32_t	begin = (uint32_t) number * turn->piece_rows;

	*piece = (struct cpu_neighbours_piece) {
		.search = turn->search,
		.index = turn->by_index ? turn->built->index : NULL,
		.arcs = turn->built->arcs,
		.by_index = turn->by_index,
		.references = cpu_turn_by_columns(turn->search) ? NULL : &turn->built->references,
		.observation = turn->observation,
		.first = turn->first,
		.pairs_max = turn->room + 1,
		.is_over = is_over,
		.turn = turn,
		.count = turn->rows - begin < turn->piece_rows ? turn->rows - begin : turn->piece_rows,
		.key = turn->sort.key + begin,
		.row = turn->sort.value + begin,
		.counts = turn->counts
	};
	if (turn->in_batch)
	{
		piece->tag = turn->search->columns.tag + turn->search->pairs;
		piece->distance = turn->search->columns.distance + turn->search->pairs;
	}
	if (number == 0 || !is_over(turn, 0))
		answer(piece);
}

/* Write a pair of a row's observation into the batch. */
static inline void
write_pair(const struct turn *turn, uint32_t row, const struct candidate *pair, uint32_t at)
{
	const struct search *search = turn->search;
	struct cpu_place place;

	search->columns.tag[at] = search->dataset->tag[pair->place];
	search->columns.distance[at] = pair->distance;
	if (!search->question.places)
		return;
	place = cpu_arcs_place(turn->built->arcs, search->dataset, &turn->observation[row], pair->distance, pair->place);
	search->columns.end_latitude[at] = place.latitude;
	search->columns.end_longitude[at] = place.longitude;
	search->columns.fraction[at] = place.fraction;
}

static void
pack_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct cpu_neighbours_piece *piece = &turn->pieces[number];
	const struct search *search = turn->search;
	size_t		first = 0;		/* the number of the observation's first pair */

	for (uint32_t i = 0; i < piece->answered; first += turn->counts[piece->row[i++]])
	{
		uint32_t	row = piece->row[i];

		if (i + ROWS_AHEAD < piece->answered && piece->row[i + ROWS_AHEAD] < turn->packed)
		{
			uint32_t	offset = turn->offset[piece->row[i + ROWS_AHEAD]];

			__builtin_prefetch(&search->columns.tag[offset], 1);
			__builtin_prefetch(&search->columns.distance[offset], 1);
		}
		if (row >= turn->packed)
			continue;
		for (uint32_t j = 0; j < turn->counts[row]; j++)
		{
			const struct candidate *pair = &piece->pair[first + j];

			if (first + j + TAGS_AHEAD < piece->pairs)
				__builtin_prefetch(&search->dataset->tag[pair[TAGS_AHEAD].place]);
			write_pair(turn, row, pair, turn->offset[row] + j);
		}
	}
}

/*
 * Answer the turn's first observation alone, if the turn ended before it.
 */
static void
answer_first(struct turn *turn, size_t pieces)
{
	struct cpu_neighbours_piece *piece = &turn->pieces[pieces];

	*piece = turn->pieces[0];
	piece->row = &turn->first_row;
	piece->count = 1;
	piece->answered = 0;
	piece->pairs = piece->capacity = 0;
	piece->pair = NULL;
	answer(piece);
}

/*
 * Fill an empty batch with the first pairs of the turn's first observation,
 * which has more of them.
 */
static void
cut_off(struct turn *turn, size_t pieces)
{
	struct search *search = turn->search;

	for (size_t i = 0; i < pieces; i++)
	{
		const struct cpu_neighbours_piece *piece = &turn->pieces[i];
		size_t		first = 0;	/* the number of the observation's first pair */

		for (uint32_t at = 0; at < piece->answered; first += turn->counts[piece->row[at++]])
			if (piece->row[at] == 0)
			{
				const struct candidate *pair = &piece->pair[first];

				for (uint32_t j = 0; j < turn->room; j++)
					write_pair(turn, 0, &pair[j], j);
				search->columns.count[search->first] = turn->room;
				search->pairs = turn->room;
				search->one_each = false;
				search->cutoff = (struct cutoff) {true, pair[turn->room - 1].distance, pair[turn->room - 1].place};
				return;
			}
	}
}

/*
 * Move the pairs of the row that is packed next, which are in the batch, to where so many pairs of rows before it end.
 */
static void
move_pairs(const struct turn *turn, uint32_t pairs)
{
	const struct geonn_batch_columns *columns = &turn->search->columns;
	size_t		to = turn->search->pairs + pairs;
	size_t		from = turn->search->pairs + (size_t) turn->packed * turn->search->question.k;

	if (from == to)
		return;
	memmove(columns->tag + to, columns->tag + from, turn->counts[turn->packed] * sizeof(*columns->tag));
	memmove(columns->distance + to, columns->distance + from, turn->counts[turn->packed] * sizeof(*columns->distance));
}

/*
 * Pack the pairs into the batch.  Returns whether another turn may follow.
 */
static bool
pack(struct turn *turn, size_t pieces)
{
	struct search *search = turn->search;
	uint32_t	pairs = 0;
	bool		all_one = true;

	for (turn->packed = 0; turn->packed < turn->rows; turn->packed++)
	{
		uint32_t	count = turn->counts[turn->packed];

		if (count == UNANSWERED || count > turn->room - pairs)
			break;
		all_one = all_one && count == 1;
		turn->offset[turn->packed] = search->pairs + pairs;
		if (turn->in_batch)
			move_pairs(turn, pairs);
		pairs += count;
	}
	if (turn->packed == 0)
	{
		/* the first row has too many pairs */
		if (search->answered == 0)
			cut_off(turn, pieces);
		return false;
	}
	search->cutoff.present = false;
	if (!turn->in_batch)
		thread_pool_run(pack_piece, turn, pieces);
	cpu_turn_account(search, turn->packed, all_one && search->question.k == 1 ? NULL : turn->counts, pairs);
	return search->answered < search->rows - search->first &&
		(turn->packed == turn->rows || turn->counts[turn->packed] == UNANSWERED);
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
 * How many observations a turn should try: what earlier turns say, within what the room is expected to hold.
 */
static uint32_t
rows_to_try(const struct turn *turn, uint32_t pace)
{
	const struct search *search = turn->search;
	uint32_t	left = search->rows - search->first - search->answered;
	double		each = search->pairs_each > 0.0 ? search->pairs_each : search->question.k;
	uint32_t	rows = pace > 0 ? pace : each > 0.0 ? (uint32_t) (PAIRS_FIRST / each) + 1 : ROWS_FIRST;

	if (each > 0.0 && turn->room / each < rows)
		rows = turn->room / each < 1.0 ? 1 : (uint32_t) (turn->room / each);
	return rows < left ? rows : left;
}

/*
 * How many rows make the next turn take about TURN_MS.
 */
static uint32_t
adjusted_pace(const struct turn *turn, uint32_t pace, int64_t took_ms)
{
	uint64_t	rows = (uint64_t) turn->packed * TURN_MS / (uint64_t) (took_ms > 0 ? took_ms : 1);

	if (turn->packed < turn->rows || rows < turn->rows)
		return rows < 1 ? 1 : rows < ROWS_MAX ? (uint32_t) rows : ROWS_MAX;
	if (turn->rows < pace)
		return pace;
	rows = rows < 4 * (uint64_t) turn->rows ? rows : 4 * (uint64_t) turn->rows;
	return rows < ROWS_MAX ? (uint32_t) rows : ROWS_MAX;
}

/*
 * Search, and pack the pairs.  Returns whether another turn may follow.
 */
static bool
search_rows(struct turn *turn, size_t pieces)
{
	struct search *search = turn->search;
	bool		short_of_memory = false;

	thread_pool_run(prepare_piece, turn, (turn->rows + PREPARE_ROWS - 1) / PREPARE_ROWS);
	if (atomic_load(&turn->out_of_range))
	{
		cpu_turn_out_of_range(search);
		return false;
	}
	if (turn->by_index && !radix_sort(&turn->sort))
		return fail_memory(turn);
	turn->end_ms = now_ms() + CPU_TURN_LIMIT_MS;
	thread_pool_run(search_piece, turn, pieces);
	if (turn->counts[0] == UNANSWERED && !atomic_load(search->cancelled))
		answer_first(turn, pieces);
	for (size_t i = 0; i <= pieces; i++)
		short_of_memory = short_of_memory || turn->pieces[i].short_of_memory;
	if (short_of_memory)
		return fail_memory(turn);
	return !atomic_load(search->cancelled) && pack(turn, pieces + 1);
}

bool
cpu_turn_pairs(struct search *search, struct cpu_built *built, struct cpu_turn_room *room)
{
	struct turn turn = {
		.search = search,
		.built = built,
		.by_index = search->algorithm == GEONN_ALGORITHM_INDEX,
		.first = search->first + search->answered,
		.room = search->columns.room - search->pairs
	};
	uint32_t	pace = atomic_load(&built->paired);
	int64_t		began_ms = now_ms();
	size_t		pieces = (size_t) PIECES_PER_THREAD * thread_pool_threads();
	bool		goes_on = false;

	if (turn.room == 0)
		return false;
	turn.rows = rows_to_try(&turn, pace);
	turn.in_batch = search->question.k > 0 && !search->question.ties && !search->question.places &&
		turn.room / search->question.k >= turn.rows;
	turn.piece_rows = (uint32_t) ((turn.rows + pieces - 1) / pieces);
	if (turn.piece_rows > PIECE_ROWS_MAX)
		turn.piece_rows = PIECE_ROWS_MAX;
	pieces = (turn.rows + turn.piece_rows - 1) / turn.piece_rows;

	/* one more piece, for answer_first() */
	turn.pieces = calloc(pieces + 1, sizeof(*turn.pieces));
	if (turn.pieces == NULL)
		return fail_memory(&turn);
	search->failed = !cpu_turn_reserve(room, place_room(&turn, NULL), turn.rows, &search->failure);
	if (!search->failed)
	{
		place_room(&turn, room->memory);
		turn.sort.count = turn.rows;
		for (uint32_t row = 0; row < turn.rows; row++)
			turn.counts[row] = UNANSWERED;
		goes_on = search_rows(&turn, pieces);
		if (turn.packed > 0)
			atomic_store(&built->paired, adjusted_pace(&turn, pace, now_ms() - began_ms));
		for (size_t i = 0; i <= pieces; i++)
			free(turn.pieces[i].pair);
	}
	free(turn.pieces);
	return goes_on;
}
