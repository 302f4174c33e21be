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
 *
 *
 * Layers
 *
 * A grid is of little use where a polygon lies far from all others, or has them all in one of its cells.  So the polygons are
 * divided into layers with a grid each.  A layer takes those that lie near the middle nine tenths, as a sample tells: within
 * as much more on each side as these extend.  Where polygons are spread evenly, they all do.
 */
#include "postgres.h"

#include <float.h>
#include <math.h>

#include "miscadmin.h"

#include "points/shape.h"
#include "zones/plane.h"
#include "zones/plane_grid.h"

/* layers, as the essay says; the last has all that is left */
#define MOST_LAYERS 6

struct GeonnPlane
{
	MemoryContext context;
	PlanePolygon *polygons;
	Size		polygon_count;
	Size		polygon_capacity;
	PlaneRing  *rings;
	Size		ring_count;
	Size		ring_capacity;
	Size		edges;
	Size		slab_bytes;		/* of all polygons, at most */
	PlaneGrid  *layers[MOST_LAYERS];
	int			layer_count;	/* 0: not built yet, or without polygons */
	Size		built_bytes;	/* of the grid and the polygons' slabs */
	PlaneFound *found;			/* has room for all polygons, once built */
};

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

/* Append a ring to the polygon that is added.  Returns false if a vertex is not finite, or if the ring is not closed. */
static bool
add_ring(GeonnPlane *plane, PlanePolygon *polygon, const GeonnVertices *vertices, uint32 member)
{
	PlaneRing	ring = {
		.vertices = vertices->bytes,
		.edges = vertices->count - 1,
		.member = member,
		.is_outer = polygon->rings == 0 || plane->rings[plane->ring_count - 1].member != member
	};
	struct geonn_plane_point first = plane_vertex(&ring, polygon->stride, 0);
	struct geonn_plane_point point = first;

	for (uint32 i = 0; i < vertices->count; i++)
	{
		double		y = point.y;

		if (i % 65536 == 65535)
			CHECK_FOR_INTERRUPTS();
		point = plane_vertex(&ring, polygon->stride, i);
		if (!isfinite(point.x) || !isfinite(point.y))
			return false;
		polygon->x_least = Min(polygon->x_least, point.x);
		polygon->x_greatest = Max(polygon->x_greatest, point.x);
		polygon->y_least = Min(polygon->y_least, point.y);
		polygon->y_greatest = Max(polygon->y_greatest, point.y);
		polygon->climb += fabs(point.y - y);
	}
	if (vertices->count < 4 || point.x != first.x || point.y != first.y)
		return false;

	if (plane->ring_count == plane->ring_capacity)
	{
		plane->ring_capacity *= 2;
		plane->rings = repalloc_huge(plane->rings, plane->ring_capacity * sizeof(PlaneRing));
	}
	plane->rings[plane->ring_count++] = ring;
	polygon->rings++;
	polygon->edges += ring.edges;
	return true;
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
	if (plane->ring_count > PG_UINT32_MAX / 2 || plane->polygon_count == PLANE_MOST_POLYGONS)
		return false;
	polygon.first_ring = (uint32) plane->ring_count;
	reader = geonn_shape_open_any(GEONN_POINT_GEOMETRY, value, NULL, NULL);
	Assert(DatumGetPointer(geonn_shape_value(reader)) == DatumGetPointer(value));
	while (is_sound && geonn_shape_next_vertices(reader, &part))
	{
		polygon.stride = (uint32) part.vertices.stride;
		is_sound = part.kind == GEONN_PART_RING && add_ring(plane, &polygon, &part.vertices, member);
		member += part.is_last_ring;
	}
	geonn_shape_close(reader);
	if (!is_sound)
	{
		plane->ring_count = polygon.first_ring;
		return false;
	}
	/* what is empty need not be kept */
	if (polygon.rings == 0)
		return true;

	polygon.x_least = beyond(polygon.x_least, -INFINITY);
	polygon.x_greatest = beyond(polygon.x_greatest, INFINITY);
	if (plane->polygon_count == plane->polygon_capacity)
	{
		plane->polygon_capacity *= 2;
		plane->polygons = repalloc_huge(plane->polygons, plane->polygon_capacity * sizeof(PlanePolygon));
	}
	plane->polygons[plane->polygon_count++] = polygon;
	plane->edges += polygon.edges;
	plane->slab_bytes += plane_polygon_slab_bytes(&polygon);
	return true;
}

/* ---- building ---- */

static int
compare_numbers(const void *a, const void *b)
{
	double		left = *(const double *) a;
	double		right = *(const double *) b;

	return (left > right) - (left < right);
}

/* Widen the middle nine tenths of numbers, as the essay says. */
static void
set_bounds(double *numbers, Size count, double *least, double *greatest)
{
	qsort(numbers, count, sizeof(double), compare_numbers);
	*least = numbers[count / 20];
	*greatest = numbers[count - 1 - count / 20];
	/* the extent may be infinite */
	*least -= *greatest - numbers[count / 20];
	*greatest += *greatest - numbers[count / 20];
}

/* Move the polygons of the next layer to the front, and return how many they are: at least one. */
static Size
gather_layer(PlanePolygon *polygons, Size count, const PlaneRing *rings)
{
	double		x[1000];
	double		y[1000];
	Size		sample = Min(count, lengthof(x));
	Size		near = 0;
	struct geonn_plane_point least;
	struct geonn_plane_point greatest;

	for (Size i = 0; i < sample; i++)
	{
		const PlanePolygon *polygon = &polygons[i * (count / sample)];
		struct geonn_plane_point first = plane_vertex(&rings[polygon->first_ring], polygon->stride, 0);

		x[i] = first.x;
		y[i] = first.y;
	}
	set_bounds(x, sample, &least.x, &greatest.x);
	set_bounds(y, sample, &least.y, &greatest.y);
	for (Size i = 0; i < count; i++)
		if (polygons[i].x_least >= least.x && polygons[i].x_greatest <= greatest.x &&
			polygons[i].y_least >= least.y && polygons[i].y_greatest <= greatest.y)
		{
			PlanePolygon other = polygons[near];

			polygons[near++] = polygons[i];
			polygons[i] = other;
		}
	return near > 0 ? near : count;
}

void
geonn_plane_build(GeonnPlane *plane)
{
	Size		first = 0;

	Assert(plane->found == NULL);
	while (first < plane->polygon_count)
	{
		Size		count = plane->polygon_count - first;

		if (plane->layer_count < MOST_LAYERS - 1)
			count = gather_layer(plane->polygons + first, count, plane->rings);
		for (Size i = first; i < first + count; i++)
		{
			CHECK_FOR_INTERRUPTS();
			plane->built_bytes += plane_polygon_sort(&plane->polygons[i], plane->rings, plane->context);
		}
		plane->layers[plane->layer_count] = plane_grid_make(plane->polygons, (uint32) first, (uint32) count, plane->rings,
															plane->context);
		plane->built_bytes += plane_grid_bytes(plane->layers[plane->layer_count++]);
		first += count;
	}
	plane->found = MemoryContextAllocHuge(plane->context, (plane->polygon_count + 1) * sizeof(PlaneFound));
}

Size
geonn_plane_bytes(const GeonnPlane *plane)
{
	Size		bytes = sizeof(GeonnPlane) + plane->polygon_capacity * (sizeof(PlanePolygon) + sizeof(PlaneFound)) +
		plane->ring_capacity * sizeof(PlaneRing);

	return bytes + (plane->found != NULL ? plane->built_bytes : plane->slab_bytes + plane_grid_bytes_at_most(plane->edges) +
					(MOST_LAYERS - 1) * plane_grid_bytes_at_most(0));
}

/* ---- finding ---- */

uint32
geonn_plane_find(GeonnPlane *plane, double x, double y, const PlaneFound **found)
{
	struct geonn_plane_point p = {x, y};
	uint32		count = 0;

	Assert(plane->found != NULL);
	for (int layer = 0; layer < plane->layer_count; layer++)
	{
		uint32		single;
		const uint32 *items;
		uint32		item_count = plane_grid_items(plane->layers[layer], p, &single, &items);

		for (uint32 i = 0; i < item_count; i++)
		{
			const PlanePolygon *polygon = &plane->polygons[items[i] >> 1];
			PlaneSide	side = items[i] & PLANE_ITEM_IS_SURE ? PLANE_INSIDE : plane_polygon_side(polygon, plane->rings, p);

			if (side != PLANE_OUTSIDE)
				plane->found[count++] = (PlaneFound) {
					.number = polygon->number,
					.is_sure = side == PLANE_INSIDE
				};
		}
	}
	*found = plane->found;
	return count;
}
