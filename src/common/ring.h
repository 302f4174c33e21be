/*
 * ring.h
 *		On which side of a ring of arcs a point lies.
 */
#ifndef GEONN_RING_H
#define GEONN_RING_H

#include <stdbool.h>
#include <stddef.h>

#include "common/geodesy.h"

enum geonn_side
{
	GEONN_OUTSIDE = 0,
	GEONN_INSIDE = 1,
	GEONN_ON_BORDER
};

/*
 * Find out on which side of a ring a point lies.  The ring is an array of
 * vectors, the last equal to the first, none of whose arcs is longer than a
 * quarter circle.  pole_is_inside is what geonn_ring_holds_pole() has found.
 * The answer is exact for the vectors as they are given.
 */
extern enum geonn_side geonn_ring_side(const struct geonn_vector *ring, size_t count,
									   bool pole_is_inside, struct geonn_vector point);

/*
 * Set *pole_is_inside to whether the ring's smaller side has the north pole, moved as the essay in ring.c says.
 * The ring is as above.  Returns false if the sides are of the same area, as far as float64 can tell, or the
 * ring comes near every place of the sphere.
 */
extern bool geonn_ring_holds_pole(const struct geonn_vector *ring, size_t count,
								  bool *pole_is_inside);

#endif							/* GEONN_RING_H */
