/*
 * extremes.c
 *		The least and the greatest weight, over any range of the index's positions.
 *
 * Each node of the index has the extremes of its references.  A range of positions is cut into nodes, as large as
 * possible, and what is left at both ends.  A node that does not widen the range that was found so far is passed over.
 * Otherwise its extremes are taken; but where the observation excludes references, which may be those with the extremes,
 * the node's children are looked at, and so on down to the references.
 */
#include "engine/cpu/index/extremes.h"

#include <math.h>
#include <string.h>

#include "engine/base/memory_block.h"

/* Does a range widen another one? */
static bool
widens(struct cpu_range range, const struct cpu_range *other)
{
	return range.least < other->least || range.greatest > other->greatest;
}

static void
widen(struct cpu_range *range, struct cpu_range by)
{
	range->least = by.least < range->least ? by.least : range->least;
	range->greatest = by.greatest > range->greatest ? by.greatest : range->greatest;
}

/* Widen a range by the references of some positions, looking at each reference.  Returns their number. */
static uint64_t
widen_by_positions(const struct cpu_extremes *extremes, const struct cpu_index *index, uint32_t first, uint32_t end,
				   struct cpu_tags excluded, struct cpu_range *range)
{
	bool		excludes = excluded.first <= excluded.last;

	for (uint32_t i = index->start[first]; i < index->start[end]; i++)
	{
		double		weight = extremes->weight[index->place[i]];

		if (excludes && index->tag[i] >= excluded.first && index->tag[i] <= excluded.last)
			continue;
		/* no comparison with NAN holds */
		widen(range, (struct cpu_range) {weight, weight});
	}
	return index->start[end] - index->start[first];
}

/* Widen a range by the references of a node.  Returns how many references it looked at one by one. */
static uint64_t
widen_by_node(const struct cpu_extremes *extremes, const struct cpu_index *index, int level, uint32_t node,
			  struct cpu_tags excluded, struct cpu_range *range)
{
	struct cpu_range of_node = extremes->node[index->shape.first[level] + node];
	uint32_t	below = level > 0 ? index->shape.nodes[level - 1] : index->shape.positions;
	uint32_t	first = node * INDEX_WIDTH;
	uint32_t	end = below - first < INDEX_WIDTH ? below : first + INDEX_WIDTH;
	uint64_t	looked_at = 0;

	if (!widens(of_node, range))
		return 0;
	if (excluded.last < excluded.first)
	{
		widen(range, of_node);
		return 0;
	}
	if (level == 0)
		return widen_by_positions(extremes, index, first, end, excluded, range);
	for (uint32_t child = first; child < end; child++)
		looked_at += widen_by_node(extremes, index, level - 1, child, excluded, range);
	return looked_at;
}

uint64_t
cpu_extremes_widen(const struct cpu_extremes *extremes, const struct cpu_index *index, uint32_t first, uint32_t end,
				   struct cpu_tags excluded, struct cpu_range *range)
{
	/*
	 * The last node of a level may have fewer positions than the others: if the range goes to the end, that node is whole.
	 */
	uint64_t	last = end == index->shape.positions ? UINT64_MAX : end;
	uint64_t	looked_at = 0;

	while (first < end)
	{
		uint32_t	leaf = first / INDEX_WIDTH;
		uint64_t	next = ((uint64_t) leaf + 1) * INDEX_WIDTH;
		int			level = 0;

		if (first % INDEX_WIDTH != 0 || next > last)
		{
			uint32_t	stop = next < end ? (uint32_t) next : end;

			if (widens(extremes->node[leaf], range))
				looked_at += widen_by_positions(extremes, index, first, stop, excluded, range);
			first = stop;
			continue;
		}
		while (level + 1 < index->shape.levels)
		{
			uint64_t	positions = (uint64_t) 1 << INDEX_BITS * (level + 2);

			if (first % positions != 0 || first + positions > last)
				break;
			next = first + positions;
			level++;
		}
		looked_at += widen_by_node(extremes, index, level, first >> INDEX_BITS * (level + 1), excluded, range);
		first = next < end ? (uint32_t) next : end;
	}
	return looked_at;
}

bool
cpu_extremes_build(struct cpu_extremes *extremes, const struct search *search, const struct cpu_index *index,
				   int weight, struct failure *failure)
{
	const struct cpu_tags none = {0, -1};

	extremes->weight = search->dataset->weight[weight];
	extremes->bytes = index->shape.all_nodes * sizeof(struct cpu_range);
	extremes->node = memory_block_allocate(extremes->bytes, failure, "the extremes of %zu weights",
										   search->dataset->count);
	if (extremes->node == NULL)
		return false;
	for (int level = 0; level < index->shape.levels; level++)
	{
		uint32_t	below = level > 0 ? index->shape.nodes[level - 1] : index->shape.positions;

		for (uint32_t node = 0; node < index->shape.nodes[level]; node++)
		{
			struct cpu_range *range = &extremes->node[index->shape.first[level] + node];
			uint32_t	first = node * INDEX_WIDTH;
			uint32_t	end = below - first < INDEX_WIDTH ? below : first + INDEX_WIDTH;

			*range = (struct cpu_range) {INFINITY, -INFINITY};
			if (level == 0)
				(void) widen_by_positions(extremes, index, first, end, none, range);
			else
				for (uint32_t child = first; child < end; child++)
					widen(range, extremes->node[index->shape.first[level - 1] + child]);
		}
	}
	return true;
}

void
cpu_extremes_free(struct cpu_extremes *extremes)
{
	memory_block_release(extremes->node, extremes->bytes);
	memset(extremes, 0, sizeof(*extremes));
}
