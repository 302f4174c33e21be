/*
 * turn_cells.c
 *		A turn that finds the nearest reference of each observation by a table of
 *		squares.
 *
 * Observations are taken in the order of rows, and nothing is sorted.  Those in
 * crowded squares are marked as unanswered: the search's next turn, by the index, takes these (turn_pairs.c).  It also
 * packs the pairs where max_distance has left observations without one.
 */
#include "engine/cpu/turn.h"

#include "common/metric.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/base/vectors.h"

/* the greatest number of observations of a turn, and of a piece */
#define ROWS_MAX (UINT32_C(1) << 18)
#define PIECE_ROWS (UINT32_C(8) * CPU_VECTORS_BLOCK)

struct turn
{
	const struct search *search;
	const struct cpu_built *built;
	const struct cpu_cells *cells;
	uint32_t	first;			/* the turn's first observation */
	uint32_t	rows;
	int64_t    *tag;			/* [rows] the batch's columns */
	double	   *distance;
	atomic_bool out_of_range;
	atomic_uint_fast32_t left;	/* how many observations the turn leaves to the index */
};

static void
cells_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct search *search = turn->search;
	uint32_t	begin = (uint32_t) number * PIECE_ROWS;
	uint32_t	end = turn->rows - begin < PIECE_ROWS ? turn->rows : begin + PIECE_ROWS;
	uint32_t	all_left = 0;
	double		x[CPU_VECTORS_BLOCK];
	double		y[CPU_VECTORS_BLOCK];
	double		z[CPU_VECTORS_BLOCK];
	uint32_t	left[CPU_VECTORS_BLOCK];

	for (uint32_t at = begin; at < end; at += CPU_VECTORS_BLOCK)
	{
		uint32_t	count = end - at < CPU_VECTORS_BLOCK ? end - at : CPU_VECTORS_BLOCK;
		struct cpu_cells_search block = {
			turn->cells, turn->built->index, search->dataset->metric, search->question.max_distance,
			count, x, y, z, turn->tag + at, turn->distance + at, left
		};
		uint32_t	block_left;

		if (!cpu_turn_read_vectors(search, turn->first + at, NULL, count, x, y, z))
		{
			atomic_store(&turn->out_of_range, true);
			return;
		}
		block_left = cpu_path->cells_nearest(&block);
		for (uint32_t i = 0; i < block_left; i++)
			turn->distance[at + left[i]] = CPU_TURN_UNANSWERED;
		all_left += block_left;
	}
	if (all_left > 0)
		atomic_fetch_add(&turn->left, all_left);
}

bool
cpu_turn_cells(struct search *search, struct cpu_built *built, const struct cpu_cells *cells)
{
	uint32_t	rows = search->rows - search->first - search->answered;
	uint32_t	room = search->columns.room - search->pairs;
	struct turn turn = {
		.search = search,
		.built = built,
		.cells = cells,
		.first = search->first + search->answered,
		.tag = search->columns.tag + search->pairs,
		.distance = search->columns.distance + search->pairs
	};

	/* Take at least one row: the protocol has no empty search, and one pair fits into every batch. */
	rows = rows < room ? rows : room;
	turn.rows = rows < ROWS_MAX ? rows : ROWS_MAX;
	thread_pool_run(cells_piece, &turn, (turn.rows + PIECE_ROWS - 1) / PIECE_ROWS);
	if (atomic_load(&turn.out_of_range))
	{
		cpu_turn_out_of_range(search);
		return false;
	}
	if (atomic_load(search->cancelled))
		return false;
	atomic_fetch_add(&built->cells_rows, turn.rows);
	atomic_fetch_add(&built->cells_left, atomic_load(&turn.left));
	if (atomic_load(&turn.left) > 0 || search->question.max_distance < INFINITY)
	{
		search->device_state = turn.rows;
		return true;
	}
	cpu_turn_account(search, turn.rows, NULL, turn.rows);
	return search->answered < search->rows - search->first &&
		search->pairs < search->columns.room;
}
