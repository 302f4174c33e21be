/*
 * brute.h
 *		Every pair on the CPU: brute force.
 */
#ifndef GEONN_CPU_BRUTE_H
#define GEONN_CPU_BRUTE_H

#include "engine/cpu/path.h"

/* references are searched in tiles of this many; three columns fill 12 kB */
#define CPU_BRUTE_TILE 512

/*
 * Vectors of references, as columns.  padded is count rounded up to
 * whole tiles; the last reference fills the rest, so that it can't win there.
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
 * Find for each of up to CPU_BRUTE_OBSERVATIONS observations the first
 * reference in the order (distance, place): its place and the distance in
 * metres, by a metric whose chord decides.  Ends early, with results undefined, once
 * *cancelled is set.
 */
extern void CPU_PATH_NAME(cpu_brute_nearest) (const struct cpu_references *references,
											  const struct geonn_vector *from,
											  size_t observations, uint32_t *place,
											  double *distance,
											  const atomic_bool *cancelled);

/* Let a collector, which has begun, have what it wants of all references. */
extern void CPU_PATH_NAME(cpu_brute_collect) (const struct cpu_references *references,
											  struct cpu_collector *collector);

#endif							/* GEONN_CPU_BRUTE_H */
