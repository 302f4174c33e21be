/*
 * mistake.c
 *		Which mistake explains coordinates that are out of range: latitude and
 *		longitude that are swapped, or units other than degrees.
 *
 * In much of the world latitude and longitude are valid when swapped, too: a
 * point of Europe or Africa becomes another point of Africa or Europe.  So points
 * that would be valid either way are no sign of a swap.  Signs are more than a few
 * latitudes out of range, and columns that have the names of each other's
 * coordinate; and against a swap stands any point that it would put out of range.
 * geonn_check looks at all points for that, a join at those alone that it skips.
 */
#include "postgres.h"

#include "lib/stringinfo.h"
#include "utils/json.h"

#include "points/mistake.h"

/* more than one latitude out of range in so many points is a sign of a swap */
#define SWAPPED_POINTS	100

typedef enum PointMistake
{
	MISTAKE_NONE,
	MISTAKE_SWAPPED,			/* latitude and longitude */
	MISTAKE_UNITS				/* others than degrees */
} PointMistake;

/*
 * Does the column have the name of this coordinate, and not that of the other?
 */
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

/*
 * How columns are named the other way round in the argument options.
 */
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

/*
 * What to do about the mistake.
 */
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

char *
geonn_mistake_hint(const PointSource *source, const uint64 *counts)
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
