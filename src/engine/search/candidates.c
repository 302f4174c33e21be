/*
 * candidates.c
 *		Turns the candidates of one observation into its pairs.
 *
 * Most observations have a handful of candidates, which insertion sort puts in
 * order.  More are sorted by heapsort, which needs no memory and is slow on no
 * input, neither sorted candidates nor equal ones.
 */
#include "engine/search/candidates.h"

#include "common/assertion.h"

#define INSERTION_MAX 24

/*
 * Sift the candidate at this index down the heap, in which each candidate comes
 * later in the order than its children.
 */
static void
sink(struct candidate *heap, size_t count, size_t at)
{
	struct candidate sinking = heap[at];

	for (;;)
	{
		size_t		child = 2 * at + 1;

		if (child >= count)
			break;
		if (child + 1 < count && candidate_before(heap[child], heap[child + 1]))
			child++;
		if (!candidate_before(sinking, heap[child]))
			break;
		heap[at] = heap[child];
		at = child;
	}
	heap[at] = sinking;
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

	for (size_t i = count / 2; i-- > 0;)
		sink(candidates, count, i);
	for (size_t left = count; left-- > 1;)
	{
		struct candidate last = candidates[0];

		candidates[0] = candidates[left];
		candidates[left] = last;
		sink(candidates, left, 0);
	}
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
		struct candidate given = {cutoff->distance, cutoff->place};

		while (skipped < count && !candidate_before(given, candidates[skipped]))
			skipped++;
		for (size_t i = skipped; i < count; i++)
			candidates[i - skipped] = candidates[i];
	}
	return count - skipped;
}
