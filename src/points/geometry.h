/*
 * geometry.h
 *		Points of PostGIS's types and of PostgreSQL's own type point.
 */
#ifndef GEONN_GEOMETRY_H
#define GEONN_GEOMETRY_H

#include "common/geodesy.h"

/* WGS84, which GPS, GeoJSON and PostGIS's geography use */
#define GEONN_POINT_SRID	4326

/* PostGIS's numbers of the types that geonn takes as shapes; geonn_point_type_name() knows all types. */
#define GEONN_SHAPE_POINT			1
#define GEONN_SHAPE_LINESTRING		2
#define GEONN_SHAPE_POLYGON			3
#define GEONN_SHAPE_MULTIPOINT		4
#define GEONN_SHAPE_MULTILINESTRING	5
#define GEONN_SHAPE_MULTIPOLYGON	6
#define GEONN_SHAPE_COLLECTION		7

typedef enum GeonnPointKind
{
	GEONN_POINT_NONE,			/* not a type of points */
	GEONN_POINT_GEOGRAPHY,		/* PostGIS's */
	GEONN_POINT_GEOMETRY,		/* PostGIS's */
	GEONN_POINT_NATIVE			/* PostgreSQL's point */
} GeonnPointKind;

typedef enum GeonnPointState
{
	GEONN_POINT_OK,
	GEONN_POINT_EMPTY,			/* of any type; counts as NULL */
	GEONN_POINT_WRONG_SRID,
	GEONN_POINT_NOT_A_POINT,
	GEONN_POINT_MALFORMED		/* PostGIS writes no such value */
} GeonnPointState;

/*
 * Return the kind of points that a type (below any domain) holds.  A type is PostGIS's if its name is geography or
 * geometry, and it belongs to the extension postgis, in any schema.  Fast enough to be called for each column.
 */
extern GeonnPointKind geonn_point_kind(Oid base_type);

/* Return what kind of points a type of PostGIS holds, by its name alone.  For a type that a function of PostGIS takes. */
extern GeonnPointKind geonn_point_kind_by_name(Oid base_type);

/*
 * Check whether a column of this kind can hold points of WGS84, as far as its type says.  Returns NULL if it can;
 * otherwise what is wrong, as a sentence for errdetail, palloc'd.  The type may be a domain.  If the type does not
 * restrict the values, the function returns NULL, and geonn_point_decode() checks each value.
 */
extern char *geonn_point_typmod_problem(GeonnPointKind kind, Oid type,
										int32 typmod);

/* Return whether the modifier of one of PostGIS's types says that each value is a point, perhaps an empty one. */
extern bool geonn_point_typmod_is_point(int32 typmod);

/* Return whether the modifier says that values are lines, polygons, or anything else than points. */
extern bool geonn_typmod_is_shape(int32 typmod);

/* Return whether the modifier leaves open what the values are: points, lines, polygons or anything else. */
extern bool geonn_typmod_is_any(int32 typmod);

/* Return whether the modifier says that values are lines, polygons, or several points, lines or polygons. */
extern bool geonn_typmod_is_kind_of_shape(int32 typmod);

/* Return whether the modifier says that values are polygons, or several. */
extern bool geonn_typmod_is_polygons(int32 typmod);

/* Return the SRID that the modifier of one of PostGIS's types names; 0: it names none. */
extern int32 geonn_typmod_srid(int32 typmod);

/* Return the modifier of the same type with GEONN_POINT_SRID. */
extern int32 geonn_typmod_in_degrees(int32 typmod);

/* Return the SRID of a value of geometry; 0: it has none.  Raises an error only if reading from the TOAST table does. */
extern int32 geonn_value_srid(Datum value);

/* Return a geometry of this SRID, palloc'd: a point that is empty, of version 1, which PostGIS 2 and 3 read. */
extern Datum geonn_empty_point(int32 srid);

/* Check a column of shapes as geonn_point_typmod_problem() checks one of points. */
extern char *geonn_shape_typmod_problem(GeonnPointKind kind, Oid type, int32 typmod);

/*
 * Get the latitude and longitude of a value in degrees, as they are stored: they may be out of range, infinite or NaN.  Z
 * and M are ignored.  Sets the coordinates with GEONN_POINT_OK, and with GEONN_POINT_WRONG_SRID, which only a whole point
 * has, x and y in that SRID; *detail becomes the SRID then, 0 for none, and with GEONN_POINT_EMPTY; with
 * GEONN_POINT_NOT_A_POINT it becomes the number of the type.  Reads nothing outside the value, whatever its bytes are.
 * Leaves nothing allocated.  Raises an error if reading from the TOAST table does.
 */
extern GeonnPointState geonn_point_decode(GeonnPointKind kind, Datum value,
										  double *latitude, double *longitude,
										  int32 *detail);

/*
 * Read the first bytes of a value of PostGIS's types, without its varlena header: its SRID, how many
 * numbers a point has, and the position of the type's number, which may be behind the end of the
 * bytes.  A geography without SRID has GEONN_POINT_SRID.  Returns false if the bytes are too few.
 */
extern bool geonn_geometry_header(GeonnPointKind kind, const uint8 *bytes, size_t size,
								  int32 *srid, int *dimensions, size_t *position);

/*
 * Get the number of a value's type and its SRID, of which a geography without one has GEONN_POINT_SRID.  Returns false if the
 * value does not tell, or if its type is none of PostGIS's.
 */
extern bool geonn_value_type(GeonnPointKind kind, Datum value, int32 *type, int32 *srid);

/* Return whether a point of such a value has a measure, its last number.  geonn_geometry_header() has read the bytes. */
extern bool geonn_geometry_is_measured(const uint8 *bytes);

/* Roughly where a shape is, and how large: for estimates. */
typedef struct GeonnExtent
{
	struct geonn_vector centre;	/* a unit vector */
	double		diagonal;		/* the length of the diagonal of a box around the shape, on the unit sphere */
	bool		is_area;		/* the shape has polygons, as far as the first type in it says */
} GeonnExtent;

/*
 * Find a shape's extent from its first bytes.  Returns false if the bytes do not tell, or are wrong.  Raises an error
 * only if reading from the TOAST table does.
 */
extern bool geonn_shape_extent(GeonnPointKind kind, Datum value, GeonnExtent *extent);

/* types of PostGIS have numbers below this */
#define GEONN_POINT_TYPES	16

/* Return PostGIS's name for a type's number, such as "LineString", for messages. */
extern const char *geonn_point_type_name(int32 number);

#endif							/* GEONN_GEOMETRY_H */
