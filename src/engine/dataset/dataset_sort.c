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
 * References that arrive in order, as those of a table that is written once do, are only looked at.
 *
 * Several sessions may sort at a time.  All work is in short jobs of the
 * thread pool: between two of them other jobs run, and a cancelled sort ends.
 */
#include "engine/dataset/dataset.h"

#include <string.h>

#include "common/assertion.h"
#include "engine/base/memory_block.h"
#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"

/* how many references one piece of the work has */
#define PIECE_ROWS ((size_t) 1 << 15)

/* A job has this many pieces for each thread, and takes some 10 ms. */
#define PIECES_PER_THREAD 16

#define SIGN ((uint64_t) 1 << 63)

struct sorting
{
	const struct dataset *dataset;
	const atomic_bool *cancelled;
	struct radix_sort sort;		/* the keys, and the references' numbers as values */
	const double *by;			/* the column to sort by; NULL: the tag */
	atomic_bool repeats;		/* a tag occurs twice */
	atomic_bool falls;			/* a reference comes after the next one */

	void	   *column;			/* the column that is put into order */
	size_t		width;			/* how many bytes each value of the column has */
};

static size_t
piece_end(const struct sorting *sorting, size_t number)
{
	size_t		end = (number + 1) * PIECE_ROWS;

	return end < sorting->sort.count ? end : sorting->sort.count;
}

/* Run a function on all pieces.  Returns false once the sort is cancelled. */
static bool
run_pieces(struct sorting *sorting, thread_pool_piece piece)
{
	return thread_pool_run_turns(piece, sorting,
								 (sorting->sort.count + PIECE_ROWS - 1) / PIECE_ROWS,
								 PIECES_PER_THREAD * thread_pool_threads(),
								 sorting->cancelled);
}

static void
number_references(void *context, size_t number)
{
	struct sorting *sorting = context;
	size_t		end = piece_end(sorting, number);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		sorting->sort.value[i] = (uint32_t) i;
}

static void
make_keys(void *context, size_t number)
{
	struct sorting *sorting = context;
	const struct radix_sort *sort = &sorting->sort;
	size_t		end = piece_end(sorting, number);

	for (size_t i = number * PIECE_ROWS; i < end; i++)
		sort->key[i] = sorting->by != NULL ? radix_sort_key(sorting->by[sort->value[i]]) :
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
	if (!radix_sort(&sorting->sort))
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

/* Put the references' numbers into the order (tag, latitude, longitude); of arcs, into the order of tags alone. */
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

/* ---- columns ---- */

/* Collect a piece of a column in the new order, in the memory of keys, which are no longer needed. */
static void
collect_column(void *context, size_t number)
{
	struct sorting *sorting = context;
	const uint32_t *value = sorting->sort.value;
	size_t		end = piece_end(sorting, number);
	const char *from = sorting->column;
	char	   *to = (char *) sorting->sort.room_key;

	geonn_assert(sorting->width <= sizeof(uint64_t));
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

static bool
sort_all(struct sorting *sorting, struct failure *failure)
{
	struct radix_sort *sort = &sorting->sort;
	size_t		bytes = 2 * (sizeof(uint64_t) + sizeof(uint32_t)) * sort->count;
	void	   *memory = memory_block_take(bytes, sorting->cancelled, failure, "sorting %zu references", sort->count);
	bool		done;

	if (memory == NULL)
		return false;
	sort->key = memory;
	sort->room_key = sort->key + sort->count;
	sort->value = (uint32_t *) (sort->room_key + sort->count);
	sort->room_value = sort->value + sort->count;
	done = run_pieces(sorting, number_references) && sort_references(sorting, failure) && order_columns(sorting);
	memory_block_release(memory, bytes);
	return done;
}

/* ---- the order ---- */

/* Whether a reference does not come after the next one, in the order of a sorted dataset. */
static bool
is_before_next(const struct dataset *dataset, size_t i)
{
	if (dataset->tag[i] != dataset->tag[i + 1] || dataset->shape != NULL)
		return dataset->tag[i] <= dataset->tag[i + 1];
	if (dataset->latitude[i] != dataset->latitude[i + 1])
		return dataset->latitude[i] < dataset->latitude[i + 1];
	return dataset->longitude[i] <= dataset->longitude[i + 1];
}

/* Look for a reference of this piece that comes after the next one. */
static void
find_falls(void *context, size_t number)
{
	struct sorting *sorting = context;
	size_t		end = piece_end(sorting, number);

	for (size_t i = number * PIECE_ROWS; i < end && i + 1 < sorting->sort.count; i++)
		if (!is_before_next(sorting->dataset, i))
		{
			atomic_store(&sorting->falls, true);
			return;
		}
}

static bool
is_in_order(struct sorting *sorting)
{
	atomic_store(&sorting->falls, false);
	return run_pieces(sorting, find_falls) && !atomic_load(&sorting->falls);
}

bool
dataset_sort(struct dataset *dataset, const atomic_bool *cancelled, struct failure *failure)
{
	struct sorting sorting = {
		.dataset = dataset,
		.cancelled = cancelled,
		.sort = {.count = dataset->count, .cancelled = cancelled}
	};
	bool		done;

	geonn_assert(!dataset->sealed);
	done = is_in_order(&sorting) || (!atomic_load(cancelled) && sort_all(&sorting, failure));
	geonn_assert(!done || is_in_order(&sorting) || atomic_load(cancelled));
	return done;
}
