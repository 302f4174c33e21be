/*
 * turn.c
 *		What all turns of a search on the CPU share.
 */
#include "engine/cpu/turn.h"

#include <string.h>

#include "engine/cpu/nearest.h"

bool
cpu_turn_is_nearest(const struct search *search, const struct cpu_built *built)
{
	const struct dataset *dataset = search->dataset;

	if (!search_is_nearest(search) || search->cutoff.present)
		return false;
	if (dataset->columns == 0)
		return true;

	/* parts and groups have numbers, each at most as many as references (cpu_nearest_key) */
	return search->algorithm == GEONN_ALGORITHM_INDEX && dataset->identity == NULL &&
		!built->index->limited && dataset->count < CPU_NEAREST_PARTS_MAX / 2;
}

void
cpu_turn_account(struct search *search, uint32_t rows, const uint32_t *counts, uint32_t pairs)
{
	if (counts != NULL)
		memcpy(search->columns.count + search->first + search->answered, counts,
			   rows * sizeof(*counts));
	search_account(search, rows, pairs, counts == NULL);
}

void
cpu_turn_out_of_range(struct search *search)
{
	search->failed = true;
	fail(&search->failure, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range");
}
