/*
 * slabs.h
 *		How the CPU's index cuts references with windows into parts.
 */
#ifndef GEONN_CPU_SLABS_H
#define GEONN_CPU_SLABS_H

#include "engine/base/radix_sort.h"
#include "engine/dataset/point_windows.h"
#include "engine/search/device.h"

struct cpu_slabs
{
	int			window;			/* number of the window whose bounds decide */
	uint64_t	length;			/* of the windows that these slabs are for (cpu_slabs_length) */
	uint64_t	least;			/* all shorter windows count as windows of this length, */
	uint64_t	most;			/* and all longer ones as of this one, unless that is less */

	/* groups, in rising order; each has runs, a run has parts */
	uint32_t	groups;			/* at least 1 */
	int32_t    *group;			/* [groups], or NULL: the dataset has no groups */
	uint32_t   *group_run;		/* [groups + 1] first runs; the last is `runs` */
	uint32_t	runs;
	uint32_t   *run_part;		/* [runs + 1] first parts; the last is `parts` */

	/*
	 * [parts] of each part, the smallest range that contains its references'
	 * windows.  In a run, lows rise.
	 */
	uint32_t	parts;
	int64_t    *low;
	int64_t    *high;
	uint16_t   *edges;
	int64_t    *reach;			/* the largest high of this part and those before it in its run */
	uint8_t    *is_uniform;		/* all references have the very same windows */
	uint32_t   *first;			/* [parts + 1] first references, in the order of parts */

	void	   *memory;
	size_t		bytes;
};

/*
 * Cut the references of a search's dataset, which has windows, into parts.
 * part_of[place] becomes each reference's part.  The sort has room for all
 * references.  NULL with the failure if memory is short; cancelled by the
 * search's flag, with part_of undefined.
 */
extern struct cpu_slabs *cpu_slabs_create(const struct search *search, struct radix_sort *sort,
										  uint32_t *part_of, struct failure *failure);

/*
 * The length of a search's windows, as far as that has an influence on how long slabs should be: the median of a
 * sample, within slabs->least and slabs->most.
 */
extern uint64_t cpu_slabs_length(const struct cpu_slabs *slabs, const struct search *search);

extern void cpu_slabs_free(struct cpu_slabs *slabs);

/*
 * The number of a group among `count` rising ones, or count: it is none of them.
 * Without a list, all is one group.  Datasets have few groups, or mostly groups
 * with numbers that follow each other.
 */
static inline uint32_t
cpu_group_number(const int32_t *groups, uint32_t count, int32_t group)
{
	uint32_t	first = 0;
	uint32_t	end = count;

	if (groups == NULL)
		return 0;
	if (group < groups[0] || group > groups[count - 1])
		return count;
	if ((uint32_t) groups[count - 1] - (uint32_t) groups[0] == count - 1)
		return (uint32_t) group - (uint32_t) groups[0];
	while (end - first > 1)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (groups[middle] <= group)
			first = middle;
		else
			end = middle;
	}
	return groups[first] == group ? first : count;
}

/* The number of a group among slabs->group, or slabs->groups: no reference has it. */
static inline uint32_t
cpu_slabs_group(const struct cpu_slabs *slabs, int32_t group)
{
	return cpu_group_number(slabs->group, slabs->groups, group);
}

/*
 * List the parts of a group whose references' windows may overlap these, in
 * rising order.  Returns their number; more than `most`: they are not listed.
 */
extern uint32_t cpu_slabs_reached(const struct cpu_slabs *slabs, uint32_t group,
								  const struct point_windows *windows, uint32_t *list,
								  uint32_t most);

/* The first part of a group; that of slabs->groups is slabs->parts. */
static inline uint32_t
cpu_slabs_first_part(const struct cpu_slabs *slabs, uint32_t group)
{
	return slabs->run_part[slabs->group_run[group]];
}

#endif							/* GEONN_CPU_SLABS_H */
