/*
 * nearest.c
 *		Finds the nearest reference of many observations on the CPU, by the
 *		index.
 *
 * Observations that are neighbours on the curve go through the index together,
 * in bundles of up to 32.  With groups of references, they are neighbours in one
 * part of the index, the positions of their group, and all that follows is
 * about that part alone.  With windows, an observation has a task for each part
 * that it reaches, and `observation` below means a task:
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
 * With parties, only positions of other parties than the observation's count.
 * With windows, only positions whose windows overlap the observation's count,
 * and nodes that these can be below.  Parts where all references have the same
 * windows need no such test, unless they have parties: parts are only reached where windows overlap.  An
 * observation whose home leaf has no candidate has no limit; it walks alone
 * before the others walk, so that it does not widen their walk.  An observation
 * that goes through all parts of its group walks alone, too.
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
#include "engine/cpu/walk/nearest_bundle.h"

#include "common/metric.h"
#include "engine/base/clock.h"
#include "engine/cpu/base/curve.h"

/* for functions that only searches with windows, parties or radiuses call: inlined, they would lengthen the
 * loops of others */
#define NOT_INLINE __attribute__((noinline))

/* how many leaves are searched between two looks at the clock: some 20 us */
#define LEAVES_PER_LOOK 1024

/* how many of a key's bits are the observation's code; the bits above them are the part */
#define CODE_BITS CPU_CURVE_BITS(CPU_CURVE_KEY_LEVELS)

static inline bool
is_cancelled(const struct cpu_nearest_piece *piece)
{
	return atomic_load_explicit(piece->cancelled, memory_order_relaxed);
}

/*
 * Whether the piece should end; `leaves` more have been searched since the last
 * call.
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
 * Set a leaf's chords to infinity, except those whose bits are set.  Returns
 * the smallest.
 */
static NOT_INLINE double
keep_chords(double *chords, uint32_t bits)
{
	lanes		smallest = lanes_all(INFINITY);

#pragma GCC unroll 16
	for (int i = 0; i < INDEX_WIDTH; i += LANES)
	{
		lanes		kept = lanes_keep(lanes_load(chords + i), bits >> i);

		lanes_store(chords + i, kept);
		smallest = lanes_smaller(kept, smallest);
	}
	return lanes_smallest(smallest);
}

/*
 * A bit for each position of a leaf, set if it is a candidate of observation i.
 */
static inline __attribute__((always_inline)) uint32_t
candidate_bits(const struct cpu_nearest_bundle *bundle, uint32_t leaf, uint32_t i)
{
	uint32_t	bits = cpu_part_bits(bundle->part, leaf);

	if (bundle->compares)
		bits &= CPU_PATH_NAME(cpu_nearest_compared) (bundle, leaf, i);
	return bits;
}

static inline __attribute__((always_inline)) void
look_through(struct cpu_nearest_bundle *bundle, uint32_t leaf, uint32_t i)
{
	struct geonn_vector from = {bundle->x[i], bundle->y[i], bundle->z[i]};
	double		chords[INDEX_WIDTH];
	double		smallest = cpu_leaf_chords(bundle->index, leaf, from, chords);
	uint32_t	bits;
	double		limit;

	if (smallest > bundle->limit[i])
		return;
	bits = candidate_bits(bundle, leaf, i);
	if (bits != UINT32_MAX)
	{
		if (bits == 0)
			return;
		smallest = keep_chords(chords, bits);
		if (smallest > bundle->limit[i])
			return;
	}
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
 * A bit for each observation, set if it needs a leaf: the leaf's box is within
 * its limit.
 */
static inline __attribute__((always_inline)) uint32_t
needed_by(const struct cpu_nearest_bundle *bundle, uint32_t leaf)
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
	bits &= cpu_first_bits(bundle->count) & ~bundle->settled;
	return bits != 0 && bundle->compares ? bits & CPU_PATH_NAME(cpu_nearest_reached_by) (bundle, leaf) : bits;
}

/*
 * List the leaves that are within the box's limit, below some nodes of a
 * level.  False if the list is full.
 */
static bool
list_leaves(struct cpu_nearest_bundle *bundle, const struct cpu_box *box, double limit, int level,
			struct cpu_nodes nodes)
{
	const struct cpu_index *index = bundle->index;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + nodes.first, box, bounds);
	left = cpu_within(bounds, limit) & cpu_first_bits(nodes.count);
	if (left != 0 && bundle->compares)
		left &= CPU_PATH_NAME(cpu_nearest_reached) (bundle, index->shape.first[level] + nodes.first);
	for (; left != 0; left &= left - 1)
	{
		uint32_t	child = nodes.first + (uint32_t) __builtin_ctz(left);

		if (level > 0)
		{
			if (!list_leaves(bundle, box, limit, level - 1,
							 cpu_part_children(bundle->part, level, child)))
				return false;
		}
		else if (bundle->listed < CPU_NEAREST_LISTED_MAX)
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
walk_alone(struct cpu_nearest_bundle *bundle, uint32_t i, const struct cpu_box *box, int level,
		   struct cpu_nodes nodes)
{
	const struct cpu_index *index = bundle->index;
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + nodes.first, box, bounds);
	left = cpu_within(bounds, bundle->limit[i]) & cpu_first_bits(nodes.count);
	if (left != 0 && bundle->compares)
		left &= CPU_PATH_NAME(cpu_nearest_reached_alone) (bundle, index->shape.first[level] + nodes.first, i);
	if (level == 0)
		bundle->piece->leaves += INDEX_WIDTH;
	while (left != 0 && !is_cancelled(bundle->piece))
	{
		uint32_t	nearest = cpu_nearest_of(bounds, left);
		uint32_t	child;

		if (bounds[nearest] > bundle->limit[i])
			return;
		left &= ~(UINT32_C(1) << nearest);
		child = nodes.first + nearest;
		if (level > 0)
			walk_alone(bundle, i, box, level - 1, cpu_part_children(bundle->part, level, child));
		else if (child != bundle->home[i])
			look_through(bundle, child, i);
	}
}

/*
 * Begin a bundle with one or more tasks of a piece, the last one repeated up to
 * `filled`, and look through each one's home leaf.
 */
static void
begin_bundle(struct cpu_nearest_bundle *bundle, struct cpu_nearest_piece *piece, struct cpu_part part,
			 bool compares, size_t first, uint32_t count, double widest)
{
	uint32_t	home = cpu_node_above(part.first, 0);
	uint32_t	last = cpu_node_above(part.end - 1, 0);
	uint32_t	i = 0;

	bundle->piece = piece;
	bundle->index = piece->index;
	bundle->part = part;
	bundle->count = count;
	bundle->filled = (count + LANES - 1) / LANES * LANES;
	bundle->compares = compares;
	bundle->ambiguous = 0;
	bundle->settled = 0;
	bundle->found = 0;
	bundle->listed = 0;
	do
	{
		size_t		at = first + (i < count ? i : count - 1);
		struct geonn_vector from = piece->from[cpu_nearest_row(piece, at)];

		bundle->x[i] = from.x;
		bundle->y[i] = from.y;
		bundle->z[i] = from.z;
		bundle->limit[i] = widest;
		bundle->smallest[i] = INFINITY;
		home = cpu_home_leaf(piece->index, cpu_nearest_code(piece->key[at]), home, last);
		bundle->home[i] = home;
	} while (++i < bundle->filled);
	if (compares || piece->columns->radius != NULL)
		CPU_PATH_NAME(cpu_nearest_read) (bundle, first);
	for (i = 0; i < count && i < bundle->filled; i++)
		look_through(bundle, bundle->home[i], i);
}

static struct cpu_box
box_around(const struct cpu_nearest_bundle *bundle)
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

static void
decide_positions(const struct cpu_nearest_piece *piece, uint32_t leaf, uint32_t bits,
				 struct geonn_vector from, struct cpu_decision *decision)
{
	for (; bits != 0; bits &= bits - 1)
		cpu_decide(piece->index, piece->metric, from,
				   leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits), decision);
}

/*
 * Decide an ambiguous observation by comparing all positions within the limit.
 */
static void
decide_alone(const struct cpu_nearest_bundle *bundle, uint32_t i, struct geonn_vector from, int level,
			 struct cpu_nodes nodes, struct cpu_decision *decision)
{
	double		limit = bundle->limit[i];
	const struct cpu_nearest_piece *piece = bundle->piece;
	const struct cpu_index *index = piece->index;
	struct cpu_box box = {{from.x, from.y, from.z}, {from.x, from.y, from.z}};
	double		bounds[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, index->shape.first[level] + nodes.first, &box, bounds);
	left = cpu_within(bounds, limit) & cpu_first_bits(nodes.count);
	if (left != 0 && bundle->compares)
		left &= CPU_PATH_NAME(cpu_nearest_reached_alone) (bundle, index->shape.first[level] + nodes.first, i);
	for (; left != 0 && !is_cancelled(piece); left &= left - 1)
	{
		uint32_t	child = nodes.first + (uint32_t) __builtin_ctz(left);

		if (level > 0)
			decide_alone(bundle, i, from, level - 1,
						 cpu_part_children(bundle->part, level, child), decision);
		else
		{
			double		chords[INDEX_WIDTH];

			cpu_leaf_chords(index, child, from, chords);
			decide_positions(piece, child,
							 cpu_within(chords, limit) & candidate_bits(bundle, child, i),
							 from, decision);
		}
	}
}

/*
 * Return the position of the nearest reference of an observation that has
 * candidates.
 */
static inline __attribute__((always_inline)) uint32_t
decide(const struct cpu_nearest_bundle *bundle, uint32_t i)
{
	struct geonn_vector from = {bundle->x[i], bundle->y[i], bundle->z[i]};
	struct cpu_decision decision = {{INFINITY, UINT32_MAX}, 0};
	uint32_t	candidates = bundle->candidates[i];

	if (bundle->ambiguous >> i & 1)
	{
		int			level;
		struct cpu_nodes top = cpu_part_top(bundle->part, &level);

		decide_alone(bundle, i, from, level, top, &decision);
		bundle->piece->leaves += LEAVES_PER_LOOK;
	}
	else if ((candidates & (candidates - 1)) == 0)
		return bundle->leaf[i] * INDEX_WIDTH + (uint32_t) __builtin_ctz(candidates);
	else
		decide_positions(bundle->piece, bundle->leaf[i], candidates, from, &decision);
	return decision.position;
}

/*
 * Write the answers of a bundle's observations; if time runs out, only those of
 * the first ones.
 */
static inline __attribute__((always_inline)) void
answer_bundle(struct cpu_nearest_piece *piece, const struct cpu_nearest_bundle *bundle, size_t first)
{
	const struct cpu_index *index = bundle->index;
	uint32_t	count = bundle->count;
	uint32_t	reference[CPU_NEAREST_BUNDLE];	/* in the index's order */
	double		x[CPU_NEAREST_BUNDLE];
	double		y[CPU_NEAREST_BUNDLE];
	double		z[CPU_NEAREST_BUNDLE];
	double		distance[CPU_NEAREST_BUNDLE];
	const uint32_t *task = piece->task + first;
	const double *radius = piece->columns->radius != NULL ? bundle->radius : NULL;
	bool		wants_tags = piece->row == NULL;

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
		reference[i] = index->start[position];
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
		double		most = radius != NULL ? radius[i] : piece->max_distance;

		if (bundle->found >> i & 1 && distance[i] <= most)
		{
			piece->tag[task[i]] = wants_tags ? index->tag[reference[i]] : (int64_t) index->place[reference[i]];
			piece->distance[task[i]] = distance[i];
		}
		else
			piece->distance[task[i]] = INFINITY;
	}
	piece->answered += count;
}

/*
 * Answer observations that have no candidate.
 */
static void
answer_none(struct cpu_nearest_piece *piece, size_t first, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		piece->distance[piece->task[first + i]] = INFINITY;
	piece->answered += count;
}

/*
 * Let the observations that have no candidate yet walk alone.  Returns the
 * widest limit of the others.
 */
static NOT_INLINE double
settle(struct cpu_nearest_bundle *bundle, int level, struct cpu_nodes top)
{
	double		limit = -1.0;

	for (uint32_t i = 0; i < bundle->count; i++)
	{
		struct cpu_box box = {
			{bundle->x[i], bundle->y[i], bundle->z[i]}, {bundle->x[i], bundle->y[i], bundle->z[i]}
		};

		if ((bundle->found >> i & 1) == 0)
		{
			walk_alone(bundle, i, &box, level, top);
			bundle->settled |= UINT32_C(1) << i;
		}
		else
			limit = bundle->limit[i] > limit ? bundle->limit[i] : limit;
	}
	return limit;
}

static double
widest_limit(const struct cpu_nearest_bundle *bundle)
{
	double		limit = 0.0;

	for (uint32_t i = 0; i < bundle->count; i++)
		limit = bundle->limit[i] > limit ? bundle->limit[i] : limit;
	return limit;
}

static void
search_bundle(struct cpu_nearest_piece *piece, struct cpu_part part, bool compares,
			  size_t first, uint32_t count, double widest)
{
	int			level;
	struct cpu_nodes top = cpu_part_top(part, &level);
	struct cpu_box box;
	struct cpu_nearest_bundle bundle;

	begin_bundle(&bundle, piece, part, compares, first, count, widest);
	box = box_around(&bundle);
	if (count == 1)
		walk_alone(&bundle, 0, &box, level, top);
	else
	{
		double		limit = compares ? settle(&bundle, level, top) : widest_limit(&bundle);

		if (!list_leaves(&bundle, &box, limit, level, top))
		{
			search_bundle(piece, part, compares, first, count / 2, widest);
			if (!is_over(piece, count))
				search_bundle(piece, part, compares, first + count / 2, count - count / 2, widest);
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
 * How many tasks from `first` on form a bundle: piece->bundle at most, all of
 * one part of the index, whose number *part becomes.
 */
static uint32_t
count_bundle(const struct cpu_nearest_piece *piece, size_t first, uint32_t *part)
{
	const uint64_t *key = piece->key + first;
	size_t		left = piece->count - first;
	uint32_t	count = left < piece->bundle ? (uint32_t) left : piece->bundle;

	*part = (uint32_t) (key[0] >> CODE_BITS);
	if (*part > piece->index->parts)
		return 1;
	while (key[count - 1] >> CODE_BITS != *part)
		count--;
	return count;
}

void
CPU_PATH_NAME(cpu_index_nearest) (struct cpu_nearest_piece *piece)
{
	const struct cpu_index *index = piece->index;
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
			__builtin_prefetch(&piece->from[cpu_nearest_row(piece, ahead)]);
		if (part == index->parts)
			answer_none(piece, first, (uint32_t) count);
		else if (part > index->parts)
			search_bundle(piece, cpu_index_group_part(index, part - index->parts - 1), true, first, 1,
						  widest);
		else
			search_bundle(piece, cpu_index_part(index, part),
						  index->party[0] != NULL ||
						  (index->slabs != NULL && !index->slabs->is_uniform[part]), first,
						  (uint32_t) count, widest);
	}
}
