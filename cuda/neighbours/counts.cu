/*
 * counts.cu
 *		Counts the candidates of observations within radii, and adds up their weights, with a warp for each observation.
 *
 * The walk goes through the index from the topmost level down, once for all radii, as the CPU's does
 * (engine/cpu/count.c).  Each lane looks at one of the 32 children of the present node.  On the way the walk has a
 * range of radii whose border may cross these children: smaller radii do not reach them; larger ones contain them,
 * and have them already.  For each child the range becomes narrower: the radii that contain it whole get all of its
 * references without a look at them, by the node's range of positions, and only the radii whose border may
 * cross the child are left.  If any are left, the walk goes into the child.  In a leaf, squared chords decide about most
 * positions, and distances about those so near to a border that the margins of chords leave it open.  The references
 * of a node or a position are a range of the index's order, for which index_sums.cuh has the sum of any weight.
 *
 *
 * Why the answer is exact
 *
 * index_walk.cuh says why no position of a node has a smaller squared chord, as computed by geonn_chord_squared(),
 * than the bound from the gaps between the observation and the node's box.  For the farthest corner the same holds
 * with all signs reversed: rounding is monotone, so the computed p - v is not farther from zero than the
 * farthest corner's, max(p - low, high - p), nor than the float32 above that.  Squares and sums grow with what they
 * are made of; rounding up to float32 gives no less than rounding to the nearest float64.  So a node is passed over
 * only if each of its positions has a squared chord above geonn_metric_radius_limit() of the radius, and is taken
 * whole only if each has one of at most geonn_metric_certain_limit().  All other positions are compared by these
 * limits one by one, and between them by the distance itself.
 *
 * A child's box lies within its parent's, so what a radius does with the parent it does with the child: a radius that
 * has taken the parent whole never meets the child.
 *
 * References that an observation excludes are counted at first, and taken off at the end: the tags of a dataset rise
 * from place to place, so they are found by a search for the first of them.
 */
#include "cuda/neighbours/neighbours_warp.cuh"

extern "C"
{
#include "engine/search/device.h"
}

#define BLOCK_THREADS 256

/* how many bits the number of a radius, 0 ... GEONN_RADII_MAX, takes for each level */
#define RADIUS_BITS 5
#define RADIUS_MASK ((1u << RADIUS_BITS) - 1)

static_assert(GEONN_RADII_MAX <= RADIUS_MASK && GEONN_RADII_MAX <= INDEX_WIDTH, "a lane for each radius");
static_assert(RADIUS_BITS * INDEX_LEVELS_MAX <= 32, "a word has the number of a radius for each level");

/* radii, and what squared chords say of them; each column is rising */
struct radii
{
	uint32_t	count;
	double		radius[GEONN_RADII_MAX];	/* metres */
	double		within[GEONN_RADII_MAX];	/* no candidate within the radius has a greater squared chord */
	double		certain[GEONN_RADII_MAX];	/* any reference with at most this one is within the radius */
};

/* the radii from ... to - 1 */
struct radius_range
{
	uint32_t	from;
	uint32_t	to;
};

/* the sums of a radius */
struct lane_sums
{
	uint64_t	word[GEONN_WEIGHTS_MAX][INDEX_SUM_WORDS];
};

/* a range of references, in the index's order; one whose end is before its begin takes references off */
struct reference_range
{
	uint32_t	first;
	uint32_t	end;
};

struct counts_walk
{
	/* the same in every lane */
	const struct index *index;
	const struct radii *radii;
	const struct index_weights *weights;
	struct geonn_vector from;
	int32_t		group;
	bool		one_each;		/* each position has one reference */

	/* for this lane's child of each level: the radii whose border may cross it, RADIUS_BITS for each level */
	uint32_t	crossed_from;
	uint32_t	crossed_to;

	uint32_t	left;			/* lane l's: the children of level l that the walk still has to go into, a bit each */

	/* lane r's: how many references radius r contains, of those seen so far, and the sums of their weights */
	uint32_t	references;
	struct lane_sums *sums;		/* in shared memory; NULL in lanes without a radius */
};

/*
 * The range of radii that lane `child` has stored for its child of a level.
 */
static __device__ __forceinline__ struct radius_range
range_of_child(const struct counts_walk *walk, int level, uint32_t child)
{
	struct radius_range range;

	range.from = __shfl_sync(ALL_LANES, walk->crossed_from, child) >> RADIUS_BITS * level & RADIUS_MASK;
	range.to = __shfl_sync(ALL_LANES, walk->crossed_to, child) >> RADIUS_BITS * level & RADIUS_MASK;
	return range;
}

static __device__ __forceinline__ void
store_radius(uint32_t *word, int level, uint32_t radius)
{
	*word = (*word & ~(RADIUS_MASK << RADIUS_BITS * level)) | radius << RADIUS_BITS * level;
}

/*
 * Add the weights of references to the sums of a radius: every lane those of its range.
 */
static __device__ __forceinline__ void
add_weights(struct counts_walk *walk, uint32_t radius, struct reference_range range)
{
	const struct index_weights *weights = walk->weights;

	for (uint32_t i = 0; i < weights->count; i++)
	{
		const struct index_sums *sums = &weights->sums[i];
		uint64_t	word[INDEX_SUM_WORDS] = {};

		if (range.first != range.end)
			index_sums_of_range(sums, range.first, range.end, word);
		for (int lanes = 16; lanes > 0; lanes /= 2)
		{
			uint64_t	others[INDEX_SUM_WORDS];

#pragma unroll
			for (uint32_t j = 0; j < INDEX_SUM_WORDS; j++)
				others[j] = j < sums->form.words ? __shfl_xor_sync(ALL_LANES, word[j], lanes) : 0;
			index_sums_add<INDEX_SUM_WORDS>(word, others, sums->form.words);
		}
		if (warp_lane() == radius)
			index_sums_add<INDEX_SUM_WORDS>(walk->sums->word[i], word, sums->form.words);
	}
}

/*
 * Add references to the count of a radius, and their weights to its sums: every lane those of its range.
 */
template <bool WEIGHTS>
static __device__ __forceinline__ void
add_references(struct counts_walk *walk, uint32_t radius, struct reference_range range)
{
	uint32_t	references = warp_sum(range.end - range.first);

	if (warp_lane() == radius)
		walk->references += references;
	if (WEIGHTS && __any_sync(ALL_LANES, range.first != range.end))
		add_weights(walk, radius, range);
}

/* the references of positions first ... end - 1 */
static __device__ __forceinline__ struct reference_range
references_of(const struct counts_walk *walk, uint32_t first, uint32_t end)
{
	struct reference_range range = {first, end};

	if (!walk->one_each)
		range = {walk->index->start[first], walk->index->start[end]};
	return range;
}

/* the references of a node of a level */
static __device__ __forceinline__ struct reference_range
references_of_node(const struct counts_walk *walk, int level, uint32_t node)
{
	uint64_t	first = (uint64_t) node << INDEX_BITS * (level + 1);
	uint64_t	end = (uint64_t) (node + 1) << INDEX_BITS * (level + 1);

	return references_of(walk, (uint32_t) first, (uint32_t) min(end, (uint64_t) walk->index->shape.positions));
}

/*
 * Of a range of radii, those whose border may cross a node, which the radii from range.to on contain.  The node has
 * some reference of the observation's group; alone: it has no other.
 */
static __device__ __forceinline__ struct radius_range
crossed_radii(const struct counts_walk *walk, size_t place, bool alone, struct radius_range range)
{
	const struct index *index = walk->index;
	const struct radii *radii = walk->radii;
	struct geonn_vector from = walk->from;
	struct geonn_vector low = {index->low_x[place], index->low_y[place], index->low_z[place]};
	struct geonn_vector high = {index->high_x[place], index->high_y[place], index->high_z[place]};
	float		x = index_gap(from.x, low.x, high.x);
	float		y = index_gap(from.y, low.y, high.y);
	float		z = index_gap(from.z, low.z, high.z);
	double		nearest = __fmaf_rd(z, z, __fmaf_rd(y, y, __fmul_rd(x, x)));
	double		farthest = INFINITY;
	struct radius_range crossed = range;

	if (alone)
	{
		x = index_reach(from.x, low.x, high.x);
		y = index_reach(from.y, low.y, high.y);
		z = index_reach(from.z, low.z, high.z);
		farthest = __fmaf_ru(z, z, __fmaf_ru(y, y, __fmul_ru(x, x)));
	}
	for (uint32_t radius = range.from; radius < range.to; radius++)
	{
		crossed.from += nearest > radii->within[radius];
		crossed.to -= alone && farthest <= radii->certain[radius];
	}
	return crossed;
}

/*
 * Look at the children of a node: add those that radii contain whole.  Returns the children that the walk has to go
 * into, a bit each, with their radii stored.
 */
template <bool WEIGHTS>
static __device__ __forceinline__ uint32_t
look_at_children(struct counts_walk *walk, int level, uint32_t parent, struct radius_range range)
{
	const struct index *index = walk->index;
	uint32_t	node = parent * INDEX_WIDTH + warp_lane();
	size_t		place = (size_t) index->shape.first[level] + node;
	bool		present = node < index->shape.nodes[level];
	bool		alone = true;
	struct radius_range crossed = {range.to, range.to};

	if (present && index->group != NULL)
	{
		int32_t		low = index->low_group[place];
		int32_t		high = index->high_group[place];

		present = low <= walk->group && walk->group <= high;
		alone = low == high;
	}
	if (present)
		crossed = crossed_radii(walk, place, alone, range);
	if (__any_sync(ALL_LANES, crossed.to < range.to))
	{
		struct reference_range none = {};
		struct reference_range references = crossed.to < range.to ? references_of_node(walk, level, node) : none;

		for (uint32_t radius = warp_smallest(crossed.to); radius < range.to; radius++)
			add_references<WEIGHTS>(walk, radius, crossed.to <= radius ? references : none);
	}
	store_radius(&walk->crossed_from, level, crossed.from);
	store_radius(&walk->crossed_to, level, crossed.to);
	return __ballot_sync(ALL_LANES, crossed.from < crossed.to);
}

/*
 * Add a leaf's positions to the counts of a range of radii.
 */
template <bool WEIGHTS>
static __device__ __forceinline__ void
look_at_leaf(struct counts_walk *walk, uint32_t leaf, struct radius_range range)
{
	const struct index *index = walk->index;
	const struct radii *radii = walk->radii;
	uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
	bool		present = position < index->shape.positions &&
		(index->group == NULL || index->group[position] == walk->group);
	struct geonn_vector vector = present ? index_vector(index, position) : walk->from;
	double		chord = geonn_chord_squared(walk->from, vector);
	struct reference_range none = {};
	struct reference_range references = {};

	present = present && chord <= radii->within[range.to - 1];
	if (!__any_sync(ALL_LANES, present))
		return;
	if (present)
		references = references_of(walk, position, position + 1);
	for (uint32_t radius = range.from; radius < range.to; radius++)
	{
		bool		inside = present && chord <= radii->within[radius];

		if (inside && chord > radii->certain[radius])
			inside = geonn_metric_distance_of(index->metric, walk->from, vector) <= radii->radius[radius];
		add_references<WEIGHTS>(walk, radius, inside ? references : none);
	}
}

/*
 * Walk through the index, for all radii.
 */
template <bool WEIGHTS>
static __device__ __forceinline__ void
walk_through(struct counts_walk *walk)
{
	int			levels = walk->index->shape.levels;
	int			level = levels - 1;
	uint32_t	parent = 0;
	uint32_t	left = look_at_children<WEIGHTS>(walk, level, parent, {0, walk->radii->count});

	for (;;)
	{
		struct radius_range range;
		uint32_t	child;

		if (left == 0)
		{
			/* back to the siblings of the parent that are left */
			if (++level == levels)
				return;
			parent /= INDEX_WIDTH;
			left = __shfl_sync(ALL_LANES, walk->left, level);
			continue;
		}
		child = __ffs(left) - 1;
		left &= left - 1;
		range = range_of_child(walk, level, child);
		if (level == 0)
		{
			look_at_leaf<WEIGHTS>(walk, parent * INDEX_WIDTH + child, range);
			continue;
		}
		if (warp_lane() == (uint32_t) level)
			walk->left = left;
		parent = parent * INDEX_WIDTH + child;
		level--;
		left = look_at_children<WEIGHTS>(walk, level, parent, range);
	}
}

/*
 * The first place of the dataset whose reference has at least this tag.
 */
static __device__ __forceinline__ uint32_t
first_place(const struct index *index, const uint32_t *by_place, int64_t tag)
{
	uint32_t	first = 0;
	uint32_t	end = index->references;

	while (first < end)
	{
		uint32_t	step = (end - first + INDEX_WIDTH - 1) / INDEX_WIDTH;
		uint32_t	probe = first + step * (warp_lane() + 1) - 1;
		uint32_t	passed = __popc(__ballot_sync(ALL_LANES, probe < end && index->tag[by_place[probe]] < tag));

		/* all up to the last probe that passed have smaller tags, and the next probe has not */
		first += step * passed;
		end = min(end, first + step - 1);
	}
	return first;
}

/* the position of a reference, by its index in the index's order: the last one that begins there or before */
static __device__ __forceinline__ uint32_t
position_of(const struct counts_walk *walk, uint32_t reference)
{
	uint32_t	first = 0;
	uint32_t	end = walk->index->shape.positions;

	if (walk->one_each)
		return reference;
	while (end - first > 1)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (walk->index->start[middle] <= reference)
			first = middle;
		else
			end = middle;
	}
	return first;
}

/*
 * Take the references with these tags off all counts that have them.
 */
template <bool WEIGHTS>
static __device__ __forceinline__ void
take_excluded_off(struct counts_walk *walk, const uint32_t *by_place, int64_t first_tag, int64_t last_tag)
{
	const struct index *index = walk->index;
	const struct radii *radii = walk->radii;
	uint32_t	first;

	if (first_tag > last_tag)
		return;
	first = first_place(index, by_place, first_tag);
	for (;; first += INDEX_WIDTH)
	{
		uint32_t	place = first + warp_lane();
		uint32_t	reference = place < index->references ? by_place[place] : 0;
		bool		excluded = place < index->references && index->tag[reference] <= last_tag;
		double		distance = INFINITY;

		if (!__any_sync(ALL_LANES, excluded))
			return;
		if (excluded)
		{
			uint32_t	position = position_of(walk, reference);

			excluded = index->group == NULL || index->group[position] == walk->group;
			distance = geonn_metric_distance_of(index->metric, walk->from, index_vector(index, position));
		}
		for (uint32_t radius = 0; radius < radii->count; radius++)
		{
			struct reference_range range = {};

			if (excluded && distance <= radii->radius[radius])
				range = {reference + 1, reference};
			add_references<WEIGHTS>(walk, radius, range);
		}
	}
}

/*
 * Write the observation's pairs: each lane those of its radius.
 */
template <bool WEIGHTS>
static __device__ __forceinline__ void
write_pairs(const struct neighbours *search, const struct counts_walk *walk, uint32_t row)
{
	uint32_t	pairs = WEIGHTS ? walk->weights->count : 1;	/* of a radius */
	uint64_t	pair = ((uint64_t) row * walk->radii->count + warp_lane()) * pairs;

	if (warp_lane() == 0)
		search->results.count[row] = walk->radii->count * pairs;
	if (warp_lane() >= walk->radii->count)
		return;
	for (uint32_t i = 0; i < pairs; i++)
	{
		search->results.packed_tag[pair + i] = walk->references;
		search->results.packed_distance[pair + i] = WEIGHTS ?
			exact_sum_rounded(walk->weights->sums[i].form, walk->sums->word[i]) : 0.0;
	}
}

template <bool WEIGHTS>
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS)
counts_kernel(const __grid_constant__ struct neighbours search, const __grid_constant__ struct radii radii)
{
	__shared__ struct lane_sums sums[WEIGHTS ? WARP_BLOCK_WARPS * GEONN_RADII_MAX : 1];
	struct warp_share share;
	uint32_t	number;

	warp_share_begin(&share, &search.status->next, search.rows, true);
	while (warp_share_next(&share, &number))
	{
		uint32_t	row = search.order[number];
		struct counts_walk walk = {};

		walk.index = &search.index;
		walk.radii = &radii;
		walk.from = observation_vector(&search, row);
		walk.group = search.group == NULL ? 0 : search.group[row];
		walk.one_each = search.index.references == search.index.shape.positions;
		walk.weights = &search.weights;
		if (WEIGHTS && warp_lane() < GEONN_RADII_MAX)
		{
			walk.sums = &sums[threadIdx.x / INDEX_WIDTH * GEONN_RADII_MAX + warp_lane()];
			*walk.sums = {};
		}
		walk_through<WEIGHTS>(&walk);
		if (search.by_place != NULL)
			take_excluded_off<WEIGHTS>(&walk, search.by_place, search.excluded_first[row], search.excluded_last[row]);
		write_pairs<WEIGHTS>(&search, &walk, row);
	}
}

static __global__ void
by_place_kernel(const __grid_constant__ struct neighbours search)
{
	uint32_t	reference = blockIdx.x * BLOCK_THREADS + threadIdx.x;

	if (reference < search.index.references)
		search.by_place[search.index.place[reference]] = reference;
}

cudaError_t
counts_prepare(const struct neighbours *search)
{
	if (search->by_place == NULL)
		return cudaSuccess;
	by_place_kernel<<<blocks_for(search->index.references, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>>
		(*search);
	return cudaGetLastError();
}

cudaError_t
counts_enqueue(const struct neighbours *search, const struct question *question)
{
	struct radii radii = {};

	radii.count = question->radii;
	for (uint32_t i = 0; i < radii.count; i++)
	{
		radii.radius[i] = question->radius[i];
		radii.within[i] = geonn_metric_radius_limit(search->index.metric, question->radius[i]);
		radii.certain[i] = geonn_metric_certain_limit(search->index.metric, question->radius[i]);
	}
	return launch_resident(search->weights.count > 0 ? counts_kernel<true> : counts_kernel<false>, UINT32_MAX,
						   search->stream, *search, radii);
}
