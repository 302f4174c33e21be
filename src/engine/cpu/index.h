/*
 * index.h
 *		The index of a dataset on the CPU (index_shape.h).
 */
#ifndef GEONN_CPU_INDEX_H
#define GEONN_CPU_INDEX_H

#include "engine/cpu/path.h"
#include "engine/dataset/dataset.h"
#include "engine/search/index_shape.h"

/*
 * The columns of positions are filled up to a whole leaf with copies of the
 * last position.  The columns of boxes have INDEX_WIDTH places after the last
 * node, so that a search can read INDEX_WIDTH children of any node.
 */
struct cpu_index
{
	struct index_shape shape;
	size_t		references;

	/* positions */
	double	   *x;				/* vectors */
	double	   *y;
	double	   *z;
	uint32_t   *start;			/* [positions + 1] its references are start[i]
								 * ... start[i + 1] - 1 of the sorted order */

	/* references in the sorted order */
	uint32_t   *place;			/* [references] index in the dataset */

	/* nodes of all levels, where shape says */
	double	   *low[3];			/* boxes: x, y and z */
	double	   *high[3];
	int32_t    *low_group;		/* or NULL */
	int32_t    *high_group;

	/* [nodes of level 0] curve code of each leaf's first position */
	uint64_t   *leaf_code;

	/* the two blocks of memory that hold all columns */
	void	   *memory;
	size_t		bytes;
	void	   *box_memory;
	size_t		box_bytes;
};

/*
 * Build the index of a sealed dataset that is not empty, on all threads.  NULL
 * with the failure if memory is short, or soon after *cancelled is set.  The
 * index takes 34 bytes a reference, and the build no more.
 */
extern struct cpu_index *cpu_index_build(const struct dataset *dataset,
										 const atomic_bool *cancelled,
										 struct failure *failure);

extern void cpu_index_free(struct cpu_index *index);

#endif							/* GEONN_CPU_INDEX_H */
