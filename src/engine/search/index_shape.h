/*
 * index_shape.h
 *		The shape of the index: an implicit tree, 32 wide, over sorted points.
 *
 * Both devices build an index of this shape:
 *
 *	- The references are sorted by (group, place on the space curve), or
 *	  without groups by the curve alone; with windows by (group, class of
 *	  length, slab, place on the curve): cpu/index/slabs.c and
 *	  cuda/index/window_order.cuh say why, and each has its own slabs.  Where
 *	  many references share a cell of the curve, those that coincide are
 *	  brought together, so that few are left apart.
 *	- References of one group at one place (equal vectors, bit for bit) that are
 *	  neighbours in that order, and have the same bytes as their radius and
 *	  windows, are one position of the index.  A position knows its references
 *	  as a range of the sorted order; they stand in the order of the dataset,
 *	  and have the same distance from everywhere.  So a million coincident
 *	  references cost a search no more than one.
 *	- Every INDEX_WIDTH positions are a leaf, every INDEX_WIDTH nodes of a level
 *	  are a node of the level above.  Each node, leaves included, has a box: the
 *	  smallest and largest x, y and z of its positions, as float64, so without
 *	  any rounding.  With windows, a box has the smallest low and the largest
 *	  high of each, and with radiuses a limit from the largest.  With groups, a
 *	  GPU's nodes have the smallest and largest group, and the CPU's index has a
 *	  list of the groups and their positions.
 *	- The levels are arrays, one after the other, without pointers: node n of a
 *	  level covers nodes n * INDEX_WIDTH ... of the level below.  The topmost
 *	  level has at most INDEX_WIDTH nodes, and no root above them.
 */
#ifndef GEONN_INDEX_SHAPE_H
#define GEONN_INDEX_SHAPE_H

#include <stdint.h>
#include <string.h>

#include "common/assertion.h"

#define INDEX_WIDTH 32
#define INDEX_BITS 5

/* 2^32 positions need at most this many levels, leaves included */
#define INDEX_LEVELS_MAX 6

struct index_shape
{
	uint32_t	positions;		/* how many positions the index has, at least 1 */
	int			levels;			/* how many levels of nodes the index has, at least 1 */
	uint32_t	nodes[INDEX_LEVELS_MAX];	/* how many nodes each level has; level 0: leaves */
	uint32_t	first[INDEX_LEVELS_MAX];	/* index of a level's first node among the
											 * nodes of all levels */
	uint32_t	all_nodes;
};

static inline struct index_shape
index_shape_of(uint32_t positions)
{
	struct index_shape shape;
	uint32_t	below = positions;

	geonn_assert(positions >= 1);
	memset(&shape, 0, sizeof(shape));
	shape.positions = positions;
	do
	{
		uint32_t	nodes = below / INDEX_WIDTH + (below % INDEX_WIDTH != 0);

		geonn_assert(shape.levels < INDEX_LEVELS_MAX);
		shape.nodes[shape.levels] = nodes;
		shape.first[shape.levels] = shape.all_nodes;
		shape.all_nodes += nodes;
		shape.levels++;
		below = nodes;
	} while (below > INDEX_WIDTH);
	return shape;
}

#endif							/* GEONN_INDEX_SHAPE_H */
