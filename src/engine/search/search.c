/*
 * search.c
 *		What all devices know of a search alike: whether it asks for the nearest alone, how many
 *		pairs a count has, and how to record what has been answered.
 */
#include "common/metric.h"
#include "common/assertion.h"
#include "engine/search/device.h"

bool
search_is_nearest(const struct search *search)
{
	return search->question.k == 1 && !search->question.ties &&
		geonn_metric_chord_decides(search->dataset->metric);
}

uint32_t
search_counts_each(const struct search *search)
{
	uint32_t	weights = (uint32_t) __builtin_popcount(search->dataset->columns & GEONN_COLUMNS_WEIGHTS);

	return search->question.radii * geonn_pairs_of_radius(weights, search->question.extremes);
}

void
search_account(struct search *search, uint32_t rows, uint32_t pairs, bool one_each)
{
	uint32_t   *count = search->columns.count + search->first;

	geonn_assert(rows <= search->rows - search->first - search->answered);
	geonn_assert(pairs <= search->columns.room - search->pairs);
	geonn_assert(!one_each || pairs == rows * (search->question.assigns ? 2 : 1));
	/* once one observation has more or fewer pairs than one, all observations need their counts */
	if (search->answered == 0)
		search->one_each = one_each;
	else if (search->one_each && !one_each)
	{
		search->one_each = false;
		for (uint32_t i = 0; i < search->answered; i++)
			count[i] = 1;
	}
	else if (!search->one_each && one_each)
		for (uint32_t i = 0; i < rows; i++)
			count[search->answered + i] = 1;
	search->answered += rows;
	search->pairs += pairs;
}
