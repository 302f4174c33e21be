/*
 * boxes_list.h
 *		What a tree of boxes has near observations that follow each other.
 *
 * Neighbours on the curve need much the same entries.  So a list of those in a region around all of them spares
 * each the way from the top of the tree.  Small nodes are in the list in place of their entries.
 */
#ifndef GEONN_CPU_BOXES_LIST_H
#define GEONN_CPU_BOXES_LIST_H

#include <stdbool.h>

#include "engine/shapes/boxes.h"
#include "engine/cpu/base/path.h"

/* A longer list would cost an observation more than a walk from the top. */
#define SHAPE_BOXES_LIST_MAX 256

struct cpu_boxes_list
{
	float		region_low[3];
	float		region_high[3];
	float		small;			/* a node that is no longer than this along any axis counts as small */

	/* the boxes that overlap the region; boxes that fill up the last node are farther than any chord */
	uint32_t	count;
	struct shape_boxes_node node[SHAPE_BOXES_LIST_MAX / SHAPE_BOXES_WIDTH];
	int8_t		level[SHAPE_BOXES_LIST_MAX];	/* level of each node; -1: an entry */
	uint32_t	number[SHAPE_BOXES_LIST_MAX];
};

/*
 * List the small nodes, and the entries outside of them, whose boxes overlap the region.  Returns false if
 * they are too many.
 */
extern bool CPU_PATH_NAME(cpu_boxes_list_fill) (struct cpu_boxes_list *list, const struct shape_boxes *boxes);

#endif							/* GEONN_CPU_BOXES_LIST_H */
