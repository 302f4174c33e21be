/*
 * nearest_conditions.c
 *		What windows, parties and radiuses of a bundle's observations say of
 *		their nearest references on the CPU.
 *
 * Only searches with such conditions come here.
 */
#include "engine/cpu/walk/nearest_bundle.h"

/* Widen the ranges around all windows by those of one more observation. */
static void
widen(struct point_windows *around, const struct point_windows *windows)
{
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		if (windows->low[window] < around->low[window])
			around->low[window] = windows->low[window];
		if (windows->high[window] > around->high[window])
			around->high[window] = windows->high[window];
	}
}

void
CPU_PATH_NAME(cpu_nearest_read) (struct cpu_nearest_bundle *bundle, uint32_t first)
{
	const struct cpu_neighbours_piece *piece = bundle->piece;
	const struct search *search = piece->search;

	for (uint32_t i = 0; i < bundle->count; i++)
	{
		struct cpu_conditions *conditions = &bundle->conditions[i];

		cpu_conditions_read(conditions, &search->columns, piece->first + cpu_nearest_row(piece, first + i));
		if (conditions->radius < search->question.max_distance)
			bundle->limit[i] = geonn_metric_radius_limit(search->dataset->metric, conditions->radius);
		if (i == 0 && bundle->index->edges != NULL)
			bundle->around = conditions->windows;
		else if (bundle->index->edges != NULL)
			widen(&bundle->around, &conditions->windows);
	}
}

uint32_t
CPU_PATH_NAME(cpu_nearest_compared) (const struct cpu_nearest_bundle *bundle, uint32_t leaf, uint32_t i)
{
	return cpu_leaf_candidates(bundle->index, leaf, &bundle->conditions[i], UINT32_MAX);
}

uint32_t
CPU_PATH_NAME(cpu_nearest_reached) (const struct cpu_nearest_bundle *bundle, uint32_t node)
{
	return cpu_nodes_reached(bundle->index, node, &bundle->around);
}

uint32_t
CPU_PATH_NAME(cpu_nearest_reached_by) (const struct cpu_nearest_bundle *bundle, uint32_t leaf, uint32_t bits)
{
	for (uint32_t left = bits; left != 0; left &= left - 1)
		if (!cpu_node_may_have(bundle->index, leaf, &bundle->conditions[__builtin_ctz(left)]))
			bits &= ~(left & -left);
	return bits;
}
