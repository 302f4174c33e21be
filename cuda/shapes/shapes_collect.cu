/*
 * shapes_collect.cu
 *		Counts and writes the arcs that may be within a distance, with a warp for 32 observations.
 *
 * The observations of a warp follow each other in the order of the curve.  The warp goes through all boxes within the limit of
 * any of them; each lane looks at the arcs of a leaf whose box is within its own limit.  So a lane comes to the same arcs in
 * the same order in both passes, whatever the others ask for: the boxes above a leaf's box hold it, and the gaps to them
 * are no greater, as their roundings are monotonic.
 *
 * Arcs of a shape that come one after the other are a run: only the nearest of them is kept, by (distance, place in the
 * dataset).  The first pass counts runs without measuring them, so some of them prove to be too far later.
 *
 * An observation with very many runs, or a warp with very many boxes to look at, would hold up all others: then the rows are
 * refused, and the CPU answers them and those behind the first of them.
 */
#include "cuda/arcs/arcs_measure.cuh"
#include "cuda/shapes/shapes_within.cuh"
#include "cuda/base/blocks.cuh"
#include "cuda/base/warp.cuh"
#include "cuda/index/warp_share.cuh"

/* how many boxes and leaves a warp may look at for its observations */
#define VISITS_MAX ((uint32_t) 1 << 15)

/* a lane's observation, and the run that it is in */
struct seeker
{
	struct geonn_vector from;
	uint32_t	row;
	uint32_t	count;			/* runs that have begun */
	uint64_t	end;			/* of the observation's entries, when they are written */
	uint64_t	next;			/* entry to be written */
	uint32_t	shape;			/* of the run */
	uint32_t	arc;			/* its first arc at the least distance */
	double		distance;		/* metres */
};

/* no shape */
#define NONE UINT32_MAX

/* Write the run that has ended. */
static __device__ __forceinline__ void
end_run(const struct shapes_within *search, struct seeker *seeker)
{
	if (seeker->shape == NONE || seeker->next == seeker->end)
		return;
	search->entries.entry[seeker->next] = {seeker->distance, seeker->row, seeker->arc};
	search->entries.reference[seeker->next++] = seeker->shape;
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
		double		distance;
		uint32_t	arc;
		uint32_t	shape;

		if (!(square <= bound * bound))
			continue;
		arc = __ldg(&leaf->arc[i]);
		shape = (uint32_t) __ldg(&search->arcs.shape_of[arc]);
		if (shape != seeker->shape)
		{
			if (WRITE)
				end_run(search, seeker);
			seeker->shape = shape;
			seeker->distance = INFINITY;
			seeker->arc = arc;
			seeker->count++;
		}
		if (!WRITE)
			continue;
		distance = arcs_measure(leaf, i, seeker->from, search->limit);
		if (comes_before(distance, arc, seeker->distance, seeker->arc))
		{
			seeker->distance = distance;
			seeker->arc = arc;
		}
	}
}

/* bit i: box i of a node is within the limit of a lane's observation */
static __device__ __forceinline__ uint32_t
boxes_within(const struct cpu_boxes_node *node, struct geonn_vector from, float limit_squared)
{
	float		square[ARCS_WIDTH];
	uint32_t	bits = 0;

	arcs_box_squares(node, from, square);
#pragma unroll
	for (uint32_t i = 0; i < ARCS_WIDTH; i++)
		bits |= (uint32_t) (square[i] <= limit_squared) << i;
	return bits;
}

/* Take the arcs within the limit of any lane.  False: too many boxes are. */
template <bool WRITE>
static __device__ __forceinline__ bool
walk(const struct shapes_within *search, struct seeker *seeker, bool is_present)
{
	const struct arcs *arcs = &search->arcs;
	float		limit_squared = arcs_limit_squared(search->limit);
	uint32_t	number[ARCS_LEVELS_MAX];	/* of each level the node, and its boxes that are left */
	uint32_t	bits[ARCS_LEVELS_MAX];
	uint32_t	own = 0;		/* the boxes of leaves that the lane needs, of the present node */
	int			top = arcs->shape.levels;
	int			level = top;	/* above the root: its only child is the root */
	uint32_t	visits = 0;

	for (uint32_t child = 0;;)
	{
		if (level > 0)
		{
			/* go down to a node */
			level--;
			own = is_present ? boxes_within(&arcs->node[arcs->shape.first[level] + child], seeker->from, limit_squared) : 0;
			number[level] = child;
			bits[level] = warp_fold(own, [](uint32_t a, uint32_t b) { return a | b; });
		}
		else if (own >> (child % ARCS_WIDTH) & 1)
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

/* Refuse a row, unless one before it has been refused. */
static __device__ __forceinline__ void
refuse(const struct shapes_within *search, uint32_t row)
{
	atomicMin(&search->status->refused, row);
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
		bool		is_present = slot < search.rows && row < end;
		struct seeker seeker = {};
		bool		done;

		if (is_present)
		{
			double2		point = search.order.point[row];
			uint64_t	inside = search.polygons != NULL ? search.inside[row] : 0;

			seeker.from = geonn_unit_vector(point.x, point.y);
			seeker.row = row;
			seeker.next = WRITE ? search.found.offset[row] + inside : 0;
			seeker.end = WRITE ? search.found.offset[row + 1] : 0;
			seeker.count = (uint32_t) inside;
		}
		seeker.shape = NONE;
		done = walk<WRITE>(&search, &seeker, is_present);
		if (WRITE)
			end_run(&search, &seeker);
		else if (slot < search.rows)
		{
			if (is_present && (!done || seeker.count > SHAPES_WITHIN_MAX))
			{
				refuse(&search, row);
				is_present = false;
			}
			search.found.count[row] = is_present ? seeker.count : UINT32_MAX;
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
