/*
 * row_values.h
 *		What the values of a source's row say: coordinates, limits, weights, shapes.
 */
#ifndef GEONN_ROW_VALUES_H
#define GEONN_ROW_VALUES_H

#include "points/point_row.h"

/*
 * Convert a value of a column of coordinates or radiuses to double; type is the type below domains.  May
 * leave memory allocated in the current memory context.
 */
extern double geonn_number(Oid type, Datum value);

/*
 * Set a row's coordinates, and whether they are NULL.  Returns the state of the point column's value: unless
 * it is GEONN_POINT_OK, both coordinates are NULL, and *detail is as geonn_point_decode() sets it.  Without
 * a point column, returns GEONN_POINT_OK.  May leave memory allocated in the current memory context.
 */
extern GeonnPointState geonn_read_coordinates(const PointSource *source, const Datum *values,
											  const bool *nulls, PointRow *row, int32 *detail);

/*
 * Set the coordinates of a row whose source has a transform, from the state and the detail of geonn_read_coordinates().  As
 * geonn_read_place().
 */
extern GeonnPointState geonn_place_in_degrees(const PointSource *source, const Datum *values, PointRow *row,
											  GeonnPointState state, int32 *detail);

/*
 * Set a row's coordinates as geonn_read_coordinates() does, and transform a value of another SRID.  Where it cannot be
 * transformed, both coordinates are NaN, and row->untransformed says why.  Raises an error that names the row if the value has
 * another SRID than the column's values before, or if ST_Transform transforms none of that SRID.
 */
static inline GeonnPointState
geonn_read_place(const PointSource *source, const Datum *values, const bool *nulls, PointRow *row, int32 *detail)
{
	GeonnPointState state = geonn_read_coordinates(source, values, nulls, row, detail);

	return likely(source->transform == NULL) ? state : geonn_place_in_degrees(source, values, row, state, detail);
}

/* Read a row's place in the same way.  A point of another SRID than those before it has GEONN_POINT_WRONG_SRID, with its SRID. */
extern GeonnPointState geonn_try_place(const PointSource *source, const Datum *values, const bool *nulls, PointRow *row,
									   int32 *detail);

/*
 * Set a point's limits from the radius and the windows of its row.  May leave memory allocated in the
 * current memory context.
 */
extern void geonn_read_limits(const PointSource *source, const Datum *values, const bool *nulls,
							  GeonnLimits *limits);

/* Return the weight of a valid point; NaN for a NULL, which counts leave out. */
extern double geonn_read_weight(const PointSource *source, const PointColumn *column, const PointRow *row);

/* the row whose shape errors are about */
typedef struct ShapeOwner
{
	const PointSource *source;
	const PointRow *row;
} ShapeOwner;

/*
 * Read a row's shape up to its first part, and set the row's coordinates; an empty shape has NULLs.  A shape of another
 * SRID is transformed, with the errors of geonn_read_place().  The caller keeps the owner as long as the shape is read.
 */
extern void geonn_read_shape(const ShapeOwner *owner, const Datum *values, const bool *nulls, PointRow *row);

/*
 * Read a row's shape again, from the value in degrees that geonn_shape_value() returned, and set the row's coordinates.  The
 * caller keeps the owner and the value as long as the shape is read.
 */
extern void geonn_reopen_shape(const ShapeOwner *owner, Datum value, PointRow *row);

/* Read a row's shape as geonn_read_shape() does.  Where that is an error about the shape, the row has a refusal instead. */
extern void geonn_try_shape(const PointSource *source, const Datum *values, const bool *nulls, PointRow *row);

/*
 * Run a step that reads a shape, which has no owner.  The step may not read the table or call other functions, as nothing
 * is rolled back.  Returns the error about the shape with which it ended, palloc'd, or NULL.  Raises all other errors.
 */
extern const GeonnRefusal *geonn_refusal_of(void (*step) (void *state), void *state);

#endif							/* GEONN_ROW_VALUES_H */
