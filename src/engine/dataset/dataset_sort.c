/*
 * dataset_sort.c
 *		Sorts a dataset's references by their tags.
 *
 * First radix_sort.c sorts the references' numbers by the tags; then each
 * column is put into the order of the numbers.  In most datasets each tag
 * occurs once.  Where tags repeat, the numbers are sorted by longitude, by
 * latitude and once more by the tag: since the sort is stable, that gives the
 * order (tag, latitude, longitude).  Arcs are sorted by their tags alone: so those of a shape stay
 * adjacent, in their order.
 *
 * A table's references arrive in the order of their ids, but for rows that have been updated since.  Where few are out of
 * place, they alone are sorted, and merged with the others: one pass divides both, another one merges them.  That
 * takes a third of the time of a sort of all.
 *
 * Several sessions may sort at a time.  All work is in short jobs of the
 * thread pool: between two of them other jobs run, and a cancelled sort ends.
 * Two sorts must not find the same memory free.  So under a lock each sort in
 * turn takes its room and writes to all of it, before the next sort looks for
 * free memory.
 */
#include "engine/dataset/dataset.h"

#include <pthread.h>
#include <string.h>

#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"

/* how many references one piece of the work has */
#define PIECE_ROWS ((size_t) 1 << 15)

/* how many pieces a job has for each thread: such a job takes some 10 ms */
#define PIECES_PER_THREAD 16

/* all references are sorted if more than 1 / MOVED_SHARE of them are out of place */
#define MOVED_SHARE 16

#define SIGN ((uint64_t) 1 << 63)

struct sorting
{
	const struct dataset *dataset;
	const atomic_bool *cancelled;
	struct radix_sort sort;		/* the keys, and the references' numbers as values */
	const double *by;			/* the column to sort by; NULL: the tag */
	atomic_bool repeats;		/* a tag occurs twice */

	/* how many references are in place, numbers in sort.value; how many others, in moved_value; how many of these since the
	 * last one in place; and whether to sort all */
	size_t		in_place;
	size_t		moved;
	size_t		left_out;
	bool		gave_up;
	const uint32_t *moved_value;

	void	   *column;			/* the column that is put into order */
	size_t		width;			/* how many bytes each value of the column has */
};

static size_t
piece_end(const struct sorting *sorting, size_t number)
{
	size_t		end = (number + 1) * PIECE_ROWS;

	return end < sorting->sort.count ? end : sorting->sort.count;
}

/*
 * Run a function on all pieces.  False once the sort is cancelled.
 */
static bool
run_pieces(struct sorting *sorting, thread_pool_piece piece)
{
	return thread_pool_run_turns(piece, sorting,
								 (sorting->sort.count + PIECE_ROWS - 1) / PIECE_ROWS,
								 PIECES_PER_THREAD * thread_pool_threads(),
								 sorting->cancelled);
}

/* write to all of the sort's memory, and number the references */
static void
number_references(void *context, size_t number)
{
	struct sorting *sorting = context;
	const struct radix_sort *sort = &sorting->sort;
	size_t		end = piece_end(sorting, number);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
	{
		sort->key[i] = sort->room_key[i] = 0;
		sort->value[i] = sort->room_value[i] = (uint32_t) i;
	}
}

/*
 * Return a key for a number: keys are in the order of their numbers, and 0 and
 * -0 have the same key.
 */
static uint64_t
key_of(double number)
{
	double		unsigned_zero = number + 0.0;
	uint64_t	bits;

	memcpy(&bits, &unsigned_zero, sizeof(bits));
	return bits & SIGN ? ~bits : bits | SIGN;
}

static void
make_keys(void *context, size_t number)
{
	struct sorting *sorting = context;
	const struct radix_sort *sort = &sorting->sort;
	size_t		end = piece_end(sorting, number);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		sort->key[i] = sorting->by != NULL ? key_of(sorting->by[sort->value[i]]) :
			(uint64_t) sorting->dataset->tag[sort->value[i]] ^ SIGN;
}

/*
 * Sort the references' numbers by latitudes, by longitudes or (NULL) by the
 * tags.
 */
static bool
sort_by(struct sorting *sorting, const double *by, struct failure *failure)
{
	sorting->by = by;
	if (!run_pieces(sorting, make_keys))
		return false;
	if (!radix_sort(&sorting->sort, 64))
		return fail(failure, GEONN_ERROR_MEMORY, "not enough memory to sort %zu references",
					sorting->sort.count);
	return !atomic_load(sorting->cancelled);
}

static void
find_repeats(void *context, size_t number)
{
	struct sorting *sorting = context;
	const uint64_t *key = sorting->sort.key;
	size_t		end = piece_end(sorting, number);
	bool		repeats = false;

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		repeats |= i > 0 && key[i] == key[i - 1];
	if (repeats)
		atomic_store(&sorting->repeats, true);
}

/*
 * Put the references' numbers into the order (tag, latitude, longitude), those of arcs into that of tags.
 */
static bool
sort_references(struct sorting *sorting, struct failure *failure)
{
	if (!sort_by(sorting, NULL, failure) || !run_pieces(sorting, find_repeats))
		return false;
	return !atomic_load(&sorting->repeats) || sorting->dataset->shape != NULL ||
		(sort_by(sorting, sorting->dataset->longitude, failure) &&
		 sort_by(sorting, sorting->dataset->latitude, failure) &&
		 sort_by(sorting, NULL, failure));
}

/* ---- few references out of place ---- */

/*
 * Take the references of a piece, in their order, to those that are in place or to those that are not.
 */
static void
divide(void *context, size_t number)
{
	struct sorting *sorting = context;
	const int64_t *tag = sorting->dataset->tag;
	uint32_t   *in_place = sorting->sort.value;
	size_t		end = piece_end(sorting, number);

	for (size_t i = number * PIECE_ROWS; i < end && !sorting->gave_up; i++)
	{
		size_t		last = sorting->in_place;

		if (last > 0 && tag[i] <= tag[in_place[last - 1]])
		{
			sorting->gave_up = tag[i] == tag[in_place[last - 1]] || sorting->moved > sorting->sort.count / MOVED_SHARE;

			/* unless a few before it, no more than have been left out since, are what is not in place */
			if (last > sorting->left_out + 1 && tag[in_place[last - sorting->left_out - 2]] >= tag[i])
			{
				sorting->sort.room_value[sorting->moved++] = (uint32_t) i;
				sorting->left_out++;
				continue;
			}
			while (last > 0 && tag[in_place[last - 1]] > tag[i])
				sorting->sort.room_value[sorting->moved++] = in_place[--last];
		}
		in_place[last] = (uint32_t) i;
		sorting->in_place = last + 1;
		sorting->left_out = 0;
	}
}

/*
 * Merge both from the end, a piece at a time; the last piece has number 0.
 */
static void
merge(void *context, size_t number)
{
	struct sorting *sorting = context;
	const int64_t *tag = sorting->dataset->tag;
	uint32_t   *value = sorting->sort.value;
	size_t		end = sorting->sort.count - number * PIECE_ROWS;
	size_t		first = end > PIECE_ROWS ? end - PIECE_ROWS : 0;

	for (size_t at = end; at-- > first;)
	{
		bool		has_both = sorting->in_place > 0 && sorting->moved > 0;

		if (sorting->moved == 0 ||
			(has_both && tag[value[sorting->in_place - 1]] > tag[sorting->moved_value[sorting->moved - 1]]))
			value[at] = value[--sorting->in_place];
		else
			value[at] = sorting->moved_value[--sorting->moved];
		sorting->gave_up = sorting->gave_up || (at + 1 < sorting->sort.count && tag[value[at]] == tag[value[at + 1]]);
	}
}

/*
 * Put the references' numbers in order where few are out of place, as in a table of which some rows have been updated.
 * False if they are not few, if tags repeat, or if the sort is cancelled: then the numbers have to be written again.
 */
static bool
put_back(struct sorting *sorting)
{
	struct radix_sort moved = {.cancelled = sorting->cancelled};
	size_t		pieces = (sorting->sort.count + PIECE_ROWS - 1) / PIECE_ROWS;

	if (!thread_pool_run_turns(divide, sorting, pieces, 1, sorting->cancelled) || sorting->gave_up)
		return false;
	moved.count = sorting->moved;
	moved.key = sorting->sort.key;
	moved.room_key = moved.key + moved.count;
	moved.value = sorting->sort.room_value;
	moved.room_value = (uint32_t *) sorting->sort.room_key;
	for (size_t i = 0; i < moved.count; i++)
		moved.key[i] = (uint64_t) sorting->dataset->tag[moved.value[i]] ^ SIGN;
	if (moved.count > 1 && !radix_sort(&moved, 64))
		return false;
	sorting->moved_value = moved.value;
	return thread_pool_run_turns(merge, sorting, pieces, 1, sorting->cancelled) && !sorting->gave_up;
}

/* ---- columns ---- */

/* collect a piece of a column in the new order, in memory that keys no longer need */
static void
collect_column(void *context, size_t number)
{
	struct sorting *sorting = context;
	const uint32_t *value = sorting->sort.value;
	size_t		end = piece_end(sorting, number);
	const char *from = sorting->column;
	char	   *to = (char *) sorting->sort.room_key;

	switch (sorting->width)
	{
		case sizeof(uint64_t):
			for (size_t i = number * PIECE_ROWS; i < end; i++)
				memcpy(to + i * sizeof(uint64_t), from + value[i] * sizeof(uint64_t), sizeof(uint64_t));
			break;
		case sizeof(uint32_t):
			for (size_t i = number * PIECE_ROWS; i < end; i++)
				memcpy(to + i * sizeof(uint32_t), from + value[i] * sizeof(uint32_t), sizeof(uint32_t));
			break;
		case sizeof(uint16_t):
			for (size_t i = number * PIECE_ROWS; i < end; i++)
				memcpy(to + i * sizeof(uint16_t), from + value[i] * sizeof(uint16_t), sizeof(uint16_t));
			break;
	}
}

static void
copy_column(void *context, size_t number)
{
	struct sorting *sorting = context;
	size_t		first = number * PIECE_ROWS * sorting->width;
	size_t		end = piece_end(sorting, number) * sorting->width;

	memcpy((char *) sorting->column + first, (char *) sorting->sort.room_key + first,
		   end - first);
}

static bool
order_columns(struct sorting *sorting)
{
	bool		done = true;

	for (int i = 0; i < DATASET_COLUMNS && done; i++)
	{
		sorting->column = dataset_column_of(sorting->dataset, i);
		sorting->width = dataset_columns[i].width;
		done = sorting->column == NULL ||
			(run_pieces(sorting, collect_column) && run_pieces(sorting, copy_column));
	}
	return done;
}

/*
 * Allocate the memory that the sort needs.  NULL if the host has less.
 */
static void *
take_room(struct sorting *sorting, size_t bytes, struct failure *failure)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	struct radix_sort *sort = &sorting->sort;
	void	   *memory;

	pthread_mutex_lock(&turn);
	memory = memory_block_allocate(bytes, failure, "sorting %zu references", sort->count);
	if (memory != NULL)
	{
		sort->key = memory;
		sort->room_key = sort->key + sort->count;
		sort->value = (uint32_t *) (sort->room_key + sort->count);
		sort->room_value = sort->value + sort->count;
		run_pieces(sorting, number_references);
	}
	pthread_mutex_unlock(&turn);
	return memory;
}

bool
dataset_sort(struct dataset *dataset, const atomic_bool *cancelled, struct failure *failure)
{
	struct sorting sorting = {
		.dataset = dataset,
		.cancelled = cancelled,
		.sort = {.count = dataset->count, .cancelled = cancelled}
	};
	size_t		bytes = 2 * (sizeof(uint64_t) + sizeof(uint32_t)) * dataset->count;
	void	   *memory;
	bool		done;

	if (dataset->count < 2)
		return true;
	memory = take_room(&sorting, bytes, failure);
	if (memory == NULL)
		return false;
	done = put_back(&sorting) ||
		(run_pieces(&sorting, number_references) && sort_references(&sorting, failure));
	done = done && order_columns(&sorting);
	memory_block_release(memory, bytes);
	return done;
}
