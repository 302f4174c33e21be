/*
 * polygons.h
 *		Finds the polygons that an observation lies in.
 */
#ifndef GEONN_SHAPES_POLYGONS_H
#define GEONN_SHAPES_POLYGONS_H

#include "common/ring.h"
#include "engine/shapes/boxes.h"
#include "engine/shapes/vertices.h"

/*
 * A stretch of level 0 has this many arcs, a higher one this many stretches; the top level of a
 * polygon has at most this many.
 */
#define SHAPE_POLYGONS_STRETCH 8

/* levels of stretches that a polygon may have */
#define SHAPE_POLYGONS_LEVELS 11

/* the value of `west` and of `-east` in a stretch that covers all longitudes */
#define SHAPE_POLYGONS_EVERYWHERE (-1000.0f)

/* nearer to a pole than this sine of a latitude, longitudes say little */
#define SHAPE_POLYGONS_NEAR_POLE (1.0 - 0x1p-41)

/*
 * Vertices first ... last: the arcs of one ring, or of several rings that follow each other.  All points
 * of these arcs have longitudes and sines of latitudes between the bounds.
 */
struct shape_polygons_stretch
{
	float		west;			/* degrees, -180 ... 180; SHAPE_POLYGONS_EVERYWHERE: the stretch covers all longitudes */
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
	uint32_t	arc;			/* the polygon's first arc in the dataset */
	uint32_t	stretch;		/* the polygon's first stretch of level 0; the stretches of higher levels follow */
	uint32_t	stretches;		/* how many stretches of level 0 the polygon has */
	uint32_t	pole_is_inside; /* 1: an odd number of its rings have the north pole inside */
};

struct shape_polygons
{
	uint32_t	count;
	struct shape_polygon *polygon;	/* in the order of the boxes */
	const struct geonn_vector *vertex;	/* the dataset's */
	struct shape_polygons_stretch *stretch;
	struct shape_boxes boxes;		/* boxes of the inside and the border of each polygon */
	void	   *memory;
	size_t		bytes;
};

/*
 * Build the polygons of a dataset of arcs; the caller must keep `vertices` as long as the polygons.  Returns false with
 * the failure if memory is short.  After a build that was cancelled the polygons can only be freed.
 */
extern bool shape_polygons_build(struct shape_polygons *polygons, const struct dataset *dataset,
								 const struct shape_vertices *vertices, const atomic_bool *cancelled, struct failure *failure);

extern void shape_polygons_free(struct shape_polygons *polygons);

/* Return on which side of the polygon with this number a point lies; longitude is the point's, in degrees. */
extern enum geonn_side shape_polygons_side(const struct shape_polygons *polygons, uint32_t number,
										   struct geonn_vector point, double longitude);

#endif							/* GEONN_SHAPES_POLYGONS_H */
