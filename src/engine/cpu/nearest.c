/*
 * nearest.c
 *		Finds the nearest reference of many observations on the CPU, by the
 *		index.
 *
 * Observations that are neighbours on the curve go through the index together,
 * in bundles of up to 32.  With groups of references, they are neighbours in one
 * part of the index, the positions of their group, and all that follows is
 * about that part alone:
 *
 *	1.	Each observation looks through its home leaf, the leaf where the curve
 *		would put it.  Most observations find their nearest reference there, and
 *		all find a limit.
 *	2.	One walk lists the leaves whose boxes are within the widest of these
 *		limits of the bundle's box.
 *	3.	Each observation looks through those of the listed leaves whose boxes
 *		are within its limit.
 *
 * A bundle that is wide for the density of the references around it would list
 * many leaves that most of its observations do not need.  So when the list is
 * full, the bundle is halved.  A single observation walks alone, nearest nodes
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
 * For each observation, the bundle keeps the smallest squared chord s seen so
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

#define BUNDLE INDEX_WIDTH

/* leaves that a bundle of several observations goes through */
#define LISTED_MAX 64

/* leaves to look through between two looks at the clock: some 20 us */
#define LEAVES_PER_LOOK 1024

/* bits of an observation's key that have its code; the part's are above */
#define CODE_BITS CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS)
#define CODE_MASK ((UINT64_C(1) << CODE_BITS) - 1)

struct bundle
{
	struct cpu_nearest_piece *piece;
	const struct cpu_index *index;
	struct cpu_part part;
	uint32_t	count;
	uint32_t	filled;			/* count, rounded up to a number of lanes */

	/* filled up with copies of the last observation */
	double		x[BUNDLE];
	double		y[BUNDLE];
	double		z[BUNDLE];
	double		limit[BUNDLE];	/* no reference with a squared chord above this can come first */

	uint32_t	home[BUNDLE];	/* home leaves */
	double		smallest[BUNDLE];
	uint32_t	leaf[BUNDLE];	/* the leaf that has the smallest squared chord */
	uint32_t	candidates[BUNDLE];	/* bits of the positions of that leaf that are candidates */
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

/*
 * Leave positions of other parts out of a leaf's chords.  Returns the smallest
 * of the others.
 */
static double
mask_chords(double *chords, uint32_t bits)
{
	double		smallest = INFINITY;

	for (int i = 0; i < INDEX_WIDTH; i++)
	{
		if ((bits >> i & 1) == 0)
			chords[i] = INFINITY;
		smallest = chords[i] < smallest ? chords[i] : smallest;
	}
	return smallest;
}

static inline __attribute__((always_inline)) void
look_through(struct bundle *bundle, uint32_t leaf, uint32_t i)
{
	struct geonn_vector from = {bundle->x[i], bundle->y[i], bundle->z[i]};
	double		chords[INDEX_WIDTH];
	double		smallest = cpu_leaf_chords(bundle->index, leaf, from, chords);
	uint32_t	bits = cpu_part_bits(bundle->part, leaf);
	double		limit;

	if (bits != UINT32_MAX)
		smallest = mask_chords(chords, bits);
	if (smallest > bundle->limit[i])
		return;
	limit = geonn_chord_limit(smallest);
	if (limit < bundle->smallest[i])
		bundle->ambiguous &= ~(UINT32_C(1) << i);
	else
		bundle->ambiguous |= UINT32_C(1) << i;
	if (smallest < bundle->smallest[i])
	{
		bundle->smallest[i] = smallest;
		bundle->limit[i] = limit < bundle->limit[i] ? limit : bundle->limit[i];
		bundle->leaf[i] = leaf;
		bundle->candidates[i] = cpu_within(chords, limit);
		bundle->found |= UINT32_C(1) << i;
	}
}

/*
 * Bits of the bundle's observations that need a leaf: its box is within their
 * limits.
 */
static inline __attribute__((always_inline)) uint32_t
needed_by(const struct bundle *bundle, uint32_t leaf)
{
	const struct cpu_index *index = bundle->index;
	lanes		low[3];
	lanes		high[3];
	uint32_t	bits = 0;

	for (int axis = 0; axis < 3; axis++)
	{
		low[axis] = lanes_all(index->low[axis][leaf]);
		high[axis] = lanes_all(index->high[axis][leaf]);
	}
	for (uint32_t i = 0; i < bundle->filled; i += LANES)
	{
		lanes		x = lanes_load(bundle->x + i);
		lanes		y = lanes_load(bundle->y + i);
		lanes		z = lanes_load(bundle->z + i);
		lanes		bound = lanes_chord(lanes_gap(low[0], x, x, high[0]),
										lanes_gap(low[1], y, y, high[1]),
										lanes_gap(low[2], z, z, high[2]));

		bits |= lanes_within(bound, lanes_load(bundle->limit + i)) << i;
	}
	return bits & cpu_first_bits(bundle->count);
}

/*
 * List the leaves within the limit of the box, below some nodes of a level.
 * False if the list is too short.
 */
static bool
list_leaves(struct bundle *bundle, const struct cpu_box *box, double limit, int level,
			struct cpu_nodes nodes)
{
	const struct cpu_index *index = bundle->index;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + nodes.first, box, bounds);
	left = cpu_within(bounds, limit) & cpu_first_bits(nodes.count);
	for (; left != 0; left &= left - 1)
	{
		uint32_t	child = nodes.first + (uint32_t) __builtin_ctz(left);

		if (level > 0)
		{
			if (!list_leaves(bundle, box, limit, level - 1,
							 cpu_part_children(bundle->part, level, child)))
				return false;
		}
		else if (bundle->listed < LISTED_MAX)
			bundle->list[bundle->listed++] = child;
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
walk_alone(struct bundle *bundle, const struct cpu_box *box, int level, struct cpu_nodes nodes)
{
	const struct cpu_index *index = bundle->index;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + nodes.first, box, bounds);
	left = cpu_within(bounds, bundle->limit[0]) & cpu_first_bits(nodes.count);
	if (level == 0)
		bundle->piece->leaves += INDEX_WIDTH;
	while (left != 0 && !is_cancelled(bundle->piece))
	{
		uint32_t	nearest = (uint32_t) __builtin_ctz(left);
		uint32_t	child;

		for (uint32_t others = left & (left - 1); others != 0; others &= others - 1)
			if (bounds[__builtin_ctz(others)] < bounds[nearest])
				nearest = (uint32_t) __builtin_ctz(others);
		if (bounds[nearest] > bundle->limit[0])
			return;
		left &= ~(UINT32_C(1) << nearest);
		child = nodes.first + nearest;
		if (level > 0)
			walk_alone(bundle, box, level - 1, cpu_part_children(bundle->part, level, child));
		else if (child != bundle->home[0])
			look_through(bundle, child, 0);
	}
}

/*
 * The last leaf, from `first` to `last`, that begins at or before the code on
 * the curve, or else `first`.  If that leaf is near `first`, few steps find it.
 */
static uint32_t
home_leaf(const struct cpu_index *index, uint64_t code, uint32_t first, uint32_t last)
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

/*
 * Begin a bundle with one or more observations of a piece, the last one
 * repeated up to `filled`, and look through each one's home leaf.
 */
static void
begin_bundle(struct bundle *bundle, struct cpu_nearest_piece *piece, struct cpu_part part,
			 size_t first, uint32_t count, double widest)
{
	uint32_t	home = cpu_node_above(part.first, 0);
	uint32_t	last = cpu_node_above(part.end - 1, 0);
	uint32_t	i = 0;

	bundle->piece = piece;
	bundle->index = piece->index;
	bundle->part = part;
	bundle->count = count;
	bundle->filled = (count + LANES - 1) / LANES * LANES;
	bundle->ambiguous = 0;
	bundle->found = 0;
	bundle->listed = 0;
	do
	{
		size_t		at = first + (i < count ? i : count - 1);
		struct geonn_vector from = piece->from[piece->row[at]];

		bundle->x[i] = from.x;
		bundle->y[i] = from.y;
		bundle->z[i] = from.z;
		bundle->limit[i] = widest;
		bundle->smallest[i] = INFINITY;
		home = home_leaf(piece->index, (piece->key[at] & CODE_MASK) <<
						 2 * (CPU_CURVE_LEVELS - CPU_CURVE_KEY_LEVELS), home, last);
		bundle->home[i] = home;
	} while (++i < bundle->filled);
	for (i = 0; i < count && i < bundle->filled; i++)
		look_through(bundle, bundle->home[i], i);
}

static struct cpu_box
box_around(const struct bundle *bundle)
{
	const double *columns[3] = {bundle->x, bundle->y, bundle->z};
	struct cpu_box box;

	for (int axis = 0; axis < 3; axis++)
	{
		lanes		low = lanes_load(columns[axis]);
		lanes		high = low;

		for (uint32_t i = LANES; i < bundle->filled; i += LANES)
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
decide_alone(const struct bundle *bundle, struct geonn_vector from, double limit,
			 int level, struct cpu_nodes nodes, struct decision *decision)
{
	const struct cpu_nearest_piece *piece = bundle->piece;
	const struct cpu_index *index = piece->index;
	struct cpu_box box = {{from.x, from.y, from.z}, {from.x, from.y, from.z}};
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + nodes.first, &box, bounds);
	left = cpu_within(bounds, limit) & cpu_first_bits(nodes.count);
	for (; left != 0 && !is_cancelled(piece); left &= left - 1)
	{
		uint32_t	child = nodes.first + (uint32_t) __builtin_ctz(left);

		if (level > 0)
			decide_alone(bundle, from, limit, level - 1,
						 cpu_part_children(bundle->part, level, child), decision);
		else
		{
			double		chords[INDEX_WIDTH];

			cpu_leaf_chords(index, child, from, chords);
			decide_positions(piece, child,
							 cpu_within(chords, limit) & cpu_part_bits(bundle->part, child),
							 from, decision);
		}
	}
}

/*
 * The position of the nearest reference of an observation that has candidates.
 */
static inline __attribute__((always_inline)) uint32_t
decide(const struct bundle *bundle, uint32_t i)
{
	struct geonn_vector from = {bundle->x[i], bundle->y[i], bundle->z[i]};
	struct decision decision = {INFINITY, UINT32_MAX, 0};
	uint32_t	candidates = bundle->candidates[i];

	if (bundle->ambiguous >> i & 1)
	{
		int			level;
		struct cpu_nodes top = cpu_part_top(bundle->part, &level);

		decide_alone(bundle, from, bundle->limit[i], level, top, &decision);
		bundle->piece->leaves += LEAVES_PER_LOOK;
	}
	else if ((candidates & (candidates - 1)) == 0)
		return bundle->leaf[i] * INDEX_WIDTH + (uint32_t) __builtin_ctz(candidates);
	else
		decide_positions(bundle->piece, bundle->leaf[i], candidates, from, &decision);
	return decision.position;
}

/*
 * Write the answers of a bundle to their rows; when time is over, the first
 * ones only.
 */
static void
answer_bundle(struct cpu_nearest_piece *piece, const struct bundle *bundle, size_t first)
{
	const struct cpu_index *index = bundle->index;
	uint32_t	count = bundle->count;
	uint32_t	place[BUNDLE];
	double		x[BUNDLE];
	double		y[BUNDLE];
	double		z[BUNDLE];
	double		distance[BUNDLE];

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	position;

		/* an ambiguous observation may take long */
		if (i > 0 && bundle->ambiguous >> i & 1 && is_over(piece, 0))
		{
			count = i;
			break;
		}
		position = bundle->found >> i & 1 ? decide(bundle, i) : 0;
		place[i] = index->place[index->start[position]];
		__builtin_prefetch(&piece->tags[place[i]]);
		x[i] = index->x[position];
		y[i] = index->y[position];
		z[i] = index->z[position];
	}
	for (uint32_t i = 0; i < count; i++)
	{
		struct geonn_vector from = {bundle->x[i], bundle->y[i], bundle->z[i]};
		struct geonn_vector there = {x[i], y[i], z[i]};

		distance[i] = geonn_metric_distance_of(piece->metric, from, there);
	}
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	row = piece->row[first + i];

		if (bundle->found >> i & 1 && distance[i] <= piece->max_distance)
		{
			piece->tag[row] = piece->tags[place[i]];
			piece->distance[row] = distance[i];
		}
		else
			piece->distance[row] = INFINITY;
	}
	piece->answered += count;
}

/*
 * Answer observations of a group that no reference has.
 */
static void
answer_none(struct cpu_nearest_piece *piece, size_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		piece->distance[piece->row[first + i]] = INFINITY;
	piece->answered += count;
}

static void
search_bundle(struct cpu_nearest_piece *piece, struct cpu_part part, size_t first,
			  uint32_t count, double widest)
{
	int			level;
	struct cpu_nodes top = cpu_part_top(part, &level);
	struct cpu_box box;
	struct bundle bundle;

	begin_bundle(&bundle, piece, part, first, count, widest);
	box = box_around(&bundle);
	if (count == 1)
		walk_alone(&bundle, &box, level, top);
	else
	{
		double		limit = 0.0;

		for (uint32_t i = 0; i < count; i++)
			limit = bundle.limit[i] > limit ? bundle.limit[i] : limit;
		if (!list_leaves(&bundle, &box, limit, level, top))
		{
			search_bundle(piece, part, first, count / 2, widest);
			if (!is_over(piece, count))
				search_bundle(piece, part, first + count / 2, count - count / 2, widest);
			return;
		}
		for (uint32_t listed = 0; listed < bundle.listed; listed++)
		{
			uint32_t	leaf = bundle.list[listed];

			for (uint32_t left = needed_by(&bundle, leaf); left != 0; left &= left - 1)
			{
				uint32_t	i = (uint32_t) __builtin_ctz(left);

				if (bundle.home[i] != leaf)
					look_through(&bundle, leaf, i);
			}
		}
		piece->leaves += bundle.listed;
	}
	answer_bundle(piece, &bundle, first);
}

/*
 * How many observations from `first` on go together: up to a bundle, of one
 * part of the index, which comes back, too.
 */
static uint32_t
count_bundle(const struct cpu_nearest_piece *piece, size_t first, uint32_t *part)
{
	const uint64_t *key = piece->key + first;
	size_t		left = piece->count - first;
	uint32_t	count = left < piece->bundle ? (uint32_t) left : piece->bundle;

	*part = (uint32_t) (key[0] >> CODE_BITS);
	while (key[count - 1] >> CODE_BITS != *part)
		count--;
	return count;
}

void
CPU_PATH_NAME(cpu_index_nearest) (struct cpu_nearest_piece *piece)
{
	double		widest = geonn_metric_radius_limit(piece->metric, piece->max_distance);

	piece->answered = 0;
	piece->over = false;
	piece->leaves = 0;
	for (size_t first = 0, count; first < piece->count; first += count)
	{
		uint32_t	part;

		count = count_bundle(piece, first, &part);
		if (is_cancelled(piece) || is_over(piece, (uint32_t) count))
			return;
		for (size_t ahead = first + count; ahead < first + 2 * count && ahead < piece->count; ahead++)
			__builtin_prefetch(&piece->from[piece->row[ahead]]);
		if (part == piece->index->parts)
			answer_none(piece, first, (uint32_t) count);
		else
			search_bundle(piece, cpu_index_part(piece->index, part), first, (uint32_t) count,
						  widest);
	}
}
