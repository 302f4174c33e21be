/*
 * arcs_cut.h
 *		The vertices of the pieces into which an arc is cut.
 */
#ifndef GEONN_CPU_ARCS_CUT_H
#define GEONN_CPU_ARCS_CUT_H

#include "common/arc.h"
#include "common/assertion.h"

/* Return the place between piece number at - 1 and piece number `at` of the arc from a to b; arcs.c's essay has its error. */
static inline struct geonn_vector
cpu_arcs_cut(struct geonn_vector a, struct geonn_vector b, uint32_t pieces, uint32_t at)
{
	double		angle = geonn_distance_of(a, b) / GEONN_SPHERE_RADIUS / pieces;
	double		from_a = sin(at * angle);
	double		from_b = sin((pieces - at) * angle);
	struct geonn_vector sum = {from_b * a.x + from_a * b.x, from_b * a.y + from_a * b.y, from_b * a.z + from_a * b.z};
	double		length = sqrt(geonn_dot(sum, sum));

	geonn_assert(length > 0.0);
	return (struct geonn_vector) {sum.x / length, sum.y / length, sum.z / length};
}

#endif							/* GEONN_CPU_ARCS_CUT_H */
