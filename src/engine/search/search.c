/*
 * search.c
 *		What all devices know of a search alike: the kind of its question, and
 *		how to record what has been answered.
 */
#include "common/metric.h"
#include "engine/search/device.h"

/* a GPU's index has up to 2^31 arcs, and a long one of the dataset is two (cuda/arcs/arcs.cuh) */
#define GPU_ARCS_MAX ((size_t) 1 << 30)

bool
search_is_nearest(const struct search *search)
{
	return search->question.k == 1 && !search->question.ties &&
		geonn_metric_chord_decides(search->dataset->metric);
}

bool
search_is_plain_nearest(const struct search *search)
{
	return search_is_nearest(search) && search->dataset->columns == 0;
}

/* whether a GPU has an index for the search, which is of arcs without other columns, and asks for no places */
static bool
fits_gpu_arcs(const struct search *search)
{
	return !search->question.places && search->dataset->columns == GEONN_COLUMN_ARC && search->dataset->count <= GPU_ARCS_MAX;
}

bool
search_is_nearest_shape(const struct search *search)
{
	return search_is_nearest(search) && fits_gpu_arcs(search);
}

bool
search_is_shapes_within(const struct search *search)
{
	return search->question.k == 0 && search->question.radii == 0 && fits_gpu_arcs(search);
}

uint32_t
search_counts_each(const struct search *search)
{
	uint32_t	weights = (uint32_t) __builtin_popcount(search->dataset->columns & GEONN_COLUMNS_WEIGHTS);

	return search->question.radii * geonn_pairs_of_radius(weights, search->question.extremes);
}

/*
 * Whether positions, groups and tags alone decide which references a search counts.
 */
static bool
counts_by_chords(const struct search *search)
{
	return (search->dataset->columns & ~(GEONN_COLUMN_GROUP | GEONN_COLUMN_EXCLUDED | GEONN_COLUMNS_WEIGHTS)) == 0;
}

enum geonn_device_choice
search_choice(const struct search *search, enum geonn_device_choice chosen)
{
	bool		every_pair = search->question.algorithm == GEONN_ALGORITHM_BRUTE;

	return !geonn_metric_chord_decides(search->dataset->metric) ||
		(search->question.radii > 0 && (search->question.extremes || !counts_by_chords(search))) ||
		search->cutoff.present ||
		(search->dataset->columns & GEONN_COLUMNS_PARTIES) != 0 ||
		((search->dataset->columns & GEONN_COLUMN_ARC) != 0 && !search_is_nearest_shape(search) &&
		 !search_is_shapes_within(search)) ||
		(every_pair && !search_is_plain_nearest(search)) ?
		GEONN_DEVICE_CPU : chosen;
}

void
search_account(struct search *search, uint32_t rows, uint32_t pairs, bool one_each)
{
	uint32_t   *count = search->columns.count + search->first;

	/* once an observation has more or fewer pairs than one, all need their counts */
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
