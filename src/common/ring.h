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
 * Find out on which side of a ring a point lies.  The ring is an array of vectors, the last equal to the
 * first, none of whose arcs is longer than a quarter circle.  pole_is_inside is what geonn_ring_holds_pole()
 * has found.  The answer is exact for the vectors as given.
 *
 * A caller may also ask pieces of a ring one by one, each of which begins with the last vector of the piece
 * before, with pole_is_inside for one of them.  The point is on the border if it is on the border of a piece,
 * and otherwise inside if it is inside of an odd number of pieces.
 */
extern enum geonn_side geonn_ring_side(const struct geonn_vector *ring, size_t count,
									   bool pole_is_inside, struct geonn_vector point);

/* a long loop calls its geonn_ring_pause each time after this many vectors */
#define GEONN_RING_PIECE 65536

/* A function that a long loop calls now and then, unless it is NULL; the function may leave the loop by longjmp(). */
typedef void (*geonn_ring_pause) (void);

/* Do what geonn_ring_side() does, with pauses. */
extern enum geonn_side geonn_long_ring_side(const struct geonn_vector *ring, size_t count, bool pole_is_inside,
											geonn_ring_pause pause, struct geonn_vector point);

/*
 * Set *pole_is_inside to whether the ring's smaller side contains the north pole, moved as the essay in ring.c says.  The
 * ring is an array as for geonn_ring_side(); the function goes through it up to some hundred times.  Returns false if both
 * sides have the same area, as far as float64 can tell, if the ring winds about places more than once and does not say which side
 * is smaller, or if it comes near every place of the sphere.
 */
extern bool geonn_ring_holds_pole(const struct geonn_vector *ring, size_t count, geonn_ring_pause pause,
								  bool *pole_is_inside);

#endif							/* GEONN_RING_H */
