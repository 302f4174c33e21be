/*
 * shape_oracle.h
 *		Shapes, and the distances of points to them in __float128.
 */
#ifndef GEONN_TEST_SHAPE_ORACLE_H
#define GEONN_TEST_SHAPE_ORACLE_H

#include <quadmath.h>
#include <stdbool.h>

#include "common/geodesy.h"
#include "point.h"

#define MOST_VERTICES 128
#define MOST_RINGS 8

struct chain
{
	int			count;
	struct point vertices[MOST_VERTICES];
};

/* one line, or a polygon's rings */
struct shape
{
	bool		is_polygon;
	int			count;
	struct chain chains[MOST_RINGS];
	struct point centre;		/* of a hemisphere that has the polygon's inside */
};

/* In metres. */
extern __float128 oracle_shape_distance(const struct shape *shape, struct point point);

/* Of two arcs, each shorter than half a circle or without length; in metres. */
extern __float128 oracle_arcs_distance(struct point a, struct point b, struct point c, struct point d);

/* Of two shapes, of which chains of one vertex are points. */
extern __float128 oracle_shapes_distance(const struct shape *one, const struct shape *other);

/* How far a vector is from the middle of the arc between two points that are neither equal nor antipodal. */
extern double oracle_middle_error(struct point a, struct point b, struct geonn_vector middle);

#endif							/* GEONN_TEST_SHAPE_ORACLE_H */
