/*
 * nearest_bundle.h
 *		A bundle of observations whose nearest references are sought together.
 *
 * For cpu/walk/nearest.c, and for cpu/walk/nearest_conditions.c, which reads and compares what
 * windows, parties and radiuses say of candidates.
 */
#ifndef GEONN_CPU_NEAREST_BUNDLE_H
#define GEONN_CPU_NEAREST_BUNDLE_H

#include "engine/cpu/walk/nearest.h"
#include "engine/cpu/walk/walk.h"

/* the greatest number of observations of a bundle */
#define CPU_NEAREST_BUNDLE INDEX_WIDTH

/* the greatest number of leaves that a bundle of several observations lists */
#define CPU_NEAREST_LISTED_MAX 64

/* tasks that go through the index together; an observation here means a task (cpu/walk/nearest.c) */
struct cpu_nearest_bundle
{
	const struct cpu_neighbours_piece *piece;
	const struct cpu_index *index;
	struct cpu_part part;
	uint32_t	count;
	uint32_t	filled;			/* count, rounded up to a multiple of LANES */

	/* columns of observations; copies of the last one fill them up to `filled` */
	double		x[CPU_NEAREST_BUNDLE];
	double		y[CPU_NEAREST_BUNDLE];
	double		z[CPU_NEAREST_BUNDLE];
	double		limit[CPU_NEAREST_BUNDLE];	/* no reference above this squared chord can be the nearest */

	uint32_t	home[CPU_NEAREST_BUNDLE];	/* home leaves */
	double		smallest[CPU_NEAREST_BUNDLE];
	uint32_t	leaf[CPU_NEAREST_BUNDLE];	/* the leaf that has the position at the smallest squared chord */
	uint32_t	candidates[CPU_NEAREST_BUNDLE];	/* bits of the positions of that leaf that are candidates */
	uint32_t	ambiguous;		/* bits of the observations that are ambiguous */
	uint32_t	alone;			/* bits of the observations that have to walk alone */
	uint32_t	found;			/* bits of the observations that have a candidate */

	uint32_t	listed;
	uint32_t	list[CPU_NEAREST_LISTED_MAX];

	/* whether windows and parties are compared; else `around` is undefined */
	bool		compares;
	struct point_windows around;	/* for each window, a range around those of all observations */

	/* of the observations, if windows or parties are compared, or the batch has radiuses */
	struct cpu_conditions conditions[CPU_NEAREST_BUNDLE];
};

/* The row of the piece's task number `at` in the order of the keys. */
static inline uint32_t
cpu_nearest_row(const struct cpu_neighbours_piece *piece, uint32_t at)
{
	return cpu_neighbours_row(piece, piece->row[at]);
}

/*
 * Read the conditions of a bundle's observations; radiuses lower the limits.  `first` is the number of its first task in
 * the piece.
 */
extern void CPU_PATH_NAME(cpu_nearest_read) (struct cpu_nearest_bundle *bundle, uint32_t first);

/*
 * A bit for each position of a leaf, set if its windows overlap those of
 * observation i, and its parties differ.
 */
extern uint32_t CPU_PATH_NAME(cpu_nearest_compared) (const struct cpu_nearest_bundle *bundle,
													 uint32_t leaf, uint32_t i);

/*
 * A bit for each of INDEX_WIDTH nodes from `node` on, set if some observation's windows
 * may reach it.
 */
extern uint32_t CPU_PATH_NAME(cpu_nearest_reached) (const struct cpu_nearest_bundle *bundle, uint32_t node);

/* Those bits of observations whose windows reach the leaf's, and of whose parties the leaf is not alone. */
extern uint32_t CPU_PATH_NAME(cpu_nearest_reached_by) (const struct cpu_nearest_bundle *bundle, uint32_t leaf,
													   uint32_t bits);

#endif							/* GEONN_CPU_NEAREST_BUNDLE_H */
