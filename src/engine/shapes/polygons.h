/*
 * polygons.h
 *		Finds the polygons that an observation lies in.
 */
#ifndef GEONN_SHAPES_POLYGONS_H
#define GEONN_SHAPES_POLYGONS_H

#include "common/ring.h"
#include "engine/shapes/boxes.h"
#include "engine/shapes/vertices.h"

/* arcs of a stretch, stretches of one above, and the greatest number at the top */
#define SHAPE_POLYGONS_STRETCH 8

/* levels of stretches that a polygon may have */
#define SHAPE_POLYGONS_LEVELS 11

/* `west` and `-east` of a stretch that has all longitudes */
#define SHAPE_POLYGONS_EVERYWHERE (-1000.0f)

/* from this sine of a latitude on, longitudes say little */
#define SHAPE_POLYGONS_NEAR_POLE (1.0 - 0x1p-41)

/*
 * Vertices first ... last: arcs of one ring, or of several that follow each other.  All their places have
 * longitudes and sines of latitudes between these.
 */
struct shape_polygons_stretch
{
	float		west;			/* degrees, -180 ... 180; or, as east, beyond all longitudes */
	float		east;			/* up to west + 180 */
	float		south;
	float		north;
	uint32_t	first;
	uint32_t	last;
	uint32_t	first_ring;		/* the first vertex of the ring of `first` */
	uint32_t	last_ring;
};

struct shape_polygon
{
	uint32_t	arc;			/* its first arc in the dataset */
	uint32_t	stretch;		/* its first stretch of level 0; further levels follow */
	uint32_t	stretches;		/* of level 0 */
	uint32_t	pole_is_inside; /* 1: of an odd number of its rings */
};

struct shape_polygons
{
	uint32_t	count;
	struct shape_polygon *polygon;	/* in the order of the boxes */
	const struct geonn_vector *vertex;	/* the dataset's */
	struct shape_polygons_stretch *stretch;
	struct shape_boxes boxes;		/* of what lies inside polygons or on their borders */
	void	   *memory;
	size_t		bytes;
};

/*
 * Build the polygons of a dataset of arcs, whose vertices stay as long as they do.  False with the failure if
 * memory is short; after a build that was cancelled they can only be freed.
 */
extern bool shape_polygons_build(struct shape_polygons *polygons, const struct dataset *dataset,
								 const struct shape_vertices *vertices, const atomic_bool *cancelled, struct failure *failure);

extern void shape_polygons_free(struct shape_polygons *polygons);

/* On which side of a polygon, by its number here, a point is that has this longitude in degrees. */
extern enum geonn_side shape_polygons_side(const struct shape_polygons *polygons, uint32_t number,
										   struct geonn_vector point, double longitude);

#endif							/* GEONN_SHAPES_POLYGONS_H */
