/*
 * distance.c
 *		geonn_distance(): metres between two points.
 *
 * This is the function that neighbours are ordered by (geodesy.h, and
 * spheroid_distance.h for the metric spheroid), so that ORDER BY
 * geonn_distance(...), id is the definition of nearest.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/float.h"

#include "common/metric.h"
#include "base/compat.h"
#include "base/words.h"

PG_FUNCTION_INFO_V1(geonn_distance);

static void
check_coordinate(const char *name, bool is_latitude, double value)
{
	if (is_latitude ? value >= -90 && value <= 90 : value >= -180 && value <= 360)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("%s is out of range: %s", name, float8out_internal(value)),
			 is_latitude ? errdetail("A latitude is from -90 to 90 degrees.") :
			 errdetail("A longitude is from -180 to 360 degrees."),
			 is_latitude ?
			 errhint("Latitude comes before longitude: geonn_distance(lat1, lon1, lat2, lon2).") :
			 errhint("Add or subtract multiples of 360 degrees until it is.")));
}

/*
 * Kept apart, so that the JIT compiler leaves geonn_distance where it is:
 * inlined elsewhere it could not call geonn_spheroid_distance, which only
 * this library sees.
 */
static pg_noinline double
metric_distance(enum geonn_metric metric, double latitude1, double longitude1, double latitude2,
				double longitude2)
{
	return geonn_metric_distance(metric, latitude1, longitude1, latitude2, longitude2);
}

Datum
geonn_distance(PG_FUNCTION_ARGS)
{
	double		latitude1 = PG_GETARG_FLOAT8(0);
	double		longitude1 = PG_GETARG_FLOAT8(1);
	double		latitude2 = PG_GETARG_FLOAT8(2);
	double		longitude2 = PG_GETARG_FLOAT8(3);
	text	   *name = PG_GETARG_TEXT_PP(4);
	int			metric;

	check_coordinate("lat1", true, latitude1);
	check_coordinate("lon1", false, longitude1);
	check_coordinate("lat2", true, latitude2);
	check_coordinate("lon2", false, longitude2);

	if (!geonn_find_word(geonn_metric_words(), VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name), false, &metric))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown metric: \"%s\"", text_to_cstring(name)),
				 errhint("The metrics are %s.", geonn_list_words(geonn_metric_words(), "\"", "and"))));
	PG_RETURN_FLOAT8(metric_distance(metric, latitude1, longitude1, latitude2, longitude2));
}
