/*
 * shape.c
 *		Shapes of PostGIS's types, read part by part.
 *
 * geometry.c describes how a value begins.  From the type on, a point and a line
 * have, 4 bytes each, the type and the number of points, and then their
 * coordinates; a polygon the type, the number of rings, the number of
 * points of each ring, 4 bytes more if the number of rings is odd, and the coordinates of all
 * rings.  All others have the type, the number of their members, and the
 * members, each of which begins with its type.  So the members of members follow
 * each other, too, and a count of what is still to come takes the place of a
 * recursion.
 *
 * A join surveys a shape before it reads it, and so can leave out one with coordinates that are out of
 * range, as it leaves out such a point.
 *
 * A join sends degrees, and needs vectors only to check a part.  Most parts are small: their latitudes and longitudes
 * span less than 80 degrees together, and so no two vertices are as far apart, since a path along a meridian
 * and a parallel is not shorter.  No arc of a small part is long, and a small ring lies in the hemisphere around its
 * first vertex.  Where it also stays a degree away from the poles, its arcs stay between its least and its greatest
 * longitude.  The path from the pole to the opposite of the first vertex follows a meridian outside of
 * these, crosses no arc, and ends outside (ring.c): so the pole is outside, too.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/float.h"

#include "common/arc.h"
#include "common/ring.h"
#include "base/compat.h"
#include "points/shape.h"

struct GeonnShapeReader
{
	struct varlena *detoasted;
	bool		is_copy;		/* detoasted was palloc'd here */
	const uint8 *bytes;			/* of detoasted, without its header */
	size_t		size;
	size_t		position;		/* of the next byte to read */
	size_t		start;			/* of the first geometry */
	int			dimensions;		/* numbers a point has */
	bool		is_plane;		/* vertices are no degrees, but numbers of another SRID */
	bool		is_measured;	/* the last of them is a measure */
	uint64		geometries;		/* still to come */
	uint32		rings;			/* how many rings of the present polygon are still to come */
	size_t		ring_sizes;		/* position of the next ring's number of points */
	uint64		vertices;		/* how many vertices the parts read so far have */
	uint64		arcs;			/* how many arcs the parts surveyed so far have */
	struct geonn_vector *vectors;
	size_t		capacity;
	GeonnShapeOwner owner;		/* NULL: the shape has no owner */
	const void *state;			/* of owner */
};

/* ---- errors ---- */

static const char *
name_of(const GeonnShapeReader *reader)
{
	return reader->owner == NULL ? "the shape" : psprintf("the shape of %s", reader->owner(reader->state));
}

static void
raise_malformed(const GeonnShapeReader *reader)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("%s has a malformed value", name_of(reader)),
			 errhint("Make the shape anew, as ST_GeomFromEWKB(ST_AsEWKB(shape)) does, or leave it out.")));
}

static void
raise_wrong_type(const GeonnShapeReader *reader, uint32 type)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("%s has a %s", name_of(reader), geonn_point_type_name((int32) Min(type, PG_INT32_MAX))),
			 errdetail("geonn reads points, lines, polygons, and collections of them."),
			 errhint("ST_CurveToLine makes lines and polygons of curves, ST_Dump polygons of surfaces.")));
}

static void
raise_out_of_range(const GeonnShapeReader *reader, uint64 vertex, double latitude, double longitude)
{
	bool		is_latitude = !(latitude >= -90 && latitude <= 90);

	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("vertex " UINT64_FORMAT " of %s has a %s that is out of range: %s", vertex,
					name_of(reader), is_latitude ? "latitude" : "longitude",
					float8out_internal(is_latitude ? latitude : longitude)),
			 is_latitude ? errdetail("A latitude is from -90 to 90 degrees.") :
			 errdetail("A longitude is from -180 to 360 degrees."),
			 errhint("PostGIS has the longitude first, as x: ST_MakePoint(lon, lat).")));
}

static void
raise_antipodal(const GeonnShapeReader *reader, uint64 vertex)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("vertices " UINT64_FORMAT " and " UINT64_FORMAT " of %s are antipodal", vertex, vertex + 1,
					name_of(reader)),
			 errdetail("No arc between them is the shorter one."),
			 errhint("Add a vertex between them, where the arc is meant to pass.")));
}

/* ---- numbers ---- */

static uint32
read_number(GeonnShapeReader *reader, size_t position)
{
	uint32		number;

	if (position > reader->size || reader->size - position < sizeof(number))
		raise_malformed(reader);
	memcpy(&number, reader->bytes + position, sizeof(number));
	return number;
}

static uint32
read_next_number(GeonnShapeReader *reader)
{
	uint32		number = read_number(reader, reader->position);

	reader->position += sizeof(number);
	return number;
}

/* ---- parts ---- */

static void
append(GeonnShapeReader *reader, size_t *count, struct geonn_vector vector)
{
	if (*count == reader->capacity)
	{
		reader->capacity *= 2;
		reader->vectors = repalloc_huge(reader->vectors, reader->capacity * sizeof(*reader->vectors));
	}
	reader->vectors[(*count)++] = vector;
}

/* Read so many points, without converting or checking them. */
static GeonnVertices
read_vertices(GeonnShapeReader *reader, uint32 points)
{
	GeonnVertices vertices = {
		.bytes = reader->bytes + reader->position,
		.stride = reader->dimensions * sizeof(double),
		.measure = reader->is_measured ? (reader->dimensions - 1) * sizeof(double) : 0,
		.count = points
	};

	Assert(reader->position <= reader->size);
	if (points > (reader->size - reader->position) / vertices.stride)
		raise_malformed(reader);
	reader->position += points * vertices.stride;
	return vertices;
}

/* Make vectors of a part's vertices.  Returns how many vectors.  A part that is no chain of arcs has one vertex. */
static size_t
make_vectors(GeonnShapeReader *reader, const GeonnVertices *vertices)
{
	size_t		count = 0;
	double		latitude;
	double		longitude;
	double		last_latitude = 0;
	double		last_longitude = 0;

	Assert(vertices->count > 0);
	/* more are needed for long arcs alone */
	if (vertices->count > reader->capacity)
	{
		reader->capacity = vertices->count;
		reader->vectors = repalloc_huge(reader->vectors, reader->capacity * sizeof(*reader->vectors));
	}
	for (uint32 i = 0; i < vertices->count; i++)
	{
		struct geonn_vector vector;

		if (i % 65536 == 65535)
			CHECK_FOR_INTERRUPTS();
		geonn_vertex(vertices, i, &latitude, &longitude);
		if (!geonn_coordinates_valid(latitude, longitude))
			raise_out_of_range(reader, reader->vertices + i + 1, latitude, longitude);

		vector = geonn_unit_vector(latitude, longitude);
		if (i > 0 && geonn_arc_is_long(reader->vectors[count - 1], vector))
		{
			if (geonn_arc_is_antipodal(reader->vectors[count - 1], vector))
				raise_antipodal(reader, reader->vertices + i);
			append(reader, &count, geonn_arc_middle(last_latitude, last_longitude, latitude, longitude));
		}
		append(reader, &count, vector);
		last_latitude = latitude;
		last_longitude = longitude;
	}
	reader->vertices += vertices->count;
	return count;
}

void
geonn_shape_pause(void)
{
	CHECK_FOR_INTERRUPTS();
}

/*
 * Return whether the part is small, as the essay above says, and all its vertices are in range; a ring must also have
 * the same degrees at both ends.
 */
static bool
is_small(const GeonnPart *part)
{
	const GeonnVertices *vertices = &part->vertices;
	double		first_latitude;
	double		first_longitude;
	double		latitude;
	double		longitude;
	double		south = 90;
	double		north = -90;
	double		west = 360;
	double		east = -180;

	for (uint32 i = 0; i < vertices->count; i++)
	{
		if (i % 65536 == 65535)
			CHECK_FOR_INTERRUPTS();
		geonn_vertex(vertices, i, &latitude, &longitude);
		if (!geonn_coordinates_valid(latitude, longitude))
			return false;
		south = Min(south, latitude);
		north = Max(north, latitude);
		west = Min(west, longitude);
		east = Max(east, longitude);
	}
	if ((north - south) + (east - west) >= 80)
		return false;
	if (part->kind != GEONN_PART_RING)
		return true;
	geonn_vertex(vertices, 0, &first_latitude, &first_longitude);
	return south >= -89 && north <= 89 && latitude == first_latitude && longitude == first_longitude;
}

/* Finish a ring: make its last vector the same as its first, and find which of its sides is the smaller one. */
static void
settle_ring(GeonnShapeReader *reader, GeonnPart *part, uint32 points)
{
	const struct geonn_vector *first = &part->vectors[0];
	const struct geonn_vector *last = &part->vectors[part->count - 1];

	Assert(points <= reader->vertices);
	if (first->x != last->x || first->y != last->y || first->z != last->z)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the ring that ends at vertex " UINT64_FORMAT " of %s is not closed", reader->vertices,
						name_of(reader)),
				 errhint("The last vertex of a ring has the place of its first one.")));
	if (!geonn_ring_holds_pole(part->vectors, part->count, geonn_shape_pause, &part->pole_is_inside))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("the ring of vertices " UINT64_FORMAT " to " UINT64_FORMAT " of %s has no smaller side",
						reader->vertices - points + 1, reader->vertices, name_of(reader)),
				 errdetail("The inside of a ring is the smaller of the two parts into which it divides the sphere."),
				 errhint("Divide the polygon into smaller ones.")));
}

/* ---- geometries ---- */

static void
begin_polygon(GeonnShapeReader *reader)
{
	reader->rings = read_next_number(reader);
	if (reader->rings > (reader->size - reader->position) / sizeof(uint32))
		raise_malformed(reader);
	reader->ring_sizes = reader->position;
	reader->position += (reader->rings + (size_t) reader->rings % 2) * sizeof(uint32);
	if (reader->position > reader->size)
		raise_malformed(reader);
}

/*
 * Begin the next geometry.  Returns how many points it has itself: 0 for a polygon, whose rings come next,
 * and for a collection, whose members come next.
 */
static uint32
begin_geometry(GeonnShapeReader *reader, GeonnPart *part)
{
	uint32		type = read_next_number(reader);
	uint32		points;

	Assert(reader->geometries > 0 && reader->rings == 0);
	reader->geometries--;
	switch (type)
	{
		case GEONN_SHAPE_POINT:
		case GEONN_SHAPE_LINESTRING:
			points = read_next_number(reader);
			if (type == GEONN_SHAPE_POINT && points > 1)
				raise_malformed(reader);
			part->kind = type == GEONN_SHAPE_POINT ? GEONN_PART_POINT : GEONN_PART_LINE;
			part->is_last_ring = false;
			return points;
		case GEONN_SHAPE_POLYGON:
			begin_polygon(reader);
			return 0;
		case GEONN_SHAPE_MULTIPOINT:
		case GEONN_SHAPE_MULTILINESTRING:
		case GEONN_SHAPE_MULTIPOLYGON:
		case GEONN_SHAPE_COLLECTION:
			reader->geometries += read_next_number(reader);
			return 0;
		default:
			/* empty curves and surfaces are no parts, as other empty geometries */
			if (read_next_number(reader) > 0)
				raise_wrong_type(reader, type);
			return 0;
	}
}

/* Begin the polygon's next ring.  Returns how many points the ring has. */
static uint32
begin_ring(GeonnShapeReader *reader, GeonnPart *part)
{
	uint32		points = read_number(reader, reader->ring_sizes);

	Assert(reader->rings > 0 && reader->ring_sizes < reader->position);
	reader->ring_sizes += sizeof(uint32);
	reader->rings--;
	part->kind = GEONN_PART_RING;
	part->is_last_ring = reader->rings == 0;
	if (points == 0)
		raise_malformed(reader);
	return points;
}

/* Begin to read a value, and set its SRID. */
static GeonnShapeReader *
open_value(GeonnPointKind kind, Datum value, GeonnShapeOwner owner, const void *state, int32 *srid)
{
	GeonnShapeReader *reader = palloc0(sizeof(GeonnShapeReader));

	reader->detoasted = pg_detoast_datum_packed((struct varlena *) DatumGetPointer(value));
	reader->is_copy = (Pointer) reader->detoasted != DatumGetPointer(value);
	reader->bytes = (const uint8 *) VARDATA_ANY(reader->detoasted);
	reader->size = VARSIZE_ANY_EXHDR(reader->detoasted);
	reader->owner = owner;
	reader->state = state;
	reader->geometries = 1;
	reader->capacity = 16;
	reader->vectors = palloc(reader->capacity * sizeof(*reader->vectors));
	if (!geonn_geometry_header(kind, reader->bytes, reader->size, srid, &reader->dimensions,
							   &reader->start))
		raise_malformed(reader);
	reader->is_measured = geonn_geometry_is_measured(reader->bytes);
	reader->position = reader->start;
	return reader;
}

GeonnShapeReader *
geonn_shape_open_any(GeonnPointKind kind, Datum value, GeonnShapeOwner owner, const void *state)
{
	int32		srid;
	GeonnShapeReader *reader = open_value(kind, value, owner, state, &srid);

	reader->is_plane = true;
	return reader;
}

GeonnShapeReader *
geonn_shape_open(GeonnPointKind kind, Datum value, GeonnShapeOwner owner, const void *state)
{
	int32		srid;
	int32		detail;
	double		latitude;
	double		longitude;
	GeonnShapeReader *reader = open_value(kind, value, owner, state, &srid);

	/* an empty point may have any SRID, as where all values are points */
	if (srid != GEONN_POINT_SRID && geonn_point_decode(kind, value, &latitude, &longitude, &detail) != GEONN_POINT_EMPTY)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s has SRID %d", name_of(reader), srid),
				 errdetail("geonn reads longitudes and latitudes of SRID %d.", GEONN_POINT_SRID),
				 srid == 0 ? errhint("If they are that, say so with ST_SetSRID.") :
				 errhint("Convert the shape with ST_Transform.")));
	return reader;
}

/* Begin the next part that is not empty.  Returns how many points it has; 0: the shape has no more parts. */
static uint32
begin_part(GeonnShapeReader *reader, GeonnPart *part)
{
	uint32		points = 0;

	while (points == 0)
	{
		CHECK_FOR_INTERRUPTS();
		if (reader->rings > 0)
			points = begin_ring(reader, part);
		else if (reader->geometries > 0)
			points = begin_geometry(reader, part);
		else
			return 0;
	}
	return points;
}

/* Find the first vertex that is out of range, which any number of a plane is not.  Returns false if none is. */
static bool
find_out_of_range(const GeonnVertices *vertices, bool is_plane, double *latitude, double *longitude)
{
	for (uint32 i = 0; i < vertices->count; i++)
	{
		if (i % 65536 == 65535)
			CHECK_FOR_INTERRUPTS();
		geonn_vertex(vertices, i, latitude, longitude);
		if (is_plane ? !isfinite(*latitude) || !isfinite(*longitude) : !geonn_coordinates_valid(*latitude, *longitude))
			return true;
	}
	return false;
}

void
geonn_shape_rewind(GeonnShapeReader *reader)
{
	reader->position = reader->start;
	reader->geometries = 1;
	reader->rings = 0;
}

bool
geonn_shape_survey(GeonnShapeReader *reader, double *latitude, double *longitude)
{
	GeonnVertices first = {0};
	GeonnPart	part;
	uint32		points;
	bool		is_valid = true;

	reader->arcs = 0;
	while (is_valid && (points = begin_part(reader, &part)) > 0)
	{
		GeonnVertices vertices = read_vertices(reader, points);

		if (first.count == 0)
			first = vertices;
		reader->arcs += Max(points, 2) - 1;
		is_valid = !find_out_of_range(&vertices, reader->is_plane, latitude, longitude);
	}
	if (is_valid && first.count > 0)
		geonn_vertex(&first, 0, latitude, longitude);
	Assert(!is_valid || first.count == 0 || reader->is_plane || geonn_coordinates_valid(*latitude, *longitude));
	geonn_shape_rewind(reader);
	return first.count > 0;
}

uint64
geonn_shape_arcs(const GeonnShapeReader *reader)
{
	return reader->arcs;
}

Datum
geonn_shape_value(const GeonnShapeReader *reader)
{
	return PointerGetDatum(reader->detoasted);
}

uint64
geonn_shape_memory(const GeonnShapeReader *reader)
{
	uint64		vertices = (reader->size - reader->start) / (reader->dimensions * sizeof(double));

	return vertices * sizeof(*reader->vectors) + (reader->is_copy ? reader->size : 0);
}

bool
geonn_shape_next_vertices(GeonnShapeReader *reader, GeonnPart *part)
{
	uint32		points = begin_part(reader, part);

	if (points == 0)
		return false;
	part->pole_is_inside = false;
	part->vertices = read_vertices(reader, points);
	part->count = 0;
	part->vectors = NULL;
	return true;
}

static void
complete(GeonnShapeReader *reader, GeonnPart *part)
{
	part->count = make_vectors(reader, &part->vertices);
	part->vectors = reader->vectors;
	if (part->kind == GEONN_PART_RING)
		settle_ring(reader, part, part->vertices.count);
}

bool
geonn_shape_next(GeonnShapeReader *reader, GeonnPart *part)
{
	if (!geonn_shape_next_vertices(reader, part))
		return false;
	complete(reader, part);
	return true;
}

bool
geonn_shape_next_checked(GeonnShapeReader *reader, GeonnPart *part)
{
	if (!geonn_shape_next_vertices(reader, part))
		return false;
	if (is_small(part))
		reader->vertices += part->vertices.count;
	else
		complete(reader, part);
	return true;
}

void
geonn_shape_close(GeonnShapeReader *reader)
{
	pfree(reader->vectors);
	if (reader->is_copy)
		pfree(reader->detoasted);
	pfree(reader);
}
