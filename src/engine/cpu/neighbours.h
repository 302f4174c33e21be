/*
 * neighbours.h
 *		Answers any question for one observation on the CPU, by the index.
 */
#ifndef GEONN_CPU_NEIGHBOURS_H
#define GEONN_CPU_NEIGHBOURS_H

#include "engine/cpu/collector.h"
#include "engine/cpu/index.h"
#include "engine/cpu/path.h"

/* Offer the references of the index to a collector, which has begun. */
extern void CPU_PATH_NAME(cpu_index_collect) (const struct cpu_index *index,
											  struct cpu_collector *collector);

#endif							/* GEONN_CPU_NEIGHBOURS_H */
