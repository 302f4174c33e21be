/*
 * boxes.c
 *		Builds trees of boxes.
 */
#include "engine/shapes/boxes.h"

#include "engine/base/memory_columns.h"

static uint32_t
nodes_above(uint32_t count)
{
	return count / SHAPE_BOXES_WIDTH + (count % SHAPE_BOXES_WIDTH != 0);
}

void
shape_boxes_place(struct shape_boxes *boxes, struct column_block *block, uint32_t entries)
{
	uint32_t	count = entries;

	boxes->entries = entries;
	boxes->levels = 0;
	while (count > 1 || (boxes->levels == 0 && count > 0))
	{
		count = nodes_above(count);
		COLUMN_PLACE(block, boxes->node[boxes->levels], count);
		boxes->levels++;
	}
}

void
shape_boxes_set(struct shape_boxes *boxes, uint32_t entry, const double *low, const double *high)
{
	struct shape_boxes_node *node = &boxes->node[0][entry / SHAPE_BOXES_WIDTH];

	for (int axis = 0; axis < 3; axis++)
	{
		node->low[axis][entry % SHAPE_BOXES_WIDTH] = (float) (low[axis] - SHAPE_BOXES_WIDER);
		node->high[axis][entry % SHAPE_BOXES_WIDTH] = (float) (high[axis] + SHAPE_BOXES_WIDER);
	}
}

void
shape_boxes_close(struct shape_boxes_node *node, uint32_t used)
{
	for (int axis = 0; axis < 3; axis++)
		for (uint32_t i = used; i < SHAPE_BOXES_WIDTH; i++)
		{
			node->low[axis][i] = 4.0f;
			node->high[axis][i] = -4.0f;
		}
}

/* Make a box of all that a node has. */
static void
sum_up(const struct shape_boxes_node *node, uint32_t used, struct shape_boxes_node *above, uint32_t place)
{
	for (int axis = 0; axis < 3; axis++)
	{
		float		low = node->low[axis][0];
		float		high = node->high[axis][0];

		for (uint32_t i = 1; i < used; i++)
		{
			low = node->low[axis][i] < low ? node->low[axis][i] : low;
			high = node->high[axis][i] > high ? node->high[axis][i] : high;
		}
		above->low[axis][place] = low;
		above->high[axis][place] = high;
	}
}

void
shape_boxes_finish(struct shape_boxes *boxes)
{
	uint32_t	count = boxes->entries;

	for (int level = 0; level < boxes->levels; level++)
	{
		uint32_t	nodes = nodes_above(count);

		for (uint32_t i = 0; i < nodes; i++)
		{
			uint32_t	used = i < nodes - 1 ? SHAPE_BOXES_WIDTH : count - i * SHAPE_BOXES_WIDTH;

			shape_boxes_close(&boxes->node[level][i], used);
			if (level + 1 < boxes->levels)
				sum_up(&boxes->node[level][i], used, &boxes->node[level + 1][i / SHAPE_BOXES_WIDTH], i % SHAPE_BOXES_WIDTH);
		}
		count = nodes;
	}
}
