/*
 * cpu_turn_nearest.c
 *		A turn that finds the nearest reference of each observation.
 *
 * By index, the observations of a turn are sorted along the curve, so that
 * neighbours go through the index together, whatever order they came in; the
 * more a turn takes, the closer they are.  The answers go to the observations'
 * rows.  By brute force they are taken as they come.
 *
 * Without max_distance every observation has a pair, and its place among the
 * batch's pairs is known: it is written there.  With one, answers are written
 * beside the batch, and what is there is packed in the order of rows.
 */
#include "cpu_turn.h"

#include <string.h>

#include "clock.h"
#include "cpu_curve.h"
#include "cpu_memory.h"
#include "cpu_nearest.h"
#include "cpu_sort.h"
#include "cpu_vectors.h"
#include "thread_pool.h"

/* observations that a turn by index takes */
#define ROWS_MIN (UINT32_C(1) << 8)
#define ROWS_FIRST (UINT32_C(1) << 13)
#define ROWS_MAX (UINT32_C(1) << 20)

/* so few that they may not be close enough to go through the index together */
#define ROWS_SPARSE (UINT32_C(1) << 18)

/* observations of a piece */
#define PREPARE_ROWS 4096
#define SEARCH_ROWS 2048

/* positions that a group of observations should be spread over, at most */
#define GROUP_POSITIONS 1024

/* pairs that one thread goes through in a turn by brute force; a core does 2 to 5 G/s */
#define BRUTE_PAIRS_PER_THREAD ((size_t) 1 << 27)

struct turn
{
	struct search *search;
	const struct cpu_built *built;
	uint32_t	first;			/* observation */
	uint32_t	rows;			/* observations */
	uint32_t	piece_rows;		/* of a piece by brute force */
	uint32_t	group;			/* observations that walk together */
	atomic_bool out_of_range;
	atomic_uint_fast64_t unmatched;

	/* by row */
	struct geonn_vector *from;
	int64_t    *tag;
	double	   *distance;

	struct cpu_sort sort;		/* keys, and rows */
};

/*
 * Coordinates of observations, up to CPU_VECTORS_BLOCK, as vectors.  They are
 * read once, as the batch is shared with another process.  False where some are
 * no points.
 */
static bool
read_vectors(const struct turn *turn, uint32_t row, size_t rows, double *x, double *y,
			 double *z)
{
	const struct search *search = turn->search;
	double		latitude[CPU_VECTORS_BLOCK];
	double		longitude[CPU_VECTORS_BLOCK];

	memcpy(latitude, search->columns.latitude + turn->first + row, rows * sizeof(double));
	memcpy(longitude, search->columns.longitude + turn->first + row, rows * sizeof(double));
	atomic_signal_fence(memory_order_seq_cst);	/* no second look at the batch */
	if (!cpu_path->valid(latitude, longitude, rows))
		return false;
	cpu_path->vectors(GEONN_METRIC_SPHERE, latitude, longitude, rows, x, y, z);
	return true;
}

static void
prepare_piece(void *context, size_t number)
{
	struct turn *turn = context;
	uint32_t	begin = (uint32_t) number * PREPARE_ROWS;
	uint32_t	end = turn->rows - begin < PREPARE_ROWS ? turn->rows : begin + PREPARE_ROWS;
	double		x[CPU_VECTORS_BLOCK];
	double		y[CPU_VECTORS_BLOCK];
	double		z[CPU_VECTORS_BLOCK];

	for (uint32_t row = begin; row < end; row += CPU_VECTORS_BLOCK)
	{
		uint32_t	rows = end - row < CPU_VECTORS_BLOCK ? end - row : CPU_VECTORS_BLOCK;

		if (!read_vectors(turn, row, rows, x, y, z))
		{
			atomic_store(&turn->out_of_range, true);
			return;
		}
		for (uint32_t i = 0; i < rows; i++)
		{
			turn->from[row + i] = (struct geonn_vector) {x[i], y[i], z[i]};
			turn->sort.value[row + i] = row + i;
		}
		cpu_path->curve_codes(x, y, z, rows, CPU_CURVE_KEY_LEVELS, turn->sort.key + row);
	}
}

static void
index_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct search *search = turn->search;
	size_t		begin = number * SEARCH_ROWS;
	struct cpu_nearest_piece piece = {
		.index = turn->built->index,
		.tags = search->dataset->tag,
		.cancelled = search->cancelled,
		.max_distance = search->question.max_distance,
		.from = turn->from,
		.count = turn->rows - begin < SEARCH_ROWS ? turn->rows - begin : SEARCH_ROWS,
		.key = turn->sort.key + begin,
		.row = turn->sort.value + begin,
		.group = turn->group,
		.tag = turn->tag,
		.distance = turn->distance
	};

	cpu_path->index_nearest(&piece);
	if (piece.unmatched > 0)
		atomic_fetch_add(&turn->unmatched, piece.unmatched);
}

static void
brute_piece(void *context, size_t number)
{
	struct turn *turn = context;
	const struct search *search = turn->search;
	uint32_t	begin = (uint32_t) number * turn->piece_rows;
	uint32_t	rows = turn->rows - begin < turn->piece_rows ? turn->rows - begin : turn->piece_rows;
	struct geonn_vector from[CPU_BRUTE_OBSERVATIONS];
	double		x[CPU_VECTORS_BLOCK];
	double		y[CPU_VECTORS_BLOCK];
	double		z[CPU_VECTORS_BLOCK];
	uint32_t	place[CPU_BRUTE_OBSERVATIONS];
	double		distance[CPU_BRUTE_OBSERVATIONS];
	uint32_t	unmatched = 0;

	if (!read_vectors(turn, begin, rows, x, y, z))
	{
		atomic_store(&turn->out_of_range, true);
		return;
	}
	for (uint32_t i = 0; i < rows; i++)
		from[i] = (struct geonn_vector) {x[i], y[i], z[i]};
	cpu_path->brute_nearest(&turn->built->references, from, rows, place, distance,
							search->cancelled);
	if (atomic_load(search->cancelled))
		return;
	for (uint32_t i = 0; i < rows; i++)
	{
		bool		matched = distance[i] <= search->question.max_distance;

		unmatched += !matched;
		turn->tag[begin + i] = search->dataset->tag[place[i]];
		turn->distance[begin + i] = matched ? distance[i] : INFINITY;
	}
	if (unmatched > 0)
		atomic_fetch_add(&turn->unmatched, unmatched);
}

/*
 * Lay out the room for a turn, larger than it is if need be.
 */
static bool
make_room(struct turn *turn, struct cpu_turn_room *room)
{
	size_t		rows = geonn_align(turn->rows, 64);
	size_t		row_bytes = sizeof(struct geonn_vector) + sizeof(int64_t) + sizeof(double) +
		2 * (sizeof(uint64_t) + sizeof(uint32_t));
	char	   *at;

	if (room->rows < rows)
	{
		cpu_release(room->memory, room->bytes);
		room->rows = 0;
		room->bytes = rows * row_bytes;
		room->memory = cpu_allocate(room->bytes, &turn->search->failure,
									"searching %u observations at a time", turn->rows);
		if (room->memory == NULL)
			return false;
		room->rows = (uint32_t) rows;
	}
	at = room->memory;
	turn->from = (struct geonn_vector *) at;
	at += rows * sizeof(struct geonn_vector);
	turn->tag = (int64_t *) at;
	at += rows * sizeof(int64_t);
	turn->distance = (double *) at;
	at += rows * sizeof(double);
	turn->sort.key = (uint64_t *) at;
	at += rows * sizeof(uint64_t);
	turn->sort.room_key = (uint64_t *) at;
	at += rows * sizeof(uint64_t);
	turn->sort.value = (uint32_t *) at;
	at += rows * sizeof(uint32_t);
	turn->sort.room_value = (uint32_t *) at;
	turn->sort.count = turn->rows;
	return true;
}

/*
 * Search by the index.  False where memory is short.
 */
static bool
search_index(struct turn *turn)
{
	uint64_t	group = (uint64_t) GROUP_POSITIONS * turn->rows / turn->built->index->shape.positions;

	turn->group = group < 1 ? 1 : group > INDEX_WIDTH ? INDEX_WIDTH : (uint32_t) group;
	thread_pool_run(prepare_piece, turn, (turn->rows + PREPARE_ROWS - 1) / PREPARE_ROWS);
	if (atomic_load(&turn->out_of_range))
		return true;
	if (!cpu_sort(&turn->sort, CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS)))
		return fail(&turn->search->failure, GEONN_ERROR_MEMORY,
					"not enough memory to sort %u observations", turn->rows);
	thread_pool_run(index_piece, turn, (turn->rows + SEARCH_ROWS - 1) / SEARCH_ROWS);
	return true;
}

/*
 * Pack the pairs that there are, in the order of rows.
 */
static uint32_t
pack(const struct turn *turn)
{
	struct search *search = turn->search;
	uint32_t	pairs = 0;

	for (uint32_t i = 0; i < turn->rows; i++)
		if (turn->distance[i] < INFINITY)
		{
			search->columns.tag[search->pairs + pairs] = turn->tag[i];
			search->columns.distance[search->pairs + pairs] = turn->distance[i];
			pairs++;
		}
	return pairs;
}

/*
 * How many observations a turn takes: as many as its time allows, and room.
 */
static void
plan(struct turn *turn, const struct cpu_turn_room *room)
{
	const struct search *search = turn->search;
	size_t		rows = search->rows - search->first - search->answered;
	size_t		limit = room->pace;

	if (search->question.algorithm == GEONN_ALGORITHM_BRUTE)
	{
		unsigned	threads = thread_pool_threads();
		size_t		piece;

		limit = BRUTE_PAIRS_PER_THREAD * threads / search->dataset->count;
		if (limit < threads)
			limit = threads;
		if (limit > ROWS_MAX)
			limit = ROWS_MAX;
		piece = ((rows < limit ? rows : limit) + 4 * threads - 1) / (4 * threads);
		turn->piece_rows = (uint32_t) (piece < CPU_BRUTE_OBSERVATIONS ? piece : CPU_BRUTE_OBSERVATIONS);
	}
	if (rows > limit)
		rows = limit;
	if (rows > search->columns.room - search->pairs)
		rows = search->columns.room - search->pairs;
	turn->first = search->first + search->answered;
	turn->rows = (uint32_t) rows;
}

/*
 * Let turns by index take about as long as they should.  Sparse ones may take
 * longer: a turn of twice as many rows could take hardly more time.
 */
static void
adjust_pace(struct cpu_turn_room *room, uint32_t rows, int64_t took_ms)
{
	int64_t		long_ms = (room->pace <= ROWS_SPARSE ? 8 : 2) * CPU_TURN_MS;
	int64_t		short_ms = room->pace < ROWS_SPARSE ? 2 * CPU_TURN_MS : CPU_TURN_MS / 2;

	if (took_ms < short_ms && rows == room->pace && room->pace < ROWS_MAX)
		room->pace *= 2;
	for (; took_ms > long_ms && room->pace > ROWS_MIN; took_ms /= 2)
		room->pace /= 2;
}

bool
cpu_turn_nearest(struct search *search, const struct cpu_built *built,
				 struct cpu_turn_room *room)
{
	struct turn turn = {.search = search,.built = built};
	bool		by_index = search->question.algorithm == GEONN_ALGORITHM_INDEX;
	bool		all_matched = search->question.max_distance == INFINITY;
	int64_t		began_ms = now_ms();
	uint32_t	pairs;

	if (room->pace == 0)
		room->pace = ROWS_FIRST;
	plan(&turn, room);
	if (!make_room(&turn, room))
	{
		search->failed = true;
		return false;
	}
	if (all_matched)
	{
		turn.tag = search->columns.tag + search->pairs;
		turn.distance = search->columns.distance + search->pairs;
	}
	if (!by_index)
		thread_pool_run(brute_piece, &turn, (turn.rows + turn.piece_rows - 1) / turn.piece_rows);
	else if (!search_index(&turn))
	{
		search->failed = true;
		return false;
	}
	if (atomic_load(&turn.out_of_range))
	{
		cpu_turn_out_of_range(search);
		return false;
	}
	if (atomic_load(search->cancelled))
		return false;
	if (by_index)
		adjust_pace(room, turn.rows, now_ms() - began_ms);

	pairs = all_matched ? turn.rows : pack(&turn);
	if (pairs == turn.rows)
		cpu_turn_account(search, turn.rows, NULL, pairs);
	else
	{
		/* the sort is over, and its room free */
		for (uint32_t i = 0; i < turn.rows; i++)
			turn.sort.value[i] = turn.distance[i] < INFINITY;
		cpu_turn_account(search, turn.rows, turn.sort.value, pairs);
	}
	return search->answered < search->rows - search->first &&
		search->pairs < search->columns.room;
}
