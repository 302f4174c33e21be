/*
 * plane_polygon.h
 *		A polygon of a plane: its rings, and on which side of them a point lies.
 */
#ifndef GEONN_PLANE_POLYGON_H
#define GEONN_PLANE_POLYGON_H

#include "common/plane_side.h"

/* A ring of at least four vertices, the last equal to the first; all coordinates are finite. */
typedef struct PlaneRing
{
	const uint8 *vertices;		/* x, y and any further numbers of each; not aligned */
	uint32		edges;
	uint32		member:31;		/* of the multipolygon */
	uint32		is_outer:1;		/* the first ring of its member */
} PlaneRing;

/* An edge in a slab, as the essay in plane_polygon.c says. */
typedef struct PlaneEntry
{
	uint32		edge;			/* its number in its ring, and flags */
	uint16		x_least;		/* quanta of the polygon's width */
	uint16		x_greatest;
	uint16		y_least;		/* quanta of the slab's height */
	uint16		y_greatest;
} PlaneEntry;

typedef struct PlanePolygon
{
	uint64		number;			/* the caller's */
	double		x_least;		/* PostGIS finds no point beyond, as the essay in plane.c says */
	double		x_greatest;
	double		y_least;		/* of the vertices */
	double		y_greatest;
	double		climb;			/* how far all edges go up and down, in sum */
	uint32		first_ring;		/* among those of all polygons */
	uint32		rings;
	uint32		edges;
	uint32		stride;			/* bytes of a vertex */
	uint32		slabs;			/* 0: too few edges for any */
	double		slab_scale;		/* slabs a unit of y */
	double		x_scale;		/* quanta a unit of x */
	uint32	   *slab_starts;	/* of each slab's entries, and their end */
	PlaneEntry *entries;
} PlanePolygon;

typedef enum PlaneSide
{
	PLANE_OUTSIDE,
	PLANE_INSIDE,
	PLANE_IN_DOUBT				/* PostGIS may say either, or that the point is on the border */
} PlaneSide;

static inline struct geonn_plane_point
plane_vertex(const PlaneRing *ring, uint32 stride, uint32 number)
{
	struct geonn_plane_point point;

	memcpy(&point, ring->vertices + (Size) number * stride, sizeof(point));
	return point;
}

/* Sort the polygon's edges into slabs, allocated in a memory context.  Returns how many bytes these take. */
extern Size plane_polygon_sort(PlanePolygon *polygon, const PlaneRing *rings, MemoryContext context);

/* Return how many bytes the polygon's slabs will take at most. */
extern Size plane_polygon_slab_bytes(const PlanePolygon *polygon);

/* Find on which side of the polygon's border a point lies, which may be any numbers. */
extern PlaneSide plane_polygon_side(const PlanePolygon *polygon, const PlaneRing *rings, struct geonn_plane_point p);

#endif							/* GEONN_PLANE_POLYGON_H */
