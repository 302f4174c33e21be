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
 * answered, so every turn makes progress; but if it is a shape, its search may be left to the next turn, which takes it up
 * where it was (arcs_probe.h).
 *
 * Where a search asks for one pair of each observation, nothing is lost.  A turn whose time is over marks the
 * observations without an answer in the batch, in the column of distances; how many observations it took is the
 * search's device_state.  The next turn takes just the marked ones, and packs the pairs when all have been answered.  A
 * turn by a table of squares leaves observations to these turns in the same way (turn_cells.c).
 */
#include "engine/cpu/turn.h"
#include "engine/cpu/turn_tasks.h"

#include <stdlib.h>
#include <string.h>

#include "common/assertion.h"
#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/base/host.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/arcs/arcs_probe.h"
#include "engine/base/memory_columns.h"
#include "engine/cpu/walk/nearest.h"
#include "engine/cpu/walk/neighbours.h"
#include "engine/cpu/base/vectors.h"

/* a turn takes at most ROWS_MAX observations; a dataset's first turn those with PAIRS_FIRST pairs, or
 * ROWS_FIRST */
#define ROWS_MAX 1048576
#define PAIRS_FIRST 262144.0
#define ROWS_FIRST 2048

/* greatest numbers of observations of a piece, and pieces for each thread */
#define PREPARE_ROWS 4096
#define PIECE_ROWS_MAX 1024
#define PIECES_PER_THREAD 4

/* no piece has fewer rows than this share of a turn's: such a piece would end before another thread is awake */
#define PIECE_SHARE_MIN 512

/* a bundle of observations that ask for their nearest reference should spread over at most this many positions */
#define BUNDLE_POSITIONS 1024

/* tags are fetched into the cache this many pairs ahead */
#define TAGS_AHEAD 16

/* and where the pairs of an observation go, this many observations ahead */
#define ROWS_AHEAD 4

/* a turn stops with this many pairs beyond the batch's room */
#define PAIRS_BEYOND (UINT64_C(1) << 16)

/* how long a turn should take: with more observations, closer ones, each takes less time */
#define TURN_MS (3 * CPU_TURN_MS)

/* a task finds at most so many pairs: more are too many for a bundle (cpu/walk/neighbours.c) */
#define TASK_PAIRS_MAX 128

/* a turn of a shape that has it for itself looks at the clock after this many pairs were written */
#define WRITTEN_UNTIL_LOOK 4096

#define UNANSWERED UINT32_MAX

struct turn
{
	struct search *search;
	const struct cpu_built *built;
	bool		by_index;
	uint32_t	first;			/* observation */
	atomic_uint *learnt;		/* how many observations a turn should take, as earlier ones of such questions found */
	uint32_t	pace;			/* the number that this turn goes by */
	uint32_t	rows;			/* observations to try */
	bool		resumed;		/* turns before have answered some of them */
	uint32_t	asked;			/* how many are searched for */
	uint32_t   *left;			/* [asked] their rows, if resumed; until the sort */
	uint32_t	bundle;			/* how many observations nearest.c answers together; 0: it is not asked */
	uint32_t	piece_rows;		/* rows of each piece but the last */
	uint32_t	room;			/* pairs that the batch has room for */
	int64_t		end_ms;
	atomic_bool out_of_range;
	atomic_uint_fast64_t pairs; /* found by all threads, unless in_batch */

	size_t		pieces_count;	/* without one more for answer_first() */
	struct cpu_neighbours_piece *pieces;
	struct cpu_observation *observation;	/* [rows] */
	uint32_t   *counts;			/* [rows] pairs of each */
	uint32_t   *offset;			/* [rows] where they go in the batch */
	uint32_t	packed;			/* rows that count as answered */
	uint32_t	first_row;		/* the first of those that are searched for */
	struct radix_sort sort;		/* keys, and rows, or tasks */
	bool		by_tasks;		/* the index has slabs, and pairs go to the batch at once */
	struct cpu_turn_tasks tasks;
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
	size_t		sorted = (size_t) turn->rows * (turn->by_tasks ? CPU_TASKS_MAX : 1);

	COLUMN_PLACE(&block, turn->observation, turn->rows);
	radix_sort_place(&turn->sort, &block, sorted);
	turn->left = turn->sort.room_value;
	COLUMN_PLACE(&block, turn->counts, turn->rows);
	COLUMN_PLACE(&block, turn->offset, turn->rows);
	if (turn->by_tasks)
	{
		COLUMN_PLACE(&block, turn->tasks.made, turn->rows);
		COLUMN_PLACE(&block, turn->tasks.row, sorted);
		COLUMN_PLACE(&block, turn->tasks.best, sorted * turn->search->question.k);
	}
	return block.bytes;
}

/*
 * Make keys of the rows from number `at` on of those that are searched for, or of their tasks.
 */
static void
make_keys(struct turn *turn, uint32_t at, const uint32_t *row, uint32_t count, const double *x, const double *y,
		  const double *z)
{
	const struct search *search = turn->search;
	bool		has_parts = search->dataset->group != NULL && turn->built->arcs == NULL;
	uint64_t   *key = turn->sort.key + at;
	uint64_t	code[CPU_VECTORS_BLOCK];

	cpu_path->curve_codes(x, y, z, count, CPU_CURVE_KEY_LEVELS, turn->by_tasks ? code : key);
	if (turn->by_tasks)
		cpu_turn_make_tasks(&turn->tasks, row, code, count);
	else if (has_parts)
		for (uint32_t i = 0; i < count; i++)
			key[i] = cpu_nearest_key(cpu_turn_part(search, turn->built->index, turn->first + row[i]), key[i]);
}

static void
prepare_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct search *search = turn->search;
	uint32_t	begin = (uint32_t) number * PREPARE_ROWS;
	uint32_t	end = turn->asked - begin < PREPARE_ROWS ? turn->asked : begin + PREPARE_ROWS;

	for (uint32_t at = begin; at < end; at += CPU_VECTORS_BLOCK)
	{
		uint32_t	count = end - at < CPU_VECTORS_BLOCK ? end - at : CPU_VECTORS_BLOCK;
		uint32_t	row[CPU_VECTORS_BLOCK];
		double		degrees[2][CPU_VECTORS_BLOCK];
		double		x[CPU_VECTORS_BLOCK];
		double		y[CPU_VECTORS_BLOCK];
		double		z[CPU_VECTORS_BLOCK];

		for (uint32_t i = 0; i < count; i++)
			row[i] = turn->resumed ? turn->left[at + i] : at + i;
		if (!cpu_turn_read_points(search, turn->first, row, count, degrees, x, y, z))
		{
			atomic_store(&turn->out_of_range, true);
			return;
		}
		for (uint32_t i = 0; i < count; i++)
			turn->observation[row[i]] = (struct cpu_observation) {
				{x[i], y[i], z[i]}, degrees[0][i], degrees[1][i]
			};
		if (!turn->by_tasks)
			memcpy(turn->sort.value + at, row, count * sizeof(*row));
		if (turn->by_index)
			make_keys(turn, at, row, count, x, y, z);
	}
}

/*
 * Add a piece's new pairs.  Returns whether it should stop.
 */
static bool
is_over(void *context, uint64_t pairs)
{
	struct turn *turn = context;

	/* what goes to the batch at once has room there; search_rows() sees that a search is cancelled */
	if (!turn->in_batch && pairs > 0)
		atomic_fetch_add_explicit(&turn->pairs, pairs, memory_order_relaxed);
	if (!turn->in_batch && atomic_load_explicit(&turn->pairs, memory_order_relaxed) >= turn->room + PAIRS_BEYOND)
		return true;
	return atomic_load_explicit(turn->search->cancelled, memory_order_relaxed) || now_ms() >= turn->end_ms;
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
		.probes = cpu_turn_probes(turn->search),
		.by_index = turn->by_index,
		.references = cpu_turn_by_columns(turn->search) ? NULL : &turn->built->references,
		.observation = turn->observation,
		.first = turn->first,
		.may_leave = turn->first_row,
		.pairs_max = turn->room + 1,
		.is_over = is_over,
		.turn = turn,
		.bundle = turn->bundle,
		.count = turn->sort.count - begin < turn->piece_rows ? (uint32_t) turn->sort.count - begin : turn->piece_rows,
		.key = turn->sort.key + begin,
		.row = turn->sort.value + begin,
		.counts = turn->counts
	};
	if (turn->in_batch)
	{
		piece->tag = turn->search->columns.tag + turn->search->pairs;
		piece->distance = turn->search->columns.distance + turn->search->pairs;
	}
	if (turn->by_tasks)
	{
		piece->task_row = turn->tasks.row;
		piece->best = turn->tasks.best;
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
	if (search->shapes != NULL)
	{
		place = cpu_arcs_place_of_shape(turn->built->arcs, search->dataset, cpu_turn_probes(search), turn->first + row, pair);
		search->columns.latitude[at] = place.own_latitude;
		search->columns.longitude[at] = place.own_longitude;
	}
	else
		place = cpu_arcs_place(turn->built->arcs, search->dataset, &turn->observation[row], pair->distance, pair->place);
	search->columns.end_latitude[at] = place.latitude;
	search->columns.end_longitude[at] = place.longitude;
	search->columns.fraction[at] = place.fraction;
	if (search->dataset->segment != NULL)
	{
		search->columns.segment[at] = place.segment;
		search->columns.part_end[at] = place.side;
	}
	if (search->dataset->measure != NULL)
		search->columns.measure[at] = place.measure;
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
answer_first(struct turn *turn)
{
	struct cpu_neighbours_piece *piece = &turn->pieces[turn->pieces_count];

	*piece = turn->pieces[0];
	piece->row = &turn->first_row;
	piece->bundle = 0;
	piece->task_row = NULL;
	piece->best = NULL;
	piece->count = 1;
	piece->answered = 0;
	piece->pairs = piece->capacity = 0;
	piece->pair = NULL;
	turn->end_ms = cpu_turn_end(turn->search, 1);
	answer(piece);
}

/* Note that an empty batch has got so many pairs of the first observation, up to this one, and that the observation has more. */
static void
note_cutoff(struct search *search, uint32_t pairs, const struct candidate *last)
{
	search->columns.count[search->first] = pairs;
	search->pairs = pairs;
	search->one_each = false;
	search->cutoff = (struct cutoff) {true, last->distance, last->place};
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
				note_cutoff(search, turn->room, &pair[turn->room - 1]);
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
 * Write the pairs of a shape that is the only row of its turn, or go on with that: it may have millions, and their places take
 * long.  If they are more than the room, which is then all of an empty batch, write the first ones.  Returns whether another
 * turn may follow.
 */
static bool
write_alone(struct turn *turn)
{
	struct search *search = turn->search;
	struct cpu_probes_left *left = &cpu_turn_probes(search)->left;
	uint32_t	count = left->pairs < turn->room ? left->pairs : turn->room;

	geonn_assert(left->shape == turn->first);
	while (left->written < count)
	{
		write_pair(turn, 0, &left->pair[left->written], search->pairs + left->written);
		if (++left->written % WRITTEN_UNTIL_LOOK == 0 && is_over(turn, 0))
			return true;
	}
	search->cutoff.present = false;
	if (left->pairs > count)
		note_cutoff(search, count, &left->pair[count - 1]);
	else
		cpu_turn_account(search, 1, count == 1 && search->question.k == 1 ? NULL : &count, count);
	free(left->pair);
	left->pair = NULL;
	turn->packed = 1;
	return !search->cutoff.present && search->answered < search->rows - search->first && search->pairs < search->columns.room;
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

	if (turn->rows == 1 && search->shapes != NULL && !turn->in_batch && turn->counts[0] != UNANSWERED &&
		(turn->counts[0] <= turn->room || search->answered == 0))
	{
		struct cpu_probes_left *left = &cpu_turn_probes(search)->left;

		/* the piece that has the answer keeps no other pairs */
		for (size_t i = 0; i < pieces; i++)
			if (turn->pieces[i].answered > 0)
			{
				left->pair = turn->pieces[i].pair;
				turn->pieces[i].pair = NULL;
			}
		left->shape = turn->first;
		left->pairs = turn->counts[0];
		left->written = 0;
		return write_alone(turn);
	}
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
	return search->answered < search->rows - search->first && search->pairs < search->columns.room &&
		(turn->packed == turn->rows || turn->counts[turn->packed] == UNANSWERED);
}

static bool
fail_memory(struct turn *turn)
{
	turn->search->failed = true;
	fail(&turn->search->failure, GEONN_ERROR_MEMORY,
		 "not enough memory on the host for the pairs of %u observations: %llu bytes free", turn->rows,
		 (unsigned long long) host_memory_free());
	return false;
}

/*
 * Whether a search of k neighbours goes by tasks: not where most tasks would walk alone, one part after another without
 * the limit of the parts before.
 */
static bool
takes_tasks(const struct search *search, const struct cpu_built *built)
{
	if (search->algorithm != GEONN_ALGORITHM_INDEX || built->arcs != NULL || built->index->slabs == NULL ||
		built->index->limited || search->cutoff.present || search->dataset->count >= CPU_NEAREST_PARTS_MAX)
		return false;
	return search->question.k == 1 || (search->question.k <= TASK_PAIRS_MAX && built->index->party[0] == NULL);
}

/*
 * Set how many observations the turn tries: what earlier turns say, within what the room is expected to hold.
 */
static void
choose_rows(struct turn *turn)
{
	const struct search *search = turn->search;
	uint32_t	left = search->rows - search->first - search->answered;
	double		each = search->pairs_each > 0.0 ? search->pairs_each : search->question.k;
	double		first = each > 0.0 ? PAIRS_FIRST / each + 1.0 : ROWS_FIRST;
	uint32_t	rows;

	turn->pace = atomic_load(turn->learnt);
	if (turn->pace == 0)
		turn->pace = first < ROWS_MAX ? (uint32_t) first : ROWS_MAX;
	rows = turn->pace;
	if (each > 0.0 && turn->room / each < rows)
		rows = turn->room / each < 1.0 ? 1 : (uint32_t) (turn->room / each);
	/* what goes to the batch at once needs room for a pair of each row, however few had one before */
	if (search->question.k == 1 && !search->question.ties && !search->question.places && rows > turn->room)
		rows = turn->room;
	/* its tasks have room for k pairs each */
	if (search->question.k > 0 && takes_tasks(search, turn->built) && rows > ROWS_MAX / search->question.k)
		rows = ROWS_MAX / search->question.k;
	turn->rows = cpu_turn_rows(search, turn->first, rows < left ? rows : left);
	if (!turn->resumed)
		return;
	geonn_assert(search->question.k == 1 && search->device_state <= left);
	geonn_assert(search->device_state <= turn->room);
	turn->rows = (uint32_t) search->device_state;
}

/*
 * How many rows make the next turn take about TURN_MS.
 */
static uint32_t
adjusted_pace(const struct turn *turn, int64_t took_ms)
{
	uint64_t	rows = (uint64_t) turn->packed * TURN_MS / (uint64_t) (took_ms > 0 ? took_ms : 1);

	if (turn->packed < turn->rows || rows < turn->rows)
		return rows < 1 ? 1 : rows < ROWS_MAX ? (uint32_t) rows : ROWS_MAX;
	if (turn->rows < turn->pace)
		return turn->pace;
	rows = rows < 4 * (uint64_t) turn->rows ? rows : 4 * (uint64_t) turn->rows;
	return rows < ROWS_MAX ? (uint32_t) rows : ROWS_MAX;
}

/*
 * List the rows that turns before have left.
 */
static void
list_left(struct turn *turn)
{
	const volatile double *distance = turn->search->columns.distance + turn->search->pairs;

	turn->asked = 0;
	for (uint32_t row = 0; row < turn->rows; row++)
	{
		double		found = distance[row];

		turn->counts[row] = found < 0.0 ? UNANSWERED : found < INFINITY;
		if (found < 0.0)
			turn->left[turn->asked++] = row;
	}
	turn->first_row = turn->asked > 0 ? turn->left[0] : 0;
	/* the turn before has left a search for one shape, which this one goes on with alone */
	if (cpu_turn_has_left(turn->search, turn->first + turn->first_row))
		turn->asked = 1;
}

/*
 * Leave the rows that have no answer to the next turn.  False if all have one.
 */
static bool
leave_rows(struct turn *turn)
{
	struct search *search = turn->search;
	double	   *distance = search->columns.distance + search->pairs;
	uint32_t	answered = 0;

	for (uint32_t row = 0; row < turn->rows; row++)
		answered += turn->counts[row] != UNANSWERED;
	if (answered == turn->rows)
		return false;
	for (uint32_t row = 0; row < turn->rows; row++)
		if (turn->counts[row] != 1)
			distance[row] = turn->counts[row] == 0 ? INFINITY : CPU_TURN_UNANSWERED;
	search->device_state = turn->rows;
	turn->packed = answered;
	return true;
}

/*
 * Answer the rows of a piece from their tasks.
 */
static void
end_tasks_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct search *search = turn->search;
	uint32_t	begin = (uint32_t) number * PREPARE_ROWS;
	uint32_t	end = turn->rows - begin < PREPARE_ROWS ? turn->rows : begin + PREPARE_ROWS;
	struct candidate best[GEONN_K_MAX];
	uint32_t	count;

	for (uint32_t row = begin; row < end; row++)
		if (turn->counts[row] == UNANSWERED && cpu_turn_end_tasks(&turn->tasks, row, best, &count))
		{
			for (uint32_t i = 0; i < count; i++)
				write_pair(turn, row, &best[i], search->pairs + row * search->question.k + i);
			turn->counts[row] = count;
		}
}

/*
 * How many observations, or tasks, nearest.c answers together.  0: the search asks another question.
 */
static uint32_t
nearest_bundle(const struct turn *turn)
{
	uint64_t	bundle;

	if (!turn->in_batch || !cpu_turn_is_nearest(turn->search, turn->built))
		return 0;
	bundle = (uint64_t) BUNDLE_POSITIONS * turn->sort.count / turn->built->index->shape.positions;
	return bundle < 1 ? 1 : bundle > INDEX_WIDTH ? INDEX_WIDTH : (uint32_t) bundle;
}

/*
 * Cut the rows, or tasks, into pieces, and answer these.  False if memory is short.
 */
static bool
run_pieces(struct turn *turn)
{
	size_t		count = turn->sort.count > 0 ? turn->sort.count : 1;
	size_t		pieces = (size_t) PIECES_PER_THREAD * thread_pool_threads();
	bool		short_of_memory = false;

	turn->bundle = nearest_bundle(turn);
	turn->piece_rows = (uint32_t) ((count + pieces - 1) / pieces);
	/* rows by any other way, and those that a turn has left, may take long each */
	if (turn->bundle > 0 && !turn->resumed && turn->piece_rows < turn->pace / PIECE_SHARE_MIN)
		turn->piece_rows = turn->pace / PIECE_SHARE_MIN;
	if (turn->piece_rows > PIECE_ROWS_MAX)
		turn->piece_rows = PIECE_ROWS_MAX;
	turn->pieces_count = (count + turn->piece_rows - 1) / turn->piece_rows;
	turn->pieces = calloc(turn->pieces_count + 1, sizeof(*turn->pieces));
	if (turn->pieces == NULL)
		return false;
	turn->end_ms = cpu_turn_end(turn->search, turn->asked);
	thread_pool_run(search_piece, turn, turn->pieces_count);
	if (turn->by_tasks)
		thread_pool_run(end_tasks_piece, turn, (turn->rows + PREPARE_ROWS - 1) / PREPARE_ROWS);
	if (turn->counts[turn->first_row] == UNANSWERED &&
		!cpu_turn_has_left(turn->search, turn->first + turn->first_row) && !atomic_load(turn->search->cancelled))
		answer_first(turn);
	for (size_t i = 0; i <= turn->pieces_count; i++)
		short_of_memory = short_of_memory || turn->pieces[i].short_of_memory;
	return !short_of_memory;
}

/*
 * Search, and pack the pairs.  Returns whether another turn may follow.
 */
static bool
search_rows(struct turn *turn)
{
	struct search *search = turn->search;

	thread_pool_run(prepare_piece, turn, (turn->asked + PREPARE_ROWS - 1) / PREPARE_ROWS);
	if (atomic_load(&turn->out_of_range))
	{
		cpu_turn_out_of_range(search);
		return false;
	}
	turn->sort.count = turn->by_tasks ? atomic_load(&turn->tasks.claimed) : turn->asked;
	if (turn->by_index && turn->sort.count > 0 && !radix_sort(&turn->sort))
		return fail_memory(turn);
	if (!run_pieces(turn))
		return fail_memory(turn);
	if (atomic_load(search->cancelled))
		return false;
	return (turn->in_batch && search->question.k == 1 && leave_rows(turn)) ||
		cpu_turn_has_left(search, turn->first + turn->first_row) || pack(turn, turn->pieces_count + 1);
}

/*
 * Set which observations the turn takes, and where it keeps what it finds.
 */
static void
begin_rows(struct turn *turn)
{
	turn->tasks.search = turn->search;
	turn->tasks.index = turn->built->index;
	turn->tasks.first = turn->first;
	turn->tasks.key = turn->sort.key;
	turn->tasks.number = turn->sort.value;
	turn->tasks.first_task = turn->offset;
	turn->asked = turn->rows;
	if (turn->resumed)
		list_left(turn);
	else
		for (uint32_t row = 0; row < turn->rows; row++)
			turn->counts[row] = UNANSWERED;
}

bool
cpu_turn_pairs(struct search *search, struct cpu_built *built, struct cpu_turn_room *room)
{
	struct turn turn = {
		.search = search,
		.built = built,
		.by_index = search->algorithm == GEONN_ALGORITHM_INDEX,
		.first = search->first + search->answered,
		.room = search->columns.room - search->pairs,
		.learnt = cpu_turn_is_nearest(search, built) ? &built->nearest_rows : &built->paired_rows,
		.resumed = search->device_state > 0
	};
	int64_t		began_ms = now_ms();
	bool		goes_on = false;

	if (turn.room == 0)
		return false;
	if (search->shapes != NULL && cpu_turn_probes(search)->left.pair != NULL)
	{
		turn.end_ms = cpu_turn_end(search, 1);
		return write_alone(&turn);
	}
	choose_rows(&turn);
	search->device_state = 0;
	turn.in_batch = search->question.k > 0 && !search->question.ties && !search->question.places &&
		turn.room / search->question.k >= turn.rows;
	turn.by_tasks = turn.in_batch && takes_tasks(search, built);
	search->failed = !cpu_turn_reserve(room, place_room(&turn, NULL), turn.rows, &search->failure);
	if (search->failed)
		return false;
	place_room(&turn, room->memory);
	begin_rows(&turn);
	goes_on = search_rows(&turn);
	if (turn.packed > 0 && !turn.resumed)
		atomic_store(turn.learnt, adjusted_pace(&turn, now_ms() - began_ms));
	for (size_t i = 0; turn.pieces != NULL && i <= turn.pieces_count; i++)
		free(turn.pieces[i].pair);
	free(turn.pieces);
	return goes_on;
}
