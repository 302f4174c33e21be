/*
 * radix_sort.c
 *		Radix sort on all threads.
 *
 * The sort goes digit by digit, from the lowest.  The rows are cut into
 * pieces.  For each digit, every piece counts its rows by the digit's value;
 * the counts become the places where each piece's rows of each value go; and
 * every piece moves its rows there.  A digit that is the same in all keys is
 * skipped: the points of one city differ in few digits.
 *
 * The size of a piece is bounded, and so is the number of pieces that the
 * thread pool runs as one job.  Between two of these jobs, other jobs run, and
 * a cancelled sort ends.
 */
#include "engine/base/radix_sort.h"

#include <stdlib.h>

#include "common/assertion.h"
#include "engine/base/memory_columns.h"
#include "engine/base/thread_pool.h"

#define DIGIT_BITS 12
#define DIGITS ((size_t) 1 << DIGIT_BITS)

/* A piece has at least this many rows, so that counting costs little beside moving. */
#define PIECE_ROWS_MIN ((size_t) 1 << 15)

/* A piece has at most this many rows: some 10 ms of a thread's work. */
#define PIECE_ROWS_MAX ((size_t) 1 << 20)

/* Each thread should have this many pieces: if the system slows one thread down, others take more of them. */
#define PIECES_PER_THREAD 2

struct pass
{
	struct radix_sort *sort;
	size_t		pieces;
	size_t		turn;			/* how many pieces run as one job */
	size_t		piece_rows;
	unsigned	shift;
	size_t	   *counts;			/* [pieces][DIGITS] how many rows have each value of the digit; then
								 * the index to which the next such row goes */
	uint64_t   *varying;		/* [pieces] bits in which keys of the piece differ from the first
								 * key of all */
};

static size_t
end_of_piece(const struct pass *pass, size_t number)
{
	size_t		end = (number + 1) * pass->piece_rows;

	return end < pass->sort->count ? end : pass->sort->count;
}

static void
find_varying(void *context, size_t number)
{
	struct pass *pass = context;
	const uint64_t *key = pass->sort->key;
	size_t		end = end_of_piece(pass, number);
	uint64_t	varying = 0;

	for (size_t i = number * pass->piece_rows; i < end; i++)
		varying |= key[i] ^ key[0];
	pass->varying[number] = varying;
}

static void
count_digits(void *context, size_t number)
{
	struct pass *pass = context;
	const uint64_t *key = pass->sort->key;
	size_t		end = end_of_piece(pass, number);
	size_t	   *counts = pass->counts + number * DIGITS;

	for (size_t i = 0; i < DIGITS; i++)
		counts[i] = 0;
	for (size_t i = number * pass->piece_rows; i < end; i++)
		counts[key[i] >> pass->shift & (DIGITS - 1)]++;
}

static void
move_rows(void *context, size_t number)
{
	struct pass *pass = context;
	const struct radix_sort *sort = pass->sort;
	size_t		end = end_of_piece(pass, number);
	size_t	   *places = pass->counts + number * DIGITS;

	for (size_t i = number * pass->piece_rows; i < end; i++)
	{
		size_t		place = places[sort->key[i] >> pass->shift & (DIGITS - 1)]++;

		geonn_assert(place < sort->count);
		sort->room_key[place] = sort->key[i];
		sort->room_value[place] = sort->value[i];
	}
}

/*
 * Turn the count of rows for each piece and digit into the index to which the
 * first of these rows goes.
 */
static void
place_pieces(struct pass *pass)
{
	size_t		place = 0;

	for (size_t digit = 0; digit < DIGITS; digit++)
		for (size_t piece = 0; piece < pass->pieces; piece++)
		{
			size_t		count = pass->counts[piece * DIGITS + digit];

			pass->counts[piece * DIGITS + digit] = place;
			place += count;
		}
	geonn_assert(place == pass->sort->count);
}

static void
swap_rooms(struct radix_sort *sort)
{
	uint64_t   *key = sort->key;
	uint32_t   *value = sort->value;

	sort->key = sort->room_key;
	sort->value = sort->room_value;
	sort->room_key = key;
	sort->room_value = value;
}

/* Run a function on all pieces.  Returns false once the sort is cancelled. */
static bool
run_pieces(struct pass *pass, thread_pool_piece piece)
{
	return thread_pool_run_turns(piece, pass, pass->pieces, pass->turn, pass->sort->cancelled);
}

/* Sort by the pass's digit.  Returns false once the sort is cancelled; the rows are then as they were. */
static bool
sort_digit(struct pass *pass)
{
	if (!run_pieces(pass, count_digits))
		return false;
	place_pieces(pass);
	if (!run_pieces(pass, move_rows))
		return false;
	swap_rooms(pass->sort);
	return true;
}

#ifdef USE_ASSERT_CHECKING
static bool
is_sorted(const struct radix_sort *sort)
{
	size_t		risen = 1;

	while (risen < sort->count && sort->key[risen - 1] <= sort->key[risen])
		risen++;
	return risen >= sort->count;
}
#endif

void
radix_sort_place(struct radix_sort *sort, struct column_block *block, size_t count)
{
	COLUMN_PLACE(block, sort->key, count);
	COLUMN_PLACE(block, sort->room_key, count);
	COLUMN_PLACE(block, sort->value, count);
	COLUMN_PLACE(block, sort->room_value, count);
}

bool
radix_sort(struct radix_sort *sort)
{
	struct pass pass = {.sort = sort, .turn = PIECES_PER_THREAD * thread_pool_threads()};
	uint64_t	varying = 0;

	pass.pieces = pass.turn;
	if (pass.pieces > sort->count / PIECE_ROWS_MIN)
		pass.pieces = sort->count / PIECE_ROWS_MIN;
	if (pass.pieces < (sort->count + PIECE_ROWS_MAX - 1) / PIECE_ROWS_MAX)
		pass.pieces = (sort->count + PIECE_ROWS_MAX - 1) / PIECE_ROWS_MAX;
	if (pass.pieces < 1)
		pass.pieces = 1;
	pass.piece_rows = (sort->count + pass.pieces - 1) / pass.pieces;
	pass.counts = malloc(pass.pieces * DIGITS * sizeof(*pass.counts));
	pass.varying = calloc(pass.pieces, sizeof(*pass.varying));
	if (pass.counts == NULL || pass.varying == NULL)
	{
		free(pass.counts);
		free(pass.varying);
		return false;
	}

	geonn_assert(pass.pieces * pass.piece_rows >= sort->count);
	run_pieces(&pass, find_varying);
	for (size_t i = 0; i < pass.pieces; i++)
		varying |= pass.varying[i];
	for (; pass.shift < 64 && varying >> pass.shift != 0; pass.shift += DIGIT_BITS)
		if ((varying >> pass.shift & (DIGITS - 1)) != 0 && !sort_digit(&pass))
			break;
	geonn_assert((sort->cancelled != NULL && atomic_load(sort->cancelled)) || is_sorted(sort));
	free(pass.counts);
	free(pass.varying);
	return true;
}
