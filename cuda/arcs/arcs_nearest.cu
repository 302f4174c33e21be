/*
 * arcs_nearest.cu
 *		Finds the nearest shape of each observation on a GPU.
 *
 * Observations come in the order of the curve (index_order.cu).  A thread takes one: it looks at the leaf where
 * the curve would put the observation, which gives a limit, and then walks the boxes, of each node the nearest
 * first, as far as the limit, a chord in radii that shrinks as arcs are found.  Neighbouring threads need
 * much the same nodes and leaves, so these come from the first cache.
 *
 * A leaf gives two bounds for each arc (arcs_measure.cuh): from the distance to the arc's
 * chord in float64, with its sagitta less and more.  The least upper bound gives the limit.  Arcs whose lower bound
 * is within it are kept; at the end, or when they become too many, those that still are within it are measured by
 * common/arc.h, and the first by (distance, place in the dataset) is the answer.
 *
 * A walk keeps of each level the node, and which of its children are left, in their order: their boxes are looked
 * at once more when their turn comes.  That is less to store than the gaps.
 *
 * Before, polygons.cu finds the first polygon that an observation is in: its distance is 0.  Arcs at that distance may
 * come before it in the dataset, so the walk follows, with the margin as its limit.
 *
 * An observation that is as far from very many arcs, like the centre of a circle, would hold up all others.  So a
 * walk has an end: then the row is refused, and the CPU answers it and the rows behind it.  Threads whose rows
 * are behind a refused one have nothing to do but to write that they found nothing.
 */
#include "cuda/arcs/arcs.cuh"
#include "cuda/arcs/arcs_measure.cuh"
#include "cuda/base/blocks.cuh"
#include "cuda/base/columns.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index_order.cuh"

#define BLOCK_THREADS 128

/*
 * One launch takes this many observations: a cancelled search ends when the launches that are already enqueued have ended.
 * Four million observations of a million arcs take an H100 3 to 4 % longer than in one launch; slices of 2^18 would take 17
 * to 25 % longer.
 */
#define SLICE_ROWS ((uint32_t) 1 << 20)

/* A thread collects up to this many arcs before it measures them. */
#define KEPT 8

/* A walk may look at this many nodes and leaves, and measure arcs, all added up; beyond that the row is refused. */
#define VISITS_MAX 4096

/*
 * A node's children that the walk has not entered yet, as one number: three bits for each child, the
 * nearest first; the count in the upper bits.
 */
#define ORDER_COUNT_SHIFT 28

/* the kernel's parameters of a search */
struct arcs_task
{
	double		max_distance;
	double		widest;			/* the limit that max_distance gives */
	int64_t    *tag;
	double	   *distance;
	struct arcs_status *status;
	const uint32_t *inside;		/* [rows] in the order of the search: the first polygon that holds the observation, as
								 * polygons_find() writes it; NULL: the dataset has no polygons */
	struct index_order order;
	uint32_t	begin;			/* the launch answers observations begin ... end - 1, in the order of the search */
	uint32_t	end;
};

/*
 * Arcs that may be the nearest, with lower bounds of their chords.  Apart from struct seeker, so that the
 * compiler keeps the seeker in registers.
 */
struct kept
{
	double		lower[KEPT];
	uint32_t	position[KEPT];
};

/* an observation, and what has been found */
struct seeker
{
	struct geonn_vector from;
	double		limit;			/* chord; what is farther does not matter */
	float		limit_squared;	/* a little more */
	uint32_t	visits;			/* how many nodes and leaves the walk looked at, and arcs it measured */

	uint32_t	kept_count;

	/* the nearest measured arc; of several at that distance the first in the dataset */
	double		distance;		/* metres; infinite: none was */
	uint32_t	arc;
};

/* ---- leaves ---- */

static __device__ __forceinline__ void
set_limit(struct seeker *seeker, double limit)
{
	seeker->limit = limit;
	seeker->limit_squared = arcs_limit_squared(limit);
}

/* Measure the kept arcs that are still within the limit. */
static __device__ __forceinline__ void
measure_kept(struct seeker *seeker, const struct kept *kept, const struct arcs_leaf *leaves)
{
	for (uint32_t i = 0; i < seeker->kept_count; i++)
	{
		const struct arcs_leaf *leaf = &leaves[kept->position[i] / ARCS_WIDTH];
		uint32_t	number = kept->position[i] % ARCS_WIDTH;
		double		distance;
		uint32_t	arc = __ldg(&leaf->arc[number]);

		if (kept->lower[i] > seeker->limit)
			continue;
		seeker->visits++;
		distance = arcs_measure(leaf, number, seeker->from, seeker->limit);
		if (comes_before(distance, arc, seeker->distance, seeker->arc))
		{
			seeker->distance = distance;
			seeker->arc = arc;
		}
	}
	seeker->kept_count = 0;
}

/* Keep an arc of a leaf to be measured later, if the arc is within the limit. */
static __device__ __forceinline__ void
offer(struct seeker *seeker, struct kept *kept, const struct arcs_leaf *leaves, uint32_t number, uint32_t i)
{
	double		sagitta;
	double		distance = sqrt(arcs_square_to(&leaves[number], i, seeker->from, &sagitta));

	if (distance - sagitta > seeker->limit)
		return;
	if (distance + sagitta + SHAPE_ARCS_MARGIN < seeker->limit)
		set_limit(seeker, distance + sagitta + SHAPE_ARCS_MARGIN);
	if (seeker->kept_count == KEPT)
		measure_kept(seeker, kept, leaves);
	kept->lower[seeker->kept_count] = distance - sagitta;
	kept->position[seeker->kept_count++] = number * ARCS_WIDTH + i;
}

/*
 * Look at the arcs of a leaf, the one with the nearest chord first: this arc lowers the limit, and
 * few others remain within it.
 */
static __device__ __forceinline__ void
visit_leaf(struct seeker *seeker, struct kept *kept, const struct arcs_leaf *leaves, uint32_t number)
{
	const struct arcs_leaf *leaf = &leaves[number];
	double		least = INFINITY;
	uint32_t	next = 0;
	uint32_t	left = 0;

#pragma unroll
	for (uint32_t i = 0; i < ARCS_WIDTH; i++)
	{
		double		sagitta;
		double		square = arcs_square_to(leaf, i, seeker->from, &sagitta);
		double		bound = seeker->limit + sagitta;

		left |= (uint32_t) (square <= bound * bound) << i;
		next = square < least ? i : next;
		least = fmin(least, square);
	}
	/* The nearest chord may be beyond the limit while another arc, with a greater sagitta, is within. */
	while (left != 0)
	{
		if ((left >> next & 1) == 0)
			next = (uint32_t) __ffs(left) - 1;
		offer(seeker, kept, leaves, number, next);
		left &= ~(1u << next);
	}
}

/* ---- the walk ---- */

struct walk
{
	uint32_t	home;			/* the leaf that has been looked at before */
	int			level;			/* the level of `node`; a walk begins one level above the root, where the only child is
								 * the root */
	uint32_t	node;			/* on this level */
	uint32_t	order;			/* the node's children that are left */
};

/*
 * The node and the children left on each level above the present one.  Apart from struct walk, so
 * that the compiler keeps the walk in registers.
 */
struct walk_above
{
	uint32_t	node[ARCS_LEVELS_MAX + 1];
	uint32_t	order[ARCS_LEVELS_MAX + 1];
};

static __device__ __forceinline__ void
exchange(uint32_t *first, uint32_t *second)
{
	uint32_t	less = min(*first, *second);

	*second = max(*first, *second);
	*first = less;
}

/*
 * Return the children of a node that are within the limit, the nearest first.  Each key is the square of the child's
 * gap; the child's number replaces the last three bits, too small to matter for the order.
 */
static __device__ __forceinline__ uint32_t
order_of(const struct shape_boxes_node *node, const struct seeker *seeker)
{
	float		square[ARCS_WIDTH];
	uint32_t	key[ARCS_WIDTH];
	uint32_t	order = 0;
	uint32_t	count = 0;

	arcs_box_squares(node, seeker->from, square);
#pragma unroll
	for (uint32_t i = 0; i < ARCS_WIDTH; i++)
	{
		bool		within = square[i] <= seeker->limit_squared;

		key[i] = within ? (__float_as_uint(square[i]) & ~(uint32_t) (ARCS_WIDTH - 1)) | i : UINT32_MAX;
		count += within;
	}
	if (count > 1)
	{
#pragma unroll
		for (int i = 0; i < 8; i += 2)
			exchange(&key[i], &key[i + 1]);
#pragma unroll
		for (int i = 0; i < 8; i += 4)
		{
			exchange(&key[i], &key[i + 2]);
			exchange(&key[i + 1], &key[i + 3]);
			exchange(&key[i + 1], &key[i + 2]);
		}
#pragma unroll
		for (int i = 0; i < 4; i++)
			exchange(&key[i], &key[i + 4]);
		exchange(&key[2], &key[4]);
		exchange(&key[3], &key[5]);
		exchange(&key[1], &key[2]);
		exchange(&key[3], &key[4]);
		exchange(&key[5], &key[6]);
	}
	else
	{
#pragma unroll
		for (int i = 1; i < 8; i++)
			key[0] = min(key[0], key[i]);
	}
#pragma unroll
	for (uint32_t i = 0; i < ARCS_WIDTH; i++)
		order |= (key[i] & (ARCS_WIDTH - 1)) << (3 * i);
	return order | count << ORDER_COUNT_SHIFT;
}

static __device__ __forceinline__ bool
is_within(const struct shape_boxes_node *node, uint32_t child, const struct seeker *seeker)
{
	float		x = arcs_gap((float) seeker->from.x, __ldg(&node->low[0][child]), __ldg(&node->high[0][child]));
	float		y = arcs_gap((float) seeker->from.y, __ldg(&node->low[1][child]), __ldg(&node->high[1][child]));
	float		z = arcs_gap((float) seeker->from.z, __ldg(&node->low[2][child]), __ldg(&node->high[2][child]));

	return fmaf(z, z, fmaf(y, y, x * x)) <= seeker->limit_squared;
}

/* Find the next leaf within the limit.  Returns false if no leaf is left, or the walk has become too long. */
static __device__ __forceinline__ bool
next_leaf(struct walk *walk, struct walk_above *above, const struct arcs *arcs, struct seeker *seeker, uint32_t *leaf)
{
	while (seeker->visits < VISITS_MAX)
	{
		uint32_t	child = walk->order & (ARCS_WIDTH - 1);
		uint32_t	count = walk->order >> ORDER_COUNT_SHIFT;

		if (count == 0)
		{
			if (walk->level == arcs->shape.levels)
				return false;
			walk->level++;
			walk->node = above->node[walk->level];
			walk->order = above->order[walk->level];
			continue;
		}
		walk->order = (walk->order & ((1u << ORDER_COUNT_SHIFT) - 1)) >> 3 | (count - 1) << ORDER_COUNT_SHIFT;

		/*
		 * The children come in the order of gaps: where this one is beyond the limit, all later
		 * ones are, but for the small increase of limit_squared.
		 */
		if (walk->level < arcs->shape.levels &&
			!is_within(&arcs->node[arcs->shape.first[walk->level] + walk->node], child, seeker))
		{
			walk->order = 0;
			continue;
		}
		seeker->visits++;
		child += walk->node * ARCS_WIDTH;
		if (walk->level == 0)
		{
			if (child == walk->home)
				continue;
			*leaf = child;
			return true;
		}
		above->node[walk->level] = walk->node;
		above->order[walk->level] = walk->order;
		walk->level--;
		walk->node = child;
		walk->order = order_of(&arcs->node[arcs->shape.first[walk->level] + child], seeker);
	}
	return false;
}

/* Return the leaf whose part of the curve holds the observation's place. */
static __device__ __forceinline__ uint32_t
home_of(const struct arcs *arcs, const struct index_order *order, uint32_t key)
{
	uint2		leaves = index_order_leaves(&arcs->curve, key >> order->fraction_bits);
	uint64_t	code = index_order_code(order, key);

	while (leaves.y - leaves.x > 1)
	{
		uint32_t	middle = leaves.x + (leaves.y - leaves.x) / 2;

		if (__ldg(&arcs->curve.leaf_code[middle]) <= code)
			leaves.x = middle;
		else
			leaves.y = middle;
	}
	return min(leaves.x, arcs->shape.leaves - 1);
}

/* Find the nearest arc of a row.  Returns false if the row is refused, or lies behind a refused row. */
static __device__ __forceinline__ bool
seek(const struct arcs *arcs, const struct arcs_task *task, uint32_t slot, uint32_t row, struct seeker *seeker)
{
	double2		point;
	struct kept kept;
	struct walk walk;
	struct walk_above above;
	uint32_t	leaf;

	if (*(volatile const uint32_t *) &task->status->refused < row)
		return false;
	point = task->order.point[row];
	seeker->from = geonn_unit_vector(point.x, point.y);
	seeker->arc = task->inside != NULL ? task->inside[slot] : POLYGONS_NONE;
	seeker->distance = seeker->arc != POLYGONS_NONE ? 0.0 : INFINITY;
	set_limit(seeker, seeker->arc != POLYGONS_NONE ? fmin(SHAPE_ARCS_MARGIN, task->widest) : task->widest);
	leaf = home_of(arcs, &task->order, task->order.sorted_key[slot]);
	walk.home = leaf;
	walk.level = arcs->shape.levels;
	walk.node = 0;
	walk.order = 1u << ORDER_COUNT_SHIFT;
	do
		visit_leaf(seeker, &kept, arcs->leaf, leaf);
	while (next_leaf(&walk, &above, arcs, seeker, &leaf));
	if (seeker->visits >= VISITS_MAX)
	{
		atomicMin(&task->status->refused, row);
		return false;
	}
	measure_kept(seeker, &kept, arcs->leaf);
	return true;
}

/*
 * Each thread finds the nearest arc of one row.  Refused rows, and the rows behind a refused one, are written as rows
 * without a neighbour: otherwise the lane's memory could show results of another session.
 */
static __global__ void __launch_bounds__(BLOCK_THREADS)
search_kernel(const __grid_constant__ struct arcs arcs, const __grid_constant__ struct arcs_task task)
{
	uint32_t	slot = task.begin + blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	row;
	struct seeker seeker = {};
	bool		matched;

	if (slot >= task.end)
		return;
	row = task.order.sorted_row[slot];
	matched = seek(&arcs, &task, slot, row, &seeker) && seeker.distance <= task.max_distance && seeker.distance < INFINITY;
	__stcs(&task.distance[row], matched ? seeker.distance : INFINITY);
	__stcs((long long *) &task.tag[row], matched ? __ldg((const long long *) &arcs.tag[seeker.arc]) : 0);
}

/* ---- for the host ---- */

size_t
arcs_nearest_room(uint32_t rows)
{
	struct index_order order;
	size_t		bytes;

	return index_order_place(NULL, rows, &order, &bytes) == cudaSuccess ? bytes : INDEX_NO_ROOM;
}

cudaError_t
arcs_nearest_enqueue(struct arcs_nearest *search)
{
	const struct arcs *arcs = search->arcs;
	struct arcs_task task = {};
	size_t		bytes;

	CUDA_TRY(index_order_place(search->room, search->rows, &task.order, &bytes));
	task.max_distance = search->max_distance;
	task.widest = arcs_limit_of(search->max_distance);
	task.tag = search->tag;
	task.distance = search->distance;
	task.status = search->status;
	task.order.latitude = search->latitude;
	task.order.longitude = search->longitude;
	task.order.out_of_range = &search->status->out_of_range;
	task.order.fraction_bits = index_order_fraction_bits(&arcs->curve);
	task.begin = search->enqueued;
	task.end = task.begin + min(search->rows - task.begin, SLICE_ROWS);
	search->enqueued = task.end;
	if (task.begin == 0)
	{
		CUDA_TRY(cudaMemsetAsync(&search->status->out_of_range, 0, sizeof(uint32_t), search->stream));
		CUDA_TRY(cudaMemsetAsync(&search->status->refused, 0xFF, sizeof(uint32_t), search->stream));
		CUDA_TRY(index_order_enqueue(&task.order, &arcs->curve, search->stream));
	}
	if (search->polygons != NULL)
	{
		task.inside = task.order.key;
		CUDA_TRY(polygons_find(search->polygons, &task.order, task.begin, task.end, task.order.key, &search->status->refused,
							   search->stream));
	}
	search_kernel<<<blocks_for(task.end - task.begin, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>> (*arcs, task);
	return cudaGetLastError();
}
