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

#include "base/attempt.h"
#include "points/row_values.h"

/* ---- other SRIDs ---- */

/* a row whose value is being transformed */
typedef struct Transforming
{
	const PointSource *source;
	const PointRow *row;
	int32		srid;
} Transforming;

static void
name_transformed(void *argument)
{
	const Transforming *transforming = argument;

	errcontext("transforming the %s of %s from SRID %d to %d", geonn_place_word(transforming->source),
			   geonn_whose_row(transforming->source, transforming->row), transforming->srid, GEONN_POINT_SRID);
}

/*
 * Check that a value, which is not empty, has the SRID of those before it.  row: whose value the error is about; NULL: it does
 * not say.
 */
static void
check_srid(const PointSource *source, const PointRow *row, int32 srid)
{
	int32		former = geonn_transform_note(source->transform, srid);
	ColumnRole	role = geonn_has_shapes(source) ? COLUMN_SHAPE : COLUMN_POINT;

	if (unlikely(former != srid))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the %s%s has SRID %d", geonn_place_word(source),
						row == NULL ? "" : psprintf(" of %s", geonn_whose_row(source, row)), srid),
				 errdetail("Other values of column \"%s\" have SRID %d.", source->columns[role].name, former),
				 errhint("Give all of its values one SRID, as ST_Transform does, in a view or query.")));
}

/* Return whether a row's coordinates are numbers: others are invalid in any SRID, and ST_Transform raises errors for some. */
static bool
is_finite(const PointRow *row)
{
	return isfinite(row->latitude) && isfinite(row->longitude);
}

/* Have a row, whose value cannot be transformed, count as one with a coordinate that is no number. */
static void
note_untransformed(PointRow *row, int32 srid, const char *reason)
{
	row->latitude = row->longitude = get_float8_nan();
	row->untransformed = psprintf("cannot be transformed from SRID %d to %d: %s", srid, GEONN_POINT_SRID, reason);
}

/* PostGIS raises no error for some of the values that it cannot transform, and gives them infinite coordinates. */
static void
note_infinite(PointRow *row, int32 srid)
{
	if (!is_finite(row))
		note_untransformed(row, srid, "a coordinate becomes infinite");
}

/*
 * Transform a row's value, which is of another SRID and not empty, to degrees.  Returns false if it cannot be transformed, as the
 * row then says.
 */
static bool
in_degrees(const PointSource *source, PointRow *row, int32 srid, Datum *value)
{
	const char *reason = NULL;
	Transforming transforming = {source, row, srid};
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = name_transformed,
		.arg = &transforming
	};

	error_context_stack = &context;
	*value = geonn_transform_value(source->transform, srid, *value, &reason);
	error_context_stack = context.previous;
	if (reason != NULL)
		note_untransformed(row, srid, reason);
	return reason == NULL;
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
	int32		srid = *detail;
	Datum		value;

	if (state == GEONN_POINT_OK)
		check_srid(source, row, GEONN_POINT_SRID);
	if (state != GEONN_POINT_WRONG_SRID || srid == 0)
		return state;
	check_srid(source, row, srid);
	state = GEONN_POINT_OK;
	value = values[source->columns[COLUMN_POINT].attribute - 1];
	if (is_finite(row) && in_degrees(source, row, srid, &value))
	{
		state = geonn_point_decode(source->point_kind, value, &row->latitude, &row->longitude, detail);
		note_infinite(row, srid);
	}
	row->latitude_is_null = row->longitude_is_null = state != GEONN_POINT_OK;
	return state;
}

GeonnPointState
geonn_try_place(const PointSource *source, const Datum *values, const bool *nulls, PointRow *row, int32 *detail)
{
	GeonnPointState state = geonn_read_coordinates(source, values, nulls, row, detail);
	int32		srid = state == GEONN_POINT_OK ? GEONN_POINT_SRID : state == GEONN_POINT_WRONG_SRID ? *detail : 0;

	if (source->transform == NULL || srid == 0)
		return state;
	if (geonn_transform_note(source->transform, srid) == srid)
		return geonn_place_in_degrees(source, values, row, state, detail);
	row->latitude_is_null = row->longitude_is_null = true;
	*detail = srid;
	return GEONN_POINT_WRONG_SRID;
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
	const WeightWords *words = &geonn_weight_words[source->weights_are];

	if (source->weights_are == WEIGHTS_CAPACITY ? isfinite(weight) && weight >= 0 && weight == floor(weight) :
		is_null || isfinite(weight))
		return weight;
	ereport(ERROR,
			(errcode(is_null ? ERRCODE_NULL_VALUE_NOT_ALLOWED : ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("%s \"%s\" of %s is out of range: %s", words->role, column->name, geonn_whose_row(source, row),
					is_null ? "NULL" : geonn_written_value(column, row)),
			 errdetail("%s", words->range),
			 errhint("Correct it, or use a view or query that leaves such rows out, or has %s in its place.", words->nothing)));
}

/* ---- shapes ---- */

static char *
name_owner(const void *state)
{
	const ShapeOwner *owner = state;

	return geonn_whose_row(owner->source, owner->row);
}

/* a row's shape, which is to be read */
typedef struct WantedShape
{
	const PointSource *source;
	PointRow   *row;
	const ShapeOwner *owner;	/* whose shape errors are about; NULL: they do not say */
	Datum		value;
	int32		srid;			/* of the value; 4326 where it has none, or the source transforms none */
} WantedShape;

/* Set the coordinates of the row of a shape that has been opened.  Returns false if the shape is empty. */
static bool
survey(PointRow *row)
{
	bool		is_empty = !geonn_shape_survey(row->shape, &row->latitude, &row->longitude);

	row->latitude_is_null = row->longitude_is_null = is_empty;
	return !is_empty;
}

/* Begin to read a shape in the SRID that it has. */
static void
open_shape(void *state)
{
	const WantedShape *wanted = state;
	PointRow   *row = wanted->row;

	row->shape = (wanted->srid == GEONN_POINT_SRID ? geonn_shape_open : geonn_shape_open_any)
		(wanted->source->point_kind, wanted->value, wanted->owner == NULL ? NULL : name_owner, wanted->owner);
	if (survey(row) && wanted->source->transform != NULL)
		check_srid(wanted->source, wanted->owner == NULL ? NULL : row, wanted->srid);
}

/* Begin to read a shape that is in degrees and has been checked. */
static void
open_in_degrees(void *state)
{
	const WantedShape *wanted = state;

	wanted->row->shape = geonn_shape_open(wanted->source->point_kind, wanted->value,
										  wanted->owner == NULL ? NULL : name_owner, wanted->owner);
	if (survey(wanted->row) && wanted->srid != GEONN_POINT_SRID)
		note_infinite(wanted->row, wanted->srid);
}

/*
 * Transform a shape that has been opened in another SRID, and close it.  Returns false if its SRID is the right one already, if
 * it has no vertices or NaN among their coordinates, or if PostGIS cannot transform it.
 */
static bool
transform_shape(WantedShape *wanted)
{
	PointRow   *row = wanted->row;
	GeonnShapeReader *whole = row->shape;
	bool		is_transformed = !row->latitude_is_null && is_finite(row);

	if (wanted->srid == GEONN_POINT_SRID)
		return false;
	wanted->value = geonn_shape_value(whole);
	is_transformed = is_transformed && in_degrees(wanted->source, row, wanted->srid, &wanted->value);
	geonn_shape_close(whole);
	row->shape = NULL;
	return is_transformed;
}

static void
want_shape(WantedShape *wanted, Datum value)
{
	int32		srid = wanted->source->transform != NULL ? geonn_value_srid(value) : 0;

	wanted->value = value;
	wanted->srid = srid != 0 ? srid : GEONN_POINT_SRID;
}

void
geonn_read_shape(const ShapeOwner *owner, const Datum *values, const bool *nulls, PointRow *row)
{
	int			number = owner->source->columns[COLUMN_SHAPE].attribute - 1;
	WantedShape wanted = {.source = owner->source,.row = row,.owner = owner};

	row->latitude_is_null = row->longitude_is_null = true;
	if (nulls[number])
		return;
	want_shape(&wanted, values[number]);
	open_shape(&wanted);
	if (transform_shape(&wanted))
		open_in_degrees(&wanted);
}

void
geonn_reopen_shape(const ShapeOwner *owner, Datum value, PointRow *row)
{
	open_in_degrees(&(WantedShape) {.source = owner->source,.row = row,.owner = owner,.value = value,.srid = GEONN_POINT_SRID});
}

const GeonnRefusal *
geonn_refusal_of(void (*step) (void *state), void *state)
{
	MemoryContext context = CurrentMemoryContext;
	GeonnRefusal *volatile refusal = NULL;

	PG_TRY();
	{
		step(state);
	}
	PG_CATCH();
	{
		ErrorData  *error = geonn_take_error(context);

		/* the errors of shape.c */
		if (error->sqlerrcode != ERRCODE_INVALID_PARAMETER_VALUE && error->sqlerrcode != ERRCODE_DATA_CORRUPTED &&
			error->sqlerrcode != ERRCODE_FEATURE_NOT_SUPPORTED)
			ReThrowError(error);
		refusal = palloc(sizeof(GeonnRefusal));
		refusal->reason = error->message;
		refusal->is_curve = error->sqlerrcode == ERRCODE_FEATURE_NOT_SUPPORTED;
	}
	PG_END_TRY();
	return refusal;
}

void
geonn_try_shape(const PointSource *source, const Datum *values, const bool *nulls, PointRow *row)
{
	int			number = source->columns[COLUMN_SHAPE].attribute - 1;
	WantedShape wanted = {.source = source,.row = row};

	row->latitude_is_null = row->longitude_is_null = true;
	if (nulls[number])
		return;
	/* the steps read no table */
	want_shape(&wanted, PointerGetDatum(PG_DETOAST_DATUM_PACKED(values[number])));
	row->refusal = geonn_refusal_of(open_shape, &wanted);
	if (row->refusal == NULL && transform_shape(&wanted))
		row->refusal = geonn_refusal_of(open_in_degrees, &wanted);
	if (row->refusal != NULL)
		row->shape = NULL;
}
