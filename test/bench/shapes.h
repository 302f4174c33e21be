/*
 * shapes.h
 *		Lines and polygons of the benchmark, in place of points.
 */
#ifndef GEONN_BENCH_SHAPES_H
#define GEONN_BENCH_SHAPES_H

#include "../lib/engine_client.h"
#include "../lib/oracle.h"
#include "conditions.h"

/* the arcs that are sent, `each` for a shape, but for the last one */
struct shapes
{
	uint32_t	each;
	bool		are_polygons;
	size_t		count;
	double	   *latitude;
	double	   *longitude;
	double	   *end_latitude;
	double	   *end_longitude;
	int64_t    *tag;			/* bench_tag() of the shape's number */
	int32_t    *shape;
	int32_t    *polygon;
};

/*
 * Make shapes of so many arcs.  Arc 0 of each has the place of the point with its number: a line begins
 * there, and goes on by 200 to 800 m a time, not far from straight on; a polygon is around it.
 * Polygons cover two fifths of the sphere in all.
 */
extern void shapes_make(struct shapes *shapes, const struct conditions *conditions, uint64_t seed,
						const struct points *points, size_t count);
extern void shapes_free(struct shapes *shapes);

/* Check the nearest shape of each sample by a loop over all. */
extern struct verdict shapes_check(const struct shapes *shapes, uint32_t k, const struct sample *samples,
								   uint32_t count);

#endif							/* GEONN_BENCH_SHAPES_H */
