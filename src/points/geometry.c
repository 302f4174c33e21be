/*
 * geometry.c
 *		Points of PostGIS's types and of PostgreSQL's own type point.
 *
 * geonn does not link PostGIS, and works without it.  The types are looked up when
 * a column has one.  Their values are read in the form in which PostGIS stores
 * them; it is on disk, and so stays the same from release to release:
 *
 *		varlena header		1 or 4 bytes
 *		SRID				3 bytes, the highest first, 21 bits with sign
 *		flags				1 byte
 *		extended flags		8 bytes, where the flags say so (version 2 only)
 *		bounding box		floats, where the flags say so
 *		type				uint32, 1 for a point
 *		number of points	uint32, 0 for an empty one
 *		coordinates			double: x, y, and Z and M where the flags say so
 *
 * Version 1 is of PostGIS 2, version 2 of PostGIS 3; a table can have both
 * after an upgrade.  The box has the least and the greatest of each dimension in turn;
 * points, lines of two points, and collections of one of these have none.  A geography
 * has x = longitude and y = latitude in degrees, and so has a geometry of SRID 4326.  The
 * type point has no SRID, and is read in the same order, as PostGIS and earthdistance read it.
 */
#include "postgres.h"

#include <math.h>

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/geo_decls.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "base/extension.h"
#include "common/arc.h"
#include "points/geometry.h"

/* flags of a value */
#define FLAG_Z			0x01
#define FLAG_M			0x02
#define FLAG_BOX		0x04
#define FLAG_GEODETIC	0x08	/* the bounding box is geocentric: it has x, y and z */
#define FLAG_EXTENDED	0x10	/* in version 2 only */
#define FLAG_VERSION_2	0x40

#define TYPE_POINT		GEONN_SHAPE_POINT

#define SRID_UNKNOWN	0

/* the most bytes of a point: SRID, flags, extended flags, the largest box, type, number, x, y, z, m */
#define POINT_SIZE_MAX	(3 + 1 + 8 + 8 * sizeof(float) + 4 + 4 + 4 * sizeof(double))

static const char *const type_names[GEONN_POINT_TYPES] = {
	"Geometry", "Point", "LineString", "Polygon", "MultiPoint",
	"MultiLineString", "MultiPolygon", "GeometryCollection", "CircularString",
	"CompoundCurve", "CurvePolygon", "MultiCurve", "MultiSurface",
	"PolyhedralSurface", "Triangle", "Tin"
};

const char *
geonn_point_type_name(int32 number)
{
	if (number < 0 || number >= GEONN_POINT_TYPES)
		return "Unknown";
	return type_names[number];
}

GeonnPointKind
geonn_point_kind_by_name(Oid base_type)
{
	GeonnPointKind kind = GEONN_POINT_NONE;
	HeapTuple	tuple;
	const char *name;

	if (base_type == POINTOID)
		return GEONN_POINT_NATIVE;

	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(base_type));
	if (!HeapTupleIsValid(tuple))
		return GEONN_POINT_NONE;
	name = NameStr(((Form_pg_type) GETSTRUCT(tuple))->typname);
	if (strcmp(name, "geography") == 0)
		kind = GEONN_POINT_GEOGRAPHY;
	else if (strcmp(name, "geometry") == 0)
		kind = GEONN_POINT_GEOMETRY;
	ReleaseSysCache(tuple);
	return kind;
}

GeonnPointKind
geonn_point_kind(Oid base_type)
{
	GeonnPointKind kind = geonn_point_kind_by_name(base_type);

	if (kind == GEONN_POINT_NONE || kind == GEONN_POINT_NATIVE)
		return kind;
	return strcmp(geonn_extension_of(TypeRelationId, base_type), "postgis") == 0 ? kind : GEONN_POINT_NONE;
}

/*
 * Return the number of the type that a modifier names; 0: it names none.
 *
 * PostGIS packs into a typmod a signed SRID of 21 bits, a type of 6 bits and two bits for Z and M.
 * An SRID or type of 0 allows any.
 */
static int32
type_of(int32 typmod)
{
	return typmod < 0 ? 0 : (typmod & 0xFC) >> 2;
}

int32
geonn_typmod_srid(int32 typmod)
{
	return typmod < 0 ? SRID_UNKNOWN : ((typmod & 0x0FFFFF00) - (typmod & 0x10000000)) >> 8;
}

int32
geonn_typmod_in_degrees(int32 typmod)
{
	return typmod < 0 ? typmod : (typmod & ~0x1FFFFF00) | GEONN_POINT_SRID << 8;
}

/*
 * Return what is wrong with a column's type, or NULL.  The column is to hold values of types with numbers up to
 * `last`; `what` names these.
 */
static char *
typmod_problem(GeonnPointKind kind, Oid type, int32 typmod, int32 last, const char *what)
{
	int32		srid;
	char	   *name;

	type = getBaseTypeAndTypmod(type, &typmod);
	name = format_type_with_typemod(type, typmod);
	if (kind == GEONN_POINT_NONE)
		return psprintf("Its type is %s.", name);
	if (kind == GEONN_POINT_NATIVE || typmod < 0)
		return NULL;
	if (type_of(typmod) > last)
		return psprintf("Its type is %s, and geonn reads %s.", name, what);
	srid = geonn_typmod_srid(typmod);
	if (srid != SRID_UNKNOWN && srid != GEONN_POINT_SRID)
		return psprintf("Its type is %s, and geonn reads SRID %d.", name, GEONN_POINT_SRID);
	return NULL;
}

char *
geonn_point_typmod_problem(GeonnPointKind kind, Oid type, int32 typmod)
{
	return typmod_problem(kind, type, typmod, TYPE_POINT, "points");
}

Datum
geonn_empty_point(int32 srid)
{
	const uint8 numbers[] = {(srid >> 16) & 0x1F, (srid >> 8) & 0xFF, srid & 0xFF, 0};
	const uint32 contents[] = {TYPE_POINT, 0};
	char	   *value = palloc(VARHDRSZ + sizeof(numbers) + sizeof(contents));

	SET_VARSIZE(value, VARHDRSZ + sizeof(numbers) + sizeof(contents));
	memcpy(value + VARHDRSZ, numbers, sizeof(numbers));
	memcpy(value + VARHDRSZ + sizeof(numbers), contents, sizeof(contents));
	return PointerGetDatum(value);
}

char *
geonn_shape_typmod_problem(GeonnPointKind kind, Oid type, int32 typmod)
{
	return typmod_problem(kind, type, typmod, GEONN_SHAPE_COLLECTION,
						  "points, lines, polygons, and collections of them");
}

bool
geonn_point_typmod_is_point(int32 typmod)
{
	return type_of(typmod) == TYPE_POINT;
}

bool
geonn_typmod_is_shape(int32 typmod)
{
	return type_of(typmod) > TYPE_POINT;
}

bool
geonn_typmod_is_any(int32 typmod)
{
	return type_of(typmod) == 0;
}

bool
geonn_typmod_is_kind_of_shape(int32 typmod)
{
	return geonn_typmod_is_shape(typmod) && type_of(typmod) < GEONN_SHAPE_COLLECTION;
}

bool
geonn_typmod_is_polygons(int32 typmod)
{
	int32		type = type_of(typmod);

	return type == GEONN_SHAPE_POLYGON || type == GEONN_SHAPE_MULTIPOLYGON;
}

static int32
get_srid(const uint8 *bytes)
{
	int32		srid = ((bytes[0] & 0x1F) << 16) | (bytes[1] << 8) | bytes[2];

	return (srid & 0x100000) ? srid - 0x200000 : srid;
}

static int
dimensions_of(uint8 flags)
{
	return 2 + ((flags & FLAG_Z) != 0) + ((flags & FLAG_M) != 0);
}

/* Return how many bytes lie between the flags and the type. */
static size_t
size_of_options(uint8 flags)
{
	size_t		size = 0;

	if ((flags & FLAG_VERSION_2) && (flags & FLAG_EXTENDED))
		size += 8;
	if (flags & FLAG_BOX)
		size += 2 * sizeof(float) * ((flags & FLAG_GEODETIC) ? 3 : dimensions_of(flags));
	return size;
}

bool
geonn_geometry_header(GeonnPointKind kind, const uint8 *bytes, size_t size,
					  int32 *srid, int *dimensions, size_t *position)
{
	if (size < 4)
		return false;
	*srid = get_srid(bytes);
	if (*srid == SRID_UNKNOWN && kind == GEONN_POINT_GEOGRAPHY)
		*srid = GEONN_POINT_SRID;
	*dimensions = dimensions_of(bytes[3]);
	*position = 4 + size_of_options(bytes[3]);
	return true;
}

bool
geonn_geometry_is_measured(const uint8 *bytes)
{
	return (bytes[3] & FLAG_M) != 0;
}

/*
 * Return the first bytes of a value, which may be of any size.  A value in a TOAST table is not fetched as a whole, unless
 * lz4 has compressed it.
 */
static struct varlena *
first_bytes(struct varlena *serialized, size_t size)
{
	if (VARATT_IS_EXTERNAL(serialized) || VARATT_IS_COMPRESSED(serialized))
		return pg_detoast_datum_slice(serialized, 0, (int32) size);
	return serialized;
}

/* Decode a point from the first bytes of a value, which need be neither aligned nor complete. */
static GeonnPointState
decode_serialized(GeonnPointKind kind, const uint8 *bytes, size_t size,
				  double *latitude, double *longitude, int32 *detail)
{
	size_t		position;
	int32		srid;
	int			dimensions;
	uint32		type;
	uint32		points;

	if (!geonn_geometry_header(kind, bytes, size, &srid, &dimensions, &position) ||
		size < position + sizeof(type) + sizeof(points))
		return GEONN_POINT_MALFORMED;
	memcpy(&type, bytes + position, sizeof(type));
	position += sizeof(type);
	memcpy(&points, bytes + position, sizeof(points));
	position += sizeof(points);

	/* of other types: the number of points, rings or members */
	*detail = srid;
	if (points == 0)
		return GEONN_POINT_EMPTY;
	if (type != TYPE_POINT)
	{
		*detail = (int32) type;
		return GEONN_POINT_NOT_A_POINT;
	}
	if (points != 1 || size < position + dimensions * sizeof(double))
		return GEONN_POINT_MALFORMED;
	memcpy(longitude, bytes + position, sizeof(double));
	memcpy(latitude, bytes + position + sizeof(double), sizeof(double));
	return srid == GEONN_POINT_SRID ? GEONN_POINT_OK : GEONN_POINT_WRONG_SRID;
}

GeonnPointState
geonn_point_decode(GeonnPointKind kind, Datum value,
				   double *latitude, double *longitude, int32 *detail)
{
	struct varlena *serialized = (struct varlena *) DatumGetPointer(value);
	struct varlena *slice;
	GeonnPointState state;

	if (kind == GEONN_POINT_NATIVE)
	{
		const Point *point = DatumGetPointP(value);

		*latitude = point->y;
		*longitude = point->x;
		return GEONN_POINT_OK;
	}

	slice = first_bytes(serialized, POINT_SIZE_MAX);
	state = decode_serialized(kind, (const uint8 *) VARDATA_ANY(slice),
							  VARSIZE_ANY_EXHDR(slice),
							  latitude, longitude, detail);
	if (slice != serialized)
		pfree(slice);
	return state;
}

int32
geonn_value_srid(Datum value)
{
	struct varlena *serialized = (struct varlena *) DatumGetPointer(value);
	struct varlena *slice = first_bytes(serialized, 3);
	int32		srid = VARSIZE_ANY_EXHDR(slice) < 3 ? SRID_UNKNOWN : get_srid((const uint8 *) VARDATA_ANY(slice));

	if (slice != serialized)
		pfree(slice);
	return srid;
}

bool
geonn_value_type(GeonnPointKind kind, Datum value, int32 *type, int32 *srid)
{
	struct varlena *serialized = (struct varlena *) DatumGetPointer(value);
	struct varlena *slice = first_bytes(serialized, POINT_SIZE_MAX);
	size_t		size = VARSIZE_ANY_EXHDR(slice);
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(slice);
	size_t		position;
	int			dimensions;
	bool		is_known = geonn_geometry_header(kind, bytes, size, srid, &dimensions, &position) &&
		size >= position + sizeof(*type);

	if (is_known)
		memcpy(type, bytes + position, sizeof(*type));
	if (slice != serialized)
		pfree(slice);
	return is_known && *type >= 0 && *type < GEONN_POINT_TYPES;
}

/* ---- extents ---- */

/* the extent of a value is found from at most this many bytes: options, types of nested collections, two points */
#define EXTENT_SIZE_MAX 256

/* Set the extent from two opposite corners of a box in space.  Returns false if the corners do not say where the box is. */
static bool
set_extent(struct geonn_vector a, struct geonn_vector b, GeonnExtent *extent)
{
	struct geonn_vector sum = {a.x + b.x, a.y + b.y, a.z + b.z};
	struct geonn_vector across = {a.x - b.x, a.y - b.y, a.z - b.z};
	double		length = sqrt(geonn_dot(sum, sum));

	/* length is 0 for a box around the Earth's centre, which has no direction; NaN fails the comparison */
	if (!(length > 0))
		return false;
	extent->centre = (struct geonn_vector) {sum.x / length, sum.y / length, sum.z / length};
	extent->diagonal = sqrt(geonn_dot(across, across));
	return true;
}

static bool
set_extent_of_degrees(double west, double east, double south, double north, GeonnExtent *extent)
{
	return geonn_coordinates_valid(south, west) && geonn_coordinates_valid(north, east) &&
		set_extent(geonn_unit_vector(south, west), geonn_unit_vector(north, east), extent);
}

/* Find the extent of a shape without a box, from its points; the type's number begins at position. */
static bool
extent_of_points(const uint8 *bytes, size_t size, size_t position, int dimensions, GeonnExtent *extent)
{
	size_t		stride = dimensions * sizeof(double);
	uint32		type = GEONN_SHAPE_COLLECTION;
	uint32		count = 1;
	double		first[2];
	double		last[2];

	while (count == 1 && type >= GEONN_SHAPE_MULTIPOINT && type <= GEONN_SHAPE_COLLECTION)
	{
		if (size < position + sizeof(type) + sizeof(count))
			return false;
		memcpy(&type, bytes + position, sizeof(type));
		memcpy(&count, bytes + position + sizeof(type), sizeof(count));
		position += sizeof(type) + sizeof(count);
	}
	if ((type != GEONN_SHAPE_POINT && type != GEONN_SHAPE_LINESTRING) || count < 1 || count > 2 ||
		size < position + count * stride)
		return false;
	memcpy(first, bytes + position, sizeof(first));
	memcpy(last, bytes + position + (count - 1) * stride, sizeof(last));
	extent->is_area = false;
	return set_extent_of_degrees(first[0], last[0], first[1], last[1], extent);
}

static bool
extent_of(GeonnPointKind kind, const uint8 *bytes, size_t size, GeonnExtent *extent)
{
	size_t		position;
	int32		srid;
	int			dimensions;
	float		box[6];
	uint32		type;

	if (!geonn_geometry_header(kind, bytes, size, &srid, &dimensions, &position) || srid != GEONN_POINT_SRID)
		return false;
	if (!(bytes[3] & FLAG_BOX))
		return extent_of_points(bytes, size, position, dimensions, extent);
	if (size < position + sizeof(type))
		return false;
	memcpy(&type, bytes + position, sizeof(type));
	extent->is_area = type == GEONN_SHAPE_POLYGON || type == GEONN_SHAPE_MULTIPOLYGON || type == GEONN_SHAPE_COLLECTION;
	if (bytes[3] & FLAG_GEODETIC)
	{
		memcpy(box, bytes + position - 6 * sizeof(float), 6 * sizeof(float));
		return set_extent((struct geonn_vector) {box[0], box[2], box[4]},
						  (struct geonn_vector) {box[1], box[3], box[5]}, extent);
	}
	memcpy(box, bytes + position - 2 * dimensions * sizeof(float), 4 * sizeof(float));
	return set_extent_of_degrees(box[0], box[1], box[2], box[3], extent);
}

bool
geonn_shape_extent(GeonnPointKind kind, Datum value, GeonnExtent *extent)
{
	struct varlena *serialized = (struct varlena *) DatumGetPointer(value);
	struct varlena *slice = first_bytes(serialized, EXTENT_SIZE_MAX);
	bool		is_known = extent_of(kind, (const uint8 *) VARDATA_ANY(slice), VARSIZE_ANY_EXHDR(slice), extent);

	if (slice != serialized)
		pfree(slice);
	return is_known;
}
