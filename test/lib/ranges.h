/*
 * ranges.h
 *		When ranges overlap, by definition; window.h, whose functions are not called here, is held against it.
 */
#ifndef GEONN_TEST_RANGES_H
#define GEONN_TEST_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/window.h"

/* where a range begins or ends: the bound's value, and whether just before it or after it */
struct brink
{
	int			infinite;		/* -1: before all values; 1: after all values */
	int64_t		value;
	int			beside;			/* -1: just before the value; 1: just after it */
};

static inline struct brink
begin_of(int window, int64_t low, uint16_t edges)
{
	unsigned	edge = edges >> 4 * window & 3;

	return (struct brink) {
		.infinite = edge == GEONN_EDGE_UNBOUNDED ? -1 : 0,
		.value = low,
		.beside = edge == GEONN_EDGE_EXCLUSIVE ? 1 : -1
	};
}

static inline struct brink
end_of(int window, int64_t high, uint16_t edges)
{
	unsigned	edge = edges >> (4 * window + 2) & 3;

	return (struct brink) {
		.infinite = edge == GEONN_EDGE_UNBOUNDED ? 1 : 0,
		.value = high,
		.beside = edge == GEONN_EDGE_EXCLUSIVE ? -1 : 1
	};
}

static inline int
compare_brinks(struct brink a, struct brink b)
{
	if (a.infinite != 0 || b.infinite != 0)
		return a.infinite - b.infinite;
	if (a.value != b.value)
		return a.value < b.value ? -1 : 1;
	return a.beside - b.beside;
}

/*
 * Whether two windows of this number, neither of which is empty, overlap, by their bounds and the edges of their points.
 * Ranges overlap if they have a point of the line of all values in common, where between two
 * neighbours there is always room: the later begin is before the earlier end.
 */
static inline bool
ranges_overlap(int window, int64_t a_low, int64_t a_high, uint16_t a_edges, int64_t b_low, int64_t b_high, uint16_t b_edges)
{
	const struct brink begins[2] = {begin_of(window, a_low, a_edges), begin_of(window, b_low, b_edges)};
	const struct brink ends[2] = {end_of(window, a_high, a_edges), end_of(window, b_high, b_edges)};

	return compare_brinks(begins[compare_brinks(begins[0], begins[1]) < 0],
						  ends[compare_brinks(ends[0], ends[1]) > 0]) < 0;
}

#endif							/* GEONN_TEST_RANGES_H */
