/*
 * cpu_turn.c
 *		A turn of a search on the CPU: what all turns share.
 */
#include "cpu_turn.h"

bool
cpu_turn_is_nearest(const struct search *search)
{
	return search->question.neighbours == 1 && !search->question.ties &&
		!search->cutoff.present && search->dataset->metric == GEONN_METRIC_SPHERE &&
		search->dataset->columns == 0;
}

void
cpu_turn_account(struct search *search, uint32_t rows, const uint32_t *counts, uint32_t pairs)
{
	uint32_t   *count = search->columns.count + search->first;

	if (search->answered == 0)
		search->one_each = true;
	if (search->one_each && counts != NULL)
	{
		/* no longer */
		for (uint32_t i = 0; i < search->answered; i++)
			count[i] = 1;
		search->one_each = false;
	}
	if (!search->one_each)
		for (uint32_t i = 0; i < rows; i++)
			count[search->answered + i] = counts != NULL ? counts[i] : 1;
	search->answered += rows;
	search->pairs += pairs;
}

void
cpu_turn_out_of_range(struct search *search)
{
	search->failed = true;
	fail(&search->failure, GEONN_ERROR_PROTOCOL, "observation coordinates are out of range");
}
