/*
 * index_walk.cuh
 *		A warp walks the index for one observation, in float64.
 *
 * For kernels.  The leaves that may hold candidates come one at a time; of a
 * node's children that have not come yet, the nearest comes first:
 *
 *		index_walk_begin(&walk, &index, from, group, home);
 *		while (index_walk_next(&walk, limit, &leaf))
 *			each lane looks at position leaf * INDEX_WIDTH + lane, and the
 *			warp may lower the limit
 *
 * A kernel takes its struct index as `const __grid_constant__`, or the compiler
 * copies it to every thread's own memory.
 *
 * No leaf comes twice.  A leaf that does not come has no candidate: each of
 * its positions is of another group, or has a squared chord, as computed by
 * geonn_chord_squared(), above the limit that was given last.  In a walk that
 * is CONDITIONED, positions of a leaf that does not come can also have windows
 * that do not overlap the observation's, or a radius that ends before it.
 *
 * The bound of a box needs no margin.  Take x, with p the observation's and
 * low <= v <= high a position's.  Rounding is monotone, so the computed p - v is
 * not nearer to zero than the computed gap, max(low - p, p - high, 0), nor than
 * the float32 below that.  The same holds for y and z.  As squares and sums
 * grow with what they are made of, also when rounded, and as rounding down to
 * float32 gives no more than rounding to the nearest float64, the sum of the
 * gaps' squares, computed in the order of geonn_chord_squared() and rounded
 * down, is at most the position's computed squared chord.
 *
 * The bound has the lane in place of its last five bits, which lowers it by at
 * most 2^-18 of itself: the smallest of such keys, which are in the order of
 * integers, names the child and says how near it is.
 */
#ifndef GEONN_INDEX_WALK_CUH
#define GEONN_INDEX_WALK_CUH

#include <cuda_runtime.h>

#include "common/metric.h"
#include "common/window.h"
#include "cuda/base/warp.cuh"
#include "cuda/index/index.cuh"
#include "engine/search/space_curve.h"

/* levels of the curve codes in leaf_code: the cells of the last are 2.4 m wide */
#define INDEX_CODE_LEVELS 22

/* no leaf, or the key of a child that does not exist */
#define INDEX_NONE UINT32_MAX

static_assert(INDEX_WIDTH == 32, "a lane for each child");
static_assert(INDEX_LEVELS_MAX == 6, "index_walk_down and index_walk_up name them");

/* The conditions that a kernel is compiled for.  The value is the number of windows that the kernel's loops go through. */
enum index_conditioned
{
	INDEX_UNCONDITIONED = 0,
	INDEX_CONDITIONED = GEONN_WINDOWS_MAX	/* radiuses, and any windows */
};

/* an observation's windows, in an index with conditions */
struct index_windows
{
	int64_t		low[GEONN_WINDOWS_MAX];
	int64_t		high[GEONN_WINDOWS_MAX];
	uint16_t	edges;
	uint32_t	inside;			/* two bits for each window, one for its low and one for its high.  Set: a box must
								 * reach beyond the bound.  Clear: a box that only reaches the bound is enough */
};

/*
 * Return whether a bound moves inwards by one value: a bound with an exclusive edge does, unless the value is the
 * outermost one.  Where two bounds meet, only one may move: (1,2) and (1,2) overlap (window.h).  So bounds of nodes move,
 * and bounds of observations only in windows for which the index has no exclusive edge.
 */
static __device__ __forceinline__ bool
index_is_inside(int64_t value, unsigned edge, int64_t outermost)
{
	return edge == GEONN_EDGE_EXCLUSIVE && value != outermost;
}

struct index_walk
{
	const struct index *index;
	struct geonn_vector from;
	int32_t		group;
	const struct index_windows *windows;	/* in a walk with CONDITIONED */
	uint32_t	home;			/* leaf to begin with, or INDEX_NONE */
	bool		home_came;
	int			levels;
	int			level;			/* the level of the children that the walk is at */
	uint32_t	parent;			/* the node whose children the walk is at, on the level above */
	uint32_t	key;			/* the key of this lane's child */
	uint32_t	keys[INDEX_LEVELS_MAX]; /* the keys of the levels above */
};

static __device__ __forceinline__ struct geonn_vector
index_vector(const struct index *index, uint32_t position)
{
	struct geonn_vector vector;

	vector.x = index->x[position];
	vector.y = index->y[position];
	vector.z = index->z[position];
	return vector;
}

/* Return how far p is outside low ... high, rounded down to float32: the gap of the essay. */
static __device__ __forceinline__ float
index_gap(double p, double low, double high)
{
	return fmaxf(fmaxf(__double2float_rd(low - p), __double2float_rd(p - high)), 0.0f);
}

/* Return how far p is from the farther one of low and high, rounded up to float32. */
static __device__ __forceinline__ float
index_reach(double p, double low, double high)
{
	return fmaxf(__double2float_ru(p - low), __double2float_ru(high - p));
}

/*
 * Return whether, in some window, all positions of a node end before the observation's window
 * begins, or begin after it ends.
 */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ bool
index_walk_misses(const struct index_walk *walk, size_t place)
{
	const struct index *index = walk->index;
	bool		misses = false;

#pragma unroll
	for (int i = 0; i < CONDITIONED; i++)
		if (index->node_low[i] != NULL)
			misses = misses || index->node_low[i][place] >
				walk->windows->high[i] - (walk->windows->inside >> (2 * i + 1) & 1) ||
				index->node_high[i][place] < walk->windows->low[i] + (walk->windows->inside >> 2 * i & 1);
	return misses;
}

/*
 * Return the key of this lane's child of the parent node.  INDEX_NONE: the parent has no such child, the group is outside
 * the child's range of groups, or, if CONDITIONED, no position of the child passes the conditions.
 */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ uint32_t
index_walk_key(const struct index_walk *walk)
{
	const struct index *index = walk->index;
	uint32_t	node = walk->parent * INDEX_WIDTH + warp_lane();
	size_t		place = (size_t) index->shape.first[walk->level] + node;
	float		x;
	float		y;
	float		z;
	float		square;

	if (node >= index->shape.nodes[walk->level])
		return INDEX_NONE;
	if (index->group != NULL &&
		(walk->group < index->low_group[place] || walk->group > index->high_group[place]))
		return INDEX_NONE;
	if (CONDITIONED != INDEX_UNCONDITIONED && index_walk_misses<CONDITIONED>(walk, place))
		return INDEX_NONE;

	x = index_gap(walk->from.x, index->low_x[place], index->high_x[place]);
	y = index_gap(walk->from.y, index->low_y[place], index->high_y[place]);
	z = index_gap(walk->from.z, index->low_z[place], index->high_z[place]);
	square = __fmaf_rd(z, z, __fmaf_rd(y, y, __fmul_rd(x, x)));
	if (CONDITIONED == INDEX_CONDITIONED && index->node_limit != NULL && square > index->node_limit[place])
		return INDEX_NONE;
	return (__float_as_uint(square) & ~(INDEX_WIDTH - 1u)) | warp_lane();
}

/*
 * index_walk_down() goes to the children of a node; index_walk_up() goes back to the node's
 * siblings that have not come yet.  The array is indexed by constants alone: otherwise the compiler
 * would keep the walk in memory instead of registers.
 */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ void
index_walk_down(struct index_walk *walk, uint32_t node)
{
	walk->keys[1] = walk->level == 1 ? walk->key : walk->keys[1];
	walk->keys[2] = walk->level == 2 ? walk->key : walk->keys[2];
	walk->keys[3] = walk->level == 3 ? walk->key : walk->keys[3];
	walk->keys[4] = walk->level == 4 ? walk->key : walk->keys[4];
	walk->keys[5] = walk->level == 5 ? walk->key : walk->keys[5];
	walk->level--;
	walk->parent = node;
	walk->key = index_walk_key<CONDITIONED>(walk);
}

static __device__ __forceinline__ void
index_walk_up(struct index_walk *walk)
{
	walk->level++;
	walk->parent /= INDEX_WIDTH;
	walk->key = walk->level == 1 ? walk->keys[1] :
		walk->level == 2 ? walk->keys[2] :
		walk->level == 3 ? walk->keys[3] :
		walk->level == 4 ? walk->keys[4] : walk->keys[5];
}

/*
 * Start a walk from a vector, computed for the index's metric.  The group is
 * used if the index has groups, the windows if CONDITIONED.  The home leaf comes
 * first, even if its bound is above the limit; INDEX_NONE: no leaf is home.
 */
template <enum index_conditioned CONDITIONED = INDEX_UNCONDITIONED>
static __device__ __forceinline__ void
index_walk_begin(struct index_walk *walk, const struct index *index, struct geonn_vector from,
				 int32_t group, uint32_t home, const struct index_windows *windows = NULL)
{
	walk->index = index;
	walk->from = from;
	walk->group = group;
	walk->windows = windows;
	walk->home = home;
	walk->home_came = home == INDEX_NONE;
	walk->keys[1] = walk->keys[2] = walk->keys[3] = walk->keys[4] = walk->keys[5] = INDEX_NONE;
	walk->levels = index->shape.levels;
	walk->level = walk->levels - 1;
	walk->parent = 0;
	walk->key = index_walk_key<CONDITIONED>(walk);
}

/* a filter that leaves out no child */
struct index_walk_all
{
	__device__ void operator() (struct index_walk *) const
	{
	}
};

/*
 * Set *leaf to the next leaf that may have a position of at most this squared
 * chord; false if none is left.  The limit must not rise from one call to the
 * next.  The filter is called before a child is chosen, and may leave out children
 * by setting their keys to INDEX_NONE.
 */
template <enum index_conditioned CONDITIONED = INDEX_UNCONDITIONED, typename Filter = struct index_walk_all>
static __device__ __forceinline__ bool
index_walk_next(struct index_walk *walk, double limit, uint32_t *leaf, Filter filter = {})
{
	uint32_t	limit_key = __float_as_uint(__double2float_ru(limit));

	if (!walk->home_came)
	{
		walk->home_came = true;
		*leaf = walk->home;
		return true;
	}
	while (walk->level < walk->levels)
	{
		uint32_t	nearest;
		uint32_t	child;
		uint32_t	node;

		filter(walk);
		nearest = warp_smallest(walk->key);
		child = nearest % INDEX_WIDTH;
		node = walk->parent * INDEX_WIDTH + child;
		if (nearest - child > limit_key)
		{
			/*
			 * No child of this node is left within the limit (a child that has come has the key
			 * INDEX_NONE, which is above all limits): go back up.
			 */
			index_walk_up(walk);
			continue;
		}
		if (warp_lane() == child)
			walk->key = INDEX_NONE;
		if (walk->level > 0)
			index_walk_down<CONDITIONED>(walk, node);
		else if (node != walk->home)
		{
			*leaf = node;
			return true;
		}
	}
	return false;
}

/*
 * Return the curve code of a vector, comparable with leaf_code.
 */
static __device__ __forceinline__ uint64_t
index_code(struct geonn_vector vector)
{
	return space_curve_code(vector, INDEX_CODE_LEVELS);
}

/*
 * Return the leaf among first ... end - 1 whose part of the curve has a code: the last leaf that
 * begins at the code or before, or the first leaf if all begin behind it.  The leaf's positions are
 * a good guess for the nearest.  Only for indexes without groups.
 */
static __device__ __forceinline__ uint32_t
index_home_leaf(const struct index *index, uint64_t code, uint32_t first, uint32_t end)
{
	while (end - first > 1)
	{
		uint32_t	step = (end - first + INDEX_WIDTH - 1) / INDEX_WIDTH;
		uint32_t	probe = first + step * warp_lane();
		bool		not_behind = probe < end && index->leaf_code[probe] <= code;
		uint32_t	passed = __popc(__ballot_sync(ALL_LANES, not_behind));

		if (passed > 0)
			first += step * (passed - 1);
		else
			end = first + 1;
		end = min(end, first + step);
	}
	return first;
}

#endif							/* GEONN_INDEX_WALK_CUH */
