/*
 * point_row.c
 *		Rows that are no points, and what is said of them.
 *
 * A NULL id or coordinate makes a row no candidate, as SQL has it, and is not
 * worth a warning.  A coordinate that is NaN, infinite or out of range most
 * likely is a mistake in the data: one warning counts such rows after all have
 * been read, or the first of them is an error.
 *
 * A warning also says which mistake explains coordinates that are out of range: latitude
 * and longitude that are swapped, or units other than degrees.  In much of the world
 * latitude and longitude are valid when swapped, too: a point of Europe or Africa becomes
 * another point of Africa or Europe.  So points that would be valid either way are no sign
 * of a swap.  Signs are more than a few latitudes out of range, and columns that have the
 * names of each other's coordinate; and against a swap stands any point that it would put
 * out of range.  geonn_check looks at all points for that, a join at those alone that it
 * skips.
 */
#include "postgres.h"

#include <math.h>

#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/json.h"
#include "utils/lsyscache.h"

#include "common/geodesy.h"
#include "points/column_hints.h"
#include "points/point_row.h"

/* Among this many points, more than one latitude out of range is a sign that latitude and longitude are swapped. */
#define SWAPPED_POINTS	100

/* a message shows at most this many characters of a value: a numeric can have 131,072 */
#define WRITTEN_MOST	60

typedef enum PointMistake
{
	MISTAKE_NONE,
	MISTAKE_SWAPPED,			/* latitude and longitude have changed places */
	MISTAKE_UNITS				/* the coordinates are in other units than degrees */
} PointMistake;

PointStatus
geonn_point_status(double latitude, double longitude)
{
	if (likely(geonn_coordinates_valid(latitude, longitude)))
		return POINT_VALID;
	if (!isfinite(latitude) || !isfinite(longitude))
		return POINT_NOT_FINITE;
	if (latitude >= -90 && latitude <= 90)
		return POINT_LONGITUDE_OUT;
	return geonn_coordinates_valid(longitude, latitude) ? POINT_SWAPPED : POINT_LATITUDE_OUT;
}

uint64
geonn_count_invalid(const uint64 *counts)
{
	return counts[POINT_NOT_FINITE] + counts[POINT_SWAPPED] + counts[POINT_LATITUDE_OUT] +
		counts[POINT_LONGITUDE_OUT];
}

char *
geonn_named_row(const PointSource *source, const PointRow *row)
{
	Oid			output;
	bool		is_varlena;

	if (row->id_is_null)
		return pstrdup("a row without an id");
	getTypeOutputInfo(source->columns[COLUMN_ID].type, &output, &is_varlena);
	return psprintf("id %s", OidOutputFunctionCall(output, row->id));
}

char *
geonn_whose_row(const PointSource *source, const PointRow *row)
{
	return psprintf("%s of %s", geonn_named_row(source, row), source->title);
}

char *
geonn_written_value(const PointColumn *column, const PointRow *row)
{
	Oid			output;
	bool		is_varlena;
	char	   *text;

	getTypeOutputInfo(column->type, &output, &is_varlena);
	text = OidOutputFunctionCall(output, row->values[column->attribute - 1]);
	return strlen(text) <= WRITTEN_MOST ? text :
		psprintf("%.*s... (%zu characters)", WRITTEN_MOST, text, strlen(text));
}

/* Return a coordinate as the row has it: a numeric can be beyond double precision. */
static char *
written_coordinate(const PointSource *source, const PointRow *row, bool is_latitude)
{
	if (source == NULL || source->point_kind != GEONN_POINT_NONE)
		return float8out_internal(is_latitude ? row->latitude : row->longitude);
	return geonn_written_value(&source->columns[is_latitude ? COLUMN_LATITUDE : COLUMN_LONGITUDE], row);
}

/* Is it the latitude of the row, which is not valid, that is out of range? */
static bool
has_wrong_latitude(const PointRow *row)
{
	return row->status == POINT_SWAPPED || row->status == POINT_LATITUDE_OUT ||
		(row->status == POINT_NOT_FINITE && !isfinite(row->latitude));
}

char *
geonn_written_invalid(const PointSource *source, const PointRow *row)
{
	bool		is_latitude = has_wrong_latitude(row);

	if (row->untransformed != NULL)
		return psprintf("the %s %s", geonn_place_word(source), row->untransformed);
	return psprintf("%s is out of range: %s", is_latitude ? "latitude" : "longitude",
					written_coordinate(source, row, is_latitude));
}

void
geonn_raise_invalid(const PointSource *source, const PointRow *row, const char *whose)
{
	bool		is_latitude = has_wrong_latitude(row);

	Assert(row->status != POINT_VALID && row->status != POINT_NULL);
	if (row->untransformed != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("the %s of %s %s", geonn_place_word(source), whose, row->untransformed),
				 errhint("Correct it, or use invalid => 'skip' to leave such rows out.")));
	ereport(ERROR,
			(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
			 errmsg("%s of %s is out of range: %s", is_latitude ? "latitude" : "longitude", whose,
					written_coordinate(source, row, is_latitude)),
			 row->status == POINT_SWAPPED ?
			 errdetail("A latitude is from -90 to 90 degrees; with latitude and longitude swapped, the point would be in range.") :
			 is_latitude ? errdetail("A latitude is from -90 to 90 degrees.") :
			 errdetail("A longitude is from -180 to 360 degrees."),
			 errhint("Correct it, or use invalid => 'skip' to leave such rows out.")));
}

char *
geonn_wrong_point(GeonnPointState state, int32 detail, const char *whose)
{
	Assert(state != GEONN_POINT_OK && state != GEONN_POINT_EMPTY);
	switch (state)
	{
		case GEONN_POINT_WRONG_SRID:
			return psprintf("%s has SRID %d", whose, detail);
		case GEONN_POINT_NOT_A_POINT:
			return psprintf("%s is a %s", whose, geonn_point_type_name(detail));
		default:
			return psprintf("%s has a malformed value", whose);
	}
}

void
geonn_raise_wrong_point(const PointSource *source, GeonnPointState state, int32 detail,
						const PointRow *row)
{
	const char *wrong = geonn_wrong_point(state, detail, psprintf("the point of %s", geonn_whose_row(source, row)));

	switch (state)
	{
		case GEONN_POINT_WRONG_SRID:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg_internal("%s", wrong),
					 errdetail("geonn reads longitudes and latitudes of SRID 4326."),
					 detail == 0 ?
					 errhint("If they are that, use a view that says so with ST_SetSRID.") :
					 errhint("Use a view that converts them with ST_Transform.")));
		case GEONN_POINT_NOT_A_POINT:
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg_internal("%s", wrong),
					 errdetail("Column \"%s\" is read as points.", source->columns[COLUMN_POINT].name),
					 errhint("Use a view that leaves such rows out.")));
		default:
			ereport(ERROR,
					(errcode(ERRCODE_DATA_CORRUPTED),
					 errmsg_internal("%s", wrong),
					 errhint("Use a column of type geography(Point) or geometry(Point,4326), or a view that leaves such rows out.")));
	}
}

/* ---- mistakes ---- */

/* Return whether the column has the name of this coordinate, and not the name of the other one. */
static bool
is_called(const PointColumn *column, const char *axis, const char *part, const char *other)
{
	return pg_strcasecmp(column->name, axis) == 0 ||
		(strcasestr(column->name, part) != NULL && strcasestr(column->name, other) == NULL);
}

static bool
has_swapped_names(const PointSource *source)
{
	return source != NULL && source->point_kind == GEONN_POINT_NONE &&
		is_called(&source->columns[COLUMN_LATITUDE], "x", "lon", "lat") &&
		is_called(&source->columns[COLUMN_LONGITUDE], "y", "lat", "lon");
}

static uint64
count_finite(const uint64 *counts)
{
	return counts[POINT_VALID] + counts[POINT_SWAPPED] + counts[POINT_LATITUDE_OUT] +
		counts[POINT_LONGITUDE_OUT];
}

static PointMistake
likely_mistake(const PointSource *source, const uint64 *counts, bool fits_swapped)
{
	uint64		points = count_finite(counts);
	bool		explained = counts[POINT_LATITUDE_OUT] + counts[POINT_LONGITUDE_OUT] == 0;

	if (points == 0)
		return MISTAKE_NONE;
	if (explained && fits_swapped &&
		(has_swapped_names(source) || counts[POINT_SWAPPED] > points / SWAPPED_POINTS))
		return MISTAKE_SWAPPED;
	return counts[POINT_VALID] == 0 ? MISTAKE_UNITS : MISTAKE_NONE;
}

/* Return the options, as JSON, that swap latitude and longitude. */
static char *
swapping_options(const PointSource *source)
{
	StringInfoData options;

	initStringInfo(&options);
	appendStringInfo(&options, "\"%slat\": ", source->option_prefix);
	escape_json(&options, source->columns[COLUMN_LONGITUDE].name);
	appendStringInfo(&options, ", \"%slon\": ", source->option_prefix);
	escape_json(&options, source->columns[COLUMN_LATITUDE].name);
	return options.data;
}

static char *
next_step(PointMistake mistake, const PointSource *source)
{
	if (mistake == MISTAKE_UNITS)
		return pstrdup("Convert them to degrees: microdegrees as in lat / 1e6, coordinates of a projection by ST_Transform.");
	if (source == NULL)
		return pstrdup("If they are, give them the other way round: latitudes come first.");
	if (source->point_kind != GEONN_POINT_NONE)
		return pstrdup("If they are, use a view that swaps them, as ST_FlipCoordinates does.");
	return psprintf("If they are, name the columns the other way round in options: %s.",
					swapping_options(source));
}

/*
 * Write sentences for a HINT: which mistake may explain points with these counts, and how to mend it.
 * Returns NULL if no mistake explains all points out of range.
 */
static char *
mistake_hint(const PointSource *source, const uint64 *counts)
{
	PointMistake mistake = likely_mistake(source, counts, true);

	if (mistake == MISTAKE_NONE)
		return NULL;
	return psprintf("%s %s",
					mistake == MISTAKE_SWAPPED ? "Latitude and longitude may be swapped." :
					"No point is in range, so these may be in units other than degrees.",
					next_step(mistake, source));
}

void
geonn_warn_of_mistake(const PointSource *source, const uint64 *counts, bool fits_swapped)
{
	PointMistake mistake = likely_mistake(source, counts, fits_swapped);

	if (mistake == MISTAKE_NONE)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 mistake == MISTAKE_SWAPPED ?
			 errmsg("latitude and longitude of %s may be swapped", source->title) :
			 errmsg("coordinates of %s may be in units other than degrees", source->title),
			 mistake == MISTAKE_UNITS ?
			 errdetail("Of %llu rows with coordinates, none is in range.",
					   (unsigned long long) count_finite(counts)) :
			 has_swapped_names(source) ?
			 errdetail("Column \"%s\" is read as the latitude, and column \"%s\" as the longitude.",
					   source->columns[COLUMN_LATITUDE].name,
					   source->columns[COLUMN_LONGITUDE].name) :
			 errdetail("Of %llu rows with coordinates, %llu have a latitude out of range; with latitude and longitude swapped, all rows would be in range.",
					   (unsigned long long) count_finite(counts),
					   (unsigned long long) counts[POINT_SWAPPED]),
			 mistake == MISTAKE_SWAPPED && source->point_kind == GEONN_POINT_NONE ?
			 errhint("%s In joins these are obs_lat and obs_lon, or ref_lat and ref_lon.",
					 next_step(mistake, source)) :
			 errhint("%s", next_step(mistake, source))));
}

/* ---- warnings ---- */

/*
 * Warn of rows that were skipped, or (kept) that stay without a neighbour.  source is NULL for points of
 * arrays; counts is by PointStatus; hint says how to see the rows.
 */
static void
warn_of_rows(const PointSource *source, const char *title, const uint64 *counts, bool kept,
			 const char *hint)
{
	StringInfoData detail;
	uint64		skipped = geonn_count_invalid(counts);
	char	   *mistake = mistake_hint(source, counts);
	/* where references are kept, the SRID of a column whose type has none is not known */
	bool		transforms = source != NULL && source->transform != NULL &&
		geonn_transform_srid(source->transform) != GEONN_POINT_SRID;

	if (skipped == 0)
		return;
	initStringInfo(&detail);
	appendStringInfo(&detail, "%s: %llu; latitude not from -90 to 90: %llu; longitude not from -180 to 360: %llu.",
					 transforms ? "NaN, infinite, or not to be transformed to SRID 4326" : "NaN or infinite",
					 (unsigned long long) counts[POINT_NOT_FINITE],
					 (unsigned long long) (counts[POINT_SWAPPED] + counts[POINT_LATITUDE_OUT]),
					 (unsigned long long) counts[POINT_LONGITUDE_OUT]);
	if (counts[POINT_NULL] > 0)
		appendStringInfo(&detail, " Besides, rows with a NULL id or coordinate: %llu.",
						 (unsigned long long) counts[POINT_NULL]);
	ereport(WARNING,
			(errcode(ERRCODE_WARNING),
			 kept ?
			 errmsg_plural("%llu row of %s has no neighbour: coordinates out of range",
						   "%llu rows of %s have no neighbour: coordinates out of range",
						   (unsigned long) skipped,
						   (unsigned long long) skipped, title) :
			 errmsg_plural("%llu row of %s was skipped: coordinates out of range",
						   "%llu rows of %s were skipped: coordinates out of range",
						   (unsigned long) skipped,
						   (unsigned long long) skipped, title),
			 errdetail_internal("%s", detail.data),
			 errhint("%s", mistake != NULL ? psprintf("%s %s", mistake, hint) : hint)));
}

static char *
invalid_rows_hint(const PointSource *source)
{
	if (OidIsValid(source->relation) && source->point_kind == GEONN_POINT_NONE)
		return psprintf("To see them: SELECT * FROM %s WHERE %s NOT BETWEEN -90 AND 90 OR %s NOT BETWEEN -180 AND 360;",
						source->quoted_name,
						quote_identifier(source->columns[COLUMN_LATITUDE].name),
						quote_identifier(source->columns[COLUMN_LONGITUDE].name));
	return pstrdup("With invalid => 'error' the first of them is named.");
}

void
geonn_tell_of_rows(const PointSource *source, InvalidPolicy invalid, const uint64 *counts)
{
	uint64		rows = 0;

	for (int i = 0; i < POINT_STATUSES; i++)
		rows += counts[i];
	if (counts[POINT_NULL] > 0)
		ereport(DEBUG1,
				(errmsg_internal("%llu of %llu rows of %s have a NULL id or coordinate",
								 (unsigned long long) counts[POINT_NULL],
								 (unsigned long long) rows, source->title)));
	if (invalid == GEONN_INVALID_SKIPPED || invalid == GEONN_INVALID_KEPT)
		warn_of_rows(source, source->title, counts, invalid == GEONN_INVALID_KEPT,
					 invalid_rows_hint(source));
}

/* ---- points that are given ---- */

void
geonn_given_row(const GivenPoints *given, uint64 number, PointRow *row)
{
	Assert(number < given->count);
	row->status = POINT_NULL;
	row->latitude_is_null = row->longitude_is_null = false;
	row->limits = NULL;
	given->point(given->state, number, row);
	if (!row->latitude_is_null && !row->longitude_is_null)
		row->status = geonn_point_status(row->latitude, row->longitude);
}

void
geonn_warn_of_given(const uint64 *counts, bool kept)
{
	warn_of_rows(NULL, "the arrays lat and lon", counts, kept,
				 "With invalid => 'error' the first of them is named.");
}

void
geonn_check_given(const GivenPoints *given)
{
	PointRow	row = {0};

	for (uint64 i = 0; i < given->count; i++)
	{
		geonn_given_row(given, i, &row);
		if (row.status != POINT_VALID && row.status != POINT_NULL)
			geonn_raise_invalid(NULL, &row, psprintf("point " UINT64_FORMAT " of the arrays",
													 given->each_alone ? 1 : i + 1));
	}
}
