/*
 * row_values.c
 *		What the values of a source's row say: coordinates, limits, weights, shapes.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "points/row_values.h"

/* ---- other SRIDs ---- */

/* a row whose value is being transformed */
typedef struct Transforming
{
	const PointSource *source;
	const PointRow *row;
	int32		srid;
} Transforming;

static const char *
what_of(const PointSource *source)
{
	return geonn_has_shapes(source) ? "shape" : "point";
}

static void
name_transformed(void *argument)
{
	const Transforming *transforming = argument;

	errcontext("transforming the %s of %s from SRID %d to %d", what_of(transforming->source),
			   geonn_whose_row(transforming->source, transforming->row), transforming->srid, GEONN_POINT_SRID);
}

/* Check that a row's value, which is not empty, has the SRID of those before it. */
static void
check_srid(const PointSource *source, const PointRow *row, int32 srid)
{
	int32		former = geonn_transform_note(source->transform, srid);
	ColumnRole	role = geonn_has_shapes(source) ? COLUMN_SHAPE : COLUMN_POINT;

	if (unlikely(former != srid))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the %s of %s has SRID %d", what_of(source), geonn_whose_row(source, row), srid),
				 errdetail("Other values of column \"%s\" have SRID %d.", source->columns[role].name, former),
				 errhint("Give all of its values one SRID, as ST_Transform does, in a view or query.")));
}

/* Return whether a row's coordinates are numbers: others are invalid in any SRID, and ST_Transform raises errors for some. */
static bool
is_finite(const PointRow *row)
{
	return isfinite(row->latitude) && isfinite(row->longitude);
}

/* Return a row's value, which is of another SRID and not empty, in degrees. */
static Datum
in_degrees(const PointSource *source, const PointRow *row, int32 srid, Datum value)
{
	Transforming transforming = {source, row, srid};
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = name_transformed,
		.arg = &transforming
	};
	Datum		transformed;

	error_context_stack = &context;
	transformed = geonn_transform_value(source->transform, value);
	error_context_stack = context.previous;
	return transformed;
}

/* ---- values ---- */

double
geonn_number(Oid type, Datum value)
{
	switch (type)
	{
		case FLOAT8OID:
			return DatumGetFloat8(value);
		case FLOAT4OID:
			return DatumGetFloat4(value);
		case INT2OID:
			return DatumGetInt16(value);
		case INT4OID:
			return DatumGetInt32(value);
		case INT8OID:
			return (double) DatumGetInt64(value);
		default:
			return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
	}
}

GeonnPointState
geonn_read_coordinates(const PointSource *source, const Datum *values, const bool *nulls, PointRow *row,
					   int32 *detail)
{
	const PointColumn *columns = source->columns;
	int			latitude = columns[COLUMN_LATITUDE].attribute - 1;
	int			longitude = columns[COLUMN_LONGITUDE].attribute - 1;

	if (source->point_kind != GEONN_POINT_NONE)
	{
		int			number = columns[COLUMN_POINT].attribute - 1;
		GeonnPointState state = nulls[number] ? GEONN_POINT_EMPTY :
			geonn_point_decode(source->point_kind, values[number], &row->latitude, &row->longitude, detail);

		row->latitude_is_null = row->longitude_is_null = state != GEONN_POINT_OK;
		return state;
	}
	Assert(latitude >= 0 && longitude >= 0);
	row->latitude_is_null = nulls[latitude];
	row->longitude_is_null = nulls[longitude];
	if (!row->latitude_is_null)
		row->latitude = geonn_number(columns[COLUMN_LATITUDE].base_type, values[latitude]);
	if (!row->longitude_is_null)
		row->longitude = geonn_number(columns[COLUMN_LONGITUDE].base_type, values[longitude]);
	return GEONN_POINT_OK;
}

GeonnPointState
geonn_place_in_degrees(const PointSource *source, const Datum *values, PointRow *row, GeonnPointState state,
					   int32 *detail)
{
	Datum		value;

	if (state == GEONN_POINT_OK)
		check_srid(source, row, GEONN_POINT_SRID);
	if (state != GEONN_POINT_WRONG_SRID || *detail == 0)
		return state;
	check_srid(source, row, *detail);
	state = GEONN_POINT_OK;
	if (is_finite(row))
	{
		value = in_degrees(source, row, *detail, values[source->columns[COLUMN_POINT].attribute - 1]);
		state = geonn_point_decode(source->point_kind, value, &row->latitude, &row->longitude, detail);
	}
	row->latitude_is_null = row->longitude_is_null = state != GEONN_POINT_OK;
	return state;
}

void
geonn_read_limits(const PointSource *source, const Datum *values, const bool *nulls,
				  GeonnLimits *limits)
{
	geonn_limits_begin(limits);
	if (geonn_has_radius(source))
	{
		const PointColumn *radius = &source->columns[COLUMN_RADIUS];
		int			number = radius->attribute - 1;

		geonn_limits_set_radius(limits, nulls[number] ? 0 : geonn_number(radius->base_type, values[number]),
								nulls[number]);
	}
	for (int i = 0; i < source->window_count; i++)
	{
		int			number = source->windows[i].attribute - 1;

		geonn_window_read(&source->window_types[i], values[number], nulls[number], i, limits);
	}
}

double
geonn_read_weight(const PointSource *source, const PointColumn *column, const PointRow *row)
{
	bool		is_null = row->nulls[column->attribute - 1];
	double		weight = is_null ? get_float8_nan() : geonn_number(column->base_type, row->values[column->attribute - 1]);

	if (!is_null && !isfinite(weight))
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("weight \"%s\" of %s is out of range: %s", column->name, geonn_whose_row(source, row),
						geonn_written_value(column, row)),
				 errdetail("Weights are finite numbers, from -1.8e308 to 1.8e308."),
				 errhint("Correct it, or use a view or query that leaves such rows out, or has NULL in its place.")));
	return weight;
}

static char *
name_owner(const void *state)
{
	const ShapeOwner *owner = state;

	return geonn_whose_row(owner->source, owner->row);
}

/* Transform a row's shape, which has another SRID, to degrees.  Returns false if it is empty, or has a vertex that is invalid. */
static bool
transform_shape(const ShapeOwner *owner, PointRow *row, int32 srid, Datum *value)
{
	GeonnShapeReader *whole = geonn_shape_open_any(owner->source->point_kind, *value, name_owner, owner);
	bool		is_empty = !geonn_shape_survey(whole, &row->latitude, &row->longitude);
	bool		is_transformed = !is_empty && is_finite(row);

	row->latitude_is_null = row->longitude_is_null = is_empty;
	if (!is_empty)
		check_srid(owner->source, row, srid);
	if (is_transformed)
		*value = in_degrees(owner->source, row, srid, geonn_shape_value(whole));
	geonn_shape_close(whole);
	return is_transformed;
}

void
geonn_read_shape(const ShapeOwner *owner, const Datum *values, const bool *nulls, PointRow *row)
{
	const PointSource *source = owner->source;
	int			number = source->columns[COLUMN_SHAPE].attribute - 1;
	int32		srid = GEONN_POINT_SRID;
	Datum		value = values[number];

	row->latitude_is_null = row->longitude_is_null = true;
	if (nulls[number])
		return;
	if (source->transform != NULL)
		srid = geonn_value_srid(value);
	if (srid != 0 && srid != GEONN_POINT_SRID && !transform_shape(owner, row, srid, &value))
		return;
	row->shape = geonn_shape_open(source->point_kind, value, name_owner, owner);
	row->latitude_is_null = row->longitude_is_null =
		!geonn_shape_survey(row->shape, &row->latitude, &row->longitude);
	if (source->transform != NULL && srid == GEONN_POINT_SRID && !row->latitude_is_null)
		check_srid(source, row, srid);
}
