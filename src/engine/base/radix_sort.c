/*
 * radix_sort.c
 *		Radix sort on all threads.
 *
 * The sort goes digit by digit, from a low one to the highest.  The rows are cut
 * into pieces.  For each digit, every piece counts its rows by the digit's value;
 * the counts become the places where each piece's rows of each value go; and
 * every piece moves its rows there.  A digit that is the same in all keys is
 * skipped: the points of one city differ in few digits.
 *
 * Few keys have the same bits above as many others: two million points anywhere
 * differ in the first 24 bits of 59, but for some pairs.  A sample of the keys tells
 * how many digits tell them apart.  Digits below these are left out: at the end the
 * few rows that have the same bits above them, a run, are sorted among themselves,
 * by one thread.
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

/* Look at this many keys at most, and at one of so many, to find how many have the same bits above. */
#define SAMPLE_MAX 1024
#define SAMPLE_SHARE 32

/* Runs may have so many rows besides each row, on average: they cost less than another digit. */
#define RUN_OTHERS 4

/* So few rows are one run. */
#define ROWS_OF_A_RUN 512

/* Insertion sorts so many rows; longer runs are merged of such parts. */
#define INSERTION_ROWS ((size_t) 16)

struct pass
{
	struct radix_sort *sort;
	size_t		pieces;
	size_t		turn;			/* how many pieces run as one job */
	size_t		piece_rows;
	unsigned	shift;
	unsigned	low;			/* so many bits at the end of the keys are left to the runs */
	size_t	   *begin;			/* [pieces + 1] where the runs of each piece begin */
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

/* ---- runs ---- */

static bool
is_cancelled(const struct radix_sort *sort)
{
	return sort->cancelled != NULL && atomic_load_explicit(sort->cancelled, memory_order_relaxed);
}

static int
compare_keys(const void *a, const void *b)
{
	uint64_t	first = *(const uint64_t *) a;
	uint64_t	second = *(const uint64_t *) b;

	return (first > second) - (first < second);
}

/* Return how many of some sorted keys' pairs have the same bits above the lowest `low`. */
static size_t
count_alike(const uint64_t *key, size_t count, unsigned low)
{
	size_t		pairs = 0;
	size_t		run = 0;

	for (size_t i = 1; i < count; i++)
	{
		run = (key[i] ^ key[i - 1]) >> low == 0 ? run + 1 : 0;
		pairs += run;
	}
	return pairs;
}

/* Return how many bits, from the lowest, are left to the runs, of keys whose lowest `bits` vary. */
static unsigned
bits_of_runs(const struct radix_sort *sort, unsigned bits)
{
	uint64_t	key[SAMPLE_MAX];
	size_t		count = sort->count / SAMPLE_SHARE < SAMPLE_MAX ? sort->count / SAMPLE_SHARE : SAMPLE_MAX;
	double		all = (double) count * ((double) count - 1) / 2;
	size_t		stride;
	unsigned	low = bits;

	/* no shift is by 64 bits */
	if (sort->count <= ROWS_OF_A_RUN)
		return bits < 64 ? bits : 63;
	/* at no even distance, lest the sample see the same rows of each period */
	stride = sort->count / count;
	for (size_t i = 0; i < count; i++)
		key[i] = sort->key[i * stride + (i * UINT64_C(0x9e3779b97f4a7c15) >> 32) % stride];
	qsort(key, count, sizeof(*key), compare_keys);
	do
		low = low > DIGIT_BITS ? low - DIGIT_BITS : 0;
	while (low > 0 && (double) count_alike(key, count, low) * (double) sort->count > RUN_OTHERS * all);
	return low;
}

/* Sort the rows of a run by insertion. */
static void
insert_rows(const struct radix_sort *sort, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end; i++)
	{
		uint64_t	key = sort->key[i];
		uint32_t	value = sort->value[i];
		size_t		place = i;

		for (; place > first && sort->key[place - 1] > key; place--)
		{
			sort->key[place] = sort->key[place - 1];
			sort->value[place] = sort->value[place - 1];
		}
		sort->key[place] = key;
		sort->value[place] = value;
	}
}

/* Merge two sorted ranges of rows, first ... middle - 1 and middle ... end - 1, into the room. */
static void
merge_rows(const struct radix_sort *sort, size_t first, size_t middle, size_t end)
{
	size_t		left = first;
	size_t		right = middle;

	for (size_t i = first; i < end; i++)
	{
		size_t		from = right == end || (left < middle && sort->key[left] <= sort->key[right]) ? left++ : right++;

		sort->room_key[i] = sort->key[from];
		sort->room_value[i] = sort->value[from];
	}
}

static bool
are_sorted(const uint64_t *key, size_t first, size_t end)
{
	for (size_t i = first + 1; i < end; i++)
		if (key[i - 1] > key[i])
			return false;
	return true;
}

/* Sort the rows of a run; equal keys keep their order. */
static void
sort_run(const struct radix_sort *sort, size_t first, size_t end)
{
	struct radix_sort run = *sort;

	if (are_sorted(sort->key, first, end))
		return;
	for (size_t i = first; i < end; i += INSERTION_ROWS)
		insert_rows(sort, i, end - i < INSERTION_ROWS ? end : i + INSERTION_ROWS);
	for (size_t rows = INSERTION_ROWS; rows < end - first && !is_cancelled(sort); rows *= 2)
	{
		for (size_t i = first; i < end; i += 2 * rows)
			merge_rows(&run, i, end - i < rows ? end : i + rows, end - i < 2 * rows ? end : i + 2 * rows);
		swap_rooms(&run);
	}
	if (run.key == sort->key)
		return;
	memcpy(sort->key + first, run.key + first, (end - first) * sizeof(*run.key));
	memcpy(sort->value + first, run.value + first, (end - first) * sizeof(*run.value));
}

/* Sort the runs that begin in a piece. */
static void
sort_runs(void *context, size_t number)
{
	struct pass *pass = context;
	const struct radix_sort *sort = pass->sort;
	size_t		end = pass->begin[number + 1];
	size_t		first = pass->begin[number];

	for (size_t i = first + 1; i <= end; i++)
	{
		if (i < end && (sort->key[i] ^ sort->key[first]) >> pass->low == 0)
			continue;
		if (i > first + 1)
			sort_run(sort, first, i);
		first = i;
	}
}

/* Find where the runs of each piece begin, and sort them. */
static void
sort_all_runs(struct pass *pass)
{
	const struct radix_sort *sort = pass->sort;

	for (size_t piece = 0; piece <= pass->pieces; piece++)
	{
		size_t		begin = piece * pass->piece_rows < sort->count ? piece * pass->piece_rows : sort->count;

		while (begin > 0 && begin < sort->count && (sort->key[begin] ^ sort->key[begin - 1]) >> pass->low == 0)
			begin++;
		pass->begin[piece] = begin;
	}
	(void) run_pieces(pass, sort_runs);
}

void
radix_sort_place(struct radix_sort *sort, struct column_block *block, size_t count)
{
	COLUMN_PLACE(block, sort->key, count);
	COLUMN_PLACE(block, sort->room_key, count);
	COLUMN_PLACE(block, sort->value, count);
	COLUMN_PLACE(block, sort->room_value, count);
}

/* Sort the rows of a pass, whose memory is there, unless the sort is cancelled. */
static void
sort_pieces(struct pass *pass)
{
	const struct radix_sort *sort = pass->sort;
	uint64_t	varying = 0;
	unsigned	bits = 0;
	bool		done = true;

	geonn_assert(pass->pieces * pass->piece_rows >= sort->count);
	run_pieces(pass, find_varying);
	for (size_t i = 0; i < pass->pieces; i++)
		varying |= pass->varying[i];
	while (bits < 64 && varying >> bits != 0)
		bits++;
	pass->low = bits_of_runs(sort, bits);
	for (pass->shift = pass->low; pass->shift < bits && done; pass->shift += DIGIT_BITS)
		done = (varying >> pass->shift & (DIGITS - 1)) == 0 || sort_digit(pass);
	if (done && pass->low > 0 && varying << (64 - pass->low) != 0)
		sort_all_runs(pass);
	geonn_assert(is_cancelled(sort) || are_sorted(sort->key, 0, sort->count));
}

bool
radix_sort(struct radix_sort *sort)
{
	struct pass pass = {.sort = sort, .turn = PIECES_PER_THREAD * thread_pool_threads()};
	bool		has_memory;

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
	pass.begin = malloc((pass.pieces + 1) * sizeof(*pass.begin));
	has_memory = pass.counts != NULL && pass.varying != NULL && pass.begin != NULL;
	if (has_memory)
		sort_pieces(&pass);
	free(pass.counts);
	free(pass.varying);
	free(pass.begin);
	return has_memory;
}
