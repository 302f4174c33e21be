/*
 * shape.h
 *		Shapes of PostGIS's types, read part by part.
 */
#ifndef GEONN_SHAPE_H
#define GEONN_SHAPE_H

#include <math.h>

#include "common/geodesy.h"
#include "points/geometry.h"

typedef enum GeonnPartKind
{
	GEONN_PART_POINT,			/* one vector */
	GEONN_PART_LINE,			/* a chain of arcs */
	GEONN_PART_RING				/* a ring of a polygon: a chain whose last vector is its first */
} GeonnPartKind;

/* Vertices of a part, as the value has them.  Valid until the reader is closed. */
typedef struct GeonnVertices
{
	const uint8 *bytes;			/* longitude, latitude and any further numbers of each vertex; not aligned */
	size_t		stride;			/* bytes of a vertex */
	size_t		measure;		/* the position of a vertex's measure among its bytes; 0: vertices have none */
	uint32		count;
} GeonnVertices;

/* Get the vertex with this number, from 0 on, in degrees. */
static inline void
geonn_vertex(const GeonnVertices *vertices, uint32 number, double *latitude, double *longitude)
{
	const uint8 *bytes = vertices->bytes + number * vertices->stride;

	memcpy(longitude, bytes, sizeof(double));
	memcpy(latitude, bytes + sizeof(double), sizeof(double));
}

/* Return the measure (M) of the vertex with this number; NaN: it has none. */
static inline double
geonn_vertex_measure(const GeonnVertices *vertices, uint32 number)
{
	double		measure = NAN;

	if (vertices->measure > 0)
		memcpy(&measure, vertices->bytes + number * vertices->stride + vertices->measure, sizeof(double));
	return measure;
}

/* A part of a shape.  No part is empty. */
typedef struct GeonnPart
{
	GeonnPartKind kind;
	bool		is_last_ring;	/* the polygon has no more rings */
	bool		pole_is_inside; /* of a ring: what geonn_ring_side() needs */
	size_t		count;
	const struct geonn_vector *vectors; /* valid until the next part is read */
	GeonnVertices vertices;		/* the vertices of which the vectors are made */
} GeonnPart;

typedef struct GeonnShapeReader GeonnShapeReader;

/* A function that returns the name of a shape's owner for messages, for example: id 7 of relation "road". */
typedef char *(*GeonnShapeOwner) (const void *state);

/*
 * Begin to read a value of this kind, GEONN_POINT_GEOGRAPHY or GEONN_POINT_GEOMETRY.  The reader's memory is palloc'd
 * in the current memory context, and grows with the longest part; geonn_shape_close() frees it.  Errors call the shape
 * "the shape" or, unless owner is NULL, "the shape of" its owner.
 *
 * Raises an error if the shape has another SRID than GEONN_POINT_SRID.
 */
extern GeonnShapeReader *geonn_shape_open(GeonnPointKind kind, Datum value, GeonnShapeOwner owner, const void *state);

/* Begin to read a value of any SRID, for geonn_shape_survey() and geonn_shape_value(): its vertices need not be degrees. */
extern GeonnShapeReader *geonn_shape_open_any(GeonnPointKind kind, Datum value, GeonnShapeOwner owner, const void *state);

/*
 * Look at all vertices before the first part is read.  Sets latitude and longitude, in degrees as they are stored, to
 * the first vertex that is out of range; if all are in range, to the first vertex.  Returns false if the shape is empty.
 *
 * Raises an error that names the type if it is no type of points, lines or polygons, or if PostGIS would not write such
 * bytes.
 */
extern bool geonn_shape_survey(GeonnShapeReader *reader, double *latitude, double *longitude);

/* Return how many arcs the shape has, as join/shape_arcs.c makes them, once it has been surveyed, and none is out of range. */
extern uint64 geonn_shape_arcs(const GeonnShapeReader *reader);

/* Return the shape's value, not compressed; it lives as long as the reader. */
extern Datum geonn_shape_value(const GeonnShapeReader *reader);

/* Return how many bytes of memory reading the shape takes at most, without the middles of long arcs. */
extern uint64 geonn_shape_memory(const GeonnShapeReader *reader);

/*
 * Read the next part.  Vectors come from geonn_unit_vector(); an arc longer than a quarter circle has its middle as
 * another vector, so a chain may have more vectors than vertices.  Returns false at the end of the shape.
 *
 * Raises an error that names the vertex, counted from 1 through the whole shape, or the type, if coordinates are out of
 * range, an arc has antipodal ends, a ring is not closed or does not say which side is inside, a type is no type of
 * points, lines or polygons, or PostGIS would not write such bytes.
 */
extern bool geonn_shape_next(GeonnShapeReader *reader, GeonnPart *part);

/*
 * Read the next part for a caller that does not use its vectors.  In most parts the degrees alone show that
 * geonn_shape_next() would raise no error; then the function makes no vectors.
 */
extern bool geonn_shape_next_checked(GeonnShapeReader *reader, GeonnPart *part);

/* Read the next part without vectors, and without a check of arcs and rings. */
extern bool geonn_shape_next_vertices(GeonnShapeReader *reader, GeonnPart *part);

/* Begin again with the first part, where all parts so far were read without vectors. */
extern void geonn_shape_rewind(GeonnShapeReader *reader);

extern void geonn_shape_close(GeonnShapeReader *reader);

/* A geonn_ring_pause of the module: raises an error if the statement is to be cancelled. */
extern void geonn_shape_pause(void);

#endif							/* GEONN_SHAPE_H */
