/*
 * geometry.h
 *		Points of PostGIS's types and of PostgreSQL's own type point.
 */
#ifndef GEONN_GEOMETRY_H
#define GEONN_GEOMETRY_H

/* WGS84, which GPS, GeoJSON and PostGIS's geography have */
#define GEONN_POINT_SRID	4326

typedef enum GeonnPointKind
{
	GEONN_POINT_NONE,			/* no type of points */
	GEONN_POINT_GEOGRAPHY,		/* PostGIS's */
	GEONN_POINT_GEOMETRY,		/* PostGIS's */
	GEONN_POINT_NATIVE			/* PostgreSQL's point */
} GeonnPointKind;

typedef enum GeonnPointState
{
	GEONN_POINT_OK,
	GEONN_POINT_EMPTY,			/* counts as NULL */
	GEONN_POINT_WRONG_SRID,
	GEONN_POINT_NOT_A_POINT,
	GEONN_POINT_MALFORMED		/* no value that PostGIS writes */
} GeonnPointState;

/*
 * Which kind of points a type has, given below any domain.  A type is
 * PostGIS's by its name and by belonging to the extension postgis, in whatever
 * schema.  Cheap enough to ask for each column of a relation.
 */
extern GeonnPointKind geonn_point_kind(Oid base_type);

/*
 * May a column of this kind hold points of WGS84, as far as its type says?
 * NULL if so, else what is wrong, as a sentence for an errdetail, palloc'd.
 * The type may be a domain.  Where it leaves open what the values are, they
 * may be points, and geonn_point_decode tells of each.
 */
extern char *geonn_point_typmod_problem(GeonnPointKind kind, Oid type,
										int32 typmod);

/*
 * The latitude and longitude of a value in degrees, as it has them: they may
 * be out of range, infinite or NaN.  Z and M are ignored.  They are set with
 * GEONN_POINT_OK only.  *detail is the SRID that the value has, 0 for none,
 * with GEONN_POINT_WRONG_SRID, and its type's number with
 * GEONN_POINT_NOT_A_POINT.  Reads nothing outside the value, whatever its
 * bytes are.  Leaves nothing allocated; an error of the TOAST table's is
 * raised.
 */
extern GeonnPointState geonn_point_decode(GeonnPointKind kind, Datum value,
										  double *latitude, double *longitude,
										  int32 *detail);

/*
 * PostGIS's name for the number of a type, as "LineString", for messages.
 */
extern const char *geonn_point_type_name(int32 number);

#endif							/* GEONN_GEOMETRY_H */
