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

/* vertices of a part, as the value has them; valid until the reader is closed */
typedef struct GeonnVertices
{
	const uint8 *bytes;			/* longitude, latitude and any further numbers of each vertex; not aligned */
	size_t		stride;			/* bytes of a vertex */
	uint32		count;
} GeonnVertices;

/* The vertex of this number, from 0 on, in degrees. */
static inline void
geonn_vertex(const GeonnVertices *vertices, uint32 number, double *latitude, double *longitude)
{
	const uint8 *bytes = vertices->bytes + number * vertices->stride;

	memcpy(longitude, bytes, sizeof(double));
	memcpy(latitude, bytes + sizeof(double), sizeof(double));
}

/* A part of a shape.  No part is empty. */
typedef struct GeonnPart
{
	GeonnPartKind kind;
	bool		is_last_ring;	/* the polygon has no more rings */
	bool		pole_is_inside; /* of a ring: what geonn_ring_side() needs */
	size_t		count;
	const struct geonn_vector *vectors; /* valid until the next part is read */
	GeonnVertices vertices;		/* of which the vectors are made */
} GeonnPart;

typedef struct GeonnShapeReader GeonnShapeReader;

/* Says of a shape whose it is, for messages, as in: id 7 of relation "road". */
typedef char *(*GeonnShapeOwner) (const void *state);

/*
 * Begin to read a value of this kind, GEONN_POINT_GEOGRAPHY or GEONN_POINT_GEOMETRY.  What the reader
 * needs is palloc'd in the current memory context, and grows there with the longest part;
 * geonn_shape_close() frees it.  Errors call the shape "the shape" or, unless owner is NULL, "the shape of" its owner.
 *
 * Raises an error if the shape has another SRID than GEONN_POINT_SRID.
 */
extern GeonnShapeReader *geonn_shape_open(GeonnPointKind kind, Datum value, GeonnShapeOwner owner, const void *state);

/*
 * Look at all vertices before the first part is read.  Sets latitude and longitude, in degrees as they are stored, to
 * the first vertex that is out of range or, if all are in range, to the first one.  Returns false if the shape is empty.
 *
 * Raises an error that names the type, if it is none of points, lines and polygons, or if the bytes are none that
 * PostGIS writes.
 */
extern bool geonn_shape_survey(GeonnShapeReader *reader, double *latitude, double *longitude);

/* The shape's value, not compressed, and as long as the reader. */
extern Datum geonn_shape_value(const GeonnShapeReader *reader);

/* How many bytes of memory reading the shape takes at most, but for the middles of long arcs. */
extern uint64 geonn_shape_memory(const GeonnShapeReader *reader);

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

/*
 * Read the next part without the use of its vectors: in most parts the degrees alone show that geonn_shape_next() would
 * raise no error, and then it makes no vectors.
 */
extern bool geonn_shape_next_checked(GeonnShapeReader *reader, GeonnPart *part);

/*
 * Read the next part without its vectors, and without a check of arcs and rings.
 */
extern bool geonn_shape_next_vertices(GeonnShapeReader *reader, GeonnPart *part);

extern void geonn_shape_close(GeonnShapeReader *reader);

#endif							/* GEONN_SHAPE_H */
