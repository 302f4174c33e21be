/*
 * random_conditions.h
 *		Random radiuses, windows and parties, in batches and compared one by one.
 */
#ifndef GEONN_TEST_RANDOM_CONDITIONS_H
#define GEONN_TEST_RANDOM_CONDITIONS_H

#include <math.h>

#include "common/batch_layout.h"
#include "random.h"
#include "ranges.h"

/* the greatest number of rows that have conditions */
#define CONDITIONS_MAX 65536

/* what a point or a shape has */
struct conditions
{
	double		radius;
	int64_t		low[GEONN_WINDOWS_MAX];
	int64_t		high[GEONN_WINDOWS_MAX];
	uint16_t	edges;
	int32_t		party[GEONN_PARTIES_MAX];
};

/* conditions as columns */
struct condition_columns
{
	double		radius[CONDITIONS_MAX];
	int64_t		low[GEONN_WINDOWS_MAX][CONDITIONS_MAX];
	int64_t		high[GEONN_WINDOWS_MAX][CONDITIONS_MAX];
	uint16_t	edges[CONDITIONS_MAX];
	int32_t		party[GEONN_PARTIES_MAX][CONDITIONS_MAX];
};

static void
put_conditions(struct condition_columns *columns, uint32_t row, const struct conditions *conditions)
{
	columns->radius[row] = conditions->radius;
	columns->edges[row] = conditions->edges;
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		columns->low[i][row] = conditions->low[i];
		columns->high[i][row] = conditions->high[i];
	}
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		columns->party[i][row] = conditions->party[i];
}

/* Set those columns of a batch that a dataset has. */
static void
set_conditions(struct geonn_batch_columns *batch, uint32_t present, struct condition_columns *columns, uint32_t first)
{
	if (present & GEONN_COLUMN_RADIUS)
		batch->radius = columns->radius + first;
	if (present & GEONN_COLUMNS_WINDOWS)
		batch->edges = columns->edges + first;
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (present & GEONN_COLUMN_WINDOW << i)
		{
			batch->low[i] = columns->low[i] + first;
			batch->high[i] = columns->high[i] + first;
		}
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		if (present & GEONN_COLUMN_PARTY << i)
			batch->party[i] = columns->party[i] + first;
}

static unsigned
draw_edge(void)
{
	return random_below(8) == 0 ? GEONN_EDGE_UNBOUNDED : random_below(2) ? GEONN_EDGE_INCLUSIVE : GEONN_EDGE_EXCLUSIVE;
}

static struct conditions
draw_conditions(void)
{
	struct conditions conditions;

	conditions.radius = random_below(3) == 0 ? INFINITY : random_below(12) == 0 ? -1.0 : random_below(12) == 0 ? 0.0 :
		pow(10.0, random_between(-3.0, 7.3));
	conditions.edges = 0;
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
	{
		unsigned	low_edge = draw_edge();
		unsigned	high_edge = draw_edge();

		conditions.low[i] = random_below(12);
		conditions.high[i] = conditions.low[i] + random_below(6);

		/* one value without it would be an empty range, which is not sent */
		if (conditions.low[i] == conditions.high[i])
			low_edge = high_edge = GEONN_EDGE_INCLUSIVE;
		if (low_edge == GEONN_EDGE_UNBOUNDED)
			conditions.low[i] = INT64_MIN;
		if (high_edge == GEONN_EDGE_UNBOUNDED)
			conditions.high[i] = INT64_MAX;
		conditions.edges |= geonn_edges_of(i, low_edge, high_edge);
	}
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		conditions.party[i] = random_below(3);
	return conditions;
}

/* Whether the conditions of two points, or of a point and a shape, hold at this distance, of those that a dataset has. */
static inline bool
conditions_hold(const struct conditions *a, const struct conditions *b, double distance, uint32_t columns)
{
	if (columns & GEONN_COLUMN_RADIUS && (distance > a->radius || distance > b->radius))
		return false;
	for (int i = 0; i < GEONN_WINDOWS_MAX; i++)
		if (columns & GEONN_COLUMN_WINDOW << i &&
			!ranges_overlap(i, a->low[i], a->high[i], a->edges, b->low[i], b->high[i], b->edges))
			return false;
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		if (columns & GEONN_COLUMN_PARTY << i && a->party[i] == b->party[i])
			return false;
	return true;
}

#endif							/* GEONN_TEST_RANDOM_CONDITIONS_H */
