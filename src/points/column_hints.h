/*
 * column_hints.h
 *		What to type where a source lacks a column, or has one that cannot be used.
 */
#ifndef GEONN_COLUMN_HINTS_H
#define GEONN_COLUMN_HINTS_H

#include "points/columns.h"

/* The hint where the latitude, the longitude or another column is missing or ambiguous. */
extern const char *geonn_names_hint(const PointSource *source, TupleDesc descriptor);

/* The hint where a source has no id. */
extern const char *geonn_id_hint(const PointSource *source, TupleDesc descriptor);

/* The hint where each reading of a view makes the id anew. */
extern const char *geonn_steady_id_hint(const PointSource *source, TupleDesc descriptor);

/* The hint where a column's type cannot have points of SRID 4326. */
extern const char *geonn_points_hint(const PointSource *source, const PointColumn *column);

/* The hint where a row of a column of points has another shape, of this type (GEONN_SHAPE_...). */
extern const char *geonn_shapes_hint(const PointSource *source, const PointColumn *column, int32 type);

/*
 * Tell the client, once a statement and relation, of a column of shapes that the source does not use, as it
 * has points.
 */
extern void geonn_tell_unused_shape(const PointSource *source);

#endif							/* GEONN_COLUMN_HINTS_H */
