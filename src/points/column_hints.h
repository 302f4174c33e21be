/*
 * column_hints.h
 *		What to type where a source lacks a column, or has one that cannot be used.
 */
#ifndef GEONN_COLUMN_HINTS_H
#define GEONN_COLUMN_HINTS_H

#include "points/columns.h"

/* the hint where a function takes points alone, and a column has lines or polygons */
#define GEONN_POINTS_OF_SHAPES_HINT "Give a query with points of them, as ST_PointOnSurface returns them."

/* Return the hint if the latitude, the longitude or another column is missing or ambiguous. */
extern const char *geonn_names_hint(const PointSource *source, TupleDesc descriptor);

/* Return the hint if a source has no id. */
extern const char *geonn_id_hint(const PointSource *source, TupleDesc descriptor);

/* Return the hint if each reading of a view makes the id anew. */
extern const char *geonn_steady_id_hint(const PointSource *source, TupleDesc descriptor);

/* Return the hint if a column's type cannot hold points of SRID 4326. */
extern const char *geonn_points_hint(const PointSource *source, const PointColumn *column);

/*
 * Tell the client, once for each statement and relation, of a column of shapes that the source does not use
 * because the relation also has points.
 */
extern void geonn_tell_unused_shape(const PointSource *source);

#endif							/* GEONN_COLUMN_HINTS_H */
