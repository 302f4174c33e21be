/*
 * window_lengths.c
 *		What samples of observations and references tell of their windows.
 *
 * The indexes of all devices cut references with windows into stretches of time,
 * each in its own way.  What they have to know before is the same, and found here.
 * Only speed depends on it.
 */
#include "engine/search/window_lengths.h"

#include <stdlib.h>

#include "common/assertion.h"
#include "engine/dataset/point_windows.h"
#include "engine/search/device.h"

/* a sample has at most this many references, or observations */
#define SAMPLE 64

/* Return the index of the i-th sampled observation, or reference, among `count`. */
static size_t
sampled(size_t i, size_t count)
{
	return count < SAMPLE ? i : i * count / SAMPLE;
}

static size_t
sample_size(size_t count)
{
	return count < SAMPLE ? count : SAMPLE;
}

int
window_lengths_choose(const struct search *search)
{
	const struct dataset *dataset = search->dataset;
	size_t		rows = search->rows - search->first;
	uint32_t	shared[GEONN_WINDOWS_MAX] = {0};
	int			chosen = -1;

	for (size_t i = 0; i < sample_size(rows); i++)
	{
		uint32_t	row = search->first + (uint32_t) sampled(i, rows);
		struct point_windows windows = point_windows_read(&search->columns, row);

		for (size_t j = 0; j < sample_size(dataset->count); j++)
			for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
			{
				size_t		place = sampled(j, dataset->count);

				shared[window] += dataset->low[window] != NULL &&
					geonn_windows_overlap(window, windows.low[window], windows.high[window],
										  windows.edges, dataset->low[window][place],
										  dataset->high[window][place], dataset->edges[place]);
			}
	}
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
		if (dataset->low[window] != NULL && (chosen < 0 || shared[window] < shared[chosen]))
			chosen = window;
	geonn_assert(chosen >= 0);
	return chosen;
}

static int
compare_lengths(const void *left, const void *right)
{
	uint64_t	a = *(const uint64_t *) left;
	uint64_t	b = *(const uint64_t *) right;

	return a < b ? -1 : a > b;
}

uint64_t
window_lengths_observed(const struct search *search, int window)
{
	size_t		rows = search->rows - search->first;
	size_t		count = sample_size(rows);
	uint64_t	length[SAMPLE] = {0};

	for (size_t i = 0; i < count; i++)
	{
		uint32_t	row = search->first + (uint32_t) sampled(i, rows);
		struct point_windows windows = point_windows_read(&search->columns, row);

		length[i] = window_length(windows.low[window], windows.high[window]);
	}
	qsort(length, count, sizeof(*length), compare_lengths);
	return length[count / 2];
}

uint64_t
window_lengths_span(const struct dataset *dataset, int window)
{
	size_t		count = sample_size(dataset->count);
	uint64_t	begin[SAMPLE] = {0};	/* as differences from INT64_MIN */

	geonn_assert(dataset->low[window] != NULL);
	for (size_t i = 0; i < count; i++)
		begin[i] = window_length(INT64_MIN, dataset->low[window][sampled(i, dataset->count)]);
	qsort(begin, count, sizeof(*begin), compare_lengths);
	return begin[count - 1 - count / 8] - begin[count / 8];
}

void
window_lengths_divide(const uint32_t *count, uint32_t least, int bits_each, uint8_t *class_of)
{
	uint32_t	left = 0;
	uint32_t	joined = 0;
	int			shortest = 0;

	for (int bits = 0; bits < WINDOW_LENGTHS; bits++)
		left += count[bits];
	for (int bits = 0; bits < WINDOW_LENGTHS; bits++)
	{
		joined += count[bits];
		left -= count[bits];
		if (bits < WINDOW_LENGTHS - 1 &&
			(bits % bits_each != 0 || joined == 0 || (left > 0 && joined < least)))
			continue;
		for (; shortest <= bits; shortest++)
			class_of[shortest] = (uint8_t) bits;
		joined = 0;
	}
}
