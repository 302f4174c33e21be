/*
 * small_k.cu
 *		Finds the first k neighbours, k small, of 32 observations at a time.
 *
 * Observations that follow each other in the order of search need the same
 * leaves.  So a warp walks the index once for a group of observations, from an
 * anchor, the vector of one of them.  The members of the group are the
 * observations no farther from the anchor than some references are; each lane
 * has one observation.
 *
 * All lanes compare every position that the walk brings, in float32, by
 * offsets from the anchor.  A lane keeps the KEPT smallest squares, KEPT > k,
 * each with the number of its position in place of its last eight bits.  How
 * far the (KEPT - 1)-th of any member reaches from the anchor bounds the walk.
 * Then float64 decides: the lane puts the kept positions in the order
 * (distance, place), and looks whether a position that it has not kept could
 * be among the first k.  If so, or if the observation is too much for this
 * kernel for another reason, it goes to a list, and neighbours_select.cu
 * answers it from the start.
 *
 * When the members are done, the warp chooses another anchor among the
 * remaining observations.  If too few would be members, all remaining
 * observations go to the list instead.
 *
 *
 * Why no neighbour is lost
 *
 * Notation and (2) are anchor.cuh's; f is what a lane computes for s, and made not
 * negative, which only brings it nearer to s.  A key is f without its last eight
 * bits, so at most 2^-15 of itself less, and a number in their place.
 *
 * A position that was compared but not kept has a key above the last one kept;
 * with F that key less its number, its f is at least F, and by (2) its s at
 * least (F - 2^-17 |o|^2) (1 - 2^-16).  If that exceeds geonn_chord_limit() of
 * the k-th of those kept, in the order (distance, place), it comes after it.
 *
 * A position that was not compared is farther from the anchor than the reach,
 * at least |o| + sqrt(g), where g is at least the s of the (KEPT - 1)-th key, by
 * (2), and what geonn_chord_limit() makes of it, or at least geonn_radius_limit(
 * max_distance).  So its s exceeds g: KEPT - 1 >= k others come before it, or it is
 * too far away.  ANCHOR_ABOVE and ANCHOR_FLOOR round these up.
 *
 * Until a lane has KEPT - 1 keys, its reach is infinite, or that of max_distance.
 */
#include <math.h>

#include "cuda/index/anchor.cuh"
#include "cuda/neighbours/neighbours_warp.cuh"

/* the warps and threads of a block: the shared memory of its warps is within 48 kB */
#define BLOCK_WARPS 4
#define BLOCK_THREADS (BLOCK_WARPS * INDEX_WIDTH)

/* the greatest number of positions that a group compares: their numbers have eight bits */
#define GROUP_POSITIONS 256

/* the greatest number of leaves that a group looks at for its members */
#define GROUP_LEAVES 64

/* a member is at most as far from the anchor as the position of this rank in the anchor's leaf */
#define SURROUNDINGS 8

/* how many members a round must have for another round to be worthwhile */
#define ROUND_MEMBERS_MIN 8

/* the greatest number of keys that a lane keeps */
#define KEPT_MAX 36

/* the key of no position; and the bits of a key that hold a position's number */
#define KEY_NONE UINT32_MAX
#define KEY_NUMBER 255u

/*
 * How far from the anchor the neighbours of an observation can be, if this is
 * the last key that matters.
 */
static __device__ __forceinline__ float
reach_of(const struct anchor_offset *member, uint32_t key, float square_limit)
{
	float		square = square_limit;

	if (key != KEY_NONE)
	{
		float		greatest = __uint_as_float(key | KEY_NUMBER);

		greatest += 2.0f * ANCHOR_MARGIN * (greatest + member->square) + ANCHOR_FLOOR;
		square = fminf(square, greatest * ANCHOR_ABOVE);
	}
	return square < INFINITY ? (member->norm + anchor_root_above(square)) * ANCHOR_ABOVE : INFINITY;
}

/*
 * Compare with the positions that the mask names, at least one, numbered from
 * `number` on.  The next position is loaded ahead, since a warp has little else
 * to do meanwhile.
 */
template <int KEPT>
static __device__ __forceinline__ void
compare_positions(const struct anchor_offset *member, const float4 *staged, uint32_t mask,
				  uint32_t number, uint32_t *kept)
{
	float4		next = staged[__ffs(mask) - 1];

	for (; mask != 0; number++)
	{
		float4		reference = next;
		float		square = anchor_value(member, reference) + member->square;
		uint32_t	key = __float_as_uint(fmaxf(square, 0.0f));

		mask &= mask - 1;
		next = staged[(__ffs(mask) - 1) & (INDEX_WIDTH - 1)];
		key = (key & ~KEY_NUMBER) | number;
		if (!__any_sync(ALL_LANES, key < kept[KEPT - 1]))
			continue;
		/* each kept key becomes the middle one of itself, the key before it, and the new key */
#pragma unroll
		for (int i = KEPT - 1; i > 0; i--)
			kept[i] = max(kept[i - 1], min(kept[i], key));
		kept[0] = min(kept[0], key);
	}
}

/*
 * Shared memory of a warp: as little as possible, since what is left of it is
 * the cache that holds the index.  Rows of distances have 33 places, so that
 * lanes have no bank conflicts, neither with a lane for each observation nor
 * with a lane for each neighbour of one observation.
 */
template <int KEPT>
struct small_k_room
{
	union
	{
		float4		staged[INDEX_WIDTH];	/* during the walk: a leaf, as seen from the anchor */
		double		distance[KEPT][INDEX_WIDTH + 1];	/* after the walk: the distances of each
														 * lane's observation */
	};
	uint32_t	compared[GROUP_POSITIONS];	/* the positions that were compared, by number */
	uint8_t		number[KEPT][INDEX_WIDTH];	/* numbers of the positions at these distances */
};

static_assert(GROUP_POSITIONS <= KEY_NUMBER + 1 && KEY_NUMBER <= UINT8_MAX, "numbers of a byte");

/* the position of the i-th neighbour of a lane's observation */
template <int KEPT>
static __device__ __forceinline__ uint32_t
kept_position(const struct small_k_room<KEPT> *room, uint32_t i, uint32_t lane)
{
	return room->compared[room->number[i][lane]];
}

/*
 * Walk for the members around an anchor: fill in their keys, and note which
 * positions have been compared.  False if these are too many.
 */
template <int KEPT>
static __device__ __forceinline__ bool
search_group(const struct index *index, struct geonn_vector anchor, struct geonn_vector vector,
			 float square_limit, struct small_k_room<KEPT> *room, struct anchor_offset *member,
			 bool *is_member, uint32_t *kept)
{
	struct index_walk walk;
	uint32_t	leaf;
	uint32_t	leaves = 0;
	uint32_t	count = 0;
	bool		is_home = true;
	float		reach = INFINITY;

	*member = anchor_offset_of(vector, anchor);
#pragma unroll
	for (int i = 0; i < KEPT; i++)
		kept[i] = KEY_NONE;

	index_walk_begin(&walk, index, anchor, 0,
					 index_home_leaf(index, index_code(anchor), 0, index->shape.nodes[0]));
	while (index_walk_next(&walk, (double) (reach * reach * ANCHOR_ABOVE), &leaf))
	{
		uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
		bool		present = position < index->shape.positions;
		struct geonn_vector at = index_vector(index, position);
		float4		place = anchor_place(at, anchor);
		float		square = place.w;
		uint32_t	mask;

		if (is_home)
		{
			float		size = anchor_nth_smallest(present ? square : INFINITY, SURROUNDINGS);

			*is_member = *is_member && member->square <= size;
			is_home = false;

			/* lanes without a member look for nothing */
			if (!*is_member)
#pragma unroll
				for (int i = 0; i < KEPT; i++)
					kept[i] = 0;
		}
		mask = __ballot_sync(ALL_LANES, present && square <= reach * reach * ANCHOR_ABOVE);
		if (++leaves > GROUP_LEAVES || count + __popc(mask) > GROUP_POSITIONS)
			return false;
		if (mask == 0)
			continue;

		__syncwarp();			/* all lanes are done with the leaf before */
		room->staged[warp_lane()] = place;
		if (mask >> warp_lane() & 1)
			room->compared[count + lanes_before(mask)] = position;
		__syncwarp();
		compare_positions<KEPT>(member, room->staged, mask, count, kept);
		count += __popc(mask);
		reach = anchor_largest(*is_member ? reach_of(member, kept[KEPT - 2], square_limit) : 0.0f);
	}
	__syncwarp();				/* so that other lanes can read what was compared */
	return true;
}

static __device__ __forceinline__ uint32_t
first_reference(const struct index *index, uint32_t position)
{
	/* if no two references coincide, positions and references have the same numbers */
	return index->references == index->shape.positions ? position : index->start[position];
}

/*
 * Put a lane's kept positions, its column of the room, in order; most are in
 * order already.  Returns their number.
 */
template <int KEPT>
static __device__ __forceinline__ uint32_t
put_in_order(const struct index *index, struct small_k_room<KEPT> *room, struct geonn_vector vector,
			 const uint32_t *kept)
{
	uint32_t	lane = warp_lane();
	uint32_t	count = 0;
	double		last = -1.0;	/* distance of the last one in order */
	uint8_t		next_number;
	uint32_t	next;
	struct geonn_vector next_vector;

#pragma unroll
	for (int i = 0; i < KEPT; i++)
	{
		room->number[i][lane] = (uint8_t) (kept[i] & KEY_NUMBER);
		count += kept[i] != KEY_NONE;
	}
	if (count == 0)
		return 0;
	next_number = room->number[0][lane];
	next = room->compared[next_number];
	next_vector = index_vector(index, next);
	/*
	 * two at a time, so that no move waits for what is loaded; more code would
	 * not be in the caches
	 */
#pragma unroll 2
	for (uint32_t i = 0; i < count; i++)
	{
		uint8_t		number = next_number;
		uint32_t	position = next;
		struct geonn_vector at_vector = next_vector;
		double		distance;
		uint32_t	at = i;

		/* loaded while the distance is calculated */
		next_number = room->number[min(i + 1, count - 1)][lane];
		next = room->compared[next_number];
		next_vector = index_vector(index, next);
		distance = geonn_metric_distance_of(index->metric, vector, at_vector);
		if (distance > last)
			last = distance;
		else
			for (; at > 0; at--)
			{
				double		before = room->distance[at - 1][lane];
				uint8_t		other = room->number[at - 1][lane];

				if (before < distance ||
					(before == distance &&
					 index->place[first_reference(index, room->compared[other])] <
					 index->place[first_reference(index, position)]))
					break;
				room->distance[at][lane] = before;
				room->number[at][lane] = other;
			}
		room->distance[at][lane] = distance;
		room->number[at][lane] = number;
	}
	return count;
}

/* write a neighbour, a reference of the index's order, into a slot */
static __device__ __forceinline__ void
write_neighbour(const struct neighbours *search, uint64_t slot, double distance,
				uint32_t reference)
{
	search->value[slot] = distance;
	if (search->tag != NULL)
		search->tag[slot] = search->index.tag[reference];
	else
		search->reference[slot] = reference;
}

/*
 * Write a lane's first neighbours into its observation's slots, if positions
 * may stand for many references.  Returns their number; *certain becomes false
 * if coincident references would have to be merged with others.
 */
template <int KEPT>
static __device__ __forceinline__ uint32_t
write_coincident(const struct neighbours *search, const struct small_k_room<KEPT> *room,
				 uint32_t row, uint32_t kept, bool *certain)
{
	const struct index *index = &search->index;
	uint64_t	slot = (uint64_t) row * search->k;
	uint32_t	lane = warp_lane();
	uint32_t	count = 0;

	for (uint32_t i = 0; i < kept && count < search->k; i++)
	{
		uint32_t	position = kept_position<KEPT>(room, i, lane);
		double		distance = room->distance[i][lane];

		if (distance > search->max_distance)
			break;
		if (i + 1 < kept && distance == room->distance[i + 1][lane])
			*certain = false;
		for (uint32_t reference = index->start[position];
			 reference < index->start[position + 1] && count < search->k; reference++)
		{
			write_neighbour(search, slot + count, distance, reference);
			count++;
		}
	}
	return count;
}

/*
 * Write the first neighbours of all lanes' observations, `count` of each, if
 * every reference has a position of its own.
 */
template <int KEPT>
static __device__ __forceinline__ void
write_all(const struct neighbours *search, const struct small_k_room<KEPT> *room, uint32_t row,
		  uint32_t count)
{
	uint32_t	lane = warp_lane() / search->k;
	uint32_t	number = warp_lane() % search->k;
	const uint32_t lanes = INDEX_WIDTH / search->k;
	const uint32_t numbers = INDEX_WIDTH % search->k;

	/* neighbouring lanes write neighbouring slots */
	for (uint32_t i = 0; i < search->k; i++)
	{
		uint64_t	slot = (uint64_t) __shfl_sync(ALL_LANES, row, lane) * search->k + number;

		if (number < __shfl_sync(ALL_LANES, count, lane))
			write_neighbour(search, slot, room->distance[number][lane],
							kept_position<KEPT>(room, number, lane));
		lane += lanes;
		number += numbers;
		if (number >= search->k)
		{
			number -= search->k;
			lane++;
		}
	}
}

/*
 * Write the first neighbours of the members into their slots; all lanes take
 * part.  False for a member whose neighbours this kernel cannot be sure of.
 */
template <int KEPT>
static __device__ __forceinline__ bool
decide(const struct neighbours *search, struct small_k_room<KEPT> *room, uint32_t row,
	   struct geonn_vector vector, const struct anchor_offset *member, bool is_member,
	   const uint32_t *kept)
{
	const struct index *index = &search->index;
	bool		certain = true;
	uint32_t	count = 0;

	if (is_member)
	{
		uint32_t	kept_count = put_in_order<KEPT>(index, room, vector, kept);

		if (kept_count == KEPT)
		{
			/* does the last neighbour come before all positions that were not kept? */
			uint32_t	position = kept_position<KEPT>(room, search->k - 1, warp_lane());
			double		chord = geonn_chord_squared(vector, index_vector(index, position));
			double		least = __uint_as_float(kept[KEPT - 1] & ~KEY_NUMBER);

			least -= 0x1p-17 * (double) (member->square * ANCHOR_ABOVE);
			least = least * (1.0 - 0x1p-16) - ANCHOR_FLOOR;
			certain = geonn_chord_limit(chord) < least;
		}
		if (index->references == index->shape.positions)
			while (count < kept_count && count < search->k &&
				   room->distance[count][warp_lane()] <= search->max_distance)
				count++;
		else
			count = write_coincident<KEPT>(search, room, row, kept_count, &certain);
		search->selected[row] = count;
	}
	__syncwarp();				/* other lanes read this lane's column */
	if (index->references == index->shape.positions)
		write_all<KEPT>(search, room, row, certain ? count : 0);
	return certain;
}

/*
 * Put observations on the list, which grows from the end; all lanes of the warp
 * must call this.
 */
static __device__ __forceinline__ void
list_row(const struct neighbours *search, uint32_t row, bool listed)
{
	uint32_t	lanes = __ballot_sync(ALL_LANES, listed);
	uint32_t	end = 0;

	if (lanes == 0)
		return;
	if (warp_lane() == 0)
		end = atomicSub(&search->status->next, __popc(lanes));
	end = __shfl_sync(ALL_LANES, end, 0);
	if (listed)
		search->row[end - 1 - lanes_before(lanes)] = row;
}

/* return one of the middle lanes of those whose bits are set */
static __device__ __forceinline__ uint32_t
middle_lane(uint32_t left)
{
	for (int skip = (__popc(left) - 1) / 2; skip > 0; skip--)
		left &= left - 1;
	return __ffs(left) - 1;
}

template <int KEPT>
static __global__ void __launch_bounds__(BLOCK_THREADS, KEPT <= 12 ? 8 : 1)
small_k_kernel(const __grid_constant__ struct neighbours search, float square_limit)
{
	__shared__ struct small_k_room<KEPT> rooms[BLOCK_WARPS];
	struct small_k_room<KEPT> *room = &rooms[threadIdx.x / INDEX_WIDTH];
	uint64_t	slot = (uint64_t) blockIdx.x * BLOCK_THREADS + threadIdx.x;
	uint32_t	left = __ballot_sync(ALL_LANES, slot < search.rows);
	uint32_t	row = search.order[slot < search.rows ? slot : search.rows - 1];
	struct geonn_vector vector = search.record[row].vector;

	while (left != 0)
	{
		uint32_t	source = middle_lane(left);
		bool		is_left = left >> warp_lane() & 1;
		bool		is_member = is_left;
		bool		found;
		struct geonn_vector anchor;
		struct anchor_offset member;
		uint32_t	kept[KEPT];
		uint32_t	members;
		bool		listed;

		anchor.x = __shfl_sync(ALL_LANES, vector.x, source);
		anchor.y = __shfl_sync(ALL_LANES, vector.y, source);
		anchor.z = __shfl_sync(ALL_LANES, vector.z, source);
		found = search_group<KEPT>(&search.index, anchor, vector, square_limit, room, &member,
								   &is_member, kept);
		listed = is_member;
		if (found)
			listed = !decide<KEPT>(&search, room, row, vector, &member, is_member, kept);
		members = __ballot_sync(ALL_LANES, is_member);
		left &= ~members;
		if (__popc(members) < ROUND_MEMBERS_MIN)
		{
			listed = listed || (is_left && !is_member);
			left = 0;
		}
		list_row(&search, row, listed);
		__syncwarp();			/* the next round uses the shared memory again */
	}
}

static __global__ void
begin_list_kernel(const __grid_constant__ struct neighbours search)
{
	search.status->next = search.rows;
}

bool
small_k_fits(const struct neighbours *search)
{
	return geonn_metric_chord_decides(search->index.metric) && search->index.columns == 0 &&
		search->k > 0 && search->k < KEPT_MAX;
}

/* registers keep a selection of no more than a warp's lanes, and write its tags */
bool
small_k_fills(const struct neighbours *search)
{
	return small_k_fits(search) && !search->ties && search->k <= INDEX_WIDTH &&
		search->k <= search->index.references && isinf(search->max_distance);
}

template <int KEPT>
static cudaError_t
launch(const struct neighbours *search)
{
	uint32_t	blocks = blocks_for(search->rows, BLOCK_THREADS);
	double		limit = geonn_metric_radius_limit(search->index.metric, search->max_distance);
	float		square_limit = (float) (limit * (1.0 + 0x1p-20)) + ANCHOR_FLOOR;

	begin_list_kernel<<<1, 1, 0, search->stream>>> (*search);
	small_k_kernel<KEPT> <<<blocks, BLOCK_THREADS, 0, search->stream>>> (*search, square_limit);
	return cudaGetLastError();
}

cudaError_t
small_k_enqueue(const struct neighbours *search)
{
	if (!small_k_fits(search))
		return cudaSuccess;
	if (search->k < 4)
		return launch<4>(search);
	if (search->k < 8)
		return launch<8>(search);
	if (search->k < 12)
		return launch<12>(search);
	if (search->k < 16)
		return launch<16>(search);
	if (search->k < 24)
		return launch<24>(search);
	return launch<KEPT_MAX>(search);
}
