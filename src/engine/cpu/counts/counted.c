/*
 * counted.c
 *		Makes pairs of what a count has found.
 */
#include "engine/cpu/counts/counted.h"

#include <string.h>

void
cpu_counted_begin(const struct cpu_count_piece *piece, struct cpu_counted *counted)
{
	for (uint32_t radius = 0; radius < piece->radii->count; radius++)
	{
		counted[radius].references = 0;
		for (uint32_t i = 0; i < piece->weights; i++)
		{
			memset(counted[radius].sum[i].word, 0, piece->sums[i].form.words * sizeof(uint64_t));
			counted[radius].range[i] = (struct cpu_range) {INFINITY, -INFINITY};
		}
	}
}

/* Return the value that pair number `pair` of a radius has in the column of distances (protocol_search.h). */
static double
value_of(const struct cpu_count_piece *piece, const struct cpu_counted *counted, uint32_t pair)
{
	uint32_t	weight;

	if (piece->weights == 0)
		return 0.0;
	weight = pair % piece->weights;
	if (pair < piece->weights)
		return cpu_sums_rounded(&piece->sums[weight], &counted->sum[weight]);
	/* -0 becomes 0 */
	return (pair / piece->weights == 1 ? counted->range[weight].least : counted->range[weight].greatest) + 0.0;
}

void
cpu_counted_end(const struct cpu_count_piece *piece, uint32_t row, const struct cpu_counted *counted)
{
	uint32_t	each = search_counts_each(piece->search);
	uint32_t	pairs = each / piece->radii->count; /* pairs of each radius */
	size_t		pair = (size_t) row * each;

	for (uint32_t radius = 0; radius < piece->radii->count; radius++)
		for (uint32_t i = 0; i < pairs; i++, pair++)
		{
			piece->tag[pair] = (int64_t) counted[radius].references;
			piece->distance[pair] = value_of(piece, &counted[radius], i);
		}
	piece->answered[row] = true;
}
