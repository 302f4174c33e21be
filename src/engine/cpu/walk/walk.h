/*
 * walk.h
 *		The steps of a walk through the index, each for INDEX_WIDTH places at a
 *		time.
 *
 * For the sources of CPU paths.  The bound of a box needs no margin: take x,
 * with p the observation's and low <= v <= high a position's.  Rounding is
 * monotone, so the computed p - v is not nearer to zero than the computed gap,
 * max(low - p, p - high, 0).  The same holds for y and z, and as squares and
 * sums grow with what they are made of, also when rounded, the gaps' sum, computed
 * as cpu_filter_chord() does it, is at most the position's.  If the gap is
 * taken from a box around several observations, it is smaller still.
 *
 * A walk goes through the positions of one part of the index, or of parts that
 * follow each other.  The first and the last node, on each level, may have
 * positions of other parts, too: their boxes are larger than they need be, which leaves
 * nothing out, and of the first and the last leaf only the part's positions
 * count.
 */
#ifndef GEONN_CPU_WALK_H
#define GEONN_CPU_WALK_H

#include "common/metric.h"
#include "engine/cpu/index/index.h"
#include "engine/cpu/base/lanes.h"
#include "engine/cpu/base/path.h"
#include "engine/cpu/base/conditions.h"
#include "engine/search/candidates.h"

#define CPU_WALK_INLINE static inline __attribute__((always_inline))

/* a box around observations */
struct cpu_box
{
	double		low[3];
	double		high[3];
};

static const struct cpu_box cpu_empty_box = {
	{INFINITY, INFINITY, INFINITY}, {-INFINITY, -INFINITY, -INFINITY}
};

CPU_WALK_INLINE void
cpu_box_enlarge(struct cpu_box *box, struct geonn_vector by)
{
	const double p[3] = {by.x, by.y, by.z};

	for (int axis = 0; axis < 3; axis++)
	{
		box->low[axis] = p[axis] < box->low[axis] ? p[axis] : box->low[axis];
		box->high[axis] = p[axis] > box->high[axis] ? p[axis] : box->high[axis];
	}
}

/*
 * Compute the squared chords from a vector to the positions of a leaf.
 * Returns the smallest.
 */
CPU_WALK_INLINE double
cpu_leaf_chords(const struct cpu_index *index, uint32_t leaf, struct geonn_vector from,
				double *chords)
{
	const double *x = index->x + (size_t) leaf * INDEX_WIDTH;
	const double *y = index->y + (size_t) leaf * INDEX_WIDTH;
	const double *z = index->z + (size_t) leaf * INDEX_WIDTH;
	lanes		from_x = lanes_all(from.x);
	lanes		from_y = lanes_all(from.y);
	lanes		from_z = lanes_all(from.z);
	lanes		smallest = lanes_all(INFINITY);

#pragma GCC unroll 16
	for (int i = 0; i < INDEX_WIDTH; i += LANES)
	{
		lanes		chord = lanes_chord(lanes_minus(lanes_load(x + i), from_x),
										lanes_minus(lanes_load(y + i), from_y),
										lanes_minus(lanes_load(z + i), from_z));

		lanes_store(chords + i, chord);
		smallest = lanes_smaller(chord, smallest);
	}
	return lanes_smallest(smallest);
}

/*
 * For each of the nodes from `node` on, compute a bound: no squared chord
 * between a point in the box and a position below the node is less.
 */
CPU_WALK_INLINE void
cpu_node_bounds(const struct cpu_index *index, uint32_t node, const struct cpu_box *box,
				double *bounds)
{
#pragma GCC unroll 16
	for (int i = 0; i < INDEX_WIDTH; i += LANES)
	{
		lanes		gap[3];

		for (int axis = 0; axis < 3; axis++)
			gap[axis] = lanes_gap(lanes_load(index->low[axis] + node + i),
								  lanes_all(box->low[axis]), lanes_all(box->high[axis]),
								  lanes_load(index->high[axis] + node + i));
		lanes_store(bounds + i, lanes_chord(gap[0], gap[1], gap[2]));
	}
}

/*
 * For each of the nodes from `node` on, compute a bound: no squared chord between a point in the box and a position below the
 * node is greater.  Rounding is monotone, so the computed distance of the farthest corners is at least that of any such position.
 */
CPU_WALK_INLINE void
cpu_node_corners(const struct cpu_index *index, uint32_t node, const struct cpu_box *box, double *bounds)
{
#pragma GCC unroll 16
	for (int i = 0; i < INDEX_WIDTH; i += LANES)
	{
		lanes		reach[3];

		for (int axis = 0; axis < 3; axis++)
			reach[axis] = lanes_larger(lanes_minus(lanes_all(box->high[axis]), lanes_load(index->low[axis] + node + i)),
									   lanes_minus(lanes_load(index->high[axis] + node + i), lanes_all(box->low[axis])));
		lanes_store(bounds + i, lanes_chord(reach[0], reach[1], reach[2]));
	}
}

/*
 * A bit for each of INDEX_WIDTH values, set if the value is at most the limit.
 */
CPU_WALK_INLINE uint32_t
cpu_within(const double *values, double limit)
{
	uint32_t	bits = 0;

#pragma GCC unroll 16
	for (int i = 0; i < INDEX_WIDTH; i += LANES)
		bits |= lanes_within(lanes_load(values + i), lanes_all(limit)) << i;
	return bits;
}

/*
 * INDEX_WIDTH bits, of which the first `count` are set.
 */
CPU_WALK_INLINE uint32_t
cpu_first_bits(uint32_t count)
{
	return count < INDEX_WIDTH ? (UINT32_C(1) << count) - 1 : UINT32_MAX;
}

/*
 * A bit for each of INDEX_WIDTH nodes from `node` on, set if its windows reach
 * these.  All positions whose windows overlap these are below such nodes
 * (window.h).
 */
CPU_WALK_INLINE uint32_t
cpu_nodes_reached(const struct cpu_index *index, uint32_t node, const struct point_windows *windows)
{
	uint32_t	passed = 0;

	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		if (index->window_low[window] == NULL)
			continue;
#pragma GCC unroll 16
		for (int i = 0; i < INDEX_WIDTH; i += LANES)
			passed |= (lanes_above(lanes_load_integers(index->smallest_low[window] + node + i),
								   lanes_all_integers(windows->high[window])) |
					   lanes_above(lanes_all_integers(windows->low[window]),
								   lanes_load_integers(index->largest_high[window] + node + i))) << i;
	}
	return ~passed;
}

/*
 * A bit for each of INDEX_WIDTH values, set if the value is at most its own
 * limit.
 */
CPU_WALK_INLINE uint32_t
cpu_within_each(const double *values, const double *limits)
{
	uint32_t	bits = 0;

#pragma GCC unroll 16
	for (int i = 0; i < INDEX_WIDTH; i += LANES)
		bits |= lanes_within(lanes_load(values + i), lanes_load(limits + i)) << i;
	return bits;
}

/*
 * A bit for each position of a leaf, set if its windows overlap these.  Vector
 * instructions decide unless two bounds are equal and one may be exclusive.
 */
CPU_WALK_INLINE uint32_t
cpu_leaf_overlaps(const struct cpu_index *index, uint32_t leaf, const struct point_windows *windows)
{
	size_t		first = (size_t) leaf * INDEX_WIDTH;
	uint32_t	bits = UINT32_MAX;

	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
	{
		const int64_t *low = index->window_low[window];
		const int64_t *high = index->window_high[window];
		lanes_of_integers from = lanes_all_integers(windows->low[window]);
		lanes_of_integers to = lanes_all_integers(windows->high[window]);
		uint32_t	passed = 0;
		uint32_t	touched = 0;

		if (low == NULL)
			continue;
#pragma GCC unroll 16
		for (int i = 0; i < INDEX_WIDTH; i += LANES)
		{
			lanes_of_integers there_low = lanes_load_integers(low + first + i);
			lanes_of_integers there_high = lanes_load_integers(high + first + i);

			passed |= (lanes_above(there_low, to) | lanes_above(from, there_high)) << i;
			touched |= (lanes_equal(there_low, to) | lanes_equal(from, there_high)) << i;
		}
		bits &= ~passed;
		if ((index->exclusive >> window & 1) == 0 &&
			geonn_low_edge(windows->edges, window) != GEONN_EDGE_EXCLUSIVE &&
			geonn_high_edge(windows->edges, window) != GEONN_EDGE_EXCLUSIVE)
			continue;
		for (uint32_t left = touched & bits; left != 0; left &= left - 1)
		{
			size_t		position = first + (uint32_t) __builtin_ctz(left);

			if (!geonn_windows_overlap(window, windows->low[window], windows->high[window],
									   windows->edges, low[position], high[position],
									   index->edges[position]))
				bits &= ~(left & -left);
		}
	}
	return bits;
}

/* Whether the windows of a position overlap these. */
CPU_WALK_INLINE bool
cpu_position_overlaps(const struct cpu_index *index, uint32_t position, const struct point_windows *windows)
{
	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
		if (index->window_low[window] != NULL &&
			!geonn_windows_overlap(window, windows->low[window], windows->high[window], windows->edges,
								   index->window_low[window][position], index->window_high[window][position],
								   index->edges[position]))
			return false;
	return true;
}

/*
 * A bit for each of INDEX_WIDTH values from `first` on of the columns of parties, set if none is the
 * observation's.
 */
CPU_WALK_INLINE uint32_t
cpu_parties_differ(int64_t *const *party, size_t first, const struct point_parties *parties)
{
	uint32_t	same = 0;

	for (int party_number = 0; party_number < GEONN_PARTIES_MAX && party[party_number] != NULL; party_number++)
	{
		lanes_of_integers own = lanes_all_integers(parties->party[party_number]);

#pragma GCC unroll 16
		for (int i = 0; i < INDEX_WIDTH; i += LANES)
			same |= lanes_equal(lanes_load_integers(party[party_number] + first + i), own) << i;
	}
	return ~same;
}

/* Whether each party of a position differs from these. */
CPU_WALK_INLINE bool
cpu_position_differs(const struct cpu_index *index, uint32_t position, const struct point_parties *parties)
{
	for (int party = 0; party < GEONN_PARTIES_MAX && index->party[party] != NULL; party++)
		if (index->party[party][position] == parties->party[party])
			return false;
	return true;
}

/* Those bits of a leaf's positions whose windows overlap the observation's, and whose parties differ. */
CPU_WALK_INLINE uint32_t
cpu_leaf_candidates(const struct cpu_index *index, uint32_t leaf, const struct cpu_conditions *conditions, uint32_t bits)
{
	if (bits != 0 && index->edges != NULL)
		bits &= cpu_leaf_overlaps(index, leaf, &conditions->windows);
	if (bits != 0)
		bits &= cpu_parties_differ(index->party, (size_t) leaf * INDEX_WIDTH, &conditions->parties);
	return bits;
}

/* Those bits of INDEX_WIDTH nodes from `node` on below which windows and parties may leave candidates. */
CPU_WALK_INLINE uint32_t
cpu_nodes_candidates(const struct cpu_index *index, uint32_t node, const struct cpu_conditions *conditions, uint32_t bits)
{
	if (index->edges != NULL)
		bits &= cpu_nodes_reached(index, node, &conditions->windows);
	return bits & cpu_parties_differ(index->only_party, node, &conditions->parties);
}

/* Whether one node may have candidates below it, by windows and parties. */
CPU_WALK_INLINE bool
cpu_node_may_have(const struct cpu_index *index, uint32_t node, const struct cpu_conditions *conditions)
{
	bool		may = true;

	for (int window = 0; window < GEONN_WINDOWS_MAX; window++)
		may = may && (index->window_low[window] == NULL ||
					  (index->smallest_low[window][node] <= conditions->windows.high[window] &&
					   index->largest_high[window][node] >= conditions->windows.low[window]));
	for (int party = 0; party < GEONN_PARTIES_MAX && index->only_party[party] != NULL; party++)
		may = may && index->only_party[party][node] != conditions->parties.party[party];
	return may;
}

/*
 * The number of the smallest bound among those whose bit is set.  At least one bit must
 * be set.
 */
CPU_WALK_INLINE uint32_t
cpu_nearest_of(const double *bounds, uint32_t bits)
{
	uint32_t	nearest = (uint32_t) __builtin_ctz(bits);

	for (bits &= bits - 1; bits != 0; bits &= bits - 1)
		if (bounds[__builtin_ctz(bits)] < bounds[nearest])
			nearest = (uint32_t) __builtin_ctz(bits);
	return nearest;
}

/* nodes of one level that follow each other: the children of one node, or those
 * that a walk begins with */
struct cpu_nodes
{
	uint32_t	first;			/* number of the first one, on its level */
	uint32_t	count;			/* 1 ... INDEX_WIDTH */
};

/*
 * The number of the node of a level under which a position lies.
 */
CPU_WALK_INLINE uint32_t
cpu_node_above(uint32_t position, int level)
{
	return position >> INDEX_BITS * (level + 1);
}

/*
 * The nodes with which a walk through a part begins: those of the lowest level
 * on which the part's positions lie under at most INDEX_WIDTH nodes.
 */
CPU_WALK_INLINE struct cpu_nodes
cpu_part_top(struct cpu_part part, int *level)
{
	uint32_t	first;
	uint32_t	last;

	*level = 0;
	while (first = cpu_node_above(part.first, *level),
		   last = cpu_node_above(part.end - 1, *level), last - first >= INDEX_WIDTH)
		++*level;
	return (struct cpu_nodes) {first, last - first + 1};
}

/*
 * Those children of node `number` of a level under which positions of the part
 * lie.
 */
CPU_WALK_INLINE struct cpu_nodes
cpu_part_children(struct cpu_part part, int level, uint32_t number)
{
	uint32_t	first = number * INDEX_WIDTH;
	uint32_t	last = first + INDEX_WIDTH - 1;
	uint32_t	part_first = cpu_node_above(part.first, level - 1);
	uint32_t	part_last = cpu_node_above(part.end - 1, level - 1);

	first = first > part_first ? first : part_first;
	last = last < part_last ? last : part_last;
	return (struct cpu_nodes) {first, last - first + 1};
}

/* Those positions of a part that lie under nodes first ... end - 1 of a level; at least one must. */
CPU_WALK_INLINE struct cpu_part
cpu_part_below(struct cpu_part part, int level, uint32_t first, uint32_t end)
{
	uint64_t	below = (uint64_t) first << INDEX_BITS * (level + 1);
	uint64_t	behind = (uint64_t) end << INDEX_BITS * (level + 1);

	return (struct cpu_part) {
		below > part.first ? (uint32_t) below : part.first, behind < part.end ? (uint32_t) behind : part.end
	};
}

/*
 * A bit for each position of a leaf, set if the part has the position.  The
 * part must have at least one of them.
 */
CPU_WALK_INLINE uint32_t
cpu_part_bits(struct cpu_part part, uint32_t leaf)
{
	uint32_t	first = leaf * INDEX_WIDTH;
	uint32_t	bits = cpu_first_bits(part.end - first);

	return part.first > first ? bits & UINT32_MAX << (part.first - first) : bits;
}

/*
 * Return the last leaf, from `first` to `last`, that begins at the code on the
 * curve or before it; if none does, `first`.  A leaf near `first` is found in
 * few steps.
 */
CPU_WALK_INLINE uint32_t
cpu_home_leaf(const struct cpu_index *index, uint64_t code, uint32_t first, uint32_t last)
{
	const uint64_t *leaf_code = index->leaf_code;
	uint32_t	step = 1;

	while (step <= last - first && leaf_code[first + step] <= code)
	{
		first += step;
		step *= 2;
	}
	for (; step > 0; step /= 2)
		if (step <= last - first && leaf_code[first + step] <= code)
			first += step;
	return first;
}

/* the position that is first so far in the order (distance, place); {{INFINITY, UINT32_MAX}}: no
 * position yet */
struct cpu_decision
{
	struct candidate first;
	uint32_t	position;
};

/*
 * Let a position be the decision if candidate_before() says so.
 */
CPU_WALK_INLINE void
cpu_decide(const struct cpu_index *index, enum geonn_metric metric, struct geonn_vector from,
		   uint32_t position, struct cpu_decision *decision)
{
	struct geonn_vector there = {index->x[position], index->y[position], index->z[position]};
	struct candidate found = {
		geonn_metric_distance_of(metric, from, there), index->place[index->start[position]], 0
	};

	if (candidate_before(found, decision->first))
		*decision = (struct cpu_decision) {found, position};
}

#endif							/* GEONN_CPU_WALK_H */
