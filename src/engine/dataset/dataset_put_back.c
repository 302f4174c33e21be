/*
 * dataset_put_back.c
 *		Puts a dataset's references in the order of their tags where few are out
 *		of place.
 *
 * A table's references arrive in the order of their ids, but for rows that
 * have been updated since.  One pass finds a few that are out of place: without
 * them, the tags of all others rise.  The others are in place, in segments with
 * gaps between them.  The few are copied and sorted, and a search among the
 * segments tells where each of them belongs.  Then the columns close the gaps,
 * from the first one on, and open others, from the last one on, for the few.
 * Rows that have been updated most often lie behind all others: then no gap has
 * to be closed.  So the columns move once, side by side, and the sort needs
 * memory for the few alone.
 *
 * All work is in short jobs, as in dataset_sort.c.
 */
#include "engine/dataset/dataset_sort.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"

/* all references are sorted if more than 1 / MOVED_SHARE of them are out of place */
#define MOVED_SHARE 16

/* how many references one job looks at, or of those out of place copies or searches for: it takes a few milliseconds */
#define LOOKED_AT_ONCE ((size_t) 1 << 20)
#define MOVED_AT_ONCE ((size_t) 1 << 16)

/* how many values one job moves in all columns, which takes as long, and how many a move counts as beside its own */
#define VALUES_AT_ONCE ((size_t) 1 << 22)
#define VALUES_A_MOVE 16

#define SIGN ((uint64_t) 1 << 63)

/* references that are in place, and follow each other */
struct segment
{
	uint32_t	first;
	uint32_t	end;
	uint32_t	rank;			/* how many are in place before them */
};

/* one of the references that are in place */
struct spot
{
	size_t		segment;
	size_t		reference;
};

/* how far a move of the columns has come: closing gaps, the segments before `next` are moved; opening them, the references
 * out of place from `next` on are placed; and the next value moves from here to there */
struct move
{
	size_t		next;
	size_t		from;
	size_t		to;
};

struct putting_back
{
	struct dataset *dataset;
	const atomic_bool *cancelled;
	size_t		first;			/* of what the present job works on: so many from this one on */
	size_t		end;

	/* the references in place so far, and how many are not */
	struct segment *segment;
	size_t		segments;
	size_t		moved;
	size_t		left_out;		/* how many of these since the last one in place */
	struct spot deeper;			/* the reference in place that many before the last one; set if left_out > 0 */
	bool		gave_up;

	/* the references out of place: [moved] */
	struct radix_sort sort;		/* by their tags; the values are their numbers, in the order of the dataset */
	uint32_t   *place;			/* where each belongs, in the order of their tags */
	char	   *column[DATASET_COLUMNS];	/* their values of each column */
	struct spot gap;			/* their copy has come to this one, and the segment behind it */
	struct spot spot;			/* the search for their places has come so far */

	int			columns;		/* how many the dataset has */
	int			number[DATASET_COLUMNS];	/* [columns] their numbers */
	struct move move;
	struct move moved_to;		/* `move` after the present job */
};

/* ---- which are out of place ---- */

/*
 * Run a piece as jobs one after the other, so many references in each.  False once it gives up, or the sort is cancelled.
 */
static bool
run_in_turn(struct putting_back *putting, thread_pool_piece piece, size_t count, size_t at_once)
{
	for (putting->first = 0; putting->first < count && !putting->gave_up; putting->first = putting->end)
	{
		if (atomic_load(putting->cancelled))
			return false;
		putting->end = count - putting->first < at_once ? count : putting->first + at_once;
		thread_pool_run(piece, putting, 1);
	}
	return !putting->gave_up;
}

static struct segment *
last_segment(const struct putting_back *putting)
{
	return &putting->segment[putting->segments - 1];
}

/*
 * Go to the reference in place before this one; false: it is the first one.
 */
static bool
step_back(const struct putting_back *putting, struct spot *spot)
{
	if (spot->reference > putting->segment[spot->segment].first)
		spot->reference--;
	else if (spot->segment > 0)
		spot->reference = putting->segment[--spot->segment].end - 1;
	else
		return false;
	return true;
}

/*
 * Is this reference, which has a lesser tag than the last one in place, out of place?  Yes, unless a few before it are
 * instead: no more than one, or than have been left out since.
 */
static bool
is_out_of_place(struct putting_back *putting, size_t i)
{
	const int64_t *tag = putting->dataset->tag;
	struct spot spot = putting->deeper;

	if (putting->left_out == 0)
		spot = (struct spot) {putting->segments - 1, last_segment(putting)->end - 1};
	if (!step_back(putting, &spot) || tag[spot.reference] < tag[i])
		return false;
	putting->deeper = spot;
	return true;
}

/*
 * Count as out of place the last references whose tags are greater than this one.
 */
static void
leave_out_greater(struct putting_back *putting, int64_t tag)
{
	while (putting->segments > 0 && putting->dataset->tag[last_segment(putting)->end - 1] > tag)
	{
		putting->moved++;
		if (--last_segment(putting)->end == last_segment(putting)->first)
			putting->segments--;
	}
}

static void
take_reference(struct putting_back *putting, size_t i)
{
	const int64_t *tag = putting->dataset->tag;

	if (putting->segments > 0 && tag[last_segment(putting)->end - 1] > tag[i])
	{
		bool		is_out = is_out_of_place(putting, i);

		if (is_out)
		{
			putting->moved++;
			putting->left_out++;
		}
		else
			leave_out_greater(putting, tag[i]);
		putting->gave_up = putting->moved > putting->dataset->count / MOVED_SHARE;
		if (is_out)
			return;
	}
	if (putting->segments > 0 && tag[last_segment(putting)->end - 1] == tag[i])
		putting->gave_up = true;
	putting->left_out = 0;
	if (putting->segments == 0 || last_segment(putting)->end != i)
		putting->segment[putting->segments++] = (struct segment) {(uint32_t) i, (uint32_t) i, 0};
	last_segment(putting)->end++;
}

static void
find_piece(void *context, size_t number __attribute__((unused)))
{
	struct putting_back *putting = context;
	const int64_t *tag = putting->dataset->tag;
	size_t		end = putting->end;

	for (size_t i = putting->first; i < end && !putting->gave_up; i++)
	{
		/* most follow one that is in place */
		if (putting->segments > 0 && last_segment(putting)->end == i)
		{
			for (; i < end && tag[i] > tag[i - 1]; i++)
				continue;
			last_segment(putting)->end = (uint32_t) i;
			if (i == end)
				break;
		}
		take_reference(putting, i);
	}
}

static bool
find_moved(struct putting_back *putting)
{
	uint32_t	rank = 0;

	if (!run_in_turn(putting, find_piece, putting->dataset->count, LOOKED_AT_ONCE))
		return false;
	for (size_t i = 0; i < putting->segments; i++)
	{
		putting->segment[i].rank = rank;
		rank += putting->segment[i].end - putting->segment[i].first;
	}
	return true;
}

/* ---- where they belong ---- */

/*
 * How many bytes those that are out of place take: keys and their room, columns, values and their room, and places.
 */
static size_t
moved_bytes(const struct putting_back *putting)
{
	return putting->moved * ((2 + (size_t) putting->columns) * sizeof(uint64_t) + 3 * sizeof(uint32_t));
}

static void
lay_out_moved(struct putting_back *putting, uint64_t *memory)
{
	size_t		moved = putting->moved;

	putting->sort = (struct radix_sort) {.count = moved,.cancelled = putting->cancelled};
	putting->sort.key = memory;
	putting->sort.room_key = memory + moved;
	for (int i = 0; i < putting->columns; i++)
		putting->column[i] = (char *) (memory + (2 + (size_t) i) * moved);
	putting->sort.value = (uint32_t *) (memory + (2 + (size_t) putting->columns) * moved);
	putting->sort.room_value = putting->sort.value + moved;
	putting->place = putting->sort.room_value + moved;
}

/* a value of a column, and its width */
static char *
column_at(const struct putting_back *putting, size_t number, size_t i, size_t *width)
{
	*width = dataset_columns[putting->number[number]].width;
	return (char *) dataset_column_of(putting->dataset, putting->number[number]) + i * *width;
}

static void
copy_piece(void *context, size_t number __attribute__((unused)))
{
	struct putting_back *putting = context;
	struct spot *gap = &putting->gap;

	for (size_t next = putting->first; next < putting->end; next++, gap->reference++)
	{
		while (gap->segment < putting->segments && gap->reference == putting->segment[gap->segment].first)
			gap->reference = putting->segment[gap->segment++].end;
		putting->sort.key[next] = (uint64_t) putting->dataset->tag[gap->reference] ^ SIGN;
		putting->sort.value[next] = (uint32_t) next;
		for (int column = 0; column < putting->columns; column++)
		{
			size_t		width;
			const char *value = column_at(putting, (size_t) column, gap->reference, &width);

			memcpy(putting->column[column] + next * width, value, width);
		}
	}
}

/*
 * Go from the present spot to the first reference in place whose tag is at least this one; false: all are less.
 */
static bool
go_to(struct putting_back *putting, int64_t tag)
{
	const int64_t *tags = putting->dataset->tag;
	size_t		step = 1;
	size_t		low;
	size_t		high;

	while (putting->spot.segment < putting->segments && tags[putting->segment[putting->spot.segment].end - 1] < tag)
		if (++putting->spot.segment < putting->segments)
			putting->spot.reference = putting->segment[putting->spot.segment].first;
	if (putting->spot.segment == putting->segments)
		return false;

	/* all before `low` are less, the one at `high` is not */
	low = putting->spot.reference;
	high = putting->segment[putting->spot.segment].end - 1;
	for (; low + step < high && tags[low + step] < tag; step *= 2)
		low += step + 1;
	if (low + step < high)
		high = low + step;
	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (tags[middle] < tag)
			low = middle + 1;
		else
			high = middle;
	}
	putting->spot.reference = low;
	return true;
}

static void
find_places(void *context, size_t number __attribute__((unused)))
{
	struct putting_back *putting = context;

	for (size_t i = putting->first; i < putting->end && !putting->gave_up; i++)
	{
		int64_t		tag = (int64_t) (putting->sort.key[i] ^ SIGN);
		size_t		rank = putting->dataset->count - putting->moved;

		putting->gave_up = i > 0 && putting->sort.key[i] == putting->sort.key[i - 1];
		if (go_to(putting, tag))
		{
			const struct segment *segment = &putting->segment[putting->spot.segment];

			putting->gave_up = putting->gave_up || putting->dataset->tag[putting->spot.reference] == tag;
			rank = segment->rank + (putting->spot.reference - segment->first);
		}
		putting->place[i] = (uint32_t) (rank + i);
	}
}

/* ---- the move ---- */

static void
move_values(const struct putting_back *putting, size_t number, size_t to, size_t from, size_t count)
{
	size_t		width;
	char	   *target = column_at(putting, number, to, &width);

	memmove(target, column_at(putting, number, from, &width), count * width);
}

/* how many values one job moves in each column */
static size_t
values_at_once(const struct putting_back *putting)
{
	return VALUES_AT_ONCE / (size_t) putting->columns;
}

/* how many are left of these after a move */
static size_t
less(size_t left, size_t count)
{
	return left > count + VALUES_A_MOVE ? left - count - VALUES_A_MOVE : 0;
}

/* close gaps in a column */
static void
close_gaps(void *context, size_t number)
{
	struct putting_back *putting = context;
	struct move move = putting->move;
	size_t		left = values_at_once(putting);

	while (left > 0 && move.next < putting->segments)
	{
		size_t		count = putting->segment[move.next].end - move.from;

		count = count < left ? count : left;
		move_values(putting, number, move.to, move.from, count);
		left = less(left, count);
		move.to += count;
		move.from += count;
		if (move.from == putting->segment[move.next].end && ++move.next < putting->segments)
			move.from = putting->segment[move.next].first;
	}
	if (number == 0)
		putting->moved_to = move;
}

/* open gaps in a column, and fill them */
static void
open_gaps(void *context, size_t number)
{
	struct putting_back *putting = context;
	struct move move = putting->move;
	size_t		left = values_at_once(putting);

	while (left > 0 && move.next > 0)
	{
		size_t		place = putting->place[move.next - 1];
		size_t		count = move.to - place - 1;
		size_t		width;
		char	   *target;

		count = count < left ? count : left;
		move.to -= count;
		move.from -= count;
		left = less(left, count);
		move_values(putting, number, move.to, move.from, count);
		if (move.to != place + 1)
			continue;
		target = column_at(putting, number, place, &width);
		memcpy(target, putting->column[number] + putting->sort.value[move.next - 1] * width, width);
		move.to--;
		move.next--;
	}
	if (number == 0)
		putting->moved_to = move;
}

/*
 * Run close_gaps or open_gaps until move.next is `next`.  False once the sort is cancelled.
 */
static bool
move_columns(struct putting_back *putting, thread_pool_piece piece, struct move begin, size_t next)
{
	for (putting->move = begin; putting->move.next != next; putting->move = putting->moved_to)
	{
		if (atomic_load(putting->cancelled))
			return false;
		thread_pool_run(piece, putting, (size_t) putting->columns);
	}
	return true;
}

static bool
put_back(struct putting_back *putting)
{
	size_t		count = putting->dataset->count;
	struct move closing = {0, putting->segment[0].first, 0};
	struct move opening = {putting->moved, count - putting->moved, count};

	/* no gap lies before what is at the beginning */
	if (closing.from == 0)
		closing = (struct move) {1, putting->segments > 1 ? putting->segment[1].first : 0, putting->segment[0].end};
	return run_in_turn(putting, copy_piece, putting->moved, MOVED_AT_ONCE) &&
		(putting->moved == 1 || radix_sort(&putting->sort)) &&
		run_in_turn(putting, find_places, putting->moved, MOVED_AT_ONCE) &&
		move_columns(putting, close_gaps, closing, putting->segments) &&
		move_columns(putting, open_gaps, opening, 0);
}

bool
dataset_put_back(struct dataset *dataset, const atomic_bool *cancelled)
{
	struct putting_back putting = {.dataset = dataset,.cancelled = cancelled};
	struct failure failure;
	size_t		bytes;
	void	   *memory;
	bool		done;

	for (int i = 0; i < DATASET_COLUMNS; i++)
		if (dataset_column_of(dataset, i) != NULL)
			putting.number[putting.columns++] = i;

	/* less than a byte a reference, and most of it is never written to */
	putting.segment = malloc((dataset->count / MOVED_SHARE + 3) * sizeof(struct segment));
	done = putting.segment != NULL && find_moved(&putting);
	if (done && putting.moved > 0)
	{
		bytes = moved_bytes(&putting);
		memory = memory_block_take(bytes, cancelled, &failure, "sorting %zu references", dataset->count);
		done = memory != NULL;
		if (done)
		{
			lay_out_moved(&putting, memory);
			putting.spot.reference = putting.segment[0].first;
			done = put_back(&putting);
		}
		memory_block_release(memory, bytes);
	}
	free(putting.segment);
	return done;
}
