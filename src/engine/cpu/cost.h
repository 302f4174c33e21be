/*
 * cost.h
 *		What a search costs on the CPU.
 */
#ifndef GEONN_CPU_COST_H
#define GEONN_CPU_COST_H

#include "engine/search/device.h"

/* device.h's cost, of one thread */
extern struct cost cpu_cost(const struct search *search, enum geonn_algorithm algorithm,
							double observations);

#endif							/* GEONN_CPU_COST_H */
