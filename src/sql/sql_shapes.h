/*
 * sql_shapes.h
 *		Lines and polygons as references: reading them, and how far PostGIS's operator <-> may be from geonn.
 */
#ifndef GEONN_SQL_SHAPES_H
#define GEONN_SQL_SHAPES_H

#include "points/point_row.h"

/* what a value is beside its first vertex */
typedef struct ShapeTraits
{
	uint32		arcs;			/* how many; 0: it is a point */
	bool		is_area;		/* it has polygons */
	bool		is_whole;		/* it is no collection, and has no empty member */
	bool		is_measured;	/* a point, or a shape for which sql_shapes.c knows a limit */
} ShapeTraits;

/*
 * Read lines, polygons, several points or a collection of this kind, not compressed.  Returns POINT_NULL also for empty ones,
 * and POINT_NOT_FINITE for any value that the engine does not take.  With POINT_VALID, sets latitude and
 * longitude, in degrees, to those of a vertex.  Sets the traits.  What it allocates is the caller's, in the current
 * memory context.
 */
extern PointStatus geonn_read_shape_value(GeonnPointKind kind, Datum value, double *latitude, double *longitude,
										  ShapeTraits *traits);

/*
 * Return a copy of such a value, which was valid, without its empty members, in the current memory context: PostGIS's functions
 * fail for these, or have no distance.
 */
extern Datum geonn_without_empty_members(GeonnPointKind kind, Datum value);

/* Return the longitude, of -180 to 360 degrees, as the one of -180 on, and below 180, that is the same meridian. */
extern double geonn_border_longitude(double longitude);

/*
 * Is the point, in degrees, at a vertex of this shape, or on a side along its meridian?  The value, a geography that was read as
 * above, is not compressed.
 */
extern bool geonn_is_on_border(Datum value, double latitude, double longitude);

/*
 * The greatest distance, by geonn, of shapes that <-> may put before measured ones at this distance; infinity where no
 * limit is known.  are_measured: all of the shapes are.  have_areas: some are polygons, whose order is that of geonn's distances
 * where no limit is known.
 */
extern double geonn_shapes_in_doubt(double distance, bool are_measured, bool have_areas);

#endif							/* GEONN_SQL_SHAPES_H */
