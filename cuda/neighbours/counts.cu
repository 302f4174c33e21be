/*
 * counts.cu
 *		Counts the candidates of observations within radii, and adds up their weights, with a warp for each observation.
 *
 * The walk goes through the index from the topmost level down, once for all radii, as the CPU's does
 * (engine/cpu/counts/count.c).  Each lane looks at one of the 32 children of the present node.  On the way the walk has a
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
 * Each lane adds up the weights of what it has looked at by itself; the lanes' sums are joined when the walk is over.
 * If they take too much memory, a walk adds up some of the weights, and another one the next.
 *
 * References that an observation excludes are counted at first, and taken off at the end: the tags of a dataset rise
 * from place to place, so they are found by a search for the first of them.
 */
#include "cuda/neighbours/neighbours_warp.cuh"

extern "C"
{
#include "engine/search/device.h"
#include "engine/search/radii.h"
}

#define BLOCK_THREADS 256

/* The number of a radius, 0 ... GEONN_RADII_MAX, takes this many bits for each level. */
#define RADIUS_BITS 5
#define RADIUS_MASK ((1u << RADIUS_BITS) - 1)

/* A lane has this many words for its parts of sums: a block gets 48 kB of shared memory without asking. */
#define SUM_WORDS_MAX (48 * 1024 / (WARP_BLOCK_THREADS * sizeof(uint64_t)))

static_assert(GEONN_RADII_MAX * INDEX_SUM_WORDS <= SUM_WORDS_MAX, "one weight, with all radii");
static_assert(GEONN_RADII_MAX <= RADIUS_MASK && GEONN_RADII_MAX <= INDEX_WIDTH, "a lane for each radius");
static_assert(RADIUS_BITS * INDEX_LEVELS_MAX <= 32, "a word has the number of a radius for each level");

/* the radii from ... to - 1 */
struct radius_range
{
	uint32_t	from;
	uint32_t	to;
};

/* weights that a walk adds up */
struct weight_range
{
	uint32_t	first;
	uint32_t	end;
	uint32_t	words;			/* how many words their sums have together */
};

/* A range of references, in the index's order.  A range whose end is before its begin subtracts references. */
struct reference_range
{
	uint32_t	first;
	uint32_t	end;
};

struct counts_walk
{
	/* The fields from index to one_each are the same in every lane. */
	const struct index *index;
	const struct search_radii *radii;
	const struct index_weights *weights;
	struct geonn_vector from;
	int32_t		group;
	bool		one_each;		/* each position has one reference */

	/*
	 * of this lane's child of each level: the range of radii whose border may cross the child; RADIUS_BITS for each level
	 */
	uint32_t	crossed_from;
	uint32_t	crossed_to;

	uint32_t	left;			/* lane l has a bit for each child of level l that the walk still has to go into */

	uint32_t	references;		/* lane r has the number of references seen so far within radius r */

	/*
	 * this lane's parts of sums, in shared memory, one word every WARP_BLOCK_THREADS: for each radius, of the weights
	 * in `adds`
	 */
	uint64_t   *sums;
	struct weight_range adds;
};

/* Return the range of radii that lane `child` has stored for its child of a level. */
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

/* Load the words of a weight's sum, which begin at `sum`. */
static __device__ __forceinline__ void
load_words(const uint64_t *sum, uint32_t words, uint64_t *word)
{
#pragma unroll
	for (uint32_t i = 0; i < INDEX_SUM_WORDS; i++)
		word[i] = i < words ? sum[i * WARP_BLOCK_THREADS] : 0;
}

/*
 * Add references to the count of a radius.
 */
static __device__ __forceinline__ void
add_references(struct counts_walk *walk, uint32_t radius, uint32_t references)
{
	if (warp_lane() == radius)
		walk->references += references;
}

/*
 * Add the weights of a range of references to this lane's part of a radius's sums.
 */
static __device__ __forceinline__ void
add_weights(const struct counts_walk *walk, uint32_t radius, struct reference_range range)
{
	uint64_t   *sum = walk->sums + radius * walk->adds.words * WARP_BLOCK_THREADS;

	for (uint32_t i = walk->adds.first; i < walk->adds.end; i++)
	{
		const struct index_sums *sums = &walk->weights->sums[i];
		uint32_t	words = sums->form.words;
		uint64_t	word[INDEX_SUM_WORDS];
		uint64_t	more[INDEX_SUM_WORDS] = {};

		index_sums_of_range(sums, range.first, range.end, more);
		load_words(sum, words, word);
		index_sums_add<INDEX_SUM_WORDS>(word, more, words);
#pragma unroll
		for (uint32_t j = 0; j < INDEX_SUM_WORDS; j++)
			if (j < words)
				sum[j * WARP_BLOCK_THREADS] = word[j];
		sum += words * WARP_BLOCK_THREADS;
	}
}

/* Return the references of positions first ... end - 1. */
static __device__ __forceinline__ struct reference_range
references_of(const struct counts_walk *walk, uint32_t first, uint32_t end)
{
	struct reference_range range = {first, end};

	if (!walk->one_each)
		range = {walk->index->start[first], walk->index->start[end]};
	return range;
}

/* Return the references of a node of a level. */
static __device__ __forceinline__ struct reference_range
references_of_node(const struct counts_walk *walk, int level, uint32_t node)
{
	uint64_t	first = (uint64_t) node << INDEX_BITS * (level + 1);
	uint64_t	end = (uint64_t) (node + 1) << INDEX_BITS * (level + 1);

	return references_of(walk, (uint32_t) first, (uint32_t) min(end, (uint64_t) walk->index->shape.positions));
}

/*
 * Return the radii of a range whose border may cross a node; the radii from range.to on contain the node.  The node
 * has some reference of the observation's group; alone: it has no reference of another group.
 */
static __device__ __forceinline__ struct radius_range
crossed_radii(const struct counts_walk *walk, size_t place, bool alone, struct radius_range range)
{
	const struct index *index = walk->index;
	const struct search_radii *radii = walk->radii;
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
 * Look at the children of a node, and add the children that radii contain whole.  Returns a bit for each child that
 * the walk has to go into, with the child's radii stored.
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
		struct reference_range references = {};

		if (crossed.to < range.to)
			references = references_of_node(walk, level, node);
		for (uint32_t radius = warp_smallest(crossed.to); radius < range.to; radius++)
		{
			bool		inside = crossed.to <= radius;

			add_references(walk, radius, warp_sum(inside ? references.end - references.first : 0));
			if (WEIGHTS && inside)
				add_weights(walk, radius, references);
		}
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
	const struct search_radii *radii = walk->radii;
	uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
	bool		present = position < index->shape.positions &&
		(index->group == NULL || index->group[position] == walk->group);
	struct geonn_vector vector = present ? index_vector(index, position) : walk->from;
	double		chord = geonn_chord_squared(walk->from, vector);
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
		add_references(walk, radius, walk->one_each ? __popc(__ballot_sync(ALL_LANES, inside)) :
					   warp_sum(inside ? references.end - references.first : 0));
		if (WEIGHTS && inside)
			add_weights(walk, radius, references);
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
			/* no child is left here: go back to the parent's siblings */
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

/* Return the first place of the dataset whose reference has this tag or a greater one. */
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

		/* References up to the last probe that passed have smaller tags; the reference at the next probe does not. */
		first += step * passed;
		end = min(end, first + step - 1);
	}
	return first;
}

/* Return the position of a reference, by its index in the index's order: the last position that begins there or before. */
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

/* Subtract the references with these tags from all counts that include them. */
template <bool WEIGHTS>
static __device__ __forceinline__ void
take_excluded_off(struct counts_walk *walk, const uint32_t *by_place, int64_t first_tag, int64_t last_tag)
{
	const struct index *index = walk->index;
	const struct search_radii *radii = walk->radii;
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
			bool		inside = excluded && distance <= radii->radius[radius];

			add_references(walk, radius, 0u - __popc(__ballot_sync(ALL_LANES, inside)));
			if (WEIGHTS && inside)
				add_weights(walk, radius, {reference + 1, reference});
		}
	}
}

/*
 * Add up the lanes' parts of a weight's sum for each radius, from `sum` on in the first radius.  Returns in each lane
 * the rounded sum of its radius.
 */
static __device__ __forceinline__ double
rounded_sum(const struct counts_walk *walk, struct exact_sum_form form, const uint64_t *sum)
{
	uint64_t	mine[INDEX_SUM_WORDS] = {};

	for (uint32_t radius = 0; radius < walk->radii->count; radius++)
	{
		uint64_t	word[INDEX_SUM_WORDS];

		load_words(sum + radius * walk->adds.words * WARP_BLOCK_THREADS, form.words, word);
		for (int lanes = 16; lanes > 0; lanes /= 2)
		{
			uint64_t	others[INDEX_SUM_WORDS];

#pragma unroll
			for (uint32_t i = 0; i < INDEX_SUM_WORDS; i++)
				others[i] = i < form.words ? __shfl_xor_sync(ALL_LANES, word[i], lanes) : 0;
			index_sums_add<INDEX_SUM_WORDS>(word, others, form.words);
		}
#pragma unroll
		for (uint32_t i = 0; i < INDEX_SUM_WORDS; i++)
			mine[i] = warp_lane() == radius ? word[i] : mine[i];
	}
	return exact_sum_rounded(form, mine);
}

/* Write the observation's pairs with the sums of the weights in walk->adds: each lane writes the pairs of its radius. */
template <bool WEIGHTS>
static __device__ __forceinline__ void
write_pairs(const struct neighbours *search, const struct counts_walk *walk, uint32_t row)
{
	uint32_t	pairs = WEIGHTS ? walk->weights->count : 1;	/* pairs of each radius */
	uint64_t	pair = ((uint64_t) row * walk->radii->count + warp_lane()) * pairs;
	const uint64_t *sum = walk->sums;

	if (warp_lane() == 0)
		search->results.count[row] = walk->radii->count * pairs;
	for (uint32_t i = walk->adds.first; i < walk->adds.end; i++)
	{
		double		rounded = 0.0;

		if (WEIGHTS)
		{
			rounded = rounded_sum(walk, walk->weights->sums[i].form, sum);
			sum += walk->weights->sums[i].form.words * WARP_BLOCK_THREADS;
		}
		if (warp_lane() < walk->radii->count)
		{
			search->results.packed_tag[pair + i] = walk->references;
			search->results.packed_distance[pair + i] = rounded;
		}
	}
}

/* Return the weights from `first` on that one walk adds up: as many as have shared memory for their sums. */
static __host__ __device__ __forceinline__ struct weight_range
weights_of_walk(const struct index_weights *weights, uint32_t radii, uint32_t first)
{
	struct weight_range adds = {first, first, 0};

	while (adds.end < weights->count && radii * (adds.words + weights->sums[adds.end].form.words) <= SUM_WORDS_MAX)
		adds.words += weights->sums[adds.end++].form.words;
	return adds;
}

/* Begin a walk that counts, and adds up the weights from adds.first on. */
static __device__ __forceinline__ void
begin_sums(struct counts_walk *walk)
{
	walk->adds = weights_of_walk(walk->weights, walk->radii->count, walk->adds.first);
	walk->references = 0;
	for (uint32_t i = 0; i < walk->radii->count * walk->adds.words; i++)
		walk->sums[i * WARP_BLOCK_THREADS] = 0;
}

template <bool WEIGHTS>
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS)
counts_kernel(const __grid_constant__ struct neighbours search, const __grid_constant__ struct search_radii radii)
{
	extern __shared__ uint64_t sums[];
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
		walk.sums = sums + threadIdx.x;
		walk.adds = {0, 1, 0};
		do
		{
			if (WEIGHTS)
				begin_sums(&walk);
			walk_through<WEIGHTS>(&walk);
			if (search.by_place != NULL)
				take_excluded_off<WEIGHTS>(&walk, search.by_place, search.excluded_first[row],
										   search.excluded_last[row]);
			write_pairs<WEIGHTS>(&search, &walk, row);
			walk.adds.first = walk.adds.end;
		} while (WEIGHTS && walk.adds.first < search.weights.count);
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
	struct search_radii radii = {};
	struct weight_range adds = {};
	uint32_t	words = 0;

	search_radii_set(&radii, search->index.metric, question->radius, question->radii, INFINITY);
	if (search->weights.count == 0)
		return launch_resident(counts_kernel<false>, UINT32_MAX, search->stream, *search, radii);
	for (; adds.end < search->weights.count; words = adds.words > words ? adds.words : words)
		adds = weights_of_walk(&search->weights, radii.count, adds.end);
	return launch_resident_shared(counts_kernel<true>, UINT32_MAX,
								  radii.count * words * WARP_BLOCK_THREADS * sizeof(uint64_t), search->stream,
								  *search, radii);
}
