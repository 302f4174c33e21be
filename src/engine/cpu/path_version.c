/*
 * path_version.c
 *		The table of functions of one version of the CPU's hot loops.
 */
#include "engine/cpu/arcs/arcs.h"
#include "engine/cpu/assign/assign.h"
#include "engine/cpu/clusters/clusters.h"
#include "engine/cpu/squares/cells.h"
#include "engine/cpu/counts/count.h"
#include "engine/cpu/walk/neighbours.h"
#include "engine/cpu/base/vectors.h"

#define QUOTE_EXPANDED(name) #name
#define QUOTE(name) QUOTE_EXPANDED(name)

const struct cpu_path CPU_PATH_NAME(cpu_path) = {
	.name = QUOTE(CPU_PATH),
	.vectors = CPU_PATH_NAME(cpu_vectors),
	.curve_codes = CPU_PATH_NAME(cpu_curve_codes),
	.valid = CPU_PATH_NAME(cpu_valid),
	.cells_fill = CPU_PATH_NAME(cpu_cells_fill),
	.cells_nearest = CPU_PATH_NAME(cpu_cells_nearest),
	.neighbours = CPU_PATH_NAME(cpu_neighbours),
	.arcs_search = CPU_PATH_NAME(cpu_arcs_search),
	.count = CPU_PATH_NAME(cpu_count),
	.assign_find = CPU_PATH_NAME(cpu_assign_find),
	.clusters_work = CPU_PATH_NAME(cpu_clusters_work)
};
