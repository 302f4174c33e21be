/*
 * turn.c
 *		What all turns of a search on the CPU share.
 */
#include "engine/cpu/turn.h"

#include <string.h>

#include "common/metric.h"
#include "engine/cpu/nearest.h"

bool
cpu_turn_is_nearest(const struct search *search)
{
	return search->question.k == 1 && !search->question.ties &&
		!search->cutoff.present && geonn_metric_chord_decides(search->dataset->metric) &&
		(search->dataset->columns == 0 ||
		 (search->dataset->columns == GEONN_COLUMN_GROUP &&
		  search->question.algorithm == GEONN_ALGORITHM_INDEX &&
		  search->dataset->count <= CPU_NEAREST_PARTS_MAX));
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
