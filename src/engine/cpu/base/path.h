/*
 * path.h
 *		The CPU device's hot loops, in a version for each kind of processor.
 *
 * The loops are plain C, and their sources are compiled several times: once
 * for any processor (the portable path), and on x86-64 once more for each
 * level of vector instructions (the Makefile's CPU_PATH_SOURCES and flags).
 * In such a source, CPU_PATH_NAME(name) adds the path's name to the
 * function's.  Each path has a table of its functions; when the engine starts,
 * it chooses one of these tables.  All paths give the same bytes, since
 * geodesy.h's arithmetic makes every decision.
 */
#ifndef GEONN_CPU_PATH_H
#define GEONN_CPU_PATH_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/geodesy.h"
#include "common/protocol.h"
#include "engine/base/atomics.h"
#include "engine/base/failure.h"

#ifndef CPU_PATH
#define CPU_PATH portable
#endif

#define CPU_PATH_JOIN(name, path) name##_##path
#define CPU_PATH_EXPAND(name, path) CPU_PATH_JOIN(name, path)
#define CPU_PATH_NAME(name) CPU_PATH_EXPAND(name, CPU_PATH)

struct cpu_references;
struct cpu_neighbours_piece;
struct cpu_count_piece;
struct cpu_cells_building;
struct cpu_assign;
struct cpu_clusters;
struct cpu_cells_search;

struct cpu_path
{
	const char *name;

	/* cpu/base/vectors.h */
	void		(*vectors) (enum geonn_metric metric, const double *latitude,
							const double *longitude, size_t count,
							double *x, double *y, double *z);
	void		(*curve_codes) (const double *x, const double *y, const double *z,
								size_t count, int levels, uint64_t *code);
	bool		(*valid) (const double *latitude, const double *longitude, size_t count);

	/* cpu/squares/cells.h */
	void		(*cells_fill) (struct cpu_cells_building *building, uint32_t number);
	uint32_t	(*cells_nearest) (const struct cpu_cells_search *search);

	/* cpu/walk/neighbours.h */
	void		(*neighbours) (struct cpu_neighbours_piece *piece);

	/* cpu/arcs/arcs.h */
	void		(*arcs_search) (struct cpu_neighbours_piece *piece);

	/* cpu/counts/count.h */
	void		(*count) (struct cpu_count_piece *piece);

	/* cpu/assign/assign.h */
	void		(*assign_find) (struct cpu_assign *assign, const uint32_t *list, uint32_t count);

	/* cpu/clusters/clusters.h */
	void		(*clusters_work) (struct cpu_clusters *clusters, uint32_t item);
};

/*
 * Choose a path: "portable", "avx2" or "avx512"; with NULL, the best path for this processor.  Returns false with the
 * failure if this build has no such path, or the processor cannot run it.  main() calls this before any thread starts.
 */
extern bool cpu_path_choose(const char *name, struct failure *failure);

/* the chosen path, and all paths that a build may have */
extern const struct cpu_path *cpu_path;
extern const struct cpu_path cpu_path_portable;
extern const struct cpu_path cpu_path_avx2;
extern const struct cpu_path cpu_path_avx512;

/*
 * Return |u - v|^2 from the differences, for filters, computed in the processor's quickest way;
 * geonn_chord_limit() allows any order of the sum.
 */
static inline __attribute__((always_inline)) double
cpu_filter_chord(double dx, double dy, double dz)
{
#ifdef __FMA__
	return fma(dz, dz, fma(dy, dy, dx * dx));
#else
	return dx * dx + dy * dy + dz * dz;
#endif
}

#endif							/* GEONN_CPU_PATH_H */
