/*
 * brute_redo.cu
 *		Brute force, second part: decides what float32 cannot decide.
 *
 * While no reference reaches an observation's floor, a pair costs three
 * floating-point operations and a comparison.  If a reference of a group does,
 * the whole warp looks at the group again: it goes through the pairs
 * (reference of each lane, observation) for which any lane reached the floor,
 * and computes the chords in float64 and, for chords within the limit,
 * distances.
 */
#include "cuda/brute/brute_filter.cuh"

/* how many references a warp takes at a time: four for each lane */
#define GROUP 128
#define TILE_GROUPS (BRUTE_TILE / GROUP)

static_assert(4 * REDO_PER_WARP == 32, "a lane's pairs of a group fit into a mask");

/* The redo_state of an observation while a warp works on it, with the observation's vector. */
struct __align__(16) redo_candidate
{
	struct geonn_vector observation;
	double		limit;
	double		distance;		/* metres, of the best so far */
	uint32_t	index;
	float		floor;
};

/*
 * Compare one reference of each lane with an observation's best.
 */
static __device__ __forceinline__ void
consider(struct redo_candidate *candidate, enum geonn_metric metric,
		 struct geonn_vector reference, uint32_t index, bool exists)
{
	struct geonn_vector observation = candidate->observation;
	double		s = geonn_chord_squared(observation, reference);
	bool		within = exists && s <= candidate->limit;
	double		limit;
	double		distance = INFINITY;
	uint32_t	first;

	if (!__any_sync(ALL_LANES, within))
		return;

	limit = geonn_chord_limit(warp_smallest(within ? s : CHORD_SQUARED_ANY));
	limit = fmin(limit, candidate->limit);
	if (within && s <= limit)
		distance = geonn_metric_distance_of(metric, observation, reference);
	first = distance < INFINITY ? index : NO_REFERENCE;
	warp_first(&distance, &first);

	__syncwarp();
	if (first == index && comes_before(distance, first, candidate->distance, candidate->index))
	{
		candidate->distance = distance;
		candidate->index = first;
	}
	if (threadIdx.x % 32 == 0)
	{
		candidate->limit = limit;
		candidate->floor = fmaxf(candidate->floor,
								 __double2float_rd(SHRINK * (1.0 - 0.5 * limit) - DOT_ERROR));
	}
	__syncwarp();
}

/*
 * Compare in float64 the pairs that reached a floor.  Bit 8 j + i of a lane's
 * mask says that reference j of the lane's four reached the floor of
 * observation i.
 */
static __device__ __forceinline__ void
consider_group(struct redo_candidate *candidates, const struct brute_references *references,
			   uint32_t first_index, uint32_t mask)
{
	mask = warp_fold(mask, [](uint32_t a, uint32_t b) { return a | b; });
	for (uint32_t j = 0; j < 4; j++)
	{
		uint32_t	observations = (mask >> (REDO_PER_WARP * j)) % (1u << REDO_PER_WARP);
		uint32_t	index = first_index + j;
		bool		exists = index < references->count;
		struct geonn_vector reference;

		if (observations == 0)
			continue;
		reference = load_vector(references->x, references->y, references->z,
								exists ? index : references->count - 1);
		for (; observations != 0; observations &= observations - 1)
			consider(&candidates[__ffs(observations) - 1], references->metric, reference, index,
					 exists);
	}
}

static __device__ __forceinline__ void
load_candidate(struct redo_candidate *candidate, const struct brute_room *room,
			   uint32_t place, uint32_t listed, const struct redo_state *state)
{
	uint32_t	observation = room->ambiguous[min(place, listed - 1)];

	candidate->observation = load_vector(room->x, room->y, room->z, observation);
	if (place >= listed)
	{
		candidate->limit = 0.0;
		candidate->distance = INFINITY;
		candidate->index = NO_REFERENCE;
		candidate->floor = INFINITY;	/* out of reach */
		return;
	}
	if (state == NULL)
	{
		candidate->limit = CHORD_SQUARED_ANY;
		candidate->distance = INFINITY;
		candidate->index = NO_REFERENCE;
		candidate->floor = room->floor[place];
		return;
	}
	candidate->limit = state->limit;
	candidate->distance = state->distance;
	candidate->index = state->index;
	candidate->floor = state->floor;
}

/* Return whether one of this lane's four references reaches the floor of an observation. */
static __device__ __forceinline__ bool
any_reaches(const float *x, const float *y, const float *z, const float *floor,
			float4 rx, float4 ry, float4 rz)
{
	bool		hit = false;

#pragma unroll
	for (int i = 0; i < REDO_PER_WARP; i++)
	{
		hit |= dot_product(x[i], y[i], z[i], rx.x, ry.x, rz.x) >= floor[i];
		hit |= dot_product(x[i], y[i], z[i], rx.y, ry.y, rz.y) >= floor[i];
		hit |= dot_product(x[i], y[i], z[i], rx.z, ry.z, rz.z) >= floor[i];
		hit |= dot_product(x[i], y[i], z[i], rx.w, ry.w, rz.w) >= floor[i];
	}
	return hit;
}

/* Return which pairs reach a floor: bit j * REDO_PER_WARP + i is set if reference j reaches that of
 * observation i. */
static __device__ __forceinline__ uint32_t
which_reach(const float *x, const float *y, const float *z, const float *floor,
			float4 rx, float4 ry, float4 rz)
{
	uint32_t	mask = 0;

#pragma unroll
	for (int i = 0; i < REDO_PER_WARP; i++)
	{
		if (dot_product(x[i], y[i], z[i], rx.x, ry.x, rz.x) >= floor[i])
			mask |= 1u << i;
		if (dot_product(x[i], y[i], z[i], rx.y, ry.y, rz.y) >= floor[i])
			mask |= 1u << (REDO_PER_WARP + i);
		if (dot_product(x[i], y[i], z[i], rx.z, ry.z, rz.z) >= floor[i])
			mask |= 1u << (2 * REDO_PER_WARP + i);
		if (dot_product(x[i], y[i], z[i], rx.w, ry.w, rz.w) >= floor[i])
			mask |= 1u << (3 * REDO_PER_WARP + i);
	}
	return mask;
}

static __global__ void
__launch_bounds__(BLOCK_THREADS, 3)
redo_kernel(struct brute_references references, struct brute_room room, uint32_t listed,
			struct redo_state *states, uint32_t first_tile, uint32_t end_tile, bool resume)
{
	__shared__ struct tile tiles[2];
	__shared__ struct redo_candidate all_candidates[BLOCK_WARPS][REDO_PER_WARP];
	struct redo_candidate *candidates = all_candidates[threadIdx.x / 32];
	uint32_t	lane = threadIdx.x % 32;
	uint32_t	place = blockIdx.x * REDO_PER_BLOCK + threadIdx.x / 32 * REDO_PER_WARP + lane;
	struct redo_state *state = &states[(size_t) blockIdx.y * listed + place];
	uint32_t	groups = (references.count + GROUP - 1) / GROUP;
	float		x[REDO_PER_WARP];
	float		y[REDO_PER_WARP];
	float		z[REDO_PER_WARP];
	float		floor[REDO_PER_WARP];

	if (lane < REDO_PER_WARP)
		load_candidate(&candidates[lane], &room, place, listed, resume ? state : NULL);
	__syncwarp();
#pragma unroll
	for (int i = 0; i < REDO_PER_WARP; i++)
	{
		x[i] = shrunk_single(candidates[i].observation.x);
		y[i] = shrunk_single(candidates[i].observation.y);
		z[i] = shrunk_single(candidates[i].observation.z);
		floor[i] = candidates[i].floor;
	}

	begin_segment(tiles, &references, &first_tile, &end_tile);
	for (uint32_t number = first_tile; number < end_tile; number++)
	{
		const struct tile *tile = take_tile(tiles, &references, number, end_tile);
		uint32_t	group = number * TILE_GROUPS;
		uint32_t	end_group = min(group + TILE_GROUPS, groups);

		for (uint32_t start = 4 * lane; group < end_group; group++, start += GROUP)
		{
			float4		rx = *(const float4 *) &tile->x[start];
			float4		ry = *(const float4 *) &tile->y[start];
			float4		rz = *(const float4 *) &tile->z[start];
			uint32_t	mask;

			if (!__any_sync(ALL_LANES, any_reaches(x, y, z, floor, rx, ry, rz)))
				continue;

			/*
			 * Find which pairs reached a floor.  Few groups get here; the asm
			 * tells the compiler that the references change, or it would
			 * prepare for this step above.
			 */
			asm volatile("":"+f"(rx.x), "+f"(rx.y), "+f"(rx.z), "+f"(rx.w));
			mask = which_reach(x, y, z, floor, rx, ry, rz);
			consider_group(candidates, &references, group * GROUP + 4 * lane, mask);
#pragma unroll
			for (int i = 0; i < REDO_PER_WARP; i++)
				floor[i] = candidates[i].floor;
		}
		__syncthreads();
	}

	if (lane < REDO_PER_WARP && place < listed)
	{
		state->limit = candidates[lane].limit;
		state->distance = candidates[lane].distance;
		state->index = candidates[lane].index;
		state->floor = candidates[lane].floor;
	}
}

static __global__ void
merge_kernel(struct brute_references references, struct brute_room room, uint32_t listed,
			 const struct redo_state *states, uint32_t segments)
{
	uint32_t	place = blockIdx.x * BLOCK_THREADS + threadIdx.x;
	double		distance = INFINITY;
	uint32_t	index = NO_REFERENCE;
	uint32_t	observation;

	if (place >= listed)
		return;
	observation = room.ambiguous[place];
	for (uint32_t segment = 0; segment < segments; segment++)
	{
		const struct redo_state *state = &states[(size_t) segment * listed + place];

		if (comes_before(state->distance, state->index, distance, index))
		{
			distance = state->distance;
			index = state->index;
		}
	}
	room.latitude[observation] = distance;
	((int64_t *) room.longitude)[observation] = references.tag[index];
}

cudaError_t
redo_launch(const struct brute_search *search, uint32_t blocks, uint32_t end_tile)
{
	redo_kernel<<<dim3(blocks, search->segments), BLOCK_THREADS, 0, search->stream>>>
		(*search->references, *search->room, search->status->ambiguous,
		 (struct redo_state *) search->room->states, search->next_tile, end_tile,
		 search->next_tile > 0);
	return cudaGetLastError();
}

cudaError_t
merge_launch(const struct brute_search *search)
{
	uint32_t	listed = search->status->ambiguous;

	merge_kernel<<<blocks_for(listed, BLOCK_THREADS), BLOCK_THREADS, 0, search->stream>>>
		(*search->references, *search->room, listed,
		 (const struct redo_state *) search->room->states, search->segments);
	return cudaGetLastError();
}

cudaError_t
redo_resident_blocks(int *blocks)
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, redo_kernel, BLOCK_THREADS, 0);
}
