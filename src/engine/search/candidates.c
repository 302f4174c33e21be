/*
 * candidates.c
 *		Turns the candidates of one observation into its pairs.
 *
 * Most observations have a handful of candidates, which insertion sort puts in
 * order; the C library sorts more.  Where they may be millions, whose order
 * takes longer than a turn, merges of rising length sort them: these can end
 * after some thousand candidates, and go on.
 */
#include "engine/search/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "common/assertion.h"

#define INSERTION_MAX 24

/* candidates_merge() asks is_over() after this many candidates */
#define MERGED_UNTIL_LOOK 16384

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

bool
candidates_merge(struct candidates_merging *merging, struct candidate *candidates, size_t count,
				 bool (*is_over) (void *context), void *context)
{
	for (; merging->run < count; merging->run *= 2, merging->in_room = !merging->in_room, merging->at = 0)
	{
		const struct candidate *from = candidates + (merging->in_room ? count : 0);
		struct candidate *to = candidates + (merging->in_room ? 0 : count);

		while (merging->at < count)
		{
			size_t		begin = merging->at - merging->at % (2 * merging->run);
			size_t		middle = begin + merging->run < count ? begin + merging->run : count;
			size_t		end = middle + merging->run < count ? middle + merging->run : count;

			if (merging->at == begin)
			{
				merging->left = begin;
				merging->right = middle;
			}
			while (merging->at < end)
			{
				bool		is_left = merging->right == end ||
					(merging->left < middle && !candidate_before(from[merging->right], from[merging->left]));

				to[merging->at++] = from[is_left ? merging->left++ : merging->right++];
				if (merging->at % MERGED_UNTIL_LOOK == 0 && is_over(context))
					return false;
			}
		}
	}
	if (merging->in_room)
		memcpy(candidates, candidates + count, count * sizeof(*candidates));
	merging->in_room = false;
	return true;
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
