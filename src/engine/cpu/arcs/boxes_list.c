/*
 * boxes_list.c
 *		Lists what a tree of boxes has in a region.
 */
#include "engine/cpu/arcs/boxes_list.h"

#include "engine/cpu/base/floats.h"

struct node_visit
{
	int			level;
	uint32_t	number;
};

/* Return bits: bit i is set if box i of a node overlaps the region. */
FLOATS_INLINE uint32_t
overlapping(const struct cpu_boxes_list *list, const struct shape_boxes_node *node)
{
	uint32_t	bits = (1u << FLOATS) - 1;

	for (int axis = 0; axis < 3; axis++)
		bits &= floats_within(floats_load(node->low[axis]), floats_all(list->region_high[axis])) &
			floats_within(floats_all(list->region_low[axis]), floats_load(node->high[axis]));
	return bits;
}

/* Return bits: bit i is set if box i of a node is small. */
FLOATS_INLINE uint32_t
small(const struct cpu_boxes_list *list, const struct shape_boxes_node *node)
{
	uint32_t	bits = (1u << FLOATS) - 1;

	for (int axis = 0; axis < 3; axis++)
		bits &= floats_within(floats_load(node->high[axis]) - floats_load(node->low[axis]), floats_all(list->small));
	return bits;
}

static void
add(struct cpu_boxes_list *list, const struct shape_boxes_node *node, struct node_visit at, uint32_t lane)
{
	struct shape_boxes_node *added = &list->node[list->count / SHAPE_BOXES_WIDTH];

	for (int axis = 0; axis < 3; axis++)
	{
		added->low[axis][list->count % SHAPE_BOXES_WIDTH] = node->low[axis][lane];
		added->high[axis][list->count % SHAPE_BOXES_WIDTH] = node->high[axis][lane];
	}
	list->level[list->count] = (int8_t) (at.level - 1);
	list->number[list->count++] = at.number * SHAPE_BOXES_WIDTH + lane;
}

bool
CPU_PATH_NAME(cpu_boxes_list_fill) (struct cpu_boxes_list *list, const struct shape_boxes *boxes)
{
	struct node_visit visits[SHAPE_BOXES_VISITS];
	uint32_t	visit_count = boxes->levels > 0;

	visits[0] = (struct node_visit) {boxes->levels - 1, 0};
	list->count = 0;
	while (visit_count > 0)
	{
		struct node_visit next = visits[--visit_count];
		const struct shape_boxes_node *node = &boxes->node[next.level][next.number];
		uint32_t	bits = overlapping(list, node);
		uint32_t	kept = next.level == 0 ? bits : bits & small(list, node);

		if (list->count + (uint32_t) __builtin_popcount(kept) > SHAPE_BOXES_LIST_MAX)
			return false;
		for (; bits != 0; bits &= bits - 1)
		{
			uint32_t	lane = (uint32_t) __builtin_ctz(bits);

			if (kept >> lane & 1)
				add(list, node, next, lane);
			else
				visits[visit_count++] = (struct node_visit) {next.level - 1, next.number * SHAPE_BOXES_WIDTH + lane};
		}
	}
	if (list->count % SHAPE_BOXES_WIDTH != 0)
		shape_boxes_close(&list->node[list->count / SHAPE_BOXES_WIDTH], list->count % SHAPE_BOXES_WIDTH);
	return true;
}
