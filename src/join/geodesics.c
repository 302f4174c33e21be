/*
 * geodesics.c
 *		Distances and directions that the module computes itself.
 *
 * The distance of a point to a shape is the least of those to its parts: points,
 * lines (arc.h) and polygons.  A polygon is at distance 0 where the point is inside of an
 * odd number of its rings or on one of them (ring.h), and else as far as its rings.
 *
 * geonn_distance() is the function that neighbours are ordered by (geodesy.h, and
 * spheroid_distance.h for the metric spheroid), so that ORDER BY
 * geonn_distance(...), id is the definition of nearest.
 *
 * The direction on the sphere, with d the difference of longitudes: the tangent at the
 * first point has the parts cos(lat2) sin(d) to the east and cos(lat1) sin(lat2) -
 * sin(lat1) cos(lat2) cos(d) to the north.  The latter is written as
 * sin(lat2 - lat1) + 2 sin(lat1) cos(lat2) sin(d/2)^2, which loses no digits
 * where the points are near each other.  On the spheroid it is PROJ's azimuth.
 *
 * Geodesics on the spheroid are those of the library of the spheroid, which is
 * loaded when this process asks for the first one (spheroid/library.c).
 */
#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"

#include "common/arc.h"
#include "common/geodesy.h"
#include "common/metric.h"
#include "common/protocol.h"
#include "common/ring.h"
#include "common/spheroid_distance.h"
#include "base/compat.h"
#include "base/installed.h"
#include "base/words.h"
#include "join/geodesics.h"
#include "points/shape.h"

#define LIBRARY "geonn_spheroid" DLSUFFIX

PG_FUNCTION_INFO_V1(geonn_distance);
PG_FUNCTION_INFO_V1(geonn_distance_to_shape);

/* ---- the library of the spheroid ---- */

typedef double (*Geodesic) (double latitude1, double longitude1, double latitude2,
							double longitude2);

static Geodesic library_distance;
static Geodesic library_azimuth;

static void
hint_at_installing(void *argument pg_attribute_unused())
{
	errhint("\"make install\" or the geonn package puts that library beside the module; install geonn again, and PROJ if that is what is missing.");
}

static void
load_library(void)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = hint_at_installing
	};

	error_context_stack = &context;
	library_azimuth = (Geodesic) load_external_function(geonn_installed_file(LIBRARY),
														"geonn_spheroid_azimuth", true, NULL);
	library_distance = (Geodesic) load_external_function(geonn_installed_file(LIBRARY),
														 "geonn_spheroid_distance", true, NULL);
	error_context_stack = context.previous;
}

double
geonn_spheroid_distance(double latitude1, double longitude1, double latitude2, double longitude2)
{
	if (library_distance == NULL)
		load_library();
	return library_distance(latitude1, longitude1, latitude2, longitude2);
}

double
geonn_spheroid_azimuth(double latitude1, double longitude1, double latitude2, double longitude2)
{
	if (library_distance == NULL)
		load_library();
	return library_azimuth(latitude1, longitude1, latitude2, longitude2);
}

/* ---- directions ---- */

static double
sphere_bearing(double latitude1, double longitude1, double latitude2, double longitude2)
{
	double		sine1;
	double		cosine1;
	double		sine2;
	double		cosine2;
	double		north;
	double		east;
	double		half;
	double		unused;
	double		difference = longitude2 - longitude1;

	/* geonn_sincosd() takes angles between -360 and 360 degrees; the subtraction is exact here. */
	if (fabs(difference) > 360)
		difference -= copysign(360, difference);
	geonn_sincosd(latitude1, &sine1, &cosine1);
	geonn_sincosd(latitude2, &sine2, &cosine2);
	geonn_sincosd(latitude2 - latitude1, &north, &unused);
	geonn_sincosd(difference, &east, &unused);
	geonn_sincosd(difference / 2, &half, &unused);
	return atan2(cosine2 * east, north + 2 * sine1 * cosine2 * half * half) * (180 / M_PI);
}

double
geonn_bearing(int metric, double latitude1, double longitude1, double latitude2,
			  double longitude2)
{
	double		degrees = geonn_metric_chord_decides(metric) ?
		sphere_bearing(latitude1, longitude1, latitude2, longitude2) :
		geonn_spheroid_azimuth(latitude1, longitude1, latitude2, longitude2);

	if (degrees < 0)
		degrees += 360;
	/* -0 becomes 0 */
	return degrees < 360 ? degrees + 0.0 : 0;
}

/* ---- distances ---- */

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

enum geonn_metric
geonn_metric_of(const char *name, size_t length)
{
	int			metric;

	if (!geonn_find_word(geonn_metric_words(), name, length, false, &metric))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown metric: \"%s\"", pnstrdup(name, length)),
				 errhint("The metrics are %s.", geonn_list_words(geonn_metric_words(), "\"", "and"))));
	return (enum geonn_metric) metric;
}

/*
 * Not inlined: otherwise the JIT compiler could inline geonn_distance, and its code could not call
 * geonn_spheroid_distance, which only this library sees.
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
	enum geonn_metric metric;

	check_coordinate("lat1", true, latitude1);
	check_coordinate("lon1", false, longitude1);
	check_coordinate("lat2", true, latitude2);
	check_coordinate("lon2", false, longitude2);

	metric = geonn_metric_of(VARDATA_ANY(name), VARSIZE_ANY_EXHDR(name));
	PG_RETURN_FLOAT8(metric_distance(metric, latitude1, longitude1, latitude2, longitude2));
}

/* ---- distances to shapes ---- */

GeonnPointKind
geonn_kind_of_shape(FmgrInfo *function, int argument)
{
	GeonnPointKind *kind = function->fn_extra;

	if (kind == NULL)
	{
		Oid			type = get_fn_expr_argtype(function, argument);

		kind = MemoryContextAlloc(function->fn_mcxt, sizeof(*kind));
		*kind = OidIsValid(type) ? geonn_point_kind(getBaseType(type)) : GEONN_POINT_NONE;
		if (*kind != GEONN_POINT_GEOGRAPHY && *kind != GEONN_POINT_GEOMETRY)
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("geonn_distance does not know shapes of type %s",
							OidIsValid(type) ? format_type_be(type) : "unknown"),
					 errdetail("A shape is of PostGIS's type geography, or of its type geometry with SRID 4326."),
					 errhint("Of two points write the latitude and longitude of both: geonn_distance(lat1, lon1, lat2, lon2).")));
		function->fn_extra = kind;
	}
	return *kind;
}

/*
 * Return the distance of a point to a part, which may have millions of vectors; for a ring, *side becomes the side that the
 * point is on.
 */
static double
part_distance(struct geonn_vector point, const GeonnPart *part, enum geonn_side *side)
{
	double		distance = INFINITY;

	for (size_t first = 0; first < part->count; first += GEONN_RING_PIECE)
	{
		/* a piece ends with the vector with which the next one begins */
		size_t		count = Min(part->count - first, GEONN_RING_PIECE + 1);

		CHECK_FOR_INTERRUPTS();
		distance = Min(distance, geonn_chain_distance(point, part->vectors + first, count));
	}
	if (part->kind == GEONN_PART_RING)
		*side = geonn_long_ring_side(part->vectors, part->count, part->pole_is_inside, geonn_shape_pause, point);
	return distance;
}

/*
 * Return the distance of a point to a shape; INFINITY if the shape is empty.  Not inlined, for the reason
 * that metric_distance() gives.
 */
static pg_noinline double
shape_distance(FmgrInfo *function, double latitude, double longitude, Datum shape)
{
	struct geonn_vector point;
	GeonnShapeReader *reader = geonn_shape_open(geonn_kind_of_shape(function, 2), shape, NULL, NULL);
	GeonnPart	part;
	double		distance = INFINITY;
	double		polygon = INFINITY; /* distance to the rings read so far of the present polygon */
	bool		is_inside = false;	/* whether an odd number of the rings have the point inside */

	check_coordinate("lat", true, latitude);
	check_coordinate("lon", false, longitude);
	point = geonn_unit_vector(latitude, longitude);
	while (geonn_shape_next(reader, &part))
	{
		enum geonn_side side = GEONN_OUTSIDE;
		double		metres = part_distance(point, &part, &side);

		if (part.kind != GEONN_PART_RING)
		{
			distance = Min(distance, metres);
			continue;
		}
		polygon = side == GEONN_ON_BORDER ? 0 : Min(polygon, metres);
		is_inside ^= side == GEONN_INSIDE;
		if (part.is_last_ring)
		{
			distance = Min(distance, is_inside ? 0 : polygon);
			polygon = INFINITY;
			is_inside = false;
		}
	}
	geonn_shape_close(reader);
	return distance;
}

Datum
geonn_distance_to_shape(PG_FUNCTION_ARGS)
{
	double		distance = shape_distance(fcinfo->flinfo, PG_GETARG_FLOAT8(0), PG_GETARG_FLOAT8(1),
										  PG_GETARG_DATUM(2));

	if (isinf(distance))
		PG_RETURN_NULL();
	PG_RETURN_FLOAT8(distance);
}
