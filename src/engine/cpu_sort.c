/*
 * cpu_sort.c
 *		Radix sort on all threads.
 *
 * Digit by digit, from the lowest.  The rows are cut into pieces; for each
 * digit every piece counts its rows by the digit's value, the counts become
 * the places where each piece's rows of each value go, and every piece moves
 * its rows there.  A digit that is the same in all keys is left out: points
 * of one city differ in few.
 */
#include "cpu_sort.h"

#include <stdlib.h>

#include "thread_pool.h"

#define DIGIT_BITS 12
#define DIGITS ((size_t) 1 << DIGIT_BITS)

/* rows of a piece at least, so that counting costs little beside moving */
#define PIECE_ROWS_MIN ((size_t) 1 << 15)

/* a few pieces for each thread make up for threads that the system slows down */
#define PIECES_PER_THREAD 2

struct pass
{
	struct cpu_sort *sort;
	size_t		piece_rows;
	unsigned	shift;
	size_t	   *counts;			/* [pieces][DIGITS] */
	uint64_t   *varying;		/* [pieces] bits that differ from the first key's */
};

static size_t
piece_end(const struct pass *pass, size_t number)
{
	size_t		end = (number + 1) * pass->piece_rows;

	return end < pass->sort->count ? end : pass->sort->count;
}

static void
find_varying(void *context, size_t number)
{
	struct pass *pass = context;
	const uint64_t *key = pass->sort->key;
	size_t		end = piece_end(pass, number);
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
	size_t		end = piece_end(pass, number);
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
	const struct cpu_sort *sort = pass->sort;
	size_t		end = piece_end(pass, number);
	size_t	   *places = pass->counts + number * DIGITS;

	for (size_t i = number * pass->piece_rows; i < end; i++)
	{
		size_t		place = places[sort->key[i] >> pass->shift & (DIGITS - 1)]++;

		sort->room_key[place] = sort->key[i];
		sort->room_value[place] = sort->value[i];
	}
}

/*
 * From how many rows a piece has of each digit to where the first of them goes.
 */
static void
place_pieces(struct pass *pass, size_t pieces)
{
	size_t		place = 0;

	for (size_t digit = 0; digit < DIGITS; digit++)
		for (size_t piece = 0; piece < pieces; piece++)
		{
			size_t		count = pass->counts[piece * DIGITS + digit];

			pass->counts[piece * DIGITS + digit] = place;
			place += count;
		}
}

static void
swap_rooms(struct cpu_sort *sort)
{
	uint64_t   *key = sort->key;
	uint32_t   *value = sort->value;

	sort->key = sort->room_key;
	sort->value = sort->room_value;
	sort->room_key = key;
	sort->room_value = value;
}

bool
cpu_sort(struct cpu_sort *sort, unsigned bits)
{
	size_t		pieces = PIECES_PER_THREAD * thread_pool_threads();
	struct pass pass = {.sort = sort};
	uint64_t	varying = 0;

	if (pieces > sort->count / PIECE_ROWS_MIN)
		pieces = sort->count / PIECE_ROWS_MIN;
	if (pieces < 1)
		pieces = 1;
	pass.piece_rows = (sort->count + pieces - 1) / pieces;
	pass.counts = malloc(pieces * DIGITS * sizeof(*pass.counts));
	pass.varying = calloc(pieces, sizeof(*pass.varying));
	if (pass.counts == NULL || pass.varying == NULL)
	{
		free(pass.counts);
		free(pass.varying);
		return false;
	}

	thread_pool_run(find_varying, &pass, pieces);
	for (size_t i = 0; i < pieces; i++)
		varying |= pass.varying[i];
	for (; pass.shift < bits; pass.shift += DIGIT_BITS)
	{
		if (sort->cancelled != NULL && atomic_load(sort->cancelled))
			break;
		if ((varying >> pass.shift & (DIGITS - 1)) == 0)
			continue;
		thread_pool_run(count_digits, &pass, pieces);
		place_pieces(&pass, pieces);
		thread_pool_run(move_rows, &pass, pieces);
		swap_rooms(sort);
	}
	free(pass.counts);
	free(pass.varying);
	return true;
}
