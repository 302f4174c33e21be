/*
 * turn_counts.c
 *		A turn that counts the candidates of observations within radii, and adds up their weights.
 *
 * Each observation has the same number of pairs, so their places in the batch are known before they are: threads write
 * them there.  The observations of a turn are sorted by the part of the index that has their group, and then along
 * the curve, so that one after the other they meet nodes that are still in the cache.  A turn takes as many as earlier
 * turns say that its time suffices for.  If they take longer after all, each thread stops, and the observations before
 * the first one without an answer count as answered.  The turn's first observation is always answered, or left to the next
 * turn, which takes it up where it was, if it is a shape (arcs_probe.h).
 */
#include "engine/cpu/turn.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/counts/count.h"
#include "engine/cpu/walk/nearest.h"

/* How many observations a dataset's first turn has; the largest turn; and a piece. */
#define TURN_ROWS_FIRST 1024
#define TURN_ROWS_MAX 131072
#define TURN_PIECE_ROWS 512

struct turn
{
	struct search *search;
	const struct cpu_built *built;
	struct search_radii radii;
	uint32_t	first;			/* observation */
	uint32_t	rows;			/* observations to try */
	uint32_t	each;			/* how many pairs each has */
	int64_t		end_ms;
	atomic_bool out_of_range;
	atomic_bool short_of_memory;

	struct cpu_observation *observation;	/* [rows] */
	bool	   *answered;		/* [rows] */
	uint32_t   *counts;			/* [rows] room for cpu_arcs_count(); NULL: the dataset is of points */
	struct radix_sort sort;		/* keys, and rows */
};

/* Lay out the memory for a turn from `memory` on, and return its bytes.  With NULL as memory, only compute the bytes. */
static size_t
place_room(struct turn *turn, void *memory)
{
	struct column_block block = {memory, 0};

	COLUMN_PLACE(&block, turn->observation, turn->rows);
	radix_sort_place(&turn->sort, &block, turn->rows);
	COLUMN_PLACE(&block, turn->answered, turn->rows);
	if (turn->built->arcs != NULL)
		COLUMN_PLACE(&block, turn->counts, turn->rows);
	return block.bytes;
}

static void
prepare_piece(void *context, size_t number)
{
	struct turn *turn = context;
	uint32_t	begin = (uint32_t) number * CPU_VECTORS_BLOCK;
	uint32_t	count = turn->rows - begin < CPU_VECTORS_BLOCK ? turn->rows - begin : CPU_VECTORS_BLOCK;
	double		degrees[2][CPU_VECTORS_BLOCK];
	double		x[CPU_VECTORS_BLOCK];
	double		y[CPU_VECTORS_BLOCK];
	double		z[CPU_VECTORS_BLOCK];

	if (!cpu_turn_read_points(turn->search, turn->first + begin, NULL, count, degrees, x, y, z))
	{
		atomic_store(&turn->out_of_range, true);
		return;
	}
	cpu_path->curve_codes(x, y, z, count, CPU_CURVE_KEY_LEVELS, turn->sort.key + begin);
	for (uint32_t i = 0; i < count; i++)
	{
		turn->observation[begin + i] = (struct cpu_observation) {{x[i], y[i], z[i]}, degrees[0][i], degrees[1][i]};
		if (turn->built->arcs == NULL)
			turn->sort.key[begin + i] = cpu_nearest_key(cpu_turn_part(turn->search, turn->built->index,
																	  turn->first + begin + i),
														turn->sort.key[begin + i]);
		turn->sort.value[begin + i] = begin + i;
		turn->answered[begin + i] = false;
	}
}

/* Answer some rows until the turn is over; answer at least the first of them. */
static void
count_rows(struct turn *turn, uint32_t *row, uint32_t count)
{
	struct search *search = turn->search;
	struct cpu_count_piece piece = {
		.search = search,
		.index = turn->built->index,
		.arcs = turn->built->arcs,
		.probes = cpu_turn_probes(search),
		.sums = turn->built->sums,
		.extremes = search->question.extremes ? turn->built->extremes : NULL,
		.weights = (uint32_t) __builtin_popcount(search->dataset->columns & GEONN_COLUMNS_WEIGHTS),
		.radii = &turn->radii,
		.observation = turn->observation,
		.first = turn->first,
		.end_ms = turn->end_ms,
		.count = count,
		.row = row,
		.counts = turn->counts,
		.tag = search->columns.tag + search->pairs,
		.distance = search->columns.distance + search->pairs,
		.answered = turn->answered
	};

	(piece.arcs != NULL ? cpu_arcs_count : cpu_path->count) (&piece);
	if (piece.short_of_memory)
		atomic_store(&turn->short_of_memory, true);
}

static void
count_piece(void *context, size_t number)
{
	struct turn *turn = context;
	uint32_t	begin = (uint32_t) number * TURN_PIECE_ROWS;

	if (turn->rows == 1 || now_ms() < turn->end_ms)
		count_rows(turn, turn->sort.value + begin,
				   turn->rows - begin < TURN_PIECE_ROWS ? turn->rows - begin : TURN_PIECE_ROWS);
}

/* Answer the turn's observations.  Returns how many are answered, counted from the first one without a gap. */
static uint32_t
answer(struct turn *turn)
{
	uint32_t	first_row = 0;
	uint32_t	answered = 0;

	turn->end_ms = cpu_turn_end(turn->search, turn->rows);
	thread_pool_run(count_piece, turn, (turn->rows + TURN_PIECE_ROWS - 1) / TURN_PIECE_ROWS);
	if (!turn->answered[0] && !cpu_turn_has_left(turn->search, turn->first))
	{
		turn->end_ms = cpu_turn_end(turn->search, 1);
		count_rows(turn, &first_row, 1);
	}
	while (answered < turn->rows && turn->answered[answered])
		answered++;
	return answered;
}

/*
 * Return how many observations make the next turn take about CPU_TURN_MS, if `answered` observations of this
 * turn took took_ms.
 */
static uint32_t
adjusted_pace(const struct turn *turn, uint32_t answered, int64_t took_ms)
{
	uint64_t	rows = (uint64_t) answered * CPU_TURN_MS / (uint64_t) (took_ms > 0 ? took_ms : 1);

	if (rows > 4 * (uint64_t) turn->rows)
		rows = 4 * (uint64_t) turn->rows;
	return rows < 1 ? 1 : rows < TURN_ROWS_MAX ? (uint32_t) rows : TURN_ROWS_MAX;
}

static bool
fail_memory(struct search *search)
{
	search->failed = true;
	return fail(&search->failure, GEONN_ERROR_MEMORY, "not enough memory for a search");
}

/*
 * Sort and answer the observations.  Returns whether another turn may follow.
 */
static bool
search_rows(struct turn *turn, uint32_t *answered)
{
	struct search *search = turn->search;

	turn->sort.count = turn->rows;
	thread_pool_run(prepare_piece, turn, (turn->rows + CPU_VECTORS_BLOCK - 1) / CPU_VECTORS_BLOCK);
	if (atomic_load(&turn->out_of_range))
	{
		cpu_turn_out_of_range(search);
		return false;
	}
	if (!radix_sort(&turn->sort))
		return fail_memory(search);
	*answered = answer(turn);
	if (atomic_load(&turn->short_of_memory))
		return fail_memory(search);
	if (atomic_load(search->cancelled))
		return false;
	if (*answered == 0)
		return cpu_turn_has_left(search, turn->first);
	if (turn->each > 1)
		for (uint32_t row = 0; row < *answered; row++)
			search->columns.count[turn->first + row] = turn->each;
	search_account(search, *answered, *answered * turn->each, turn->each == 1);
	return search->answered < search->rows - search->first;
}

bool
cpu_turn_counts(struct search *search, struct cpu_built *built, struct cpu_turn_room *room)
{
	struct turn turn = {
		.search = search,
		.built = built,
		.first = search->first + search->answered,
		.each = search_counts_each(search)
	};
	uint32_t	left = search->rows - turn.first;
	uint32_t	fit = (search->columns.room - search->pairs) / turn.each;
	uint32_t	pace = atomic_load(&built->counted);
	uint32_t	answered = 0;
	int64_t		began_ms = now_ms();
	bool		goes_on;

	if (fit == 0 && search->answered == 0)
	{
		search->failed = true;
		return fail(&search->failure, GEONN_ERROR_LIMIT, "a batch has room for %u pairs, and an observation has %u",
					search->columns.room, turn.each);
	}
	if (fit == 0)
		return false;
	turn.rows = pace > 0 ? pace : TURN_ROWS_FIRST;
	turn.rows = turn.rows < left ? turn.rows : left;
	turn.rows = cpu_turn_rows(search, turn.first, turn.rows < fit ? turn.rows : fit);
	search->failed = !cpu_turn_reserve(room, place_room(&turn, NULL), turn.rows, &search->failure);
	if (search->failed)
		return false;
	place_room(&turn, room->memory);
	search_radii_set(&turn.radii, search->dataset->metric, search->question.radius, search->question.radii, INFINITY);
	goes_on = search_rows(&turn, &answered);
	if (answered > 0 && (answered < turn.rows || turn.rows >= pace))
		atomic_store(&built->counted, adjusted_pace(&turn, answered, now_ms() - began_ms));
	return goes_on;
}
