/*
 * clusters_walk.c
 *		The work of each phase of clusters on a leaf, part of one, or node of the index; of a thinning on part of a lot.
 *
 * The places of a dataset ask about each other, so they ask leaf by leaf, or part by part of a leaf where a whole one may take
 * longer than a turn: positions that have one group, and are near each other, are a bundle, and walk through the index together.
 * A walk looks at nodes by their boxes, and goes into those within the radius of the bundle's box.  In a leaf each position of
 * the bundle is compared by itself: squared chords decide, and distances where the margins of chords leave it open, as in a count
 * (cpu/counts/count.c).
 *
 * What a walk does depends on the phase:
 *
 * CORES counts references, until each position of the bundle has as many as a core position needs.  The bundle's own leaf
 * suffices for most in crowds.  A node that is wholly within the radius of the bundle counts whole, unless windows may leave
 * some of its positions out.
 *
 * ACROSS unites.  Each pair of nodes with one parent is looked at once, by the bundles of the first one, level by level from
 * the leaves up.  Between levels, JOIN notes which nodes have core positions of one set alone.  So a walk passes over a node
 * that is of the bundle's set already, however many positions the node has, and one pair within the radius is enough to
 * unite with a node of one set.  That keeps a crowd in which all are near all linear.
 *
 * BORDER finds the nearest core position of another position, which then is a bundle by itself.
 *
 * DROP, KEEP and SETTLE of a thinning (thin.c) ask of a position, a bundle by itself, whether a core one within the radius has a
 * lesser number.  The first one found ends the walk.
 */
#include "engine/cpu/clusters/clusters_state.h"

#include "common/assertion.h"
#include "engine/cpu/walk/walk.h"

/* A bundle has positions in a box whose diagonal is at most so many times the radius. */
#define BUNDLE_RADII 8

/* looks at leaves between two looks at whether the search is cancelled */
#define LOOKS_UNTIL_CANCELLED 8192

struct walk
{
	struct cpu_clusters *clusters;
	const struct cpu_index *index;
	uint32_t	looks;
	bool		stopped;		/* the search is cancelled */

	/* the bundle */
	uint32_t	leaf;			/* its leaf */
	uint32_t	bits;			/* its positions in the leaf; in CORES those not known to be core yet; 0: the walk ends */
	struct cpu_part part;		/* the positions of its group */
	struct cpu_box box;
	struct cpu_conditions around;	/* windows around those of its positions */
	double		limit;			/* no squared chord above it matters */
	uint64_t	count[INDEX_WIDTH];	/* in CORES: references within the radius of each */
	struct cpu_decision nearest;	/* in BORDER */
};

static inline struct geonn_vector
vector_of(const struct cpu_index *index, uint32_t position)
{
	return (struct geonn_vector) {index->x[position], index->y[position], index->z[position]};
}

/* Return the distance of two positions in metres; the one whose place is first is the first of the pair. */
static double
distance_between(const struct cpu_clusters *clusters, uint32_t a, uint32_t b)
{
	const struct dataset *dataset = clusters->dataset;
	uint32_t	first = clusters->index->place[clusters->index->start[a]];
	uint32_t	second = clusters->index->place[clusters->index->start[b]];

	if (geonn_metric_chord_decides(dataset->metric))
		return geonn_metric_distance_of(dataset->metric, vector_of(clusters->index, a), vector_of(clusters->index, b));
	if (first > second)
		return distance_between(clusters, b, a);
	return geonn_metric_distance(dataset->metric, dataset->latitude[first], dataset->longitude[first],
								 dataset->latitude[second], dataset->longitude[second]);
}

/* Return the windows of a position. */
static struct cpu_conditions
conditions_of(const struct cpu_index *index, uint32_t position)
{
	struct cpu_conditions conditions = {0};

	for (int i = 0; i < GEONN_WINDOWS_MAX && index->edges != NULL; i++)
		if (index->window_low[i] != NULL)
		{
			conditions.windows.low[i] = index->window_low[i][position];
			conditions.windows.high[i] = index->window_high[i][position];
		}
	if (index->edges != NULL)
		conditions.windows.edges = index->edges[position];
	return conditions;
}

/* ---- a position and a leaf ---- */

/* Note a look at a leaf.  Stops the walk if the search is cancelled. */
static inline void
note_look(struct walk *walk)
{
	if (++walk->looks % LOOKS_UNTIL_CANCELLED == 0)
		walk->stopped = atomic_load_explicit(walk->clusters->cancelled, memory_order_relaxed);
}

/*
 * Return bits of those positions of a leaf, out of `bits`, that may be within the walk's limit of a position; chords becomes
 * their squared chords.
 */
CPU_WALK_INLINE uint32_t
near_in_leaf(struct walk *walk, uint32_t position, uint32_t leaf, uint32_t bits, double *chords)
{
	const struct cpu_index *index = walk->index;
	struct cpu_conditions conditions;

	note_look(walk);
	if (cpu_leaf_chords(index, leaf, vector_of(index, position), chords) > walk->limit)
		return 0;
	bits &= cpu_within(chords, walk->limit);
	if (bits == 0 || index->edges == NULL)
		return bits;
	conditions = conditions_of(index, position);
	return cpu_leaf_candidates(index, leaf, &conditions, bits);
}

/* Return bits of those positions of a leaf, out of `bits`, that are within the radius of a position. */
static uint32_t
within_radius(struct walk *walk, uint32_t position, uint32_t leaf, uint32_t bits)
{
	const struct cpu_clusters *clusters = walk->clusters;
	double		chords[INDEX_WIDTH];
	uint32_t	within = near_in_leaf(walk, position, leaf, bits, chords);
	uint32_t	open = within & ~cpu_within(chords, clusters->certain);

	for (; open != 0; open &= open - 1)
		if (!(distance_between(clusters, position, leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(open)) <= clusters->radius))
			within &= ~(open & -open);
	return within;
}

/* Return how many references a leaf's positions have whose bits are set. */
static uint64_t
references_of(const struct cpu_index *index, uint32_t leaf, uint32_t bits)
{
	const uint32_t *start = index->start + (size_t) leaf * INDEX_WIDTH;
	uint64_t	references = 0;

	if (index->references == index->shape.positions)
		return (uint64_t) __builtin_popcount(bits);
	for (; bits != 0; bits &= bits - 1)
		references += start[__builtin_ctz(bits) + 1] - start[__builtin_ctz(bits)];
	return references;
}

/* Are all core positions below a node of the set of these core positions of the bundle? */
static bool
is_united(const struct walk *walk, uint32_t node, uint32_t bits)
{
	const struct cpu_clusters *clusters = walk->clusters;
	uint32_t	root;

	if (!clusters->joined[node])
		return false;
	root = clusters_root(clusters, clusters->first_core[node]);
	/* the bundle's leaf is on level 0, whose nodes are first */
	if (clusters->joined[walk->leaf])
		bits &= -bits;
	for (; bits != 0; bits &= bits - 1)
		if (clusters_root(clusters, walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits)) != root)
			return false;
	return true;
}

static void
unite_with_leaf(struct walk *walk, uint32_t leaf)
{
	struct cpu_clusters *clusters = walk->clusters;
	uint32_t	bits = clusters->core[leaf] & cpu_part_bits(walk->part, leaf);

	for (uint32_t own = walk->bits; own != 0 && !walk->stopped; own &= own - 1)
	{
		uint32_t	position = walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(own);
		uint32_t	within;

		if (is_united(walk, leaf, own))
			return;
		if (is_united(walk, leaf, own & -own))
			continue;
		within = within_radius(walk, position, leaf, bits);
		if (clusters->joined[leaf])
			within &= -within;
		for (; within != 0; within &= within - 1)
			clusters_unite(clusters, position, leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(within));
	}
}

/* Count some references for all positions of the bundle. */
static void
count_for_all(struct walk *walk, uint64_t references)
{
	for (uint32_t own = walk->bits; own != 0; own &= own - 1)
	{
		walk->count[__builtin_ctz(own)] += references;
		if (walk->count[__builtin_ctz(own)] >= walk->clusters->min_points)
			walk->bits &= ~(own & -own);
	}
}

static void
count_leaf(struct walk *walk, uint32_t leaf)
{
	uint32_t	bits = cpu_part_bits(walk->part, leaf);

	for (uint32_t own = walk->bits; own != 0 && !walk->stopped; own &= own - 1)
	{
		uint32_t	at = (uint32_t) __builtin_ctz(own);

		walk->count[at] += references_of(walk->index, leaf, within_radius(walk, walk->leaf * INDEX_WIDTH + at, leaf, bits));
		if (walk->count[at] >= walk->clusters->min_points)
			walk->bits &= ~(own & -own);
	}
}

/* Let a leaf's core positions be the nearest of the bundle's only position. */
static void
decide_in_leaf(struct walk *walk, uint32_t leaf)
{
	const struct cpu_clusters *clusters = walk->clusters;
	const struct cpu_index *index = walk->index;
	uint32_t	position = walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(walk->bits);
	double		chords[INDEX_WIDTH];
	uint32_t	bits = near_in_leaf(walk, position, leaf, clusters->core[leaf] & cpu_part_bits(walk->part, leaf), chords);

	for (; bits != 0; bits &= bits - 1)
	{
		uint32_t	other = leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits);
		uint32_t	rank = clusters->thins ? clusters->number[other] : index->place[index->start[other]];
		struct candidate found = {distance_between(clusters, position, other), rank, 0};
		double		limit = geonn_metric_chord_limit(clusters->dataset->metric, chords[__builtin_ctz(bits)]);

		if (found.distance <= clusters->radius && candidate_before(found, walk->nearest.first))
			walk->nearest = (struct cpu_decision) {found, other};
		/* a position beyond the radius may have a lesser chord than one within it only inside the margins */
		if (found.distance <= clusters->radius && limit < walk->limit)
			walk->limit = limit;
	}
}

/* End the walk if a core position of a leaf is within the radius of the bundle's only position, and has a lesser number. */
static void
find_earlier_in_leaf(struct walk *walk, uint32_t leaf)
{
	const struct cpu_clusters *clusters = walk->clusters;
	uint32_t	position = walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(walk->bits);
	uint32_t	bits = clusters->core[leaf] & cpu_part_bits(walk->part, leaf);

	for (uint32_t left = bits; left != 0; left &= left - 1)
		if (clusters->number[leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(left)] >= clusters->number[position])
			bits &= ~(left & -left);
	if (bits != 0 && within_radius(walk, position, leaf, bits) != 0)
		walk->bits = 0;
}

/* ---- nodes ---- */

/* Return the bits of INDEX_WIDTH nodes from `node` on, out of `bits`, that have core positions below them. */
static uint32_t
with_cores(const struct cpu_clusters *clusters, uint32_t node, uint32_t bits)
{
	for (uint32_t left = bits; left != 0; left &= left - 1)
		if (atomic_load_explicit(&clusters->core[node + (uint32_t) __builtin_ctz(left)], memory_order_relaxed) == 0)
			bits &= ~(left & -left);
	return bits;
}

/* Count the references below those of INDEX_WIDTH nodes that are wholly within the radius, and return the bits of the others. */
static uint32_t
count_whole(struct walk *walk, int level, struct cpu_nodes nodes, uint32_t bits)
{
	const struct cpu_index *index = walk->index;
	double		farthest[INDEX_WIDTH];
	uint32_t	whole;

	cpu_node_corners(index, index->shape.first[level] + nodes.first, &walk->box, farthest);
	whole = bits & cpu_within(farthest, walk->clusters->certain);
	for (uint32_t left = whole; left != 0; left &= left - 1)
	{
		uint32_t	node = nodes.first + (uint32_t) __builtin_ctz(left);
		struct cpu_part below = cpu_part_below(walk->part, level, node, node + 1);

		count_for_all(walk, index->start[below.end] - index->start[below.first]);
	}
	return bits & ~whole;
}

/* Walk through some nodes of a level. */
static void
walk_nodes(struct walk *walk, int level, struct cpu_nodes nodes)
{
	const struct cpu_clusters *clusters = walk->clusters;
	const struct cpu_index *index = walk->index;
	uint32_t	first = index->shape.first[level] + nodes.first;
	double		nearest[INDEX_WIDTH];
	uint32_t	left;

	cpu_node_bounds(index, first, &walk->box, nearest);
	left = cpu_within(nearest, walk->limit) & cpu_first_bits(nodes.count);
	left = cpu_nodes_candidates(index, first, &walk->around, left);
	if (clusters->phase != CLUSTERS_CORES)
		left = with_cores(clusters, first, left);
	else if (index->edges == NULL)
		left = count_whole(walk, level, nodes, left);
	for (uint32_t child; left != 0 && walk->bits != 0 && !walk->stopped; left &= ~(UINT32_C(1) << child))
	{
		uint32_t	number;

		/* a near core position is sought, so go to the nearest node first */
		child = clusters->phase >= CLUSTERS_BORDER ? cpu_nearest_of(nearest, left) : (uint32_t) __builtin_ctz(left);
		number = nodes.first + child;
		if (nearest[child] > walk->limit || (clusters->phase == CLUSTERS_ACROSS && is_united(walk, first + child, walk->bits)))
			continue;
		if (level > 0)
			walk_nodes(walk, level - 1, cpu_part_children(walk->part, level, number));
		else if (clusters->phase == CLUSTERS_CORES)
			count_leaf(walk, number);
		else if (clusters->phase == CLUSTERS_ACROSS)
			unite_with_leaf(walk, number);
		else if (clusters->phase == CLUSTERS_BORDER)
			decide_in_leaf(walk, number);
		else
			find_earlier_in_leaf(walk, number);
	}
}

/* Walk through all nodes of the bundle's group. */
static void
walk_group(struct walk *walk)
{
	int			level;
	struct cpu_nodes top = cpu_part_top(walk->part, &level);

	walk_nodes(walk, level, top);
}

/* ---- phases ---- */

static void
find_cores(struct walk *walk)
{
	struct cpu_clusters *clusters = walk->clusters;
	uint32_t	all = walk->bits;

	for (uint32_t left = all; left != 0; left &= left - 1)
		walk->count[__builtin_ctz(left)] = 0;
	count_leaf(walk, walk->leaf);
	for (uint32_t left = walk->bits; left != 0; left &= left - 1)
		walk->count[__builtin_ctz(left)] = 0;
	if (walk->bits != 0)
		walk_group(walk);
	atomic_fetch_or_explicit(&clusters->core[walk->leaf], all & ~walk->bits, memory_order_relaxed);
}

/* Unite the bundle's core positions with those that follow in its leaf, whatever their bundle. */
static void
unite_inside(struct walk *walk)
{
	for (uint32_t own = walk->bits; own != 0; own &= own - 1)
	{
		uint32_t	at = (uint32_t) __builtin_ctz(own);
		uint32_t	behind = walk->clusters->core[walk->leaf] & cpu_part_bits(walk->part, walk->leaf) & (UINT32_MAX << at << 1);
		uint32_t	within = behind == 0 ? 0 : within_radius(walk, walk->leaf * INDEX_WIDTH + at, walk->leaf, behind);

		for (; within != 0; within &= within - 1)
			clusters_unite(walk->clusters, walk->leaf * INDEX_WIDTH + at,
						   walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(within));
	}
}

/* Unite with the nodes of the phase's level that follow the one above the bundle, and have the same parent. */
static void
unite_across(struct walk *walk)
{
	const struct index_shape *shape = &walk->index->shape;
	int			level = walk->clusters->level;
	uint32_t	own = walk->leaf >> INDEX_BITS * level;
	uint32_t	last = level + 1 < shape->levels ? own | (INDEX_WIDTH - 1) : shape->nodes[level] - 1;
	uint32_t	part_last = cpu_node_above(walk->part.end - 1, level);

	last = last < part_last ? last : part_last;
	if (last > own)
		walk_nodes(walk, level, (struct cpu_nodes) {own + 1, last - own});
}

static void
find_nearest_core(struct walk *walk)
{
	uint32_t	position = walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(walk->bits);

	walk->nearest = (struct cpu_decision) {{INFINITY, UINT32_MAX, 0}, CLUSTERS_NONE};
	walk->limit = walk->clusters->within;
	walk_group(walk);
	atomic_store_explicit(&walk->clusters->parent[position], walk->nearest.position, memory_order_relaxed);
}

/* Note the first core position of a leaf, and whether all are of one set. */
static void
join_leaf(struct cpu_clusters *clusters, uint32_t leaf)
{
	uint32_t	bits = clusters->core[leaf];
	uint32_t	first = bits == 0 ? CLUSTERS_NONE : leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits);

	clusters->first_core[leaf] = first;
	clusters->joined[leaf] = true;
	for (; bits != 0; bits &= bits - 1)
		if (clusters_root(clusters, leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits)) != clusters_root(clusters, first))
			clusters->joined[leaf] = false;
}

/* Do as join_leaf() for a node; `children` nodes are below it, `first` and on. */
static void
join_children(struct cpu_clusters *clusters, uint32_t node, uint32_t first, uint32_t children)
{
	bool		joined = true;
	uint32_t	with_cores = 0;

	clusters->first_core[node] = CLUSTERS_NONE;
	for (uint32_t child = first; child < first + children; child++)
	{
		uint32_t	core = clusters->first_core[child];

		if (core == CLUSTERS_NONE)
			continue;
		with_cores |= UINT32_C(1) << (child - first);
		/* sets of one leaf may have become one by others between them */
		if (clusters->level == 0 && !clusters->joined[child])
			join_leaf(clusters, child);
		if (clusters->first_core[node] == CLUSTERS_NONE)
			clusters->first_core[node] = core;
		joined = joined && clusters->joined[child] &&
			clusters_root(clusters, core) == clusters_root(clusters, clusters->first_core[node]);
	}
	clusters->joined[node] = joined;
	atomic_store_explicit(&clusters->core[node], with_cores, memory_order_relaxed);
}

/* ---- bundles ---- */

/* Enlarge a box, and the windows around it, by a position, unless its diagonal would be beyond a squared chord. */
static bool
enlarge(struct walk *walk, uint32_t position, double diagonal)
{
	const struct cpu_index *index = walk->index;
	struct cpu_box box = walk->box;

	cpu_box_enlarge(&box, vector_of(index, position));
	if (cpu_filter_chord(box.high[0] - box.low[0], box.high[1] - box.low[1], box.high[2] - box.low[2]) > diagonal)
		return false;
	walk->box = box;
	for (int i = 0; i < GEONN_WINDOWS_MAX && index->edges != NULL; i++)
	{
		if (index->window_low[i] == NULL)
			continue;
		if (index->window_low[i][position] < walk->around.windows.low[i])
			walk->around.windows.low[i] = index->window_low[i][position];
		if (index->window_high[i][position] > walk->around.windows.high[i])
			walk->around.windows.high[i] = index->window_high[i][position];
	}
	return true;
}

/* Return the positions of all references in the group of this one. */
static struct cpu_part
group_around(const struct cpu_clusters *clusters, uint32_t position)
{
	const struct cpu_index *index = clusters->index;
	const int32_t *group = clusters->dataset->group;
	int32_t		own = group == NULL ? 0 : group[index->place[index->start[position]]];

	return index->slabs != NULL ? cpu_index_group_part(index, cpu_slabs_group(index->slabs, own)) :
		cpu_index_part(index, cpu_index_part_of(index, own));
}

/* Do the present phase's work for a bundle at a time, of those positions of the walk's part in its leaf whose bits are set. */
static void
work_on_bundles(struct walk *walk, uint32_t bits)
{
	const struct cpu_clusters *clusters = walk->clusters;
	double		diagonal = clusters->phase == CLUSTERS_BORDER ? 0.0 : BUNDLE_RADII * BUNDLE_RADII * clusters->within;

	while (bits != 0 && !walk->stopped)
	{
		uint32_t	first = walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits);

		walk->limit = clusters->within;
		walk->bits = 0;
		walk->box = cpu_empty_box;
		walk->around = conditions_of(walk->index, first);
		do
		{
			if (!enlarge(walk, walk->leaf * INDEX_WIDTH + (uint32_t) __builtin_ctz(bits), diagonal))
				break;
			walk->bits |= bits & -bits;
			bits &= bits - 1;
		} while (bits != 0 && clusters->phase != CLUSTERS_BORDER);
		if (clusters->phase == CLUSTERS_CORES)
			find_cores(walk);
		else if (clusters->phase == CLUSTERS_INSIDE)
			unite_inside(walk);
		else if (clusters->phase == CLUSTERS_ACROSS)
			unite_across(walk);
		else if (clusters->phase == CLUSTERS_BORDER)
			find_nearest_core(walk);
		else
			walk_group(walk);
	}
}

/* Do the present phase's work for positions of a leaf: `first` and on, at most `count` of them. */
static void
work_on_positions(struct cpu_clusters *clusters, uint32_t first, uint32_t count)
{
	const struct cpu_index *index = clusters->index;
	struct walk walk = {.clusters = clusters,.index = index,.leaf = first / INDEX_WIDTH};
	uint32_t	end = index->shape.positions - first < count ? index->shape.positions : first + count;
	uint32_t	next;

	if (clusters->phase == CLUSTERS_CORES)
		for (uint32_t position = first; position < end; position++)
			atomic_store_explicit(&clusters->parent[position], position, memory_order_relaxed);
	for (uint32_t position = first; position < end; position = next)
	{
		uint32_t	bits;

		walk.part = group_around(clusters, position);
		next = walk.part.end < end ? walk.part.end : end;
		bits = cpu_first_bits(next - position) << position % INDEX_WIDTH;
		if (clusters->phase == CLUSTERS_BORDER)
			bits &= ~clusters->core[walk.leaf];
		else if (clusters->phase != CLUSTERS_CORES)
			bits &= clusters->core[walk.leaf];
		else if (index->start[walk.part.end] - index->start[walk.part.first] < clusters->min_points)
			continue;			/* the whole group has fewer references than a core position needs */
		work_on_bundles(&walk, bits);
	}
}

/*
 * Do the present phase's work for positions of the lot that are open: members `first` and on.  DROP drops those that have a
 * core position before them within the radius, and leaves the others open; KEEP leaves those open, and keeps the others; SETTLE
 * decides each.
 */
static void
work_on_members(struct cpu_clusters *clusters, uint32_t first)
{
	struct walk walk = {.clusters = clusters,.index = clusters->index};
	uint32_t	count = clusters->each;
	uint32_t	end = clusters->lot_count - first < count ? clusters->lot_count : first + count;

	for (uint32_t member = first; member < end && !walk.stopped; member++)
	{
		uint32_t	position = clusters_member(clusters, member);

		if (clusters->fate[member] != FATE_OPEN)
			continue;
		walk.leaf = position / INDEX_WIDTH;
		walk.part = group_around(clusters, position);
		work_on_bundles(&walk, UINT32_C(1) << position % INDEX_WIDTH);
		if (walk.bits != 0 && clusters->phase != CLUSTERS_DROP)
			clusters->fate[member] = FATE_KEPT;
		else if (walk.bits == 0 && clusters->phase != CLUSTERS_KEEP)
			clusters->fate[member] = FATE_DROPPED;
		if (walk.bits != 0 && clusters->phase == CLUSTERS_SETTLE)
			clusters_set_core(clusters, position, true);
	}
}

void
CPU_PATH_NAME(cpu_clusters_work) (struct cpu_clusters *clusters, uint32_t item)
{
	const struct index_shape *shape = &clusters->index->shape;
	uint32_t	children;

	switch (clusters->phase)
	{
		case CLUSTERS_CORES:
		case CLUSTERS_ACROSS:
		case CLUSTERS_BORDER:
			work_on_positions(clusters, item * clusters->each, clusters->each);
			return;
		case CLUSTERS_INSIDE:
			work_on_positions(clusters, item * INDEX_WIDTH, INDEX_WIDTH);
			join_leaf(clusters, item);
			return;
		case CLUSTERS_JOIN:
			children = shape->nodes[clusters->level] - item * INDEX_WIDTH;
			join_children(clusters, shape->first[clusters->level + 1] + item,
						  shape->first[clusters->level] + item * INDEX_WIDTH, children < INDEX_WIDTH ? children : INDEX_WIDTH);
			return;
		case CLUSTERS_DROP:
		case CLUSTERS_KEEP:
		case CLUSTERS_SETTLE:
			work_on_members(clusters, item * clusters->each);
			return;
		case CLUSTERS_PLACES:
		case CLUSTERS_NUMBERS:
		case CLUSTERS_RANKS:
		case CLUSTERS_COMPLETE:
			break;
	}
	geonn_assert(false);
}
