/*
 * cpu_brute.h
 *		Every pair on the CPU: the exact nearest reference by brute force.
 */
#ifndef GEONN_CPU_BRUTE_H
#define GEONN_CPU_BRUTE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* references are searched in tiles of this many; three columns fill 12 kB */
#define CPU_BRUTE_TILE 512

/*
 * Unit vectors of references, as columns.  padded is count rounded up to
 * whole tiles; the last reference fills the rest, so that it can't win there.
 */
struct cpu_references
{
	size_t		count;
	size_t		padded;
	double	   *x;
	double	   *y;
	double	   *z;
};

/* observations that one call answers at most */
#define CPU_BRUTE_OBSERVATIONS 64

/*
 * Find for each of up to CPU_BRUTE_OBSERVATIONS observations (degrees) the
 * first reference in the order (distance, index): its index and the distance
 * in metres.  Ends early, with results undefined, once *cancelled is set.
 * False where an observation's coordinates are out of range.
 */
extern bool cpu_brute_nearest(const struct cpu_references *references,
							  const double *latitude, const double *longitude,
							  size_t observations, uint32_t *index,
							  double *distance, const atomic_bool *cancelled);

/*
 * Fill in the unit vectors of rows first ... first + rows - 1; those past
 * count repeat the last reference.
 */
extern void cpu_brute_prepare(const struct cpu_references *references,
							  const double *latitude, const double *longitude,
							  size_t first, size_t rows);

#endif							/* GEONN_CPU_BRUTE_H */
