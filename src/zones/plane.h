/*
 * plane.h
 *		Polygons of the plane of an SRID, and which of them contain a point.
 */
#ifndef GEONN_PLANE_H
#define GEONN_PLANE_H

typedef struct GeonnPlane GeonnPlane;	/* polygons, indexed */

/* A polygon that may contain a point. */
typedef struct PlaneFound
{
	uint64		number;			/* as it was added */
	bool		is_sure;		/* the point is in its interior; else the caller asks PostGIS */
} PlaneFound;

/* Create an index without polygons, in the current memory context, in which it grows. */
extern GeonnPlane *geonn_plane_create(void);

/*
 * Add the polygon or multipolygon of a value of geometry.  The index reads the value in place: it is not compressed, not
 * in a TOAST table, and outlives the index.  An empty polygon is added, and contains nothing.
 *
 * Returns false, and adds nothing, if the value is of another type, or if releases of PostGIS may disagree about it:
 * a coordinate is not finite, or a ring is not closed or has less than four vertices.  Then the caller asks PostGIS about it
 * for every point.  Raises an error if PostGIS would not write such bytes.
 */
extern bool geonn_plane_add(GeonnPlane *plane, uint64 number, Datum value);

/*
 * Build what geonn_plane_find() needs.  Called once, after all polygons were added.  Meanwhile takes up to 18 bytes an edge
 * in the current memory context, beside what geonn_plane_bytes() says.
 */
extern void geonn_plane_build(GeonnPlane *plane);

/* Return how many bytes the index takes beside the values, or will at most once it is built. */
extern Size geonn_plane_bytes(const GeonnPlane *plane);

/*
 * Find the polygons in whose interior a point lies for sure, and those for which rounding leaves doubt.  PostGIS's
 * ST_Contains and ST_Covers are true for the former, and its ST_Intersects is false for all that are not found.  Returns how
 * many were found; *found is valid until the next call.
 */
extern uint32 geonn_plane_find(GeonnPlane *plane, double x, double y, const PlaneFound **found);

#endif							/* GEONN_PLANE_H */
