/*
 * radix_sort_test.c
 *		Radix sort gives the order of a stable sort, whatever bits the keys differ in, and however many are alike.
 *
 * Usage: radix_sort_test [SEED [SETS]]
 *
 * rooms: engine/base
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <stdio.h>
#include <stdlib.h>

#include "engine/base/radix_sort.h"
#include "engine/base/thread_pool.h"
#include "../lib/random.h"
#include "../lib/verdict.h"

#define SETS 400
#define ROWS_MAX 300000

struct row
{
	uint64_t	key;
	uint32_t	value;
};

static int
compare(const void *left, const void *right)
{
	const struct row *a = left;
	const struct row *b = right;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return a->value < b->value ? -1 : 1;
}

enum keys
{
	ANY_BITS,
	FEW_VALUES,
	IN_CROWDS,					/* many have most bits in common with thousands of others */
	ONE_CROWD,					/* one in a hundred has, which a sample hardly shows */
	EVERY_SECOND,				/* every second one is of one crowd, the others are not */
	NUMBERS,
	KINDS
};

/* Draw a key; `below` is how many bits are left out, or are not those of its crowd. */
static uint64_t
draw_key(enum keys kind, size_t row, const uint64_t *crowds, int below)
{
	switch (kind)
	{
		case ANY_BITS:
			return random_bits() >> below;
		case FEW_VALUES:
			return crowds[random_below(8)];
		case IN_CROWDS:
			return (crowds[random_below(64)] >> below << below) ^ (random_bits() & ((UINT64_C(1) << below) - 1));
		case ONE_CROWD:
			return random_below(100) ? random_bits() : (crowds[0] >> 20 << 20) ^ (random_bits() & 0xFFFFF);
		case EVERY_SECOND:
			return row % 2 ? random_bits() : (crowds[0] >> 20 << 20) ^ (random_bits() & 0xFFFFF);
		case NUMBERS:
			return radix_sort_key(random_magnitude(1e-3, 1e6));
		case KINDS:
			break;
	}
	return 0;
}

/* Are random rows in the order of a stable sort? */
static bool
set_is_right(size_t count)
{
	enum keys	kind = (enum keys) random_below(KINDS);
	int			below = 1 + random_below(60);
	uint64_t	crowds[64];
	struct row *rows = calloc(count, sizeof(*rows));
	uint64_t   *keys = calloc(2 * count, sizeof(*keys));
	uint32_t   *values = calloc(2 * count, sizeof(*values));
	struct radix_sort sort = {count, NULL, keys, values, keys + count, values + count};
	bool		right;

	for (int i = 0; i < 64; i++)
		crowds[i] = random_bits();
	for (size_t i = 0; i < count; i++)
	{
		rows[i] = (struct row) {draw_key(kind, i, crowds, below), (uint32_t) i};
		keys[i] = rows[i].key;
		values[i] = rows[i].value;
	}
	qsort(rows, count, sizeof(*rows), compare);
	right = radix_sort(&sort);
	for (size_t i = 0; i < count; i++)
		right = right && sort.key[i] == rows[i].key && sort.value[i] == rows[i].value;
	if (!right)
		printf("# %zu rows, keys %d, %d bits\n", count, kind, below);
	free(rows);
	free(keys);
	free(values);
	return right;
}

int
main(int argc, char **argv)
{
	int			sets = argc > 2 ? atoi(argv[2]) : SETS;
	long		wrong = 0;

	random_state = argc > 1 ? strtoull(argv[1], NULL, 10) : random_state;
	printf("# seed %llu\n", (unsigned long long) random_state);
	for (int i = 0; i < sets; i++)
	{
		int			most = i % 4 == 0 ? 20 : i % 4 == 1 ? 2000 : i % 20 == 2 ? ROWS_MAX : ROWS_MAX / 10;

		thread_pool_set_threads(1 + (uint64_t) i % 4);
		wrong += !set_is_right((size_t) random_below(most));
	}
	report_failures("rows that are not in the order of a stable sort", wrong);
	thread_pool_close();
	return summed_up();
}
