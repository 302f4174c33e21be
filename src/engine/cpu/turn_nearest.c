/*
 * turn_nearest.c
 *		A turn that finds the nearest reference of each observation.
 *
 * The observations of a turn are sorted by the part of the index that has their
 * group, and then along the curve, so that neighbours go through the index
 * together, in whatever order they came; the more observations a turn takes, the
 * closer neighbours are.  The answers go to the observations' rows.
 *
 * Answers are written into the batch's columns of pairs, as if every
 * observation had one.  With max_distance, groups or windows some observations
 * have none; then the pairs are packed in the order of rows.
 *
 * With windows an observation may have its candidates in several parts of the
 * index (cpu/slabs.c).  Each is a task: tasks are sorted as observations are
 * otherwise, and their answers go to columns of the turn's room.  When all
 * tasks have ended, the first of an observation's answers in the order
 * (distance, place) is its answer.  An observation that reaches more than
 * TASKS_MAX parts has one task instead, a walk through all parts of its group.
 *
 * A turn whose time is over leaves some of its observations unanswered, in any
 * rows.  The turn marks them in the batch, in the column of distances.  The
 * search's next turns take only the marked observations, and when all are
 * answered, they count as answered.  So no answer that was found is lost, and
 * between its turns a search keeps only one number, in device_state: how many
 * observations are under way.  A turn by a table of squares leaves observations to
 * these turns in the same way (turn_cells.c).  The batch is shared with the client; a client
 * that writes there meanwhile spoils its own answers and nothing else.
 */
#include "engine/cpu/turn.h"

#include "engine/base/clock.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "engine/cpu/base/columns.h"
#include "engine/cpu/base/curve.h"
#include "engine/cpu/walk/nearest.h"
#include "engine/cpu/base/vectors.h"
#include "engine/search/candidates.h"

/* the greatest number of observations of a turn */
#define ROWS_MAX (UINT32_C(1) << 20)

/* with fewer observations, consecutive ones may be too far apart to go through the
 * index together; a dataset's first turn takes this many */
#define ROWS_SPARSE (UINT32_C(1) << 18)

/* how many observations a piece of the preparation has, and a piece of the search at most */
#define PREPARE_ROWS 4096
#define SEARCH_ROWS_MAX 2048

/* a turn has PIECES_PER_THREAD pieces for each thread, but none of fewer tasks than
 * pace / SEARCH_PART_MIN, which would end before another thread is awake */
#define PIECES_PER_THREAD 4
#define SEARCH_PART_MIN 512

/* the greatest number of tasks of an observation */
#define TASKS_MAX 8

/* a bundle of observations should spread over at most this many positions */
#define BUNDLE_POSITIONS 1024

struct turn
{
	struct search *search;
	const struct cpu_built *built;
	uint32_t	first;			/* the turn's first observation */
	uint32_t	begun;			/* how many observations are under way: rows 0, 1, ... from first */
	bool		resumed;		/* earlier turns answered some */
	uint32_t	rows;			/* how many rows the turn takes */
	uint32_t	tasks;			/* how many tasks these rows have; without windows, a row is a task */
	uint32_t	piece_tasks;	/* how many tasks a piece of the search has */
	uint32_t	bundle;			/* how many tasks walk together at most */
	int64_t		end_ms;
	atomic_bool out_of_range;
	atomic_uint_fast64_t unanswered;	/* how many of these rows have no answer yet */

	/* columns by row; tag and distance are the batch's */
	struct geonn_vector *from;
	int64_t    *tag;
	double	   *distance;

	/* columns by task, only with windows; tasks of a row follow each other */
	atomic_uint claimed;		/* how many task numbers have been given out */
	uint32_t   *task_row;
	int64_t    *task_place;
	double	   *task_distance;

	uint32_t   *listed;			/* [rows] the rows that a resumed turn takes */
	struct radix_sort sort;		/* sorts the keys of tasks, with the tasks as values */
};

/*
 * Compute the vectors of some of the turn's rows, and write their row numbers.
 * False if some coordinates are invalid.
 */
static bool
read_vectors(const struct turn *turn, uint32_t begin, uint32_t count, uint32_t *row,
			 double *x, double *y, double *z)
{
	for (uint32_t i = 0; i < count; i++)
		row[i] = turn->resumed ? turn->listed[begin + i] : begin + i;
	return cpu_turn_read_vectors(turn->search, turn->first, row, count, x, y, z);
}

/*
 * Add to each key the part of the index that has the observation's group.
 * Groups are read once, as the batch is shared with the client.
 */
static void
add_parts(const struct turn *turn, uint32_t at, uint32_t count)
{
	const volatile int32_t *group = turn->search->columns.group + turn->first;

	for (uint32_t i = at; i < at + count; i++)
	{
		uint32_t	part = cpu_index_part_of(turn->built->index, group[turn->sort.value[i]]);

		turn->sort.key[i] = cpu_nearest_key(part, turn->sort.key[i]);
	}
}

/* the tasks of some rows, before they are numbered */
struct task_list
{
	uint32_t	count;
	uint64_t	key[CPU_VECTORS_BLOCK * TASKS_MAX];
	uint32_t	row[CPU_VECTORS_BLOCK * TASKS_MAX];
};

/*
 * List the tasks of a row.
 */
static void
list_tasks(struct turn *turn, uint32_t row, uint64_t code, struct task_list *list)
{
	const struct search *search = turn->search;
	const struct cpu_index *index = turn->built->index;
	const volatile int32_t *group_of = search->columns.group;
	struct point_windows windows = point_windows_read(&search->columns, turn->first + row);
	uint32_t	group = cpu_slabs_group(index->slabs, group_of != NULL ? group_of[turn->first + row] : 0);
	uint32_t	part[TASKS_MAX];
	uint32_t	parts = 0;

	if (group < index->slabs->groups)
		parts = cpu_slabs_reached(index->slabs, group, &windows, part, TASKS_MAX);
	if (parts > TASKS_MAX)
	{
		part[0] = cpu_nearest_all_parts(index, group);
		parts = 1;
	}
	if (parts == 0)
		turn->distance[row] = INFINITY;
	for (uint32_t i = 0; i < parts; i++)
	{
		list->key[list->count] = cpu_nearest_key(part[i], code);
		list->row[list->count++] = row;
	}
}

/*
 * Make the tasks of some of the turn's rows, which have these codes.
 */
static void
make_tasks(struct turn *turn, const uint32_t *row, const uint64_t *code, uint32_t count)
{
	struct task_list list = {.count = 0};
	uint32_t	first;

	for (uint32_t i = 0; i < count; i++)
		list_tasks(turn, row[i], code[i], &list);
	first = atomic_fetch_add(&turn->claimed, list.count);
	for (uint32_t i = 0; i < list.count; i++)
	{
		turn->sort.key[first + i] = list.key[i];
		turn->sort.value[first + i] = first + i;
		turn->task_row[first + i] = list.row[i];
	}
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
	uint32_t	block_row[CPU_VECTORS_BLOCK];
	uint64_t	block_code[CPU_VECTORS_BLOCK];

	for (uint32_t at = begin; at < end; at += CPU_VECTORS_BLOCK)
	{
		uint32_t	count = end - at < CPU_VECTORS_BLOCK ? end - at : CPU_VECTORS_BLOCK;
		uint32_t   *row = turn->task_row != NULL ? block_row : turn->sort.value + at;

		if (!read_vectors(turn, at, count, row, x, y, z))
		{
			atomic_store(&turn->out_of_range, true);
			return;
		}
		for (uint32_t i = 0; i < count; i++)
			turn->from[row[i]] = (struct geonn_vector) {x[i], y[i], z[i]};
		if (turn->task_row != NULL)
		{
			cpu_path->curve_codes(x, y, z, count, CPU_CURVE_KEY_LEVELS, block_code);
			make_tasks(turn, row, block_code, count);
			continue;
		}
		cpu_path->curve_codes(x, y, z, count, CPU_CURVE_KEY_LEVELS, turn->sort.key + at);
		if (turn->search->dataset->group != NULL)
			add_parts(turn, at, count);
	}
}

static struct cpu_nearest_piece
piece_of(const struct turn *turn)
{
	const struct search *search = turn->search;
	bool		has_tasks = turn->task_row != NULL;

	return (struct cpu_nearest_piece) {
		.index = turn->built->index,
		.metric = search->dataset->metric,
		.cancelled = search->cancelled,
		.end_ms = turn->end_ms,
		.max_distance = search->question.max_distance,
		.from = turn->from,
		.columns = &search->columns,
		.first = turn->first,
		.row = turn->task_row,
		.bundle = turn->bundle,
		.tag = has_tasks ? turn->task_place : turn->tag,
		.distance = has_tasks ? turn->task_distance : turn->distance
	};
}

static void
search_piece(void *context, size_t number)
{
	struct turn *turn = context;
	size_t		begin = number * turn->piece_tasks;
	struct cpu_nearest_piece piece = piece_of(turn);

	piece.count = turn->tasks - begin < turn->piece_tasks ? turn->tasks - begin : turn->piece_tasks;
	piece.key = turn->sort.key + begin;
	piece.task = turn->sort.value + begin;

	/* the first piece always runs, so every turn makes progress */
	if (number == 0 || now_ms() < turn->end_ms)
		cpu_path->index_nearest(&piece);
	for (size_t i = piece.answered; i < piece.count; i++)
		piece.distance[piece.task[i]] = CPU_TURN_UNANSWERED;
	atomic_fetch_add(&turn->unanswered, piece.count - piece.answered);
}

/* the end of the tasks of the row to which this task belongs */
static uint32_t
tasks_end(const struct turn *turn, uint32_t task)
{
	uint32_t	row = turn->task_row[task];

	while (task < turn->tasks && turn->task_row[task] == row)
		task++;
	return task;
}

/*
 * Answer a row from tasks first ... end - 1, if all of these have been
 * answered.
 */
static bool
combine_row(const struct turn *turn, uint32_t first, uint32_t end)
{
	uint32_t	row = turn->task_row[first];
	struct candidate best = {INFINITY, UINT32_MAX};

	for (uint32_t task = first; task < end; task++)
	{
		struct candidate found = {turn->task_distance[task], (uint32_t) turn->task_place[task]};

		if (found.distance < 0.0)
		{
			turn->distance[row] = CPU_TURN_UNANSWERED;
			return false;
		}
		if (found.distance < INFINITY && candidate_before(found, best))
			best = found;
	}
	if (best.distance < INFINITY)
		turn->tag[row] = turn->search->dataset->tag[best.place];
	turn->distance[row] = best.distance;
	return true;
}

/*
 * Answer the rows whose first task lies in a piece.
 */
static void
combine_piece(void *context, size_t number)
{
	struct turn *turn = context;
	uint32_t	task = (uint32_t) number * PREPARE_ROWS;
	uint32_t	end = turn->tasks - task < PREPARE_ROWS ? turn->tasks : task + PREPARE_ROWS;
	uint32_t	unanswered = 0;

	if (task > 0 && turn->task_row[task] == turn->task_row[task - 1])
		task = tasks_end(turn, task);
	for (uint32_t next; task < end; task = next)
	{
		next = tasks_end(turn, task);
		unanswered += !combine_row(turn, task, next);
	}
	atomic_fetch_add(&turn->unanswered, unanswered);
}

/*
 * Answer a row, however long that takes, so that the turn makes progress.
 */
static void
finish_row(struct turn *turn)
{
	uint32_t	end = tasks_end(turn, 0);
	uint64_t	key[TASKS_MAX];
	uint32_t	task[TASKS_MAX];
	struct cpu_nearest_piece piece = piece_of(turn);

	for (size_t i = 0; i < turn->tasks; i++)
		if (turn->sort.value[i] < end)
		{
			key[piece.count] = turn->sort.key[i];
			task[piece.count++] = turn->sort.value[i];
		}
	piece.key = key;
	piece.task = task;
	piece.end_ms = INT64_MAX;
	cpu_path->index_nearest(&piece);
	if (combine_row(turn, 0, end))
		atomic_fetch_sub(&turn->unanswered, 1);
}

/*
 * Lay out the memory for a turn from `memory` on (NULL to learn only the size).
 * Returns its bytes.  Few observations have TASKS_MAX tasks; pages that are never
 * touched take no memory.
 */
static size_t
place_room(struct turn *turn, void *memory)
{
	struct column_block block = {memory, 0};
	bool		has_tasks = turn->built->index->slabs != NULL;
	size_t		tasks = has_tasks ? (size_t) TASKS_MAX * turn->begun : turn->begun;

	COLUMN_PLACE(&block, turn->from, turn->begun);
	COLUMN_PLACE(&block, turn->sort.key, tasks);
	COLUMN_PLACE(&block, turn->sort.room_key, tasks);
	COLUMN_PLACE(&block, turn->sort.value, tasks);
	COLUMN_PLACE(&block, turn->sort.room_value, tasks);
	turn->listed = turn->sort.value;
	if (has_tasks)
	{
		COLUMN_PLACE(&block, turn->task_place, tasks);
		COLUMN_PLACE(&block, turn->task_distance, tasks);
		COLUMN_PLACE(&block, turn->task_row, tasks);

		/* make_tasks() writes values before all rows are read */
		turn->listed = turn->sort.room_value;
	}
	return block.bytes;
}

/*
 * Set which observations are under way: those of earlier turns; or if none are,
 * as many as a turn should take and the batch has room for.
 */
static void
begin_turn(struct turn *turn, uint32_t pace)
{
	struct search *search = turn->search;
	size_t		rows = search->rows - search->first - search->answered;
	size_t		room = search->columns.room - search->pairs;

	turn->first = search->first + search->answered;
	turn->tag = search->columns.tag + search->pairs;
	turn->distance = search->columns.distance + search->pairs;
	turn->begun = (uint32_t) search->device_state;
	turn->resumed = turn->begun > 0;
	if (!turn->resumed)
	{
		rows = rows < pace ? rows : pace;
		turn->begun = (uint32_t) (rows < room ? rows : room);
	}
}

/*
 * Choose the turn's observations: all under way; or in a resumed turn up to
 * `pace` unanswered ones, in `listed`.  Returns how many more are unanswered.
 */
static uint32_t
list_rows(struct turn *turn, uint32_t pace)
{
	uint32_t	left = turn->begun;

	turn->rows = turn->begun;
	if (turn->resumed)
	{
		left = 0;
		for (uint32_t i = 0; i < turn->begun; i++)
			if (turn->distance[i] < 0.0)
			{
				if (left < pace)
					turn->listed[left] = i;
				left++;
			}
		turn->rows = left < pace ? left : pace;
	}
	return left - turn->rows;
}

/*
 * Cut the tasks into pieces, and answer these.
 */
static void
run_pieces(struct turn *turn, uint32_t pace)
{
	uint32_t	pieces = PIECES_PER_THREAD * thread_pool_threads();
	uint64_t	bundle = (uint64_t) BUNDLE_POSITIONS * turn->tasks / turn->built->index->shape.positions;

	turn->bundle = bundle < 1 ? 1 : bundle > INDEX_WIDTH ? INDEX_WIDTH : (uint32_t) bundle;
	turn->piece_tasks = turn->tasks / pieces + 1;
	if (turn->piece_tasks < pace / SEARCH_PART_MIN)
		turn->piece_tasks = pace / SEARCH_PART_MIN;
	if (turn->piece_tasks > SEARCH_ROWS_MAX)
		turn->piece_tasks = SEARCH_ROWS_MAX;
	turn->end_ms = now_ms() + CPU_TURN_LIMIT_MS;
	thread_pool_run(search_piece, turn, (turn->tasks + turn->piece_tasks - 1) / turn->piece_tasks);
}

/*
 * Search for the rows that the turn takes.  False if memory is short.
 */
static bool
search_rows(struct turn *turn, uint32_t pace)
{
	thread_pool_run(prepare_piece, turn, (turn->rows + PREPARE_ROWS - 1) / PREPARE_ROWS);
	if (atomic_load(&turn->out_of_range))
		return true;
	turn->tasks = turn->task_row != NULL ? atomic_load(&turn->claimed) : turn->rows;
	turn->sort.count = turn->tasks;
	if (turn->tasks == 0)
		return true;
	if (!radix_sort(&turn->sort))
		return fail(&turn->search->failure, GEONN_ERROR_MEMORY,
					"not enough memory to sort %u observations", turn->rows);
	run_pieces(turn, pace);
	if (turn->task_row != NULL && !atomic_load(turn->search->cancelled))
	{
		atomic_store(&turn->unanswered, 0);
		thread_pool_run(combine_piece, turn, (turn->tasks + PREPARE_ROWS - 1) / PREPARE_ROWS);
		if (turn->rows > 0 && atomic_load(&turn->unanswered) == turn->rows)
			finish_row(turn);
	}
	return true;
}

/*
 * Pack the pairs in the order of rows, and write how many each row has.
 */
static uint32_t
pack(const struct turn *turn, uint32_t *counts)
{
	uint32_t	pairs = 0;

	for (uint32_t i = 0; i < turn->begun; i++)
	{
		double		distance = ((const volatile double *) turn->distance)[i];

		counts[i] = distance < INFINITY;
		if (counts[i] == 0)
			continue;
		turn->tag[pairs] = turn->tag[i];
		turn->distance[pairs] = distance;
		pairs++;
	}
	return pairs;
}

/*
 * Return how many rows the next turn should take, to last about CPU_TURN_MS.  A
 * turn of few rows may last longer, since twice as many might take hardly more
 * time.
 */
static uint32_t
adjusted_pace(uint32_t pace, const struct turn *turn, int64_t took_ms)
{
	int64_t		short_ms = pace < ROWS_SPARSE ? 2 * CPU_TURN_MS : CPU_TURN_MS / 2;
	int64_t		long_ms = pace <= ROWS_SPARSE ? CPU_TURN_LIMIT_MS : 2 * CPU_TURN_MS;
	uint32_t	answered = turn->rows - (uint32_t) atomic_load(&turn->unanswered);

	if (answered < turn->rows || took_ms > long_ms)
	{
		uint64_t	rows = (uint64_t) answered * CPU_TURN_MS / (uint64_t) (took_ms > 0 ? took_ms : 1);

		if (rows < pace)
			return rows > 0 ? (uint32_t) rows : 1;
	}
	else if (took_ms < short_ms && turn->rows == pace && pace < ROWS_MAX)
		return 2 * pace;
	return pace;
}

bool
cpu_turn_nearest(struct search *search, struct cpu_built *built, struct cpu_turn_room *room)
{
	struct turn turn = {.search = search,.built = built};
	uint32_t	pace = atomic_load(&built->pace);
	int64_t		began_ms = now_ms();
	uint32_t	unlisted;
	uint32_t	pairs;

	if (pace == 0)
		pace = ROWS_SPARSE;
	begin_turn(&turn, pace);
	search->failed = !cpu_turn_reserve(room, place_room(&turn, NULL), turn.begun, &search->failure);
	if (search->failed)
		return false;
	place_room(&turn, room->memory);
	unlisted = list_rows(&turn, pace);
	search->failed = !search_rows(&turn, pace);
	if (atomic_load(&turn.out_of_range))
		cpu_turn_out_of_range(search);
	if (search->failed || atomic_load(search->cancelled))
		return false;
	if (turn.rows > 0)
		atomic_store(&built->pace, adjusted_pace(pace, &turn, now_ms() - began_ms));
	if (unlisted > 0 || atomic_load(&turn.unanswered) > 0)
	{
		search->device_state = turn.begun;
		return true;
	}

	/* the sort is over, and its memory free */
	pairs = search->question.max_distance == INFINITY && search->dataset->columns == 0 ?
		turn.begun : pack(&turn, turn.sort.value);
	cpu_turn_account(search, turn.begun, pairs == turn.begun ? NULL : turn.sort.value, pairs);
	search->device_state = 0;
	return search->answered < search->rows - search->first &&
		search->pairs < search->columns.room;
}
