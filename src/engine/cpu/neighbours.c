/*
 * neighbours.c
 *		Answers any question for one observation on the CPU, by the index.
 *
 * The walk goes from the topmost level down, in each node to its nearest child
 * first.  It leaves out the nodes whose bound is above the collector's limit
 * (cpu/walk.h says why that is right), and the nodes that only have other
 * groups.  The limit shrinks on the way, so the first leaf saves most of the
 * work.
 */
#include "engine/cpu/neighbours.h"

#include "engine/cpu/walk.h"

struct walk
{
	const struct cpu_index *index;
	struct cpu_collector *collector;
	struct cpu_box box;			/* a box around the observation alone */
};

/*
 * Bits of the children from `first` on whose range of groups includes the
 * group.
 */
static uint32_t
of_group(const struct cpu_index *index, uint32_t first, int32_t group)
{
	uint32_t	bits = 0;

	if (index->low_group == NULL)
		return UINT32_MAX;
	for (int i = 0; i < INDEX_WIDTH; i++)
		bits |= (uint32_t) (index->low_group[first + i] <= group &&
							group <= index->high_group[first + i]) << i;
	return bits;
}

/*
 * Bits of the children from `first` on that lie wholly below the collector's
 * floor, since even their farthest corners do.
 */
static uint32_t
too_near(const struct cpu_index *index, uint32_t first, struct geonn_vector from,
		 double floor)
{
	const double p[3] = {from.x, from.y, from.z};
	uint32_t	bits = 0;

	for (int i = 0; i < INDEX_WIDTH; i++)
	{
		double		reach[3];

		for (int axis = 0; axis < 3; axis++)
		{
			double		below = p[axis] - index->low[axis][first + i];
			double		above = index->high[axis][first + i] - p[axis];

			reach[axis] = below > above ? below : above;
		}
		bits |= (uint32_t) (cpu_filter_chord(reach[0], reach[1], reach[2]) < floor) << i;
	}
	return bits;
}

static void
collect_leaf(struct walk *walk, uint32_t leaf)
{
	const struct cpu_index *index = walk->index;
	struct cpu_collector *collector = walk->collector;
	uint32_t	first = leaf * INDEX_WIDTH;
	double		chords[INDEX_WIDTH];
	uint32_t	left = cpu_first_bits(index->shape.positions - first);

	if (cpu_leaf_chords(index, leaf, collector->from, chords) > collector->limit)
		return;
	for (left &= cpu_within(chords, collector->limit); left != 0; left &= left - 1)
	{
		int			i = __builtin_ctz(left);
		uint32_t	position = first + (uint32_t) i;
		uint32_t	start = index->start[position];

		if (chords[i] > collector->limit || chords[i] < collector->floor)
			continue;
		if (index->low_group != NULL &&
			collector->dataset->group[index->place[start]] != collector->group)
			continue;
		cpu_collector_add(collector, chords[i], position, index->place + start,
						  index->start[position + 1] - start);
	}
}

/*
 * Walk through `count` nodes of a level, from node `number` on: the children
 * of one node.
 */
static void
collect_nodes(struct walk *walk, int level, uint32_t number, uint32_t count)
{
	const struct cpu_index *index = walk->index;
	struct cpu_collector *collector = walk->collector;
	uint32_t	first = index->shape.first[level] + number;
	double		bounds[INDEX_WIDTH];
	uint8_t		order[INDEX_WIDTH];
	int			listed = 0;
	uint32_t	left;

	cpu_node_bounds(index, first, &walk->box, bounds);
	left = cpu_within(bounds, collector->limit) & cpu_first_bits(count);
	left &= of_group(index, first, collector->group);
	if (collector->floor > 0.0)
		left &= ~too_near(index, first, collector->from, collector->floor);

	/* few children are left, except at the beginning of a walk */
	for (; left != 0; left &= left - 1)
	{
		int			child = __builtin_ctz(left);
		int			at = listed++;

		for (; at > 0 && bounds[order[at - 1]] > bounds[child]; at--)
			order[at] = order[at - 1];
		order[at] = (uint8_t) child;
	}
	for (int i = 0; i < listed; i++)
	{
		uint32_t	child = number + order[i];

		if (bounds[order[i]] > collector->limit || cpu_collector_stopped(collector))
			return;
		if (level == 0)
			collect_leaf(walk, child);
		else
			collect_nodes(walk, level - 1, child * INDEX_WIDTH,
						  cpu_children(index, level, child));
	}
}

void
CPU_PATH_NAME(cpu_index_collect) (const struct cpu_index *index,
								  struct cpu_collector *collector)
{
	struct geonn_vector from = collector->from;
	struct walk walk = {
		.index = index,
		.collector = collector,
		.box = {{from.x, from.y, from.z}, {from.x, from.y, from.z}}
	};
	int			top = index->shape.levels - 1;

	collect_nodes(&walk, top, 0, index->shape.nodes[top]);
}
