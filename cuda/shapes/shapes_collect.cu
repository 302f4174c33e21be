/*
 * shapes_collect.cu
 *		Counts and writes the arcs that may be within a distance, with a warp for 32 observations.
 *
 * The observations of a warp follow each other in the order of the curve.  The warp goes through all boxes within the limit of
 * any of them; each lane looks at the arcs of a leaf whose box is within its own limit.  So a lane comes to the same arcs in
 * the same order in both passes, whatever the others ask for: the boxes above a leaf's box hold it, and the gaps to them
 * are no greater, as their roundings are monotonic.
 *
 * A lane keeps the last few shapes open, and of each the nearest arc, by (distance, place in the dataset): a shape's
 * arcs follow each other, but where shapes have a border in common, those of both alternate.  When a shape gives way to
 * another one, that is a run, and becomes an entry.  The first pass counts runs without measuring them, so some of them
 * prove to be too far later.  The second one measures an arc only if its bounds (arcs_measure.cuh) leave open whether
 * it is the nearest of its run.
 *
 * A lane that has taken too much takes no more.  Its row is refused, and so are all of a warp that has looked at too many boxes:
 * the CPU answers them, and the rows behind the first of them.
 */
#include "cuda/arcs/arcs_measure.cuh"
#include "cuda/shapes/shapes_within.cuh"
#include "cuda/base/blocks.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/index/warp_share.cuh"

/*
 * A warp may look at this many boxes and leaves, and an observation may have this many arcs within the limit;
 * otherwise the CPU answers.
 */
#define VISITS_MAX ((uint32_t) 1 << 17)
#define ARCS_MAX ((uint32_t) 1 << 15)

/* how many shapes a lane keeps open */
#define OPEN 4

/* no shape */
#define NONE UINT32_MAX

/* a lane's observation, and its open shapes */
struct seeker
{
	struct geonn_vector from;
	uint32_t	row;
	bool		is_present;		/* the lane has an observation to take arcs for */
	uint32_t	count;			/* runs that have begun, and polygons */
	uint32_t	arcs;			/* how many arcs the lane has taken */
	uint64_t	end;			/* end of the observation's entries, in the pass that writes them */
	uint64_t	next;			/* entry to be written */

	/*
	 * the open shapes, the one opened last first; after unrolling, all indexes are constants, so that these arrays
	 * stay in registers
	 */
	uint32_t	shape[OPEN];
	uint32_t	arc[OPEN];		/* each shape's first arc at the least distance */
	double		distance[OPEN]; /* metres */
	double		upper[OPEN];	/* chord; the shape is no farther */
};

/* Write a run that has ended. */
static __device__ __forceinline__ void
end_run(const struct shapes_within *search, struct seeker *seeker, int i)
{
	if (seeker->shape[i] == NONE || seeker->next == seeker->end)
		return;
	search->entries.entry[seeker->next] = {seeker->distance[i], seeker->row, seeker->arc[i]};
	search->entries.reference[seeker->next++] = seeker->shape[i];
}

/* Open a shape, unless it is open. */
template <bool WRITE>
static __device__ __forceinline__ void
open_shape(const struct shapes_within *search, struct seeker *seeker, uint32_t shape)
{
	bool		is_open = false;

#pragma unroll
	for (int i = 0; i < OPEN; i++)
		is_open = is_open || seeker->shape[i] == shape;
	if (is_open)
		return;
	if (WRITE)
		end_run(search, seeker, OPEN - 1);
#pragma unroll
	for (int i = OPEN - 1; i > 0; i--)
	{
		seeker->shape[i] = seeker->shape[i - 1];
		seeker->arc[i] = seeker->arc[i - 1];
		seeker->distance[i] = seeker->distance[i - 1];
		seeker->upper[i] = seeker->upper[i - 1];
	}
	seeker->shape[0] = shape;
	seeker->arc[0] = UINT32_MAX;
	seeker->distance[0] = seeker->upper[0] = INFINITY;
	seeker->count++;
}

/* Measure an arc of an open shape, unless its bounds show that another one is nearer. */
static __device__ __forceinline__ void
take_arc(const struct shapes_within *search, struct seeker *seeker, uint32_t shape, const struct arcs_leaf *leaf, uint32_t number,
		 double chord, double sagitta)
{
	uint32_t	arc = __ldg(&leaf->arc[number]);
	double		upper = INFINITY;
	double		distance;

#pragma unroll
	for (int i = 0; i < OPEN; i++)
		upper = seeker->shape[i] == shape ? seeker->upper[i] : upper;
	if (chord - sagitta > upper + SHAPE_ARCS_MARGIN)
		return;
	upper = fmin(upper, chord + sagitta);
	distance = arcs_measure(leaf, number, seeker->from, search->limit);
#pragma unroll
	for (int i = 0; i < OPEN; i++)
		if (seeker->shape[i] == shape)
		{
			bool		is_first = comes_before(distance, arc, seeker->distance[i], seeker->arc[i]);

			seeker->upper[i] = upper;
			seeker->distance[i] = is_first ? distance : seeker->distance[i];
			seeker->arc[i] = is_first ? arc : seeker->arc[i];
		}
}

/* Take the arcs of a leaf that may be within the limit. */
template <bool WRITE>
static __device__ __forceinline__ void
take_leaf(const struct shapes_within *search, struct seeker *seeker, const struct arcs_leaf *leaf)
{
	for (uint32_t i = 0; i < ARCS_WIDTH; i++)
	{
		double		sagitta;
		double		square = arcs_square_to(leaf, i, seeker->from, &sagitta);
		double		bound = search->limit + sagitta;
		uint32_t	shape;

		if (!(square <= bound * bound))
			continue;
		shape = (uint32_t) __ldg(&search->arcs.shape_of[__ldg(&leaf->arc[i])]);
		open_shape<WRITE>(search, seeker, shape);
		seeker->arcs++;
		if (WRITE)
			take_arc(search, seeker, shape, leaf, i, sqrt(square), sagitta);
	}
	if (!WRITE && (seeker->count > SHAPES_WITHIN_MAX || seeker->arcs > ARCS_MAX))
		seeker->is_present = false;
}

/* Return bits: bit i is set if box i of a node is within the limit of a lane's observation. */
static __device__ __forceinline__ uint32_t
boxes_within(const struct shape_boxes_node *node, struct geonn_vector from, float limit_squared)
{
	float		square[ARCS_WIDTH];
	uint32_t	bits = 0;

	arcs_box_squares(node, from, square);
#pragma unroll
	for (uint32_t i = 0; i < ARCS_WIDTH; i++)
		bits |= (uint32_t) (square[i] <= limit_squared) << i;
	return bits;
}

/* Take the arcs within the limit of any lane.  Returns false if the warp would have to look at too many boxes. */
template <bool WRITE>
static __device__ __forceinline__ bool
walk(const struct shapes_within *search, struct seeker *seeker)
{
	const struct arcs *arcs = &search->arcs;
	float		limit_squared = arcs_limit_squared(search->limit);
	uint32_t	number[ARCS_LEVELS_MAX];	/* of each level the present node, and a bit for each of its boxes still to
											 * be entered */
	uint32_t	bits[ARCS_LEVELS_MAX];
	uint32_t	own = 0;		/* the leaves of the present node whose box is within this lane's own limit */
	int			top = arcs->shape.levels;
	int			level = top;	/* a walk begins one level above the root, where the only child is the root */
	uint32_t	visits = 0;

	for (uint32_t child = 0;;)
	{
		if (level > 0)
		{
			/* go down to a node */
			level--;
			own = 0;
			if (seeker->is_present)
				own = boxes_within(&arcs->node[arcs->shape.first[level] + child], seeker->from, limit_squared);
			number[level] = child;
			bits[level] = warp_fold(own, [](uint32_t a, uint32_t b) { return a | b; });
		}
		else if (seeker->is_present && (own >> (child % ARCS_WIDTH) & 1))
			take_leaf<WRITE>(search, seeker, &arcs->leaf[child]);

		/* find the next box that is left, on this level or above */
		while (level < top && bits[level] == 0)
			level++;
		if (level == top)
			return true;
		if (++visits > VISITS_MAX)
			return false;
		child = number[level] * ARCS_WIDTH + (uint32_t) __ffs(bits[level]) - 1;
		bits[level] &= bits[level] - 1;
	}
}

template <bool WRITE>
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS)
collect_kernel(const __grid_constant__ struct shapes_within search, uint32_t rows)
{
	struct warp_share share;
	uint32_t	bundle;

	warp_share_begin(&share, &search.status->next, (search.rows + 31) / 32, false);
	while (warp_share_next(&share, &bundle))
	{
		uint32_t	slot = bundle * 32 + warp_lane();
		uint32_t	row = slot < search.rows ? search.order.sorted_row[slot] : UINT32_MAX;
		uint32_t	end = WRITE ? rows : *(volatile const uint32_t *) &search.status->refused;
		bool		begins = slot < search.rows && row < end;
		struct seeker seeker = {};
		bool		done;

		seeker.is_present = begins;
#pragma unroll
		for (int i = 0; i < OPEN; i++)
			seeker.shape[i] = NONE;
		if (begins)
		{
			double2		point = search.order.point[row];
			uint32_t	inside = search.polygons != NULL ? search.inside[row] : 0;

			seeker.from = geonn_unit_vector(point.x, point.y);
			seeker.row = row;
			seeker.next = WRITE ? search.found.offset[row] + inside : 0;
			seeker.end = WRITE ? search.found.offset[row + 1] : 0;
			seeker.count = inside;
		}
		done = walk<WRITE>(&search, &seeker);
		if (WRITE)
		{
#pragma unroll
			for (int i = 0; i < OPEN; i++)
				end_run(&search, &seeker, i);
		}
		else if (slot < search.rows)
		{
			if (begins && !(done && seeker.is_present))
				atomicMin(&search.status->refused, row);
			search.found.count[row] = done && seeker.is_present ? seeker.count : UINT32_MAX;
		}
	}
}

cudaError_t
shapes_count(const struct shapes_within *search)
{
	return launch_resident(collect_kernel<false>, blocks_for(search->rows, WARP_BLOCK_THREADS), search->stream, *search,
						   search->rows);
}

cudaError_t
shapes_collect(const struct shapes_within *search, uint32_t rows)
{
	return launch_resident(collect_kernel<true>, blocks_for(search->rows, WARP_BLOCK_THREADS), search->stream, *search, rows);
}
