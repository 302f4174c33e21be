/*
 * plane.c
 *		Polygons of the plane of an SRID, and which of them contain a point.
 *
 * PostGIS decides about a point and a polygon without GEOS: ST_Contains, ST_Within, ST_Covers, ST_CoveredBy and ST_Intersects
 * first compare boxes, and then compute winding numbers, as common/plane_side.h says.  The point is in a
 * polygon if the winding number of its first ring is not 0, and those of all others are 0; in a multipolygon if it is in
 * one of its polygons.  Here all is done in the same way; where any edge leaves doubt, the polygon is in doubt.
 *
 *
 * Boxes
 *
 * PostGIS compares boxes of float32, rounded outwards: those of the polygon and of the point, which must overlap or, for
 * ST_Contains, contain the point's.  Rounding keeps the order, so the boxes of a point and of a polygon that contains it
 * pass both.  The winding number is 0 for a point above or below all edges, in any arithmetic.  For a point
 * left of all edges rounding may hide an edge; so here the box ends in x where PostGIS's boxes do not overlap any more: at
 * the second float32 beyond.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "miscadmin.h"

#include "common/plane_side.h"
#include "points/shape.h"
#include "zones/plane.h"

typedef struct PlaneRing
{
	const uint8 *vertices;		/* x, y and any further numbers of each; not aligned */
	uint32		edges;
	uint32		member;			/* of the multipolygon; its first ring is the outer one */
} PlaneRing;

typedef struct PlanePolygon
{
	uint64		number;
	double		x_least;		/* as the essay says */
	double		x_greatest;
	double		y_least;
	double		y_greatest;
	uint32		first_ring;
	uint32		rings;
	uint32		stride;			/* bytes of a vertex */
} PlanePolygon;

struct GeonnPlane
{
	MemoryContext context;
	PlanePolygon *polygons;
	Size		polygon_count;
	Size		polygon_capacity;
	PlaneRing  *rings;
	Size		ring_count;
	Size		ring_capacity;
	PlaneFound *found;			/* has room for all polygons, once built */
};

typedef enum PlaneSide
{
	PLANE_OUTSIDE,
	PLANE_INSIDE,
	PLANE_IN_DOUBT
} PlaneSide;

/* ---- adding ---- */

GeonnPlane *
geonn_plane_create(void)
{
	GeonnPlane *plane = palloc0(sizeof(GeonnPlane));

	plane->context = CurrentMemoryContext;
	plane->polygon_capacity = 64;
	plane->polygons = palloc(plane->polygon_capacity * sizeof(PlanePolygon));
	plane->ring_capacity = 64;
	plane->rings = palloc(plane->ring_capacity * sizeof(PlaneRing));
	return plane;
}

static inline struct geonn_plane_point
vertex(const uint8 *vertices, Size stride, uint32 number)
{
	struct geonn_plane_point point;

	StaticAssertStmt(sizeof(point) == 2 * sizeof(double), "a vertex begins with x and y");
	memcpy(&point, vertices + number * stride, sizeof(point));
	return point;
}

/* Widen the polygon's box for a ring's vertices.  Returns false if one is not finite, or if the ring is not closed. */
static bool
enclose(PlanePolygon *polygon, const GeonnVertices *vertices)
{
	struct geonn_plane_point first = vertex(vertices->bytes, vertices->stride, 0);
	struct geonn_plane_point point = first;

	for (uint32 i = 0; i < vertices->count; i++)
	{
		if (i % 65536 == 65535)
			CHECK_FOR_INTERRUPTS();
		point = vertex(vertices->bytes, vertices->stride, i);
		if (!isfinite(point.x) || !isfinite(point.y))
			return false;
		polygon->x_least = Min(polygon->x_least, point.x);
		polygon->x_greatest = Max(polygon->x_greatest, point.x);
		polygon->y_least = Min(polygon->y_least, point.y);
		polygon->y_greatest = Max(polygon->y_greatest, point.y);
	}
	return vertices->count >= 4 && point.x == first.x && point.y == first.y;
}

static void
append_ring(GeonnPlane *plane, const GeonnVertices *vertices, uint32 member)
{
	if (plane->ring_count == plane->ring_capacity)
	{
		plane->ring_capacity *= 2;
		plane->rings = repalloc_huge(plane->rings, plane->ring_capacity * sizeof(PlaneRing));
	}
	plane->rings[plane->ring_count++] = (PlaneRing) {
		.vertices = vertices->bytes,
		.edges = vertices->count - 1,
		.member = member
	};
}

/* Return the second float32 beyond a number, in the direction of an infinity; that itself where float32 ends. */
static double
beyond(double number, float infinity)
{
	float		rounded;

	if (fabs(number) >= FLT_MAX)
		return infinity;
	rounded = (float) number;
	if (infinity > 0 ? rounded < number : rounded > number)
		rounded = nextafterf(rounded, infinity);
	return nextafterf(rounded, infinity);
}

bool
geonn_plane_add(GeonnPlane *plane, uint64 number, Datum value)
{
	int32		type;
	int32		srid;
	uint32		member = 0;
	bool		is_sound = true;
	GeonnPart	part;
	GeonnShapeReader *reader;
	PlanePolygon polygon = {
		.number = number,
		.x_least = INFINITY,
		.x_greatest = -INFINITY,
		.y_least = INFINITY,
		.y_greatest = -INFINITY
	};

	if (!geonn_value_type(GEONN_POINT_GEOMETRY, value, &type, &srid) ||
		(type != GEONN_SHAPE_POLYGON && type != GEONN_SHAPE_MULTIPOLYGON))
		return false;
	if (plane->ring_count > PG_UINT32_MAX / 2)
		return false;
	polygon.first_ring = (uint32) plane->ring_count;
	reader = geonn_shape_open_any(GEONN_POINT_GEOMETRY, value, NULL, NULL);
	Assert(DatumGetPointer(geonn_shape_value(reader)) == DatumGetPointer(value));
	while (is_sound && geonn_shape_next_vertices(reader, &part))
	{
		is_sound = part.kind == GEONN_PART_RING && enclose(&polygon, &part.vertices);
		append_ring(plane, &part.vertices, member);
		polygon.stride = (uint32) part.vertices.stride;
		polygon.rings++;
		member += part.is_last_ring;
	}
	geonn_shape_close(reader);
	if (!is_sound)
	{
		plane->ring_count = polygon.first_ring;
		return false;
	}

	polygon.x_least = beyond(polygon.x_least, -INFINITY);
	polygon.x_greatest = beyond(polygon.x_greatest, INFINITY);
	if (plane->polygon_count == plane->polygon_capacity)
	{
		plane->polygon_capacity *= 2;
		plane->polygons = repalloc_huge(plane->polygons, plane->polygon_capacity * sizeof(PlanePolygon));
	}
	plane->polygons[plane->polygon_count++] = polygon;
	return true;
}

/* ---- building ---- */

void
geonn_plane_build(GeonnPlane *plane)
{
	plane->found = MemoryContextAllocHuge(plane->context, (plane->polygon_count + 1) * sizeof(PlaneFound));
}

Size
geonn_plane_bytes(const GeonnPlane *plane)
{
	return plane->polygon_capacity * sizeof(PlanePolygon) + plane->ring_capacity * sizeof(PlaneRing) +
		plane->polygon_count * sizeof(PlaneFound);
}

/* ---- finding ---- */

static PlaneSide
side_of(const GeonnPlane *plane, const PlanePolygon *polygon, struct geonn_plane_point p)
{
	bool		is_inside = false;
	bool		is_in_member = false;
	uint32		member = PG_UINT32_MAX;

	for (uint32 r = 0; r < polygon->rings; r++)
	{
		const PlaneRing *ring = &plane->rings[polygon->first_ring + r];
		struct geonn_plane_point a = vertex(ring->vertices, polygon->stride, 0);
		int			winding = 0;

		for (uint32 i = 1; i <= ring->edges; i++)
		{
			struct geonn_plane_point b = vertex(ring->vertices, polygon->stride, i);
			enum geonn_plane_turn turn = geonn_plane_turn(a, b, p);

			if (turn == GEONN_TURN_IN_DOUBT)
				return PLANE_IN_DOUBT;
			winding += turn;
			a = b;
		}
		if (ring->member != member)
		{
			is_inside = is_inside || is_in_member;
			member = ring->member;
			is_in_member = winding != 0;
		}
		else if (winding != 0)
			is_in_member = false;
	}
	return is_inside || is_in_member ? PLANE_INSIDE : PLANE_OUTSIDE;
}

uint32
geonn_plane_find(GeonnPlane *plane, double x, double y, const PlaneFound **found)
{
	struct geonn_plane_point p = {x, y};
	uint32		count = 0;

	Assert(plane->found != NULL);
	for (Size i = 0; i < plane->polygon_count; i++)
	{
		const PlanePolygon *polygon = &plane->polygons[i];
		PlaneSide	side;

		if (!(x >= polygon->x_least && x <= polygon->x_greatest && y >= polygon->y_least && y <= polygon->y_greatest))
			continue;
		side = side_of(plane, polygon, p);
		if (side == PLANE_OUTSIDE)
			continue;
		plane->found[count++] = (PlaneFound) {
			.number = polygon->number,
			.is_sure = side == PLANE_INSIDE
		};
	}
	*found = plane->found;
	return count;
}
