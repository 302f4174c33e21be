/*
 * nearest.c
 *		Finds the nearest reference of many observations on the CPU, by the
 *		index.
 *
 * Observations that are neighbours on the curve go through the index together,
 * in groups of up to 32:
 *
 *	1.	Each observation looks through its home leaf, the leaf where the curve
 *		would put it.  Most observations find their nearest reference there, and
 *		all find a limit.
 *	2.	One walk lists the leaves whose boxes are within the widest of these
 *		limits of the group's box.
 *	3.	Each observation looks through those of the listed leaves whose boxes
 *		are within its limit.
 *
 * A group that is wide for the density of the references around it would list
 * many leaves that most of its observations do not need.  So when the list is
 * full, the group is halved.  A single observation walks alone, nearest nodes
 * first.
 *
 * Most observations take a microsecond.  But if an observation lies opposite
 * to many references, all of these are equally far to the last bits of a
 * chord, and it is compared with each.  So a piece looks at the clock as it
 * works, and may end after any observation.
 *
 *
 * Why the answer is right
 *
 * For each observation, the group keeps the smallest squared chord s seen so
 * far, and its leaf.  By geonn_chord_limit() no reference above L(s) can come
 * first, and every reference that is left out, by leaf or by box (cpu/walk.h),
 * is above L of a chord that some reference has.  In the leaf that holds s,
 * the positions within L(s) are the candidates.  If two leaves have positions
 * within L(s), their smallest chords are within the margin of each other: then
 * the observation is ambiguous, and a walk of its own decides it, by the
 * distance of each reference within L(s).  That is so rare that it costs
 * nothing, unless references coincide without being merged.
 *
 * Ambiguity is noticed as it arises.  This stays true throughout: either
 * `ambiguous` is set, or each leaf seen, except the one that holds s, has its
 * smallest chord above L(s).  Take a new leaf with a smallest chord of m.  If
 * L(m) < s, all other leaves are above L(m), and `ambiguous` is cleared; if m
 * > L(s), nothing changes; in between, `ambiguous` is set.
 */
#include "engine/cpu/nearest.h"

#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/cpu/curve.h"
#include "engine/cpu/walk.h"

#define GROUP INDEX_WIDTH

/* leaves that a group of several observations goes through */
#define LISTED_MAX 64

/* leaves to look through between two looks at the clock: some 20 us */
#define LEAVES_PER_LOOK 1024

struct group
{
	struct cpu_nearest_piece *piece;
	const struct cpu_index *index;
	uint32_t	count;
	uint32_t	filled;			/* count, rounded up to a number of lanes */

	/* filled up with copies of the last observation */
	double		x[GROUP];
	double		y[GROUP];
	double		z[GROUP];
	double		limit[GROUP];	/* no reference with a squared chord above this can come first */

	uint32_t	home[GROUP];	/* home leaves */
	double		smallest[GROUP];
	uint32_t	leaf[GROUP];	/* the leaf that has the smallest squared chord */
	uint32_t	candidates[GROUP];	/* bits of the positions of that leaf that are candidates */
	uint32_t	ambiguous;		/* bits of the observations that are ambiguous */
	uint32_t	found;			/* bits of the observations that have a candidate */

	uint32_t	listed;
	uint32_t	list[LISTED_MAX];
};

static inline bool
is_cancelled(const struct cpu_nearest_piece *piece)
{
	return atomic_load_explicit(piece->cancelled, memory_order_relaxed);
}

/*
 * Whether the piece should end, after so many more leaves have been looked
 * through.
 */
static inline bool
is_over(struct cpu_nearest_piece *piece, uint32_t leaves)
{
	piece->leaves += leaves;
	if (piece->leaves >= LEAVES_PER_LOOK)
	{
		piece->leaves = 0;
		piece->over = piece->over || is_cancelled(piece) || now_ms() >= piece->end_ms;
	}
	return piece->over;
}

static inline __attribute__((always_inline)) void
look_through(struct group *group, uint32_t leaf, uint32_t i)
{
	struct geonn_vector from = {group->x[i], group->y[i], group->z[i]};
	double		chords[INDEX_WIDTH];
	double		smallest = cpu_leaf_chords(group->index, leaf, from, chords);
	double		limit;

	if (smallest > group->limit[i])
		return;
	limit = geonn_chord_limit(smallest);
	if (limit < group->smallest[i])
		group->ambiguous &= ~(UINT32_C(1) << i);
	else
		group->ambiguous |= UINT32_C(1) << i;
	if (smallest < group->smallest[i])
	{
		group->smallest[i] = smallest;
		group->limit[i] = limit < group->limit[i] ? limit : group->limit[i];
		group->leaf[i] = leaf;
		group->candidates[i] = cpu_within(chords, limit);
		group->found |= UINT32_C(1) << i;
	}
}

/*
 * Bits of the group's observations that need a leaf: its box is within their
 * limits.
 */
static inline __attribute__((always_inline)) uint32_t
needed_by(const struct group *group, uint32_t leaf)
{
	const struct cpu_index *index = group->index;
	lanes		low[3];
	lanes		high[3];
	uint32_t	bits = 0;

	for (int axis = 0; axis < 3; axis++)
	{
		low[axis] = lanes_all(index->low[axis][leaf]);
		high[axis] = lanes_all(index->high[axis][leaf]);
	}
	for (uint32_t i = 0; i < group->filled; i += LANES)
	{
		lanes		x = lanes_load(group->x + i);
		lanes		y = lanes_load(group->y + i);
		lanes		z = lanes_load(group->z + i);
		lanes		bound = lanes_chord(lanes_gap(low[0], x, x, high[0]),
										lanes_gap(low[1], y, y, high[1]),
										lanes_gap(low[2], z, z, high[2]));

		bits |= lanes_within(bound, lanes_load(group->limit + i)) << i;
	}
	return bits & cpu_first_bits(group->count);
}

/*
 * List the leaves within the limit of the box, below some nodes of a level
 * that are children of one node.  False if the list is too short.
 */
static bool
list_leaves(struct group *group, const struct cpu_box *box, double limit, int level,
			uint32_t number, uint32_t count)
{
	const struct cpu_index *index = group->index;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + number, box, bounds);
	left = cpu_within(bounds, limit) & cpu_first_bits(count);
	for (; left != 0; left &= left - 1)
	{
		uint32_t	child = number + (uint32_t) __builtin_ctz(left);

		if (level > 0)
		{
			if (!list_leaves(group, box, limit, level - 1, child * INDEX_WIDTH,
							 cpu_children(index, level, child)))
				return false;
		}
		else if (group->listed < LISTED_MAX)
			group->list[group->listed++] = child;
		else
			return false;
	}
	return true;
}

/*
 * Walk for a single observation, nearest nodes first; the home leaf has been
 * seen already.
 */
static void
walk_alone(struct group *group, const struct cpu_box *box, int level, uint32_t number,
		   uint32_t count)
{
	const struct cpu_index *index = group->index;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + number, box, bounds);
	left = cpu_within(bounds, group->limit[0]) & cpu_first_bits(count);
	if (level == 0)
		group->piece->leaves += INDEX_WIDTH;
	while (left != 0 && !is_cancelled(group->piece))
	{
		uint32_t	nearest = (uint32_t) __builtin_ctz(left);
		uint32_t	child;

		for (uint32_t others = left & (left - 1); others != 0; others &= others - 1)
			if (bounds[__builtin_ctz(others)] < bounds[nearest])
				nearest = (uint32_t) __builtin_ctz(others);
		if (bounds[nearest] > group->limit[0])
			return;
		left &= ~(UINT32_C(1) << nearest);
		child = number + nearest;
		if (level > 0)
			walk_alone(group, box, level - 1, child * INDEX_WIDTH,
					   cpu_children(index, level, child));
		else if (child != group->home[0])
			look_through(group, child, 0);
	}
}

/*
 * The last leaf, from `first` on, that begins at or before the code on the
 * curve, or else `first`.  If that leaf is near `first`, few steps find it.
 */
static uint32_t
home_leaf(const struct cpu_index *index, uint64_t code, uint32_t first)
{
	const uint64_t *leaf_code = index->leaf_code;
	uint32_t	last = index->shape.nodes[0] - 1;
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

/*
 * Begin a group with one or more observations of a piece, the last one
 * repeated up to `filled`, and look through each one's home leaf.
 */
static void
begin_group(struct group *group, struct cpu_nearest_piece *piece, size_t first,
			uint32_t count, double widest)
{
	uint32_t	home = 0;
	uint32_t	i = 0;

	group->piece = piece;
	group->index = piece->index;
	group->count = count;
	group->filled = (count + LANES - 1) / LANES * LANES;
	group->ambiguous = 0;
	group->found = 0;
	group->listed = 0;
	do
	{
		size_t		at = first + (i < count ? i : count - 1);
		struct geonn_vector from = piece->from[piece->row[at]];

		group->x[i] = from.x;
		group->y[i] = from.y;
		group->z[i] = from.z;
		group->limit[i] = widest;
		group->smallest[i] = INFINITY;
		home = home_leaf(piece->index,
						 piece->key[at] << 2 * (CPU_CURVE_LEVELS - CPU_CURVE_KEY_LEVELS), home);
		group->home[i] = home;
	} while (++i < group->filled);
	for (i = 0; i < count && i < group->filled; i++)
		look_through(group, group->home[i], i);
}

static struct cpu_box
box_around(const struct group *group)
{
	const double *columns[3] = {group->x, group->y, group->z};
	struct cpu_box box;

	for (int axis = 0; axis < 3; axis++)
	{
		lanes		low = lanes_load(columns[axis]);
		lanes		high = low;

		for (uint32_t i = LANES; i < group->filled; i += LANES)
		{
			lanes		more = lanes_load(columns[axis] + i);

			low = lanes_smaller(low, more);
			high = lanes_larger(high, more);
		}
		box.low[axis] = lanes_smallest(low);
		box.high[axis] = -lanes_smallest(lanes_minus(lanes_all(0.0), high));
	}
	return box;
}

/* the first reference in the order (distance, place) so far */
struct decision
{
	double		distance;
	uint32_t	place;
	uint32_t	position;
};

static void
decide_positions(const struct cpu_nearest_piece *piece, uint32_t leaf, uint32_t bits,
				 struct geonn_vector from, struct decision *decision)
{
	const struct cpu_index *index = piece->index;

	for (; bits != 0; bits &= bits - 1)
	{
		uint32_t	position = leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits);
		struct geonn_vector there = {
			index->x[position], index->y[position], index->z[position]
		};
		double		distance = geonn_metric_distance_of(piece->metric, from, there);
		uint32_t	place;

		if (position >= index->shape.positions)
			return;				/* positions after the last one only fill the leaf up */
		place = index->place[index->start[position]];
		if (distance < decision->distance ||
			(distance == decision->distance && place < decision->place))
			*decision = (struct decision) {distance, place, position};
	}
}

/*
 * Decide an ambiguous observation by comparing all positions within the limit.
 */
static void
decide_alone(const struct cpu_nearest_piece *piece, struct geonn_vector from, double limit,
			 int level, uint32_t number, uint32_t count, struct decision *decision)
{
	const struct cpu_index *index = piece->index;
	struct cpu_box box = {{from.x, from.y, from.z}, {from.x, from.y, from.z}};
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + number, &box, bounds);
	left = cpu_within(bounds, limit) & cpu_first_bits(count);
	for (; left != 0 && !is_cancelled(piece); left &= left - 1)
	{
		uint32_t	child = number + (uint32_t) __builtin_ctz(left);

		if (level > 0)
			decide_alone(piece, from, limit, level - 1, child * INDEX_WIDTH,
						 cpu_children(index, level, child), decision);
		else
		{
			double		chords[INDEX_WIDTH];

			cpu_leaf_chords(index, child, from, chords);
			decide_positions(piece, child, cpu_within(chords, limit), from, decision);
		}
	}
}

/*
 * The position of the nearest reference of an observation that has candidates.
 */
static inline __attribute__((always_inline)) uint32_t
decide(const struct group *group, uint32_t i)
{
	const struct cpu_index *index = group->index;
	struct geonn_vector from = {group->x[i], group->y[i], group->z[i]};
	struct decision decision = {INFINITY, UINT32_MAX, 0};
	uint32_t	candidates = group->candidates[i];
	int			top = index->shape.levels - 1;

	if (group->ambiguous >> i & 1)
	{
		decide_alone(group->piece, from, group->limit[i], top, 0, index->shape.nodes[top],
					 &decision);
		group->piece->leaves += LEAVES_PER_LOOK;
	}
	else if ((candidates & (candidates - 1)) == 0)
		return group->leaf[i] * INDEX_WIDTH + (uint32_t) __builtin_ctz(candidates);
	else
		decide_positions(group->piece, group->leaf[i], candidates, from, &decision);
	return decision.position;
}

/*
 * Write the answers of a group to their rows; when time is over, the first
 * ones only.
 */
static void
answer_group(struct cpu_nearest_piece *piece, const struct group *group, size_t first)
{
	const struct cpu_index *index = group->index;
	uint32_t	count = group->count;
	uint32_t	place[GROUP];
	double		x[GROUP];
	double		y[GROUP];
	double		z[GROUP];
	double		distance[GROUP];

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	position;

		/* an ambiguous observation may take long */
		if (i > 0 && group->ambiguous >> i & 1 && is_over(piece, 0))
		{
			count = i;
			break;
		}
		position = group->found >> i & 1 ? decide(group, i) : 0;
		place[i] = index->place[index->start[position]];
		__builtin_prefetch(&piece->tags[place[i]]);
		x[i] = index->x[position];
		y[i] = index->y[position];
		z[i] = index->z[position];
	}
	for (uint32_t i = 0; i < count; i++)
	{
		struct geonn_vector from = {group->x[i], group->y[i], group->z[i]};
		struct geonn_vector there = {x[i], y[i], z[i]};

		distance[i] = geonn_metric_distance_of(piece->metric, from, there);
	}
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	row = piece->row[first + i];

		if (group->found >> i & 1 && distance[i] <= piece->max_distance)
		{
			piece->tag[row] = piece->tags[place[i]];
			piece->distance[row] = distance[i];
		}
		else
			piece->distance[row] = INFINITY;
	}
	piece->answered += count;
}

static void
search_group(struct cpu_nearest_piece *piece, size_t first, uint32_t count, double widest)
{
	int			top = piece->index->shape.levels - 1;
	uint32_t	top_nodes = piece->index->shape.nodes[top];
	struct cpu_box box;
	struct group group;

	begin_group(&group, piece, first, count, widest);
	box = box_around(&group);
	if (count == 1)
		walk_alone(&group, &box, top, 0, top_nodes);
	else
	{
		double		limit = 0.0;

		for (uint32_t i = 0; i < count; i++)
			limit = group.limit[i] > limit ? group.limit[i] : limit;
		if (!list_leaves(&group, &box, limit, top, 0, top_nodes))
		{
			search_group(piece, first, count / 2, widest);
			if (!is_over(piece, count))
				search_group(piece, first + count / 2, count - count / 2, widest);
			return;
		}
		for (uint32_t listed = 0; listed < group.listed; listed++)
		{
			uint32_t	leaf = group.list[listed];

			for (uint32_t left = needed_by(&group, leaf); left != 0; left &= left - 1)
			{
				uint32_t	i = (uint32_t) __builtin_ctz(left);

				if (group.home[i] != leaf)
					look_through(&group, leaf, i);
			}
		}
		piece->leaves += group.listed;
	}
	answer_group(piece, &group, first);
}

void
CPU_PATH_NAME(cpu_index_nearest) (struct cpu_nearest_piece *piece)
{
	double		widest = geonn_metric_radius_limit(piece->metric, piece->max_distance);

	piece->answered = 0;
	piece->over = false;
	piece->leaves = 0;
	for (size_t first = 0; first < piece->count; first += piece->group)
	{
		size_t		left = piece->count - first;

		if (is_cancelled(piece) || is_over(piece, piece->group))
			return;
		for (size_t ahead = piece->group; ahead < 2 * (size_t) piece->group && ahead < left; ahead++)
			__builtin_prefetch(&piece->from[piece->row[first + ahead]]);
		search_group(piece, first, left < piece->group ? (uint32_t) left : piece->group, widest);
	}
}
