/*
 * candidates.c
 *		Turns the candidates of one observation into its pairs.
 *
 * Most observations have a handful of candidates, which insertion sort puts in
 * order; the C library sorts more.
 */
#include "engine/search/candidates.h"

#include <stdlib.h>

#include "common/assertion.h"

#define INSERTION_MAX 24

static int
compare_candidates(const void *first, const void *second)
{
	const struct candidate *a = first;
	const struct candidate *b = second;

	return candidate_before(*a, *b) ? -1 : candidate_before(*b, *a);
}

void
candidates_sort(struct candidate *candidates, size_t count)
{
	size_t		risen = 1;

	while (risen < count && candidate_before(candidates[risen - 1], candidates[risen]))
		risen++;
	if (risen >= count)
		return;
	if (count <= INSERTION_MAX)
	{
		for (size_t i = 1; i < count; i++)
		{
			struct candidate moving = candidates[i];
			size_t		at = i;

			for (; at > 0 && candidate_before(moving, candidates[at - 1]); at--)
				candidates[at] = candidates[at - 1];
			candidates[at] = moving;
		}
		return;
	}
	qsort(candidates, count, sizeof(*candidates), compare_candidates);
}

#ifdef USE_ASSERT_CHECKING
static bool
are_sorted(const struct candidate *candidates, size_t count)
{
	size_t		risen = 1;

	while (risen < count && !candidate_before(candidates[risen], candidates[risen - 1]))
		risen++;
	return risen >= count;
}
#endif

size_t
candidates_choose(struct candidate *candidates, size_t count, const struct question *question,
				  const struct cutoff *cutoff)
{
	size_t		within = 0;
	size_t		skipped = 0;

	for (size_t i = 0; i < count; i++)
		if (candidates[i].distance <= question->max_distance)
			candidates[within++] = candidates[i];
	candidates_sort(candidates, within);

	geonn_assert(are_sorted(candidates, within));
	if (question->k > 0 && within > question->k)
	{
		double		last = candidates[question->k - 1].distance;

		count = question->k;
		while (question->ties && count < within && candidates[count].distance == last)
			count++;
	}
	else
		count = within;

	geonn_assert(count <= within);
	if (cutoff->present)
	{
		struct candidate given = {cutoff->distance, cutoff->place, 0};

		while (skipped < count && !candidate_before(given, candidates[skipped]))
			skipped++;
		for (size_t i = skipped; i < count; i++)
			candidates[i - skipped] = candidates[i];
	}
	return count - skipped;
}
