/*
 * nearest.c
 *		Finds the nearest reference of observations on the CPU, by the index.
 *
 * This is the step for one neighbour of neighbours.c, where each observation has
 * a limit at once and few leaves are within it.
 * Observations that are neighbours on the curve go through the index together,
 * in bundles of up to 32.  With groups of references, they are neighbours in one
 * part of the index, the positions of their group, and all that follows is
 * about that part alone.  With windows, an observation has a task for each part
 * that it reaches (turn_tasks.h), and `observation` below means a task:
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
 * full, the bundle is halved.
 *
 * With parties, only positions of other parties than the observation's count.
 * With windows, only positions whose windows overlap the observation's count,
 * and nodes that these can be below.  Parts where all references have the same
 * windows need no such test, unless they have parties: parts are only reached where windows overlap.
 *
 * Some observations walk alone, afterwards (walk_alone.c): those whose home leaf has no candidate because of
 * windows or parties, which have no limit and would widen the others' walk; ambiguous ones; and those that list too
 * many leaves by themselves.
 *
 *
 * Why the answer is right
 *
 * For each observation, the bundle keeps the smallest squared chord s seen so
 * far, and its leaf.  By geonn_chord_limit() no reference above L(s) can come
 * first, and every reference that is left out, by leaf or by box (cpu/walk/walk.h),
 * is above L of a chord that some reference has.  In the leaf that holds s,
 * the positions within L(s) are the candidates.  If two leaves have positions
 * within L(s), their smallest chords are within the margin of each other: then
 * the observation is ambiguous, and the walk of its own decides it.  That is so rare that it costs
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
#include "engine/cpu/base/curve.h"

/* for functions that only searches with windows, parties or radiuses call: inlined, they would lengthen the
 * loops of others */
#define NOT_INLINE __attribute__((noinline))

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
	bits &= cpu_first_bits(bundle->count) & ~bundle->alone;
	return bits != 0 && bundle->compares ? CPU_PATH_NAME(cpu_nearest_reached_by) (bundle, leaf, bits) : bits;
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
 * Begin a bundle with one or more tasks of a piece, the last one repeated up to
 * `filled`, and look through each one's home leaf.
 */
static void
begin_bundle(struct cpu_nearest_bundle *bundle, const struct cpu_neighbours_piece *piece, struct cpu_part part,
			 bool compares, uint32_t first, uint32_t count, double widest)
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
	bundle->alone = 0;
	bundle->found = 0;
	bundle->listed = 0;
	do
	{
		uint32_t	at = first + (i < count ? i : count - 1);
		struct geonn_vector from = piece->observation[cpu_nearest_row(piece, at)].vector;

		bundle->x[i] = from.x;
		bundle->y[i] = from.y;
		bundle->z[i] = from.z;
		bundle->limit[i] = widest;
		bundle->smallest[i] = INFINITY;
		home = cpu_home_leaf(piece->index, cpu_nearest_code(piece->key[at]), home, last);
		bundle->home[i] = home;
	} while (++i < bundle->filled);
	if (compares || piece->search->columns.radius != NULL)
		CPU_PATH_NAME(cpu_nearest_read) (bundle, first);
	for (i = 0; i < count && i < bundle->filled; i++)
		look_through(bundle, bundle->home[i], i);
	if (compares)
		bundle->alone = cpu_first_bits(count) & ~bundle->found;
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

/*
 * Return the position of the nearest reference of an observation that has
 * candidates and is not ambiguous.
 */
static inline __attribute__((always_inline)) uint32_t
decide(const struct cpu_nearest_bundle *bundle, uint32_t i)
{
	struct geonn_vector from = {bundle->x[i], bundle->y[i], bundle->z[i]};
	struct cpu_decision decision = {{INFINITY, UINT32_MAX, 0}, 0};
	uint32_t	first = bundle->leaf[i] * INDEX_WIDTH;
	uint32_t	candidates = bundle->candidates[i];

	if ((candidates & (candidates - 1)) == 0)
		return first + (uint32_t) __builtin_ctz(candidates);
	for (; candidates != 0; candidates &= candidates - 1)
		cpu_decide(bundle->index, bundle->piece->search->dataset->metric, from,
				   first + (uint32_t) __builtin_ctz(candidates), &decision);
	return decision.position;
}

/* Answer a task: with a reference of the index, or with none if the distance is infinite. */
static inline void
keep(const struct cpu_neighbours_piece *piece, uint32_t task, uint32_t reference, double distance)
{
	if (piece->best != NULL)
	{
		piece->best[task] = (struct candidate) {distance, piece->index->place[reference], 0};
		return;
	}
	piece->counts[task] = distance < INFINITY;
	if (distance < INFINITY)
	{
		piece->tag[task] = piece->index->tag[reference];
		piece->distance[task] = distance;
	}
}

/*
 * Answer a bundle's observations, except those that walk alone.
 */
static inline __attribute__((always_inline)) void
answer_bundle(const struct cpu_nearest_bundle *bundle, uint32_t first)
{
	const struct cpu_neighbours_piece *piece = bundle->piece;
	const struct cpu_index *index = bundle->index;
	uint32_t	count = bundle->count;
	uint32_t	decided = bundle->found & ~bundle->alone;
	uint32_t	reference[CPU_NEAREST_BUNDLE];	/* in the index's order */
	double		x[CPU_NEAREST_BUNDLE];
	double		y[CPU_NEAREST_BUNDLE];
	double		z[CPU_NEAREST_BUNDLE];
	double		distance[CPU_NEAREST_BUNDLE];
	bool		has_radius = piece->search->columns.radius != NULL;

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	position = decided >> i & 1 ? decide(bundle, i) : 0;

		reference[i] = index->start[position];
		x[i] = index->x[position];
		y[i] = index->y[position];
		z[i] = index->z[position];
	}
	for (uint32_t i = 0; i < count; i++)
	{
		struct geonn_vector from = {bundle->x[i], bundle->y[i], bundle->z[i]};
		struct geonn_vector there = {x[i], y[i], z[i]};

		distance[i] = geonn_metric_distance_of(piece->search->dataset->metric, from, there);
	}
	for (uint32_t i = 0; i < count; i++)
	{
		bool		has_one = (decided >> i & 1) != 0 && distance[i] <= piece->search->question.max_distance &&
			(!has_radius || distance[i] <= bundle->conditions[i].radius);

		if ((bundle->alone >> i & 1) == 0)
			keep(piece, piece->row[first + i], reference[i], has_one ? distance[i] : INFINITY);
	}
}

/* The widest limit of the observations that do not walk alone; -1 if all do. */
static double
widest_limit(const struct cpu_nearest_bundle *bundle)
{
	double		limit = -1.0;

	for (uint32_t i = 0; i < bundle->count; i++)
		if ((bundle->alone >> i & 1) == 0 && bundle->limit[i] > limit)
			limit = bundle->limit[i];
	return limit;
}

/*
 * Answer a bundle.  Returns bits of the observations that have to walk alone.
 */
static uint32_t
search_bundle(const struct cpu_neighbours_piece *piece, struct cpu_part part, bool compares,
			  uint32_t first, uint32_t count, double widest)
{
	int			level;
	struct cpu_nodes top = cpu_part_top(part, &level);
	struct cpu_box box;
	struct cpu_nearest_bundle bundle;

	begin_bundle(&bundle, piece, part, compares, first, count, widest);
	box = box_around(&bundle);
	if (!list_leaves(&bundle, &box, widest_limit(&bundle), level, top))
	{
		uint32_t	half = count / 2;

		return count == 1 ? 1 : search_bundle(piece, part, compares, first, half, widest) |
			search_bundle(piece, part, compares, first + half, count - half, widest) << half;
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
	bundle.alone |= bundle.ambiguous;
	answer_bundle(&bundle, first);
	return bundle.alone;
}

/*
 * How many tasks from `first` on form a bundle: piece->bundle at most, all of
 * one part of the index.
 */
static uint32_t
count_bundle(const struct cpu_neighbours_piece *piece, uint32_t first)
{
	const uint64_t *key = piece->key + first;
	uint32_t	left = piece->count - first;
	uint32_t	count = left < piece->bundle ? left : piece->bundle;

	while (cpu_nearest_part(key[count - 1]) != cpu_nearest_part(key[0]))
		count--;
	return count;
}

uint32_t
CPU_PATH_NAME(cpu_nearest) (struct cpu_neighbours_piece *piece, double widest, uint32_t *count)
{
	const struct cpu_index *index = piece->index;
	uint32_t	first = piece->answered;
	uint32_t	part = cpu_nearest_part(piece->key[first]);

	*count = count_bundle(piece, first);
	for (uint32_t ahead = first + *count; ahead < first + 2 * *count && ahead < piece->count; ahead++)
		__builtin_prefetch(&piece->observation[cpu_nearest_row(piece, ahead)]);
	if (part >= index->parts)
		return cpu_first_bits(*count);
	return search_bundle(piece, cpu_index_part(index, part),
						 index->party[0] != NULL || (index->slabs != NULL && !index->slabs->is_uniform[part]), first,
						 *count, widest);
}
