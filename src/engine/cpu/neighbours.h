/*
 * neighbours.h
 *		Any question on the CPU, by the index, for one observation.
 */
#ifndef GEONN_CPU_NEIGHBOURS_H
#define GEONN_CPU_NEIGHBOURS_H

#include "engine/cpu/collector.h"
#include "engine/cpu/index.h"
#include "engine/cpu/path.h"

/* Let a collector, which has begun, have what it wants of the index. */
extern void CPU_PATH_NAME(cpu_index_collect) (const struct cpu_index *index,
											  struct cpu_collector *collector);

#endif							/* GEONN_CPU_NEIGHBOURS_H */
