/*
 * index_nearest.cu
 *		Finds the nearest reference of each observation on a GPU, by the index.
 *
 * Observations come in the order of the curve (index_order.cu).  A warp answers
 * a group of 64 that follow each other, two for each lane, in rounds:
 *
 *	1.	An observation from the middle of those that are left is the anchor.
 *		The leaf where the curve would put the anchor shows how far references
 *		are from each other there.  The observations within a multiple of that
 *		distance are the round's members.
 *	2.	One walk of the index, from the anchor, brings the leaves that may hold
 *		the nearest of any member.  Every lane compares its observations with
 *		each position, in float32, and keeps the least value and the second one.
 *		How far from the anchor a member's nearest can be bounds the walk.
 *	3.	Where the second value is so much larger that no other position can be
 *		before the best one, that one's distance is calculated, in float64, and
 *		written.  All others are listed as ambiguous.
 *
 * Then a warp for each ambiguous observation decides it in float64 alone.
 * That is 10 of a million with many observations for each reference; but with
 * few, groups are not worthwhile, and all observations are decided so.
 * Observations may need any number of leaves, so these launches end in time
 * (warp_share.cuh) and are repeated, while groups look at GROUP_LEAVES_MAX
 * leaves at most.
 *
 *
 * Why the answer is exact
 *
 * Notation and (1) are anchor.cuh's: v is what a lane computes for a position,
 * s - |o|^2 but for E (|o|^2 + s).
 *
 * Take two positions b and c.  margin_of() is M = 2^-17 (f + |o|^2) + 2^-120,
 * where f = v_b + |o|^2 is s_b but for (1) and a few u; all that these
 * and the rounding of sums with M do is less than 2^-23 (|o|^2 + s_b).  If
 *
 *		v_c > v_b + M
 *
 * then by (1), for both, s_c (1 + E) > s_b (1 - E) + M - 2 E |o|^2 - 2^-23 (|o|^2 +
 * s_b).  As 2 E + 2^-23 < 0.45 * 2^-17, the terms in |o|^2 leave something,
 * and s_c > s_b (1 + 0.5 * 2^-17).  That exceeds geonn_chord_limit(s_b), which is
 * s_b (1 + 2^-46), and so c's distance exceeds b's.  What underflows in float32 is
 * below 2^-140, for which M's 2^-120 makes up.
 *
 * So a position compared but not kept does not come first (3.).  One that is
 * not compared is farther from the anchor than the reach at that time.  A reach
 * is at least, for every member, |o| + sqrt(f + M) with its best until then, or |o| +
 * the limit's root; so s_c > f + M, from which the same follows, for the best of
 * then and for any better one, or c is beyond max_distance.  In the beginning
 * it is |o| + |o| + |r| for the anchor's nearest r in the first leaf: what is
 * beyond comes after r, and r is compared.  Roots are calculated to 2^-22, and
 * factors ANCHOR_ABOVE, 2^-20 more than 1, round up whatever bounds something.  Boxes
 * and positions are left out by the anchor's float64 (index_walk.cuh).
 *
 * It does no harm to compare a position twice, or with observations that are
 * not members.  decide leaves out what exceeds geonn_chord_limit() of some
 * position's squared chord, or geonn_radius_limit(max_distance), and compares
 * all others by (distance, place).  Coincident references are one position,
 * which begins with the first of them.
 */
#include "cuda/index/anchor.cuh"
#include "cuda/index/index_order.cuh"
#include "cuda/index/warp_share.cuh"

#define BLOCK_WARPS WARP_BLOCK_WARPS

/*
 * A multiprocessor runs this many blocks of search_kernel, so each thread has 64 registers.  Blocks use little shared
 * memory: the rest serves as the first-level cache, and holds the part of the index that the warps walk.
 */
#define SEARCH_BLOCKS 8

/* how many observations a lane, and its warp, work on */
#define PER_LANE 2
#define GROUP_ROWS (PER_LANE * INDEX_WIDTH)

/*
 * A group looks at this many leaves at most, and leaves its remaining observations to
 * decide_kernel: in a small batch, all groups wait for the slowest one.
 */
#define GROUP_LEAVES_MAX 16

/*
 * With at least this many references for each observation, neighbours in the batch share no leaves:
 * each observation is searched for on its own.
 */
#define SPARSE 32

/* The surroundings of an anchor reach twice as far as the nth nearest position in its home leaf; this is n. */
#define SURROUNDINGS 8

/*
 * If a leaf has more positions in reach than this, compare the nearer half of the reach first, and
 * then what is still in reach.
 */
#define MANY 8

/* A warp begins another round only if the last round finished at least this many observations. */
#define ROUND_ROWS_MIN 8

/* the kernels' parameters of a search */
struct nearest_task
{
	double		max_distance;
	double		chord_limit;	/* the limit on squared chords of answers */
	float		square_limit;	/* chord_limit in float32, rounded up */
	float		length_limit;	/* the root of square_limit */
	int64_t    *tag;
	double	   *distance;
	uint32_t   *row;
	struct index_status *status;
	struct index_order order;	/* the observations in the order of the search; after the sort its keys serve as the
								 * list of ambiguous slots */
	float		spread;			/* the greatest square of a member's offset, as a multiple of the square of the
								 * surroundings' size */
	uint32_t	leaves_max;		/* how many leaves a group may look at */
};

/* an observation of a lane */
struct seeker
{
	struct anchor_offset offset;
	float		best;			/* the least anchor_value() so far */
	float		second;			/* the least value of all other positions */
	uint32_t	position;		/* the position that has the value `best` */
};

/* Answer `row`, which is at `slot` in sorted order, by reference `number`, or by none. */
static __device__ __forceinline__ void
write_answer(const struct index *index, const struct nearest_task *task, uint32_t slot,
			 uint32_t row, double distance, uint32_t number)
{
	bool		matched = distance <= task->max_distance && distance < INFINITY;
	uint32_t	at = task->row != NULL ? slot : row;

	if (task->row != NULL)
		__stcs(&task->row[slot], row);
	__stcs(&task->distance[at], matched ? distance : INFINITY);
	__stcs((long long *) &task->tag[at], matched ? index->tag[number] : 0);
	if (!matched)
		atomicAdd(&task->status->unmatched, 1);
}

static __device__ __forceinline__ struct seeker
make_seeker(struct geonn_vector vector, struct geonn_vector anchor)
{
	struct seeker seeker;

	seeker.offset = anchor_offset_of(vector, anchor);
	seeker.best = INFINITY;
	seeker.second = INFINITY;
	seeker.position = 0;
	return seeker;
}

/* Compare all lanes' observations with the positions in the mask, of a leaf that is staged in shared memory. */
static __device__ __forceinline__ void
compare_positions(struct seeker *seekers, const float4 *staged, uint32_t leaf, uint32_t mask)
{
	while (mask != 0)
	{
		uint32_t	place = __ffs(mask) - 1;
		float4		reference = staged[place];

		mask &= mask - 1;
#pragma unroll
		for (int j = 0; j < PER_LANE; j++)
		{
			struct seeker *seeker = &seekers[j];
			float		value = anchor_value(&seeker->offset, reference);

			seeker->second = fminf(seeker->second, fmaxf(seeker->best, value));
			if (value < seeker->best)
				seeker->position = leaf * INDEX_WIDTH + place;
			seeker->best = fminf(seeker->best, value);
		}
	}
}

/* Return the square of the distance to the best position so far; it has the error of float32, which margin_of() bounds. */
static __device__ __forceinline__ float
best_square(const struct seeker *seeker)
{
	return fmaxf(seeker->best + seeker->offset.square, 0.0f);
}

static __device__ __forceinline__ float
margin_of(const struct seeker *seeker)
{
	return __fmaf_rn(ANCHOR_MARGIN, best_square(seeker) + seeker->offset.square, ANCHOR_FLOOR);
}

/* Return how far from the anchor the nearest reference of any member can be. */
static __device__ __forceinline__ float
reach_of_members(const struct seeker *seekers, const bool *member, float square_limit)
{
	float		reach = 0.0f;

#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
		if (member[j])
		{
			float		square = best_square(&seekers[j]) + margin_of(&seekers[j]);

			reach = fmaxf(reach, seekers[j].offset.norm + anchor_root_above(fminf(square, square_limit)));
		}
	return anchor_largest(reach * ANCHOR_ABOVE);
}

/* Put slots on the list of ambiguous slots.  All lanes of the warp must call this. */
static __device__ __forceinline__ void
list_slot(const struct nearest_task *task, uint32_t slot, bool ambiguous)
{
	uint32_t	number = warp_take(&task->status->ambiguous, ambiguous);

	if (ambiguous)
		task->order.key[number] = slot;
}

/* a warp's group of neighbouring observations, in shared memory, by slot of the group */
struct group_points
{
	double		x[GROUP_ROWS];	/* vectors */
	double		y[GROUP_ROWS];
	double		z[GROUP_ROWS];
	uint32_t	row[GROUP_ROWS];
	float4		staged[INDEX_WIDTH];	/* the positions of a leaf, as offsets from the anchor */
};

/* what a warp knows of its group */
struct group
{
	uint32_t	first_slot;		/* the group's first slot in the order */
	uint32_t	leaves_left;	/* how many more leaves the group may look at */
	struct group_points *points;
	uint32_t	left[PER_LANE]; /* bits of the lanes whose observation j is not finished */
};

/* Return the slot, in the group, of this lane's observation j. */
static __device__ __forceinline__ uint32_t
group_slot(int j)
{
	return j * INDEX_WIDTH + warp_lane();
}

static __device__ __forceinline__ struct geonn_vector
group_vector(const struct group *group, uint32_t slot)
{
	struct geonn_vector vector;

	vector.x = group->points->x[slot];
	vector.y = group->points->y[slot];
	vector.z = group->points->z[slot];
	return vector;
}

/* Load the observations of the group.  The loads bypass the first-level cache, where points would displace the index. */
static __device__ __forceinline__ void
load_group(struct group *group, const struct index_order *order)
{
	struct group_points *points = group->points;
	uint32_t	row[PER_LANE];
	double2		point[PER_LANE];

#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
	{
		uint32_t	slot = group->first_slot + group_slot(j);

		group->left[j] = __ballot_sync(ALL_LANES, slot < order->rows);
		row[j] = __ldcs(&order->sorted_row[min(slot, order->rows - 1)]);
	}
#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
		point[j] = __ldcg(&order->point[row[j]]);
#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
	{
		struct geonn_vector vector = geonn_unit_vector(point[j].x, point[j].y);

		points->x[group_slot(j)] = vector.x;
		points->y[group_slot(j)] = vector.y;
		points->z[group_slot(j)] = vector.z;
		points->row[group_slot(j)] = row[j];
	}
	__syncwarp();				/* any lane's observation may become the anchor, and all lanes read the anchor */
}

/*
 * Choose the anchor among the observations that are not finished: the one in
 * the middle of the group, or near it.  False if all are finished.
 */
static __device__ __forceinline__ bool
choose_anchor(const struct group *group, uint32_t *anchor)
{
	*anchor = INDEX_NONE;
#pragma unroll
	for (int j = 0; j < PER_LANE / 2; j++)
		if (group->left[j] != 0)
			*anchor = j * INDEX_WIDTH + 31 - __clz(group->left[j]);
#pragma unroll
	for (int j = PER_LANE - 1; j >= PER_LANE / 2; j--)
		if (group->left[j] != 0)
			*anchor = j * INDEX_WIDTH + __ffs(group->left[j]) - 1;
	return *anchor != INDEX_NONE;
}

/*
 * At the anchor's own leaf, choose as members the observations in the anchor's surroundings.  Returns how far from the
 * anchor a member's nearest reference can be.  `square` is the squared distance of the lane's position.
 */
static __device__ __forceinline__ float
choose_members(const struct seeker *seekers, bool *member, const struct nearest_task *task,
			   bool present, float square)
{
	float		least = anchor_smallest(present ? square : INFINITY);
	float		size = anchor_nth_smallest(present ? square : INFINITY, SURROUNDINGS);
	float		norm = 0.0f;

#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
	{
		member[j] = member[j] && seekers[j].offset.square <= task->spread * size;
		if (member[j])
			norm = fmaxf(norm, seekers[j].offset.norm);
	}
	norm = anchor_largest(norm);

	/*
	 * The distances from a member to the anchor, and from the anchor to its nearest so far, bound
	 * how far the member's nearest can be.
	 */
	return (norm + fminf(norm + anchor_root_above(least + ANCHOR_FLOOR), task->length_limit)) *
		ANCHOR_ABOVE;
}

/*
 * Compare all lanes' observations with the staged leaf's positions in reach.
 * `square` is the squared distance of the lane's position, if `present`.
 * Returns the reach afterwards.
 */
static __device__ __forceinline__ float
compare_leaf(struct seeker *seekers, const bool *member, const struct nearest_task *task,
			 const float4 *staged, uint32_t leaf, bool present, float square, float reach)
{
	uint32_t	mask = __ballot_sync(ALL_LANES,
									 present && square <= reach * reach * ANCHOR_ABOVE);

	if (mask == 0)
		return reach;
	if (__popc(mask) > MANY)
	{
		/* Compare the positions within half the reach first: they may shorten the reach so far that no other is left. */
		uint32_t	nearer = __ballot_sync(ALL_LANES,
										   present && square <= 0.25f * reach * reach);

		if (nearer != 0)
		{
			compare_positions(seekers, staged, leaf, nearer);
			reach = reach_of_members(seekers, member, task->square_limit);
			mask = ~nearer &
				__ballot_sync(ALL_LANES,
							  present && square <= reach * reach * ANCHOR_ABOVE);
		}
	}
	compare_positions(seekers, staged, leaf, mask);
	return reach_of_members(seekers, member, task->square_limit);
}

/*
 * Look at the leaves around the anchor observation, its own first, until the observations
 * that are searched with it need no more, or leaves_left is 0.
 */
static __device__ __forceinline__ void
search_leaves(struct group *group, struct seeker *seekers, bool *member,
			  const struct index *index, const struct nearest_task *task, uint32_t anchor_slot)
{
	struct geonn_vector anchor = group_vector(group, anchor_slot);
	uint32_t	key = task->order.sorted_key[group->first_slot + anchor_slot];
	float4	   *staged = group->points->staged;
	struct index_walk walk;
	uint32_t	leaf;
	bool		is_home = true;
	float		reach = INFINITY;

	index_walk_begin(&walk, index, anchor, 0, index_order_home(index, &task->order, key));
	while (index_walk_next(&walk, (double) (reach * reach * ANCHOR_ABOVE), &leaf))
	{
		uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
		bool		present = position < index->shape.positions;
		struct geonn_vector vector = index_vector(index, position);
		float4		place = anchor_place(vector, anchor);

		if (group->leaves_left == 0)
			break;
		group->leaves_left--;
		__syncwarp();			/* all lanes are done with the leaf before */
		staged[warp_lane()] = place;
		__syncwarp();

		if (is_home)
			reach = choose_members(seekers, member, task, present, place.w);
		is_home = false;
		reach = compare_leaf(seekers, member, task, staged, leaf, present, place.w, reach);
	}
}

/*
 * Answer the members of a round, or list them as ambiguous.  A round that
 * finishes few is the last one, and the other observations are listed for
 * decide_kernel.
 */
static __device__ __forceinline__ void
answer_members(struct group *group, const struct seeker *seekers, bool *member,
			   const struct index *index, const struct nearest_task *task)
{
	uint32_t	finished = 0;
	bool		is_last;

#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
		finished += __popc(__ballot_sync(ALL_LANES, member[j]));
	is_last = group->leaves_left == 0 || finished < ROUND_ROWS_MIN;
#pragma unroll
	for (int j = 0; j < PER_LANE; j++)
	{
		uint32_t	slot = group->first_slot + group_slot(j);
		bool		is_left = group->left[j] >> warp_lane() & 1;
		bool		found = seekers[j].best < INFINITY;
		bool		ambiguous;

		if (group->leaves_left == 0)
			member[j] = false;
		ambiguous = member[j] ?
			found && !(seekers[j].second > seekers[j].best + margin_of(&seekers[j])) :
			is_left && is_last;
		list_slot(task, slot, ambiguous);
		if (member[j] && !ambiguous)
		{
			uint32_t	position = seekers[j].position;
			double		distance = found ?
				geonn_metric_distance_of(index->metric, group_vector(group, group_slot(j)),
										 index_vector(index, position)) : INFINITY;

			if (index->references != index->shape.positions)
				position = index->start[position];
			write_answer(index, task, slot, group->points->row[group_slot(j)], distance,
						 position);
		}
		group->left[j] &= ~__ballot_sync(ALL_LANES, member[j]);
		if (is_last)
			group->left[j] = 0;
	}
}

/*
 * Each warp answers a group of neighbouring observations, in rounds.  A round has an anchor, and
 * finishes the observations in the anchor's surroundings.
 */
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS, SEARCH_BLOCKS)
search_kernel(const __grid_constant__ struct index index,
			  const __grid_constant__ struct nearest_task task)
{
	__shared__ struct group_points points[BLOCK_WARPS];
	uint32_t	number = blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH;
	struct group group;
	uint32_t	anchor;

	if ((uint64_t) number * GROUP_ROWS >= task.order.rows)
		return;
	group.first_slot = number * GROUP_ROWS;
	group.leaves_left = task.leaves_max;
	group.points = &points[threadIdx.x / INDEX_WIDTH];
	load_group(&group, &task.order);
	while (choose_anchor(&group, &anchor))
	{
		struct seeker seekers[PER_LANE];
		bool		member[PER_LANE];

#pragma unroll
		for (int j = 0; j < PER_LANE; j++)
		{
			seekers[j] = make_seeker(group_vector(&group, group_slot(j)),
									 group_vector(&group, anchor));
			member[j] = group.left[j] >> warp_lane() & 1;
		}
		search_leaves(&group, seekers, member, &index, &task, anchor);
		answer_members(&group, seekers, member, &index, &task);
	}
}

/* The first reference so far in the order of comes_before(), of one lane or of the whole warp. */
struct first_reference
{
	double		distance;		/* metres; infinite: no reference yet */
	uint32_t	place;
	uint32_t	number;			/* index of the reference in the sorted order */
};

/*
 * The warp decides an observation in float64, among the references with squared chords up to the
 * limit.  It looks at leaf `home` first, unless this is INDEX_NONE.
 */
static __device__ __forceinline__ struct first_reference
decide_alone(const struct index *index, struct geonn_vector from, double limit, uint32_t home)
{
	struct first_reference first = {INFINITY, INDEX_NONE, INDEX_NONE};
	uint32_t	place;			/* this lane's first reference's place */
	struct index_walk walk;
	uint32_t	leaf;

	index_walk_begin(&walk, index, from, 0, home);
	while (index_walk_next(&walk, limit, &leaf))
	{
		uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
		struct geonn_vector vector = index_vector(index, position);
		double		square = position < index->shape.positions ?
			geonn_chord_squared(from, vector) : INFINITY;

		if (!__any_sync(ALL_LANES, square <= limit))
			continue;
		limit = fmin(limit, geonn_chord_limit(warp_smallest(square)));
		if (square <= limit)
		{
			double		distance = geonn_metric_distance_of(index->metric, from, vector);
			uint32_t	reference = index->start[position];

			place = index->place[reference];
			if (comes_before(distance, place, first.distance, first.place))
				first = {distance, place, reference};
		}
	}

	place = first.place;
	warp_first(&first.distance, &first.place);
	first.number = __shfl_sync(ALL_LANES, first.number,
							   __ffs(__ballot_sync(ALL_LANES, place == first.place)) - 1);
	return first;
}

/* Each warp takes ambiguous observations, one after the other, and decides each in float64. */
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS)
decide_kernel(const __grid_constant__ struct index index,
			  const __grid_constant__ struct nearest_task task)
{
	struct warp_share share;
	uint32_t	listed;

	warp_share_begin(&share, &task.status->decided, task.status->ambiguous, true);
	while (warp_share_next(&share, &listed))
	{
		uint32_t	slot = task.order.key[listed];
		uint32_t	row = task.order.sorted_row[slot];
		double2		point = task.order.point[row];
		struct first_reference first =
			decide_alone(&index, geonn_unit_vector(point.x, point.y), task.chord_limit,
						 index_order_home(&index, &task.order, task.order.sorted_key[slot]));

		if (warp_lane() == 0)
			write_answer(&index, &task, slot, row, first.distance, first.number);
	}
}

/* Fill in the kernels' parameters.  index_nearest_decide() uses all of them except the order. */
static cudaError_t
make_task(const struct index_nearest *search, struct nearest_task *task)
{
	double		references_a_row = (double) search->index->shape.positions / search->rows;
	size_t		bytes;

	task->max_distance = search->max_distance;
	task->chord_limit = geonn_metric_radius_limit(search->index->metric, search->max_distance);
	task->square_limit = (float) (task->chord_limit * (1.0 + 0x1p-20)) + ANCHOR_FLOOR;
	task->length_limit = sqrtf(task->square_limit) * ANCHOR_ABOVE;
	task->tag = search->tag;
	task->distance = search->distance;
	task->row = search->row;
	task->status = search->status;
	task->spread = 4.0f + (float) (64.0 * references_a_row);
	task->leaves_max = references_a_row < SPARSE ? GROUP_LEAVES_MAX : 0;
	task->order.latitude = search->latitude;
	task->order.longitude = search->longitude;
	task->order.out_of_range = &search->status->out_of_range;
	task->order.fraction_bits = index_order_fraction_bits(search->index);
	return index_order_place(search->room, search->rows, &task->order, &bytes);
}

size_t
index_nearest_room(uint32_t rows)
{
	struct index_order order;
	size_t		bytes;

	return index_order_place(NULL, rows, &order, &bytes) == cudaSuccess ? bytes : INDEX_NO_ROOM;
}

static cudaError_t
launch_decide(const struct index_nearest *search, const struct nearest_task *task)
{
	return launch_resident(decide_kernel, blocks_for(search->rows, BLOCK_WARPS), search->stream,
						   *search->index, *task);
}

cudaError_t
index_nearest_enqueue(const struct index_nearest *search)
{
	struct nearest_task task = {};
	uint32_t	blocks = blocks_for(search->rows, GROUP_ROWS * BLOCK_WARPS);

	CUDA_TRY(make_task(search, &task));
	CUDA_TRY(cudaMemsetAsync(search->status, 0, sizeof(struct index_status), search->stream));
	CUDA_TRY(index_order_enqueue(&task.order, search->index, search->stream));
	if (search->sorted != NULL)
		CUDA_TRY(cudaEventRecord(search->sorted, search->stream));
	search_kernel<<<blocks, WARP_BLOCK_THREADS, 0, search->stream>>> (*search->index, task);
	CUDA_TRY(cudaGetLastError());
	return launch_decide(search, &task);
}

cudaError_t
index_nearest_decide(const struct index_nearest *search)
{
	struct nearest_task task = {};

	CUDA_TRY(make_task(search, &task));
	return launch_decide(search, &task);
}
