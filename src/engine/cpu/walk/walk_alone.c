/*
 * walk_alone.c
 *		Answers any question for one observation on the CPU, by the index.
 *
 * The walk goes from the topmost level down, in each node to its nearest child
 * first.  It leaves out the nodes whose bound is above the collector's limit
 * (cpu/walk/walk.h says why that is right), or above the widest limit that radiuses
 * of their references give, those whose windows none of their references
 * can have in common with the observation, and those whose references all have its party.  The limit shrinks on the way, so
 * the first leaf saves most of the work.
 */
#include "engine/cpu/walk/collector.h"
#include "engine/cpu/walk/walk.h"

/* the greatest number of parts that an observation walks through one by one */
#define PARTS_MAX 16

struct walk
{
	const struct cpu_index *index;
	struct cpu_collector *collector;
	struct cpu_part part;		/* the part that the walk goes through */
	struct cpu_box box;			/* a box around the observation alone */
};

/*
 * A bit for each child from `first` on, set if even its box's farthest corner
 * is below the collector's floor.
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
	uint32_t	left = cpu_part_bits(walk->part, leaf);

	if (cpu_leaf_chords(index, leaf, collector->from, chords) > collector->limit)
		return;
	left &= cpu_within(chords, collector->limit);
	if (left != 0 && index->wide != NULL)
		left &= cpu_within_each(chords, index->wide + first);
	left = cpu_leaf_candidates(index, leaf, &collector->conditions, left);
	for (; left != 0; left &= left - 1)
	{
		int			i = __builtin_ctz(left);
		uint32_t	position = first + (uint32_t) i;

		if (chords[i] <= collector->limit && chords[i] >= collector->floor)
			CPU_PATH_NAME(cpu_collector_add) (collector, chords[i], position);
	}
}

/*
 * Walk through some nodes of a level.
 */
static void
collect_nodes(struct walk *walk, int level, struct cpu_nodes nodes)
{
	const struct cpu_index *index = walk->index;
	struct cpu_collector *collector = walk->collector;
	uint32_t	first = index->shape.first[level] + nodes.first;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, first, &walk->box, bounds);
	left = cpu_within(bounds, collector->limit) & cpu_first_bits(nodes.count);
	if (index->widest != NULL)
		left &= cpu_within_each(bounds, index->widest + first);
	left = cpu_nodes_candidates(index, first, &collector->conditions, left);
	if (collector->floor > 0.0)
		left &= ~too_near(index, first, collector->from, collector->floor);
	while (left != 0 && !cpu_collector_stopped(collector))
	{
		uint32_t	nearest = cpu_nearest_of(bounds, left);

		if (level == 0)
			collect_leaf(walk, nodes.first + nearest);
		else
			collect_nodes(walk, level - 1, cpu_part_children(walk->part, level, nodes.first + nearest));
		left &= ~(UINT32_C(1) << nearest) & cpu_within(bounds, collector->limit);
	}
}

void
CPU_PATH_NAME(cpu_index_collect_part) (const struct cpu_index *index, struct cpu_part part,
									   struct cpu_collector *collector)
{
	struct geonn_vector from = collector->from;
	int			level;
	struct cpu_nodes top = cpu_part_top(part, &level);
	struct walk walk = {
		.index = index,
		.collector = collector,
		.part = part,
		.box = {{from.x, from.y, from.z}, {from.x, from.y, from.z}}
	};

	collect_nodes(&walk, level, top);
}

/*
 * Walk through the parts that the observation's windows reach; if they are
 * many, once through the group.
 */
static void
collect_slabs(const struct cpu_index *index, struct cpu_collector *collector)
{
	uint32_t	group = cpu_slabs_group(index->slabs, collector->conditions.group);
	uint32_t	parts[PARTS_MAX];
	uint32_t	count;

	if (group == index->slabs->groups)
		return;
	count = cpu_slabs_reached(index->slabs, group, &collector->conditions.windows, parts, PARTS_MAX);
	if (count > PARTS_MAX)
		CPU_PATH_NAME(cpu_index_collect_part) (index, cpu_index_group_part(index, group), collector);
	else
		for (uint32_t i = 0; i < count && !cpu_collector_stopped(collector); i++)
			CPU_PATH_NAME(cpu_index_collect_part) (index, cpu_index_part(index, parts[i]), collector);
}

void
CPU_PATH_NAME(cpu_index_collect) (const struct cpu_index *index, struct cpu_collector *collector)
{
	uint32_t	part;

	if (index->slabs != NULL)
	{
		collect_slabs(index, collector);
		return;
	}
	part = cpu_index_part_of(index, collector->conditions.group);
	if (part < index->parts)
		CPU_PATH_NAME(cpu_index_collect_part) (index, cpu_index_part(index, part), collector);
}
