/*
 * bundle.h
 *		The positions around a bundle of observations, as float32.
 *
 * For the sources of CPU paths.
 */
#ifndef GEONN_CPU_BUNDLE_H
#define GEONN_CPU_BUNDLE_H

#include "engine/cpu/walk/collector.h"
#include "engine/cpu/base/floats.h"
#include "engine/cpu/walk/walk.h"

/* how many bits of a key are the number of a position in the list */
#define CPU_LISTED_BITS 11
#define CPU_LISTED_MAX (1 << CPU_LISTED_BITS)

/* the largest chord of a key, in units */
#define CPU_KEY_UNITS ((float) ((1 << (31 - CPU_LISTED_BITS)) - 2))

/* if at most so many positions are wanted, and windows are not compared, cpu_bundle_few() finds them */
#define CPU_FEW_MAX 3

/* the key where the list has fewer positions */
#define CPU_FEW_NONE INT32_MAX

/* the whole sphere is within this radius */
#define CPU_RADIUS_MAX 2.5

/* how often a radius or a threshold is changed before an observation walks alone */
#define CPU_TRIES_MAX 40

/* a bundle, and the positions listed around it */
struct cpu_bundle
{
	const struct cpu_index *index;
	uint32_t	wanted;			/* how many positions surely have k candidates; 0: all are wanted */
	uint32_t	goal;			/* how many keys a threshold should leave */
	uint32_t	most;			/* how many at most */
	bool		compares;		/* positions whose windows do not overlap the observation's get no key */
	float		threshold;		/* a guess for the next observation */
	uint32_t	number;			/* the number of the part; UINT32_MAX: none yet */
	struct cpu_part part;
	struct cpu_box box;			/* around the observations */
	double		centre[3];
	double		reach;			/* all positions within this squared chord of an observation are listed */
	float		error;			/* E */
	float		farthest;		/* no squared chord to a listed position is computed larger than this */
	float		limit;			/* the squared chord from the centre within which positions are listed */

	uint32_t	listed;
	float		x[CPU_LISTED_MAX + INDEX_WIDTH + WIDE];
	float		y[CPU_LISTED_MAX + INDEX_WIDTH + WIDE];
	float		z[CPU_LISTED_MAX + INDEX_WIDTH + WIDE];
	int32_t		position[CPU_LISTED_MAX + INDEX_WIDTH + WIDE];

	/* keys of one observation */
	int32_t		key[CPU_LISTED_MAX + WIDE];

	/* [rank][lane] keys of the nearest positions of FLOATS observations */
	int32_t		few[CPU_FEW_MAX + 1][FLOATS];
};

/*
 * List the part's positions that are at most a radius, as a chord, from the bundle's box.  The caller
 * has set the box.  False if they are more than CPU_LISTED_MAX.
 */
extern bool CPU_PATH_NAME(cpu_bundle_list) (struct cpu_bundle *bundle, double radius);

/*
 * Find the nearest positions of FLOATS observations, given as offsets from the centre: as many as are wanted, at
 * most CPU_FEW_MAX, and one more.  Their keys are the upper bits of chords, with numbers in the list below.
 */
extern void CPU_PATH_NAME(cpu_bundle_few) (struct cpu_bundle *bundle, float (*offset)[FLOATS]);

CPU_WALK_INLINE bool
cpu_bundle_few_wanted(const struct cpu_bundle *bundle)
{
	return bundle->wanted > 0 && bundle->wanted <= CPU_FEW_MAX && !bundle->compares;
}

/*
 * Lower the limit of an observation, with which the collector has begun, and give the collector the positions
 * within it, unless it is beyond the reach.  If few are wanted, the lane is the observation's.  Returns how many
 * positions are known to be nearest, or UINT32_MAX if too many are about equally near.
 */
extern uint32_t CPU_PATH_NAME(cpu_bundle_collect) (struct cpu_bundle *bundle, uint32_t lane,
												   struct cpu_collector *collector, double *limit);

/* Fetch a leaf's vectors into the cache. */
CPU_WALK_INLINE void
cpu_prefetch_leaf(const struct cpu_index *index, uint32_t leaf)
{
	for (uint32_t i = leaf * INDEX_WIDTH; i < (leaf + 1) * INDEX_WIDTH; i += 8)
	{
		__builtin_prefetch(index->x + i);
		__builtin_prefetch(index->y + i);
		__builtin_prefetch(index->z + i);
	}
}

/* The diagonal of a box. */
CPU_WALK_INLINE double
cpu_box_extent(const struct cpu_box *box)
{
	return sqrt(cpu_filter_chord(box->high[0] - box->low[0], box->high[1] - box->low[1],
								 box->high[2] - box->low[2]));
}

#endif							/* GEONN_CPU_BUNDLE_H */
