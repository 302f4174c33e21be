/*
 * boxes.h
 *		A tree of boxes in x, y and z, eight in each node, as float32.
 *
 * An entry is something with a box; the owner has put entries that are near each other next to
 * each other.  A node has eight boxes, of entries at level 0 and of nodes of the level
 * below at others.
 *
 * Boxes are wider than what they hold by 2^-23, some 76 cm.  Rounding a bound or a part of an
 * observation's vector to float32 moves it by 2^-25 at most, so a box that holds the true
 * vector holds the rounded one, and a gap along an axis, from the rounded vector to the
 * bound, is at most the true one, but for the rounding of the difference: relatively 2^-24.
 */
#ifndef GEONN_SHAPES_BOXES_H
#define GEONN_SHAPES_BOXES_H

#include <stdint.h>

struct column_block;

/* An arc is at most this, times the square of its chord, away from the chord (cpu/arcs/arcs.c). */
#define SHAPE_ARCS_SAGITTA (1.0 / 6.8)

/* a search for arcs adds this to its limits (cpu/arcs/arcs_search.c) */
#define SHAPE_ARCS_MARGIN 0x1p-45

/* longer than any chord */
#define SHAPE_BEYOND_CHORDS 2.25

/* boxes are wider than what they hold, by this on each side */
#define SHAPE_BOXES_WIDER 0x1p-23

#define SHAPE_BOXES_WIDTH 8
#define SHAPE_BOXES_LEVELS 11

/* a walk has at most this many boxes left to visit */
#define SHAPE_BOXES_VISITS (SHAPE_BOXES_LEVELS * SHAPE_BOXES_WIDTH)

struct shape_boxes_node
{
	float		low[3][SHAPE_BOXES_WIDTH];	/* by axis */
	float		high[3][SHAPE_BOXES_WIDTH];
};

struct shape_boxes
{
	uint32_t	entries;
	int			levels;			/* the last level has one node; 0: the tree has no entries */
	struct shape_boxes_node *node[SHAPE_BOXES_LEVELS];	/* by level */
};

/* Place the nodes of a tree with so many entries in a block. */
extern void shape_boxes_place(struct shape_boxes *boxes, struct column_block *block, uint32_t entries);

/* Set the box of an entry.  Entries of one node must not be set by two threads at a time. */
extern void shape_boxes_set(struct shape_boxes *boxes, uint32_t entry, const double *low, const double *high);

/* Set the boxes of a node from `used` on farther from all vectors than any chord. */
extern void shape_boxes_close(struct shape_boxes_node *node, uint32_t used);

/* Make the boxes of all nodes from the boxes of the entries. */
extern void shape_boxes_finish(struct shape_boxes *boxes);

#endif							/* GEONN_SHAPES_BOXES_H */
