/*
 * brute.h
 *		Brute force on the CPU: looks at every pair of observation and
 *		reference.
 */
#ifndef GEONN_CPU_BRUTE_H
#define GEONN_CPU_BRUTE_H

#include "engine/cpu/path.h"

/* references that are looked at together */
#define CPU_BRUTE_GROUP 64

/*
 * Vectors of references, as columns.  Copies of the last reference fill the last
 * group.
 */
struct cpu_references
{
	size_t		count;
	size_t		padded;			/* count, rounded up to whole groups */
	double	   *x;
	double	   *y;
	double	   *z;
};

/* Offer all references to a collector, which has begun. */
extern void CPU_PATH_NAME(cpu_brute_collect) (const struct cpu_references *references,
											  struct cpu_collector *collector);

#endif							/* GEONN_CPU_BRUTE_H */
