/*
 * path_version.h
 *		The versions of the CPU's hot loops that a build may have.
 */
#ifndef GEONN_CPU_PATH_VERSION_H
#define GEONN_CPU_PATH_VERSION_H

#include "engine/cpu/path.h"

extern const struct cpu_path cpu_path_portable;
extern const struct cpu_path cpu_path_avx2;
extern const struct cpu_path cpu_path_avx512;

#endif							/* GEONN_CPU_PATH_VERSION_H */
