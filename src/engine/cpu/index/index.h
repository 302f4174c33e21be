/*
 * index.h
 *		The index of a dataset on the CPU (index_shape.h).
 */
#ifndef GEONN_CPU_INDEX_H
#define GEONN_CPU_INDEX_H

#include "engine/cpu/base/path.h"
#include "engine/cpu/index/slabs.h"
#include "engine/dataset/dataset.h"
#include "engine/search/index_shape.h"

/* the value of only_party for a node with positions of several parties */
#define CPU_SEVERAL_PARTIES INT64_MIN

/*
 * The index of a dataset.  In the columns of positions, copies of the last position fill up the last leaf.  The columns of
 * boxes have INDEX_WIDTH more values behind the last node, so that a search can read INDEX_WIDTH children of any node.
 */
struct cpu_index
{
	struct index_shape shape;
	size_t		references;

	/*
	 * The parts of the index.  Positions of one part follow each other.  With windows, slabs say what the parts are.
	 * Otherwise each group is a part, in rising order; without groups, all positions are one part.
	 */
	uint32_t	parts;			/* how many parts the index has, at least 1 */
	int32_t    *part_group;		/* [parts] the group of each part, or NULL: parts are not groups */
	struct cpu_slabs *slabs;	/* the slabs, or NULL: the dataset has no windows */
	uint32_t   *part_start;		/* [parts + 1] the first position of each part; the last value is the number of positions */

	/* positions */
	double	   *x;				/* vectors */
	double	   *y;
	double	   *z;
	uint32_t   *start;			/* [positions + 1] the references of position i are start[i] ... start[i + 1] - 1 in
								 * the sorted order */

	/*
	 * Conditions of positions; each is NULL if the dataset has no such column.  A pair whose
	 * squared chord is above the wide limit is impossible.
	 */
	double	   *wide;			/* geonn_metric_wide_limit() of the radius */
	int64_t    *window_low[GEONN_WINDOWS_MAX];
	int64_t    *window_high[GEONN_WINDOWS_MAX];
	uint16_t   *edges;
	int64_t    *party[GEONN_PARTIES_MAX];

	/* references in the sorted order */
	uint32_t   *place;			/* [references] index in the dataset */
	int64_t    *tag;			/* [references] tags, in the order of the index: tags of neighbours lie near each other */

	/* nodes of all levels, placed by shape */
	double	   *low[3];			/* boxes: x, y and z */
	double	   *high[3];
	double	   *widest;			/* the largest wide limit of each node's positions, or NULL */
	int64_t    *smallest_low[GEONN_WINDOWS_MAX];	/* the smallest low and the largest high of each window, over a
													 * node's positions; or NULL */
	int64_t    *largest_high[GEONN_WINDOWS_MAX];
	int64_t    *only_party[GEONN_PARTIES_MAX];	/* the party of all positions of each node; CPU_SEVERAL_PARTIES: the
												 * positions have several; or NULL */

	/* one bit for each window, set if the window's range of some reference has an exclusive edge */
	uint32_t	exclusive;
	bool		limited;		/* some reference has a radius that is not infinite */

	/* the share of positions that have a party in common with the position behind them */
	double		same_party;

	/* [nodes of level 0] the curve code of each leaf's first position */
	uint64_t   *leaf_code;

	/* the two blocks of memory that hold all columns */
	void	   *memory;
	size_t		bytes;
	void	   *box_memory;
	size_t		box_bytes;
};

/* Positions first ... end - 1 of an index: one of its parts, or several; never empty. */
struct cpu_part
{
	uint32_t	first;
	uint32_t	end;
};

/*
 * Return the number of the part that has a group's references, in an index without slabs;
 * index->parts if no reference has the group.
 */
static inline uint32_t
cpu_index_part_of(const struct cpu_index *index, int32_t group)
{
	return cpu_group_number(index->part_group, index->part_group != NULL ? index->parts : 1, group);
}

/* Return the positions of part number `part` of the index. */
static inline struct cpu_part
cpu_index_part(const struct cpu_index *index, uint32_t part)
{
	return (struct cpu_part) {index->part_start[part], index->part_start[part + 1]};
}

/* Return the positions of all parts of a group, in an index with slabs. */
static inline struct cpu_part
cpu_index_group_part(const struct cpu_index *index, uint32_t group)
{
	return (struct cpu_part) {
		index->part_start[cpu_slabs_first_part(index->slabs, group)],
		index->part_start[cpu_slabs_first_part(index->slabs, group + 1)]
	};
}

/*
 * Build the index of a search's dataset, which is not empty, on all threads.  The search's observations show how long
 * windows are (cpu/index/slabs.c).  Returns NULL with the failure if memory is short, or soon after the search is cancelled.
 * The index takes 42 bytes a reference, and 8 a group; radiuses add 9 a reference; windows add 3 a reference, 17 for each
 * window, and 40 a part; each party adds 9 a reference.  The build takes no more.
 */
extern struct cpu_index *cpu_index_build(const struct search *search, struct failure *failure);

/* Return the bytes of memory that an index takes. */
extern size_t cpu_index_bytes(const struct cpu_index *index);

extern void cpu_index_free(struct cpu_index *index);

#endif							/* GEONN_CPU_INDEX_H */
