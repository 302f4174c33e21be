/*
 * sql_shapes.c
 *		Lines and polygons as references: reading them, and how far the distances of PostGIS's operator <-> are from geonn's.
 *
 * The node asks PostGIS's function only for the lines that can be among the nearest by it.  So it needs to know by how
 * much t, the distance of geonn_distance(), differs from f, that of a<->b.  t is within 9 nm of the truth (arc.h).
 * f is the least of its values for the arcs, on the sphere (edge_distance_to_point in PostGIS's lwgeodetic.c).  For one
 * arc it is the least of
 *
 *	1.	the distances to both ends, by the formula for points, which are within 10 nm;
 *	2.	the distance to the foot of the point on the arc's great circle, if the foot passes for one between the ends.
 *
 * The foot is tested by cosines: that of its angle to the middle of the arc is at least that of an end's, less 2e-16.
 * With all roundings, cosines that differ by 5e-15 may pass for the same.  Near the middle of a short arc cosines hardly
 * change: so a foot beyond an end by up to
 *
 *		e = sqrt(2 * 5e-15) radians = 0.64 m
 *
 * may pass, and one between the ends, as near to an end, may not.  Then f is too short or too long, by the difference
 * between the end's distance and the foot's.  That is at most e.  The foot, the end and the point have a right angle at
 * the foot: cos(end) = cos(foot) cos(e), from which it is at most 1.57 e^2 / t, or 0.64 m^2 / t, up to a quarter of the
 * equator.
 *
 *		|f - t| <= min(0.64 m, 0.64 m^2 / t) + 10 micrometres
 *
 * Ends whose latitudes and longitudes differ by at most 1e-12 radians are one for PostGIS: 9 micrometres of the 10.  An
 * arc whose cross product is shorter than that, and whose ends differ, has each point for its own foot, so that the test
 * by cosines decides alone: then t is at most e.
 *
 * f can be too long by more.  PostGIS takes the foot's latitude from its sine, which is off by up to 0.1 m near a pole,
 * and refuses a foot that it finds more than 1e-12 radians off the great circle: then f is the distance to an end,
 * which may be thousands of kilometres farther.  Neither is the foot known well where the point is near the pole of
 * the circle, a quarter of the equator away from all of it.  So lines are measured ones only where their arcs have
 * latitudes up to LATITUDE_MAX and at most a quarter circle, and say nothing of others where they are farther than
 * FARTHEST.
 *
 * But f is never too short by more than LIMIT_ANY: a foot that passes is that near to the arc.  The exception are arcs whose
 * ends are almost antipodal, as their middle is not known well.  So other lines go to the engine, too.
 * They are candidates as soon as they are near enough, but do not count among those that are needed: so many measured
 * ones are.  Lines with an arc of CHORD_MAX are candidates for each outer row, as points out of range are.
 *
 * Of 2.9 million random arcs, from a micrometre to 4,000 km long, and points mostly beside and beyond their ends, the
 * greatest |f - t| was 0.29 times that limit, 0.18 m (PostGIS 3.3).  Of 200,000 over a pole it was 0.08 m.
 *
 * All of this holds for the sides of polygons, too.  But whether a point is inside is decided by how many edges cross an arc
 * from it to one outside, and an edge that ends within 1e-12 radians of that arc may be counted wrongly.  Then a polygon
 * far away has the distance 0, or one around the point that of its sides.  So where references are polygons, the order of geonn's
 * distances is that of the rows, and <-> decides among those alone that are as near to each other as lines would have to be.
 *
 * A value with an empty member, for which <-> is NULL, is a candidate for each outer row, too, and so is a collection.  Joins
 * by a distance or cover take both to the engine, and PostGIS's functions get them without empty members there.
 *
 * None of this holds for ST_Distance and ST_DWithin, which skip arcs by circles around several of them, whose places and
 * radii have no bound of their errors.
 */
#include "postgres.h"

#include <math.h>

#include "miscadmin.h"

#include "base/compat.h"
#include "common/geodesy.h"
#include "points/row_values.h"
#include "sql/sql_shapes.h"

/* degrees; and the sine of LATITUDE_MAX, rounded down */
#define LATITUDE_MAX 85.0
#define SINE_MAX 0.99619

/* degrees: arcs with ends up to here, and so much less or shorter, need no closer look */
#define LATITUDE_EASY 80.0
#define SPAN_EASY 5.0

/* squares of chords: of a quarter circle, and of 170 degrees */
#define CHORD_MEASURED 2.0
#define CHORD_MAX 3.9696

/* metres: 87 degrees */
#define FARTHEST 9.7e6

/* of the limit above: metres, square metres, and metres */
#define LIMIT_NEAR 0.64
#define LIMIT_AREA 0.64
#define LIMIT_LEAST 1e-5

/* metres: e, what a latitude near a pole is off, and some more */
#define LIMIT_ANY 1.0

/* a vertex, in degrees */
typedef struct Vertex
{
	double		latitude;
	double		longitude;
} Vertex;

/* what is found out about a value */
typedef struct Looking
{
	GeonnPointKind kind;
	Datum		value;
	double	   *latitude;
	double	   *longitude;
	ShapeTraits *traits;
	PointStatus status;
} Looking;

/*
 * Do all places of an arc keep to latitudes below LATITUDE_MAX?  They do if the arc's great circle does, or if its ends do by
 * more than half its length.  A NaN, of ends at one place, says no.
 */
static bool
stays_from_poles(Vertex start, Vertex end, struct geonn_vector a, struct geonn_vector b, double chord_square)
{
	double		x = a.y * b.z - a.z * b.y;
	double		y = a.z * b.x - a.x * b.z;
	double		z = a.x * b.y - a.y * b.x;
	double		latitude = Max(fabs(start.latitude), fabs(end.latitude));

	return sqrt((x * x + y * y) / (x * x + y * y + z * z)) < SINE_MAX ||
		latitude + asin(sqrt(chord_square) / 2) * 180 / M_PI < LATITUDE_MAX;
}

/*
 * Look at an arc.  False: its ends are almost antipodal.  Clears *is_measured where it is no measured one.
 */
static bool
take_arc(Vertex start, Vertex end, bool *is_measured)
{
	double		span = fabs(remainder(end.longitude - start.longitude, 360));
	struct geonn_vector a;
	struct geonn_vector b;
	double		chord_square;

	if (fabs(start.latitude) <= LATITUDE_EASY && fabs(end.latitude) <= LATITUDE_EASY && span <= SPAN_EASY &&
		fabs(end.latitude - start.latitude) <= SPAN_EASY)
		return true;
	a = geonn_unit_vector(start.latitude, start.longitude);
	b = geonn_unit_vector(end.latitude, end.longitude);
	chord_square = (a.x - b.x) * (a.x - b.x) + (a.y - b.y) * (a.y - b.y) + (a.z - b.z) * (a.z - b.z);
	if (!(chord_square <= CHORD_MEASURED && stays_from_poles(start, end, a, b, chord_square)))
		*is_measured = false;
	return chord_square <= CHORD_MAX;
}

/*
 * Look at a line or ring.
 */
static void
take_chain(const GeonnVertices *vertices, Looking *looking)
{
	Vertex		start;
	Vertex		end;

	geonn_vertex(vertices, 0, &start.latitude, &start.longitude);
	for (uint32 i = 1; i < vertices->count; i++)
	{
		if (i % 65536 == 65535)
			CHECK_FOR_INTERRUPTS();
		geonn_vertex(vertices, i, &end.latitude, &end.longitude);
		if (!take_arc(start, end, &looking->traits->is_measured))
			looking->status = POINT_NOT_FINITE;
		start = end;
	}
}

/*
 * How many points, lines or polygons a value has that was surveyed, of which some may be empty; more than it could have: it is
 * a collection.
 */
static uint32
count_members(GeonnPointKind kind, Datum value)
{
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(DatumGetPointer(value));
	uint32		type;
	uint32		number;
	int32		srid;
	int			dimensions;
	size_t		position;

	(void) geonn_geometry_header(kind, bytes, VARSIZE_ANY_EXHDR(DatumGetPointer(value)), &srid, &dimensions, &position);
	memcpy(&type, bytes + position, sizeof(type));
	memcpy(&number, bytes + position + sizeof(type), sizeof(number));
	if (type == GEONN_SHAPE_COLLECTION)
		return PG_UINT32_MAX;
	return type <= GEONN_SHAPE_POLYGON ? 1 : number;
}

/*
 * Look at a value.  Raises an error if the engine does not take it.
 */
static void
look(void *state)
{
	Looking    *looking = state;
	GeonnShapeReader *reader = geonn_shape_open(looking->kind, looking->value, NULL, NULL);
	GeonnPart	part;
	uint32		members = 0;

	looking->status = POINT_NULL;
	if (geonn_shape_survey(reader, looking->latitude, looking->longitude))
		looking->status = geonn_point_status(*looking->latitude, *looking->longitude);
	looking->traits->arcs = (uint32) geonn_shape_arcs(reader);
	while (looking->status == POINT_VALID && geonn_shape_next_checked(reader, &part))
	{
		looking->traits->is_area |= part.kind == GEONN_PART_RING;
		members += part.kind != GEONN_PART_RING || part.is_last_ring;
		take_chain(&part.vertices, looking);
	}
	looking->traits->is_whole = looking->status == POINT_VALID && members >= count_members(looking->kind, looking->value);
	geonn_shape_close(reader);
}

PointStatus
geonn_read_shape_value(GeonnPointKind kind, Datum value, double *latitude, double *longitude, ShapeTraits *traits)
{
	Looking		looking = {
		.kind = kind,
		.value = value,
		.latitude = latitude,
		.longitude = longitude,
		.traits = traits
	};

	*traits = (ShapeTraits) {.is_measured = true};
	return geonn_refusal_of(look, &looking) == NULL ? looking.status : POINT_NOT_FINITE;
}

/*
 * Copy a geometry without its empty members, and set *from to its end.  Returns how many bytes were written; 0: it is empty.
 */
static size_t
copy_filled(const uint8 **from, uint8 *to, size_t bytes_of_vertex)
{
	const uint8 *start = *from;
	uint32		type;
	uint32		count;			/* of members, of rings, or of vertices */
	size_t		bytes = sizeof(type) + sizeof(count);

	check_stack_depth();
	memcpy(&type, start, sizeof(type));
	memcpy(&count, start + sizeof(type), sizeof(count));
	*from += bytes;
	if (type <= GEONN_SHAPE_POLYGON)
	{
		uint32		vertices = type == GEONN_SHAPE_POLYGON ? 0 : count;

		for (uint32 i = 0; type == GEONN_SHAPE_POLYGON && i < count; i++)
		{
			uint32		of_ring;

			memcpy(&of_ring, *from + i * sizeof(of_ring), sizeof(of_ring));
			vertices += of_ring;
		}
		/* the counts of rings are as many as end at a multiple of 8 bytes */
		*from += (type == GEONN_SHAPE_POLYGON ? (count + count % 2) * sizeof(uint32) : 0) + vertices * bytes_of_vertex;
		memcpy(to, start, (size_t) (*from - start));
		return count > 0 ? (size_t) (*from - start) : 0;
	}
	memcpy(to, &type, sizeof(type));
	for (uint32 left = count; left > 0; left--)
	{
		size_t		of_member = copy_filled(from, to + bytes, bytes_of_vertex);

		CHECK_FOR_INTERRUPTS();
		count -= of_member == 0;
		bytes += of_member;
	}
	memcpy(to + sizeof(type), &count, sizeof(count));
	return count > 0 ? bytes : 0;
}

Datum
geonn_without_empty_members(GeonnPointKind kind, Datum value)
{
	const struct varlena *whole = (const struct varlena *) DatumGetPointer(value);
	struct varlena *copy = palloc(VARSIZE(whole));
	const uint8 *from = (const uint8 *) VARDATA(whole);
	int32		srid;
	int			dimensions;
	size_t		position;

	(void) geonn_geometry_header(kind, from, VARSIZE(whole) - VARHDRSZ, &srid, &dimensions, &position);
	memcpy(VARDATA(copy), from, position);
	from += position;
	position += copy_filled(&from, (uint8 *) VARDATA(copy) + position, (size_t) dimensions * sizeof(double));
	SET_VARSIZE(copy, VARHDRSZ + position);
	return PointerGetDatum(copy);
}

double
geonn_border_longitude(double longitude)
{
	/* exact, as is PostGIS's way to it; -0 is 0 */
	return (longitude >= 180 ? longitude - 360 : longitude) + 0.0;
}

bool
geonn_is_on_border(Datum value, double latitude, double longitude)
{
	bool		is_pole = fabs(latitude) == 90;
	GeonnShapeReader *reader = geonn_shape_open(GEONN_POINT_GEOGRAPHY, value, NULL, NULL);
	GeonnPart	part;
	bool		is_on = false;

	longitude = geonn_border_longitude(longitude);
	while (!is_on && geonn_shape_next_vertices(reader, &part))
	{
		Vertex		start;
		Vertex		end;

		geonn_vertex(&part.vertices, 0, &start.latitude, &start.longitude);
		start.longitude = geonn_border_longitude(start.longitude);
		for (uint32 i = 0; i < part.vertices.count && !is_on; i++)
		{
			if (i % 65536 == 65535)
				CHECK_FOR_INTERRUPTS();
			geonn_vertex(&part.vertices, i, &end.latitude, &end.longitude);
			end.longitude = geonn_border_longitude(end.longitude);
			is_on = (end.latitude == latitude && (is_pole || end.longitude == longitude)) ||
				(end.longitude == longitude && start.longitude == longitude &&
				 (start.latitude < latitude) != (end.latitude < latitude));
			start = end;
		}
	}
	geonn_shape_close(reader);
	return is_on;
}

/*
 * At most how much <-> may differ, for lines at this distance, by geonn.
 */
static double
limit_of_difference(double distance)
{
	return (distance < 1 ? LIMIT_NEAR : LIMIT_AREA / distance) + LIMIT_LEAST;
}

double
geonn_shapes_in_doubt(double distance, bool are_measured, bool have_areas)
{
	double		limit = limit_of_difference(distance);

	Assert(distance >= 0 && limit > 0);
	/* the limit does not grow with the distance, so this one also serves for all farther lines */
	return distance > FARTHEST && !have_areas ? INFINITY : distance + limit + (are_measured ? limit : LIMIT_ANY);
}
