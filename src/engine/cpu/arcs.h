/*
 * arcs.h
 *		The index of references that are arcs of shapes.
 */
#ifndef GEONN_CPU_ARCS_H
#define GEONN_CPU_ARCS_H

#include "engine/cpu/boxes.h"
#include "engine/cpu/polygons.h"
#include "engine/search/device.h"

#define CPU_ARCS_LEAF 8

/* arcs of at most a quarter circle: the vectors of their ends, by axis */
struct cpu_arcs_leaf
{
	double		a[3][CPU_ARCS_LEAF];
	double		b[3][CPU_ARCS_LEAF];
};

struct cpu_arcs
{
	size_t		count;			/* how many arcs it has: more than the dataset, where some are longer */
	struct cpu_arcs_leaf *leaf; /* copies of the last arc fill the last one */
	uint32_t   *place;			/* [CPU_ARCS_LEAF for each leaf] the first arc, in the dataset, of each arc's shape */
	struct cpu_boxes boxes;		/* of leaves */
	struct cpu_polygons polygons;
	void	   *memory;
	size_t		bytes;
};

/*
 * Build the index of a dataset of arcs, which is not empty, on all threads.  NULL with the failure if
 * memory is short, or soon after the search is cancelled.
 */
extern struct cpu_arcs *cpu_arcs_build(const struct dataset *dataset, const atomic_bool *cancelled,
									   struct failure *failure);

/* Bytes of memory that an index takes. */
extern size_t cpu_arcs_bytes(const struct cpu_arcs *arcs);

extern void cpu_arcs_free(struct cpu_arcs *arcs);

struct cpu_neighbours_piece;

/*
 * Answer the observations of a piece as cpu_neighbours() does it, by piece->arcs: a pair's place is the first
 * arc of a shape.
 */
extern void CPU_PATH_NAME(cpu_arcs_search) (struct cpu_neighbours_piece *piece);

struct cpu_count_piece;

/* Count the shapes of the observations of a piece as cpu_count() counts references, by piece->arcs. */
extern void cpu_arcs_count(struct cpu_count_piece *piece);

#endif							/* GEONN_CPU_ARCS_H */
