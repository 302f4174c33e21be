/*
 * stretch.h
 *		What a stretch of a polygon says of a point: the rules of polygons.c's essay, for all devices.
 */
#ifndef GEONN_SHAPES_STRETCH_H
#define GEONN_SHAPES_STRETCH_H

#include <math.h>

#include "common/ring_side.h"
#include "engine/shapes/polygons.h"

enum shape_stretch_answer
{
	SHAPE_STRETCH_NOTHING,		/* none of the stretch's arcs crosses the meridian */
	SHAPE_STRETCH_ENDS,			/* the stretch's ends tell whether an odd number of its arcs cross the meridian:
								 * shape_stretch_crosses() */
	SHAPE_STRETCH_OPEN			/* the parts of the stretch have to be asked */
};

/* Return the longitude of a point as stretches have it, -180 ... 180 degrees; NAN: the point is near a pole. */
GEONN_GEODESY_FUNCTION double
shape_stretch_longitude(struct geonn_vector point, double longitude)
{
	return fabs(point.z) > SHAPE_POLYGONS_NEAR_POLE ? NAN : longitude > 180.0 ? longitude - 360.0 : longitude;
}

GEONN_GEODESY_FUNCTION bool
shape_stretch_has_longitude(const struct shape_polygons_stretch *stretch, double longitude)
{
	return (longitude >= stretch->west && longitude <= stretch->east) ||
		(longitude + 360.0 >= stretch->west && longitude + 360.0 <= stretch->east) ||
		(longitude - 360.0 >= stretch->west && longitude - 360.0 <= stretch->east);
}

GEONN_GEODESY_FUNCTION enum shape_stretch_answer
shape_stretch_ask(const struct shape_polygons_stretch *stretch, struct geonn_vector point, double longitude)
{
	if (point.z > stretch->north)
		return SHAPE_STRETCH_NOTHING;
	if (isnan(longitude) || stretch->west == SHAPE_POLYGONS_EVERYWHERE)
		return SHAPE_STRETCH_OPEN;
	if (!shape_stretch_has_longitude(stretch, longitude))
		return SHAPE_STRETCH_NOTHING;
	return point.z < stretch->south ? SHAPE_STRETCH_ENDS : SHAPE_STRETCH_OPEN;
}

/* Return whether a stretch to the north of the point crosses the point's meridian an odd number of times. */
GEONN_GEODESY_FUNCTION bool
shape_stretch_crosses(const struct shape_polygons_stretch *stretch, const struct geonn_vector *vertex,
					  struct geonn_vector point)
{
	bool		odd = geonn_is_east(point, vertex[stretch->first]) != geonn_is_east(point, vertex[stretch->last]);

	if (stretch->first_ring == stretch->last_ring)
		return odd;
	return odd != (geonn_is_east(point, vertex[stretch->first_ring]) != geonn_is_east(point, vertex[stretch->last_ring]));
}

#endif							/* GEONN_SHAPES_STRETCH_H */
