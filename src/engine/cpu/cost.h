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

/*
 * Whether so many observations, of which some may have been answered without a table of
 * squares, are enough for one: as many as would have saved what it takes to make.
 */
extern bool cpu_cells_pay(uint32_t positions, uint64_t observations);

#endif							/* GEONN_CPU_COST_H */
