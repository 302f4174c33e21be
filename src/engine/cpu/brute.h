/*
 * brute.h
 *		Brute force on the CPU: looks at every pair of observation and
 *		reference.
 */
#ifndef GEONN_CPU_BRUTE_H
#define GEONN_CPU_BRUTE_H

#include "engine/cpu/path.h"

/* references of one tile; its three columns fill 12 kB */
#define CPU_BRUTE_TILE 512

/*
 * Vectors of references, as columns.  padded is count rounded up to whole
 * tiles; copies of the last reference fill the rest, which never win because
 * the reference itself comes first.
 */
struct cpu_references
{
	size_t		count;
	size_t		padded;
	enum geonn_metric metric;
	double	   *x;
	double	   *y;
	double	   *z;
};

/* observations that one call answers at most */
#define CPU_BRUTE_OBSERVATIONS 64

/*
 * For each of up to CPU_BRUTE_OBSERVATIONS observations, find the first
 * reference in the order (distance, place), by a metric whose chord decides:
 * its place, and the distance in metres.  Ends early, with results undefined,
 * once *cancelled is set.
 */
extern void CPU_PATH_NAME(cpu_brute_nearest) (const struct cpu_references *references,
											  const struct geonn_vector *from,
											  size_t observations, uint32_t *place,
											  double *distance,
											  const atomic_bool *cancelled);

/* Offer all references to a collector, which has begun. */
extern void CPU_PATH_NAME(cpu_brute_collect) (const struct cpu_references *references,
											  struct cpu_collector *collector);

#endif							/* GEONN_CPU_BRUTE_H */
