/*
 * vectors.h
 *		Converts points in degrees to vectors and codes on the curve, block by
 *		block.
 */
#ifndef GEONN_CPU_VECTORS_H
#define GEONN_CPU_VECTORS_H

#include "engine/cpu/base/path.h"

/* Points are best converted this many at a time: as many as fit in the first-level cache. */
#define CPU_VECTORS_BLOCK 256

/* Compute the vectors of valid points in degrees, by metric.h. */
extern void CPU_PATH_NAME(cpu_vectors) (enum geonn_metric metric, const double *latitude,
										const double *longitude, size_t count,
										double *x, double *y, double *z);

/*
 * Compute the codes on the curve of up to CPU_VECTORS_BLOCK vectors, with this
 * many levels, a multiple of CPU_CURVE_STEP.
 */
extern void CPU_PATH_NAME(cpu_curve_codes) (const double *x, const double *y,
											const double *z, size_t count, int levels,
											uint64_t *code);

/* Return whether all coordinates are valid. */
extern bool CPU_PATH_NAME(cpu_valid) (const double *latitude, const double *longitude,
									  size_t count);

#endif							/* GEONN_CPU_VECTORS_H */
