/*
 * shape.h
 *		Shapes of PostGIS's types, read part by part.
 */
#ifndef GEONN_SHAPE_H
#define GEONN_SHAPE_H

#include "common/geodesy.h"
#include "points/geometry.h"

typedef enum GeonnPartKind
{
	GEONN_PART_POINT,			/* one vector */
	GEONN_PART_LINE,			/* a chain of arcs */
	GEONN_PART_RING				/* of a polygon: a chain whose last vector is its first */
} GeonnPartKind;

/* A part of a shape.  No part is empty. */
typedef struct GeonnPart
{
	GeonnPartKind kind;
	bool		is_last_ring;	/* the polygon has no more rings */
	bool		pole_is_inside; /* of a ring: what geonn_ring_side() needs */
	size_t		count;
	const struct geonn_vector *vectors; /* valid until the next part is read */
} GeonnPart;

typedef struct GeonnShapeReader GeonnShapeReader;

/*
 * Begin to read a value of this kind, GEONN_POINT_GEOGRAPHY or GEONN_POINT_GEOMETRY.  What the reader
 * needs is palloc'd in the current memory context, and grows there with the longest part;
 * geonn_shape_close() frees it.
 *
 * Raises an error if the shape has another SRID than GEONN_POINT_SRID.
 */
extern GeonnShapeReader *geonn_shape_open(GeonnPointKind kind, Datum value);

/*
 * Read the next part.  Vectors are geonn_unit_vector()'s; arcs longer than a quarter circle have
 * their middle as another vector, and so chains may have more vectors than vertices.
 * Returns false at the end of the shape.
 *
 * Raises an error that names the vertex, counted from 1 through the whole shape, or the type, if coordinates
 * are out of range, an arc has antipodal ends, a ring is not closed or does not say which side is
 * inside, a type is none of points, lines and polygons, or the bytes are none that PostGIS writes.
 */
extern bool geonn_shape_next(GeonnShapeReader *reader, GeonnPart *part);

extern void geonn_shape_close(GeonnShapeReader *reader);

#endif							/* GEONN_SHAPE_H */
