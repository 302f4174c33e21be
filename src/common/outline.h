/*
 * outline.h
 *		How far two shapes are from each other.
 */
#ifndef GEONN_OUTLINE_H
#define GEONN_OUTLINE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/geodesy.h"
#include "common/ring.h"

/* A part of a shape: a point, a line, or a ring of a polygon.  The rings of a polygon follow each other. */
struct geonn_outline_part
{
	size_t		first;			/* of its vectors */
	size_t		count;			/* one for a point */
	bool		is_ring;
	bool		is_last_ring;	/* of its polygon */
	bool		pole_is_inside; /* what geonn_ring_side() needs */
};

/* arcs of a part that follow each other, or points */
#define GEONN_OUTLINE_STRETCH 16

/* a box around a stretch; the distance makes it, its owner needs no more than its size */
struct geonn_outline_box
{
	double		low[3];
	double		high[3];
	size_t		first;
	size_t		count;
	bool		is_points;
};

/* A shape.  All arrays are the caller's, and none is empty. */
struct geonn_outline
{
	const struct geonn_vector *vectors; /* of all parts, one part after the other; long arcs have their middles */
	const struct geonn_outline_part *parts;
	size_t		part_count;
	struct geonn_outline_box *boxes;	/* room for geonn_outline_boxes() */
	size_t		box_count;
};

/* Return how many boxes an outline may need. */
static inline size_t
geonn_outline_boxes(size_t vectors, size_t parts)
{
	return vectors / GEONN_OUTLINE_STRETCH + parts;
}

/* Make the boxes of an outline, after which it may be asked about any number of others. */
extern void geonn_outline_complete(struct geonn_outline *outline);

/*
 * Return the distance in metres of two complete outlines: 0 where they touch or cross or one lies in the other, as exact signs
 * decide, else the least of geonn_arcs_distance() over all pairs of their arcs and points; within 10 nm.  (one, other) gives the
 * bits of (other, one).  A function that is not NULL is called now and then, and may leave by longjmp().
 */
extern double geonn_outline_distance(const struct geonn_outline *one, const struct geonn_outline *other,
									 geonn_ring_pause pause);

#endif							/* GEONN_OUTLINE_H */
