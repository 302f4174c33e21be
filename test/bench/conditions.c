/*
 * conditions.c
 *		What the benchmark's points have beside their places: groups, windows and
 *		radiuses.
 */
#include "conditions.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "common/window.h"

/* what one point has */
struct condition
{
	uint32_t	step;
	int64_t		low;
	int64_t		high;			/* exclusive for references by steps */
	double		radius;
};

uint32_t
conditions_columns(const struct conditions *conditions)
{
	bool		windows = conditions->steps > 0 || conditions->present > 0 || conditions->observed > 0;

	return (conditions->groups > 0 ? GEONN_COLUMN_GROUP : 0) |
		(windows ? GEONN_COLUMN_WINDOW : 0) |
		(conditions->radius > 0 ? GEONN_COLUMN_RADIUS : 0) |
		(conditions->exclude_self ? GEONN_COLUMN_EXCLUDED : 0) |
		(conditions->lines > 0 || conditions->polygons > 0 ? GEONN_COLUMN_ARC : 0) |
		((1u << conditions->weights) - 1) * GEONN_COLUMN_WEIGHT;
}

bool
conditions_any(const struct conditions *conditions)
{
	return conditions_columns(conditions) != 0 || conditions->within > 0;
}

double
conditions_max_distance(const struct conditions *conditions)
{
	return conditions->within > 0 ? conditions->within : INFINITY;
}

enum points_set
conditions_observed_set(const struct conditions *conditions)
{
	return conditions->exclude_self ? POINTS_REFERENCES : POINTS_OBSERVATIONS;
}

static struct condition
get(const struct conditions *conditions, uint64_t seed, enum points_set set, uint64_t number)
{
	uint64_t	key = points_mix(points_mix(seed ^ UINT64_C(0x77696e646f77)) + set);
	double		moment = points_random(key, 2 * number);
	uint32_t	steps = conditions->steps > 0 ? conditions->steps : conditions->groups;
	struct condition condition = {
		.radius = conditions->radius * points_random(key, 2 * number + 1),
		.low = (int64_t) (moment * CONDITIONS_TIME)
	};

	condition.high = condition.low;
	if (steps > 0)
		condition.step = set == POINTS_REFERENCES ? (uint32_t) (number % steps) : (uint32_t) (moment * steps);
	if (conditions->steps > 0)
	{
		int64_t		length = CONDITIONS_TIME / steps;

		condition.low = condition.step * length;
		condition.high = condition.low + length;
		if (set == POINTS_OBSERVATIONS)
			condition.high = condition.low += (int64_t) (points_random(key, 2 * number + 1) * (double) length);
	}
	else
	{
		double		share = set == POINTS_REFERENCES ? conditions->present : conditions->observed;

		condition.high = condition.low + (int64_t) (0.5 * share * CONDITIONS_TIME);
		condition.low -= condition.high - condition.low;
	}
	return condition;
}

double
conditions_weight(uint64_t seed, uint64_t reference, uint32_t weight)
{
	double		random = points_random(points_mix(seed ^ UINT64_C(0x776569676874)) + weight, reference);

	return weight == 0 ? floor(1000 * random) : random;
}

static bool
is_exclusive(const struct conditions *conditions, enum points_set set)
{
	return conditions->steps > 0 && set == POINTS_REFERENCES;
}

void
conditions_fill(const struct conditions *conditions, uint64_t seed, enum points_set set,
				uint64_t first, size_t count, const struct geonn_batch_columns *columns)
{
	for (size_t i = 0; i < count; i++)
	{
		struct condition condition = get(conditions, seed, set, first + i);

		if (columns->group != NULL)
			columns->group[i] = (int32_t) condition.step;
		if (columns->excluded_first != NULL)
			columns->excluded_first[i] = columns->excluded_last[i] = (int64_t) bench_tag(first + i);
		if (columns->radius != NULL)
			columns->radius[i] = condition.radius;
		for (uint32_t weight = 0; weight < conditions->weights && set == POINTS_REFERENCES; weight++)
			columns->weight[weight][i] = conditions_weight(seed, first + i, weight);
		if (columns->low[0] != NULL)
		{
			columns->low[0][i] = condition.low;
			columns->high[0][i] = condition.high;
			columns->edges[i] = geonn_edges_of(0, GEONN_EDGE_INCLUSIVE, is_exclusive(conditions, set) ?
											   GEONN_EDGE_EXCLUSIVE : GEONN_EDGE_INCLUSIVE);
		}
	}
}

bool
conditions_hold(const struct conditions *conditions, uint64_t seed, uint64_t observation,
				uint64_t reference, double distance)
{
	uint32_t	columns = conditions_columns(conditions);
	struct condition here = get(conditions, seed, POINTS_OBSERVATIONS, observation);
	struct condition there = get(conditions, seed, POINTS_REFERENCES, reference);
	bool		ended = is_exclusive(conditions, POINTS_REFERENCES) ? there.high <= here.low :
		there.high < here.low;

	return distance <= conditions_max_distance(conditions) &&
		(!(columns & GEONN_COLUMN_EXCLUDED) || observation != reference) &&
		(!(columns & GEONN_COLUMN_GROUP) || here.step == there.step) &&
		(!(columns & GEONN_COLUMNS_WINDOWS) || (!ended && there.low <= here.high)) &&
		(!(columns & GEONN_COLUMN_RADIUS) || (distance <= here.radius && distance <= there.radius));
}

const char *
conditions_text(const struct conditions *conditions)
{
	static char text[200];
	size_t		length = 0;

	text[0] = '\0';
	if (conditions->groups > 0)
		length += (size_t) snprintf(text, sizeof(text), ", %u groups", conditions->groups);
	if (conditions->steps > 0)
		length += (size_t) snprintf(text + length, sizeof(text) - length, ", windows of %u steps",
									conditions->steps);
	if (conditions->present > 0 || conditions->observed > 0)
		length += (size_t) snprintf(text + length, sizeof(text) - length,
									", windows of %g and %g of the time", conditions->present,
									conditions->observed);
	if (conditions->weights > 0)
		length += (size_t) snprintf(text + length, sizeof(text) - length, ", weights: %u", conditions->weights);
	if (conditions->lines > 0)
		length += (size_t) snprintf(text + length, sizeof(text) - length, ", lines of %u", conditions->lines);
	if (conditions->polygons > 0)
		length += (size_t) snprintf(text + length, sizeof(text) - length, ", polygons of %u", conditions->polygons);
	if (conditions->exclude_self)
		length += (size_t) snprintf(text + length, sizeof(text) - length, ", none of its own");
	if (conditions->within > 0)
		length += (size_t) snprintf(text + length, sizeof(text) - length, ", within %g m", conditions->within);
	if (conditions->radius > 0)
		snprintf(text + length, sizeof(text) - length, ", radiuses up to %g m", conditions->radius);
	return text;
}
