/*
 * nearest_conditions.c
 *		What windows, parties and radiuses of a bundle's observations say of
 *		their nearest references on the CPU.
 *
 * Only searches with such conditions come here.
 */
#include "engine/cpu/walk/nearest_bundle.h"

#include "common/metric.h"

/*
 * Read the windows of a bundle's observations, once: the batch is shared with
 * the client.
 */
static void
read_windows(struct cpu_nearest_bundle *bundle, uint32_t first)
{
	const struct cpu_neighbours_piece *piece = bundle->piece;

	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		bundle->around.low[window] = INT64_MAX;
		bundle->around.high[window] = INT64_MIN;
	}
	for (uint32_t i = 0; i < bundle->filled; i++)
	{
		struct point_windows *windows = &bundle->windows[i];

		*windows = i < bundle->count ?
			point_windows_read(&piece->search->columns, piece->first + cpu_nearest_row(piece, first + i)) :
			bundle->windows[i - 1];
		for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
		{
			int64_t		low = windows->low[window];
			int64_t		high = windows->high[window];

			bundle->window_low[window][i] = low;
			bundle->window_high[window][i] = high;
			if (low < bundle->around.low[window])
				bundle->around.low[window] = low;
			if (high > bundle->around.high[window])
				bundle->around.high[window] = high;
		}
	}
}

/*
 * Read the parties of a bundle's observations, once.
 */
static void
read_parties(struct cpu_nearest_bundle *bundle, uint32_t first)
{
	const struct cpu_neighbours_piece *piece = bundle->piece;

	for (uint32_t i = 0; i < bundle->filled; i++)
	{
		bundle->parties[i] = i < bundle->count ?
			point_parties_read(&piece->search->columns, piece->first + cpu_nearest_row(piece, first + i)) :
			bundle->parties[i - 1];
		for (int party = 0; party < GEONN_PARTIES_MAX; party++)
			bundle->party[party][i] = bundle->parties[i].party[party];
	}
}

/*
 * Read the radiuses of a bundle's observations, once, and lower their limits.
 */
static void
read_radiuses(struct cpu_nearest_bundle *bundle, uint32_t first)
{
	const struct cpu_neighbours_piece *piece = bundle->piece;
	double		max_distance = piece->search->question.max_distance;
	const volatile double *column = piece->search->columns.radius + piece->first;

	for (uint32_t i = 0; i < bundle->count; i++)
	{
		double		radius = column[cpu_nearest_row(piece, first + i)];

		bundle->radius[i] = max_distance;
		if (radius >= max_distance)
			continue;

		/* a negative radius has no candidate, and neither has NaN, which only a faulty client sends */
		bundle->radius[i] = radius >= 0.0 ? radius : -1.0;
		bundle->limit[i] = radius >= 0.0 ? geonn_metric_radius_limit(piece->search->dataset->metric, radius) : -1.0;
	}
}

void
CPU_PATH_NAME(cpu_nearest_read) (struct cpu_nearest_bundle *bundle, uint32_t first)
{
	if (bundle->compares && bundle->index->edges != NULL)
		read_windows(bundle, first);
	if (bundle->compares && bundle->index->party[0] != NULL)
		read_parties(bundle, first);
	if (bundle->piece->search->columns.radius != NULL)
		read_radiuses(bundle, first);
}

uint32_t
CPU_PATH_NAME(cpu_nearest_compared) (const struct cpu_nearest_bundle *bundle, uint32_t leaf, uint32_t i)
{
	return cpu_leaf_overlaps(bundle->index, leaf, &bundle->windows[i]) &
		cpu_parties_differ(bundle->index->party, (size_t) leaf * INDEX_WIDTH, &bundle->parties[i]);
}

uint32_t
CPU_PATH_NAME(cpu_nearest_reached) (const struct cpu_nearest_bundle *bundle, uint32_t node)
{
	return cpu_nodes_reached(bundle->index, node, &bundle->around);
}

uint32_t
CPU_PATH_NAME(cpu_nearest_reached_by) (const struct cpu_nearest_bundle *bundle, uint32_t leaf)
{
	const struct cpu_index *index = bundle->index;
	uint32_t	passed = 0;

	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		if (index->window_low[window] == NULL)
			continue;
		for (uint32_t i = 0; i < bundle->filled; i += LANES)
			passed |= (lanes_above(lanes_all_integers(index->smallest_low[window][leaf]),
								   lanes_load_integers(bundle->window_high[window] + i)) |
					   lanes_above(lanes_load_integers(bundle->window_low[window] + i),
								   lanes_all_integers(index->largest_high[window][leaf]))) << i;
	}
	for (int party = 0; party < GEONN_PARTIES_MAX && index->only_party[party] != NULL; party++)
		for (uint32_t i = 0; i < bundle->filled; i += LANES)
			passed |= lanes_equal(lanes_all_integers(index->only_party[party][leaf]),
								  lanes_load_integers(bundle->party[party] + i)) << i;
	return ~passed;
}
