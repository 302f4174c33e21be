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
	int			window;			/* the number of the window by which slabs are cut */
	uint64_t	length;			/* the length of windows for which the slabs were cut (cpu_slabs_length) */
	uint64_t	least;			/* shorter windows count as windows of this length */
	uint64_t	most;			/* longer windows count as windows of this length; but never of less than `least` */

	/* groups, in rising order; each group has runs, and each run has parts */
	uint32_t	groups;			/* how many groups the dataset has, at least 1 */
	int32_t    *group;			/* [groups], or NULL: the dataset has no groups */
	uint32_t   *group_run;		/* [groups + 1] the first run of each group; the last value is `runs` */
	uint32_t	runs;
	uint32_t   *run_part;		/* [runs + 1] the first part of each run; the last value is `parts` */

	/* [parts] The smallest range that contains the windows of each part's references.  Within a run, lows rise. */
	uint32_t	parts;
	int64_t    *low;
	int64_t    *high;
	uint16_t   *edges;
	int64_t    *reach;			/* the largest high among this part and the parts before it in its run */
	uint8_t    *is_uniform;		/* all references of the part have exactly the same windows */
	uint32_t   *first;			/* [parts + 1] the first reference of each part, in the order of parts */

	void	   *memory;
	size_t		bytes;
};

/*
 * Cut the references of a search's dataset, which has windows, into parts.  part_of[place] becomes each reference's part.
 * The sort must have memory for all references.  Returns NULL with the failure if memory is short.  Once the search is
 * cancelled, the function ends early, with part_of undefined.
 */
extern struct cpu_slabs *cpu_slabs_create(const struct search *search, struct radix_sort *sort,
										  uint32_t *part_of, struct failure *failure);

/*
 * Return the length of a search's windows for which slabs should be cut: the median of a sample, within
 * slabs->least and slabs->most.
 */
extern uint64_t cpu_slabs_length(const struct cpu_slabs *slabs, const struct search *search);

extern void cpu_slabs_free(struct cpu_slabs *slabs);

/*
 * Return the index of a group among `count` rising groups, or count if the group is not among them.
 * With NULL as groups, all references are one group, of index 0.  Fast for few groups, and for
 * groups with consecutive numbers, as most datasets have them.
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

/* Return the index of a group in slabs->group, or slabs->groups if no reference has the group. */
static inline uint32_t
cpu_slabs_group(const struct cpu_slabs *slabs, int32_t group)
{
	return cpu_group_number(slabs->group, slabs->groups, group);
}

/*
 * List the parts of a group whose references' windows may overlap `windows`, in rising order.
 * Returns the number of these parts; if it is greater than `most`, the list is incomplete.
 */
extern uint32_t cpu_slabs_reached(const struct cpu_slabs *slabs, uint32_t group,
								  const struct point_windows *windows, uint32_t *list,
								  uint32_t most);

/* Return the first part of a group; for group number slabs->groups this is slabs->parts. */
static inline uint32_t
cpu_slabs_first_part(const struct cpu_slabs *slabs, uint32_t group)
{
	return slabs->run_part[slabs->group_run[group]];
}

#endif							/* GEONN_CPU_SLABS_H */
