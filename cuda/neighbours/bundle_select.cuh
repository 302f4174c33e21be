/*
 * bundle_select.cuh
 *		A round of a bundle: a warp stages the positions around an anchor, and selects the
 *		first k of each member.
 *
 * For bundles.cu, which has the essay.
 *
 *
 * Why no neighbour is lost
 *
 * Notation and (2) are anchor.cuh's; f is what a lane computes for s, and made not
 * negative, which only brings it nearer to s.  A key is f without its last bits, and a
 * number in their place.
 *
 * A position that is farther from the anchor than the reach has an s above
 * (reach - |o|)^2, from which a member's limit is rounded down.  Keys from the limit on do not
 * count.  So for a position that is not among the first k keys, with F the (k + 1)-th key or the
 * limit, whichever is less, without its number, (2) gives s >= F - 2^-16 (F + |o|^2).
 * For the first k, with G the k-th key and all bits of its number set,
 * s <= G + 2^-16 (G + |o|^2).  If the second bound is below the first by more than what
 * geonn_chord_limit() allows for, for which ANCHOR_ABOVE makes up, the first k are those of the
 * first k keys, in whichever order.  The same holds for all within max_distance, of
 * which geonn_radius_limit() bounds s.
 */
#ifndef GEONN_BUNDLE_SELECT_CUH
#define GEONN_BUNDLE_SELECT_CUH

#include "cuda/index/anchor.cuh"
#include "cuda/neighbours/neighbours_warp.cuh"

/* the greatest number of leaves that a round looks at */
#define ROUND_LEAVES 96

/*
 * A member's squared distance from the anchor is at most SPREAD times the squared distance of the farthest position in the
 * anchor's leaf.  A round that finds too many positions is repeated with fewer members, down to SPREAD_MIN.
 */
#define SPREAD 1.5f
#define SPREAD_MANY 0.5f		/* where the warp selects */
#define SPREAD_MIN 0x1p-9f

/*
 * If a leaf has at least this many positions nearer than the anchor's k-th so far, the reach is
 * computed again, and shrinks.
 */
#define NEARER_MIN 4

/*
 * The reach covers members whose k-th neighbour has a squared distance of up to 1 + WIDENING / sqrt(k) times the anchor's.
 */
#define WIDENING 2.0f

/* a factor on a reach, for truncated keys and float32 rounding */
#define REACH_ABOVE (1.0f + 0x1p-12f)

/* a factor that makes up for the roundings of a few float32 operations on a lower bound */
#define ANCHOR_BELOW (1.0f - 0x1p-20f)

/* For k below this number each lane keeps k + 1 keys or more of its own observation; otherwise the warp selects together. */
#define LANE_KEPT_MAX 16
#define KEPT_MAX 128

/*
 * KEY_NONE is greater than the key of any position: the bits of an infinite float.  NUMBER_NONE is
 * the number of no position.
 */
#define KEY_NONE 0x7F800000u
#define NUMBER_NONE UINT16_MAX

/* The shared memory of a warp.  As little as possible: the rest of the shared memory is the cache that holds the index. */
template <int KEPT>
struct bundle_room
{
	/* how many positions a round stages at most; keys hold their numbers */
	static constexpr uint32_t positions = KEPT <= INDEX_WIDTH ? 256 : 512;
	static constexpr uint32_t key_number = positions - 1;

	/* The pairs of two members or more are answered at a time; this is the greatest number of such pairs. */
	static constexpr uint32_t pairs = positions / 2;

	float4		staged[positions];	/* offsets from the anchor; w: the bits of the position */
	double		distance[pairs];	/* of pairs: k for each member */
	uint32_t	pending[2 * INDEX_WIDTH];	/* a ring of keys that wait to be selected */
	uint16_t	number[pairs];		/* the staged positions of pairs, or NUMBER_NONE */
	uint8_t		owner[INDEX_WIDTH]; /* the lanes of the members with pairs */
};

/* ---- the smallest keys of ROWS * 32, in order: lane i has the i-th of each row ---- */

/* Sort the lanes' keys, the greatest first. */
static __device__ __forceinline__ uint32_t
sort_descending(uint32_t key)
{
#pragma unroll
	for (uint32_t size = 2; size <= INDEX_WIDTH; size *= 2)
#pragma unroll
		for (uint32_t step = size / 2; step > 0; step /= 2)
		{
			uint32_t	other = __shfl_xor_sync(ALL_LANES, key, step);
			bool		greater = ((warp_lane() & step) == 0) == ((warp_lane() & size) == 0);

			key = greater ? max(key, other) : min(key, other);
		}
	return key;
}

/* Take 32 keys, one from each lane, into a selection, by a bitonic merge. */
template <int ROWS>
static __device__ __forceinline__ void
take_keys(uint32_t *kept, uint32_t key)
{
	kept[ROWS - 1] = min(kept[ROWS - 1], sort_descending(key));
#pragma unroll
	for (int step = ROWS / 2; step > 0; step /= 2)
#pragma unroll
		for (int i = 0; i < ROWS; i++)
			if ((i & step) == 0)
			{
				uint32_t	smaller = min(kept[i], kept[i + step]);

				kept[i + step] = max(kept[i], kept[i + step]);
				kept[i] = smaller;
			}
#pragma unroll
	for (uint32_t step = INDEX_WIDTH / 2; step > 0; step /= 2)
#pragma unroll
		for (int i = 0; i < ROWS; i++)
		{
			uint32_t	other = __shfl_xor_sync(ALL_LANES, kept[i], step);

			kept[i] = warp_lane() & step ? max(kept[i], other) : min(kept[i], other);
		}
}

/* Return the kept key of this rank, counted from 0, in every lane. */
template <int ROWS>
static __device__ __forceinline__ uint32_t
key_at(const uint32_t *kept, uint32_t rank)
{
	uint32_t	key = kept[0];

#pragma unroll
	for (int i = 1; i < ROWS; i++)
		key = rank / INDEX_WIDTH == i ? kept[i] : key;
	return __shfl_sync(ALL_LANES, key, rank % INDEX_WIDTH);
}

template <int ROWS>
static __device__ __forceinline__ void
fill_keys(uint32_t *kept, uint32_t key)
{
#pragma unroll
	for (int i = 0; i < ROWS; i++)
		kept[i] = key;
}

/* ---- a round ---- */

/* What a round knows beside its room.  All lanes have the same values, except member and is_member. */
struct round
{
	struct geonn_vector anchor;
	uint32_t	source;			/* the lane of the anchor */
	uint32_t	home;			/* the leaf where the anchor would be on the curve, or a leaf near it */
	struct anchor_offset member;	/* the lane's observation */
	bool		is_member;
	float		reach;			/* every position within this distance of the anchor is staged */
	uint32_t	staged;			/* how many */
};

/* Return a staged position, with the square of its offset's length in w. */
static __device__ __forceinline__ float4
with_square(float4 place)
{
	place.w = __fmaf_rn(place.z, place.z, __fmaf_rn(place.y, place.y, __fmul_rn(place.x, place.x)));
	return place;
}

/* Drop the staged positions that a reach which has shrunk since no longer covers. */
template <int KEPT>
static __device__ __forceinline__ void
drop_unreached(struct bundle_room<KEPT> *room, struct round *round)
{
	uint32_t	count = 0;

	__syncwarp();
	for (uint32_t first = 0; first < round->staged; first += INDEX_WIDTH)
	{
		uint32_t	number = first + warp_lane();
		float4		place = room->staged[min(number, round->staged - 1)];
		uint32_t	mask = __ballot_sync(ALL_LANES, number < round->staged &&
										 with_square(place).w <= round->reach * round->reach * ANCHOR_ABOVE);

		__syncwarp();			/* all lanes have read theirs */
		if (mask >> warp_lane() & 1)
			room->staged[count + lanes_before(mask)] = place;
		count += __popc(mask);
	}
	__syncwarp();
	round->staged = count;
}

/*
 * Find the members, by `spread` (SPREAD), and stage the positions in reach.  Returns false if the positions are too many.
 */
template <int KEPT>
static __device__ __forceinline__ bool
stage(const struct neighbours *search, float square_limit, float spread,
	  struct bundle_room<KEPT> *room, struct round *round)
{
	constexpr int rows = KEPT < INDEX_WIDTH ? 1 : KEPT / INDEX_WIDTH;
	const struct index *index = &search->index;
	float		widened = 1.0f + WIDENING * rsqrtf((float) search->k);
	uint32_t	nearest[rows];	/* squared distances from the anchor */
	uint32_t	last = KEY_NONE;	/* about the k-th smallest squared distance so far */
	float		radius = 0.0f;	/* how far from the anchor members are */
	uint32_t	leaves = 0;
	uint32_t	leaf;
	struct index_walk walk;

	round->reach = INFINITY;
	round->staged = 0;
	fill_keys<rows>(nearest, KEY_NONE);
	index_walk_begin(&walk, index, round->anchor, 0, round->home);
	while (index_walk_next(&walk, (double) (round->reach * round->reach * ANCHOR_ABOVE), &leaf))
	{
		uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
		float4		place = anchor_place(index_vector(index, position), round->anchor);
		bool		reached = position < index->shape.positions &&
			place.w <= round->reach * round->reach * ANCHOR_ABOVE;
		uint32_t	square = reached ? __float_as_uint(place.w) : KEY_NONE;
		uint32_t	mask = __ballot_sync(ALL_LANES, reached);
		float		limit;

		if (round->staged + __popc(mask) > room->positions)
			drop_unreached<KEPT>(room, round);
		if (++leaves > ROUND_LEAVES || round->staged + __popc(mask) > room->positions)
			return false;
		place.w = __uint_as_float(position);
		if (reached)
			room->staged[round->staged + lanes_before(mask)] = place;
		round->staged += __popc(mask);
		if (leaf != round->home && __popc(__ballot_sync(ALL_LANES, square < last)) < NEARER_MIN)
			continue;
		take_keys<rows>(nearest, square);
		if (leaf == round->home)
		{
			float		size = anchor_largest(reached ? __uint_as_float(square) : 0.0f);

			round->is_member = round->is_member && round->member.square <= spread * size;
			radius = anchor_largest(round->is_member ? round->member.norm : 0.0f);
			/* k is more than one leaf holds: assume that other leaves are as dense as the anchor's */
			if (search->k > INDEX_WIDTH)
				last = __float_as_uint(size * ((float) search->k / INDEX_WIDTH));
		}
		last = min(last, key_at<rows>(nearest, search->k - 1));
		limit = fminf(__uint_as_float(last) * widened, square_limit) * REACH_ABOVE + ANCHOR_FLOOR;
		if (limit < INFINITY)
			round->reach = (radius + anchor_root_above(limit)) * REACH_ABOVE;
	}
	drop_unreached<KEPT>(room, round);
	return true;
}

/* ---- selection ---- */

/* Return the essay's limit for the lane's observation; 0 if the observation is not a member. */
template <int KEPT>
static __device__ __forceinline__ uint32_t
key_limit(const struct round *round)
{
	float		least = (round->reach - round->member.norm) * ANCHOR_BELOW;

	return round->is_member ? __float_as_uint(least * least * ANCHOR_BELOW) &
		~bundle_room<KEPT>::key_number : 0;
}

/* Return the key of a staged position, computed from an observation's offset. */
template <int KEPT>
static __device__ __forceinline__ uint32_t
key_of(const struct anchor_offset *member, float4 place, uint32_t number)
{
	float		square = anchor_value(member, with_square(place)) + member->square;

	return (__float_as_uint(fmaxf(square, 0.0f)) & ~bundle_room<KEPT>::key_number) | number;
}

/*
 * Return whether an observation's first k positions, up to key `last`, surely precede all others,
 * the first of which has key `next`.
 */
template <int KEPT>
static __device__ __forceinline__ bool
is_certain(const struct anchor_offset *member, uint32_t limit, uint32_t last, uint32_t next,
		   float square_limit)
{
	const uint32_t key_number = bundle_room<KEPT>::key_number;
	float		above = square_limit;
	float		below = __uint_as_float(next & ~key_number);

	if (last < limit)
	{
		float		greatest = __uint_as_float(last | key_number);

		greatest += 2.0f * ANCHOR_MARGIN * (greatest + member->square) + ANCHOR_FLOOR;
		above = fminf(above, greatest * ANCHOR_ABOVE);
	}
	return next == KEY_NONE ||
		above < below - 2.0f * ANCHOR_MARGIN * (below + member->square) - ANCHOR_FLOOR;
}

/* Each lane selects the first keys of its own observation. */
template <int KEPT>
static __device__ __forceinline__ void
select_by_lanes(const struct bundle_room<KEPT> *room, const struct round *round, uint32_t *kept)
{
	float4		next = room->staged[0];

	for (uint32_t number = 0; number < round->staged; number++)
	{
		uint32_t	key = key_of<KEPT>(&round->member, next, number);

		/* loaded ahead */
		next = room->staged[min(number + 1, round->staged - 1)];
		if (!__any_sync(ALL_LANES, key < kept[KEPT - 1]))
			continue;
		/* Insert the key: each kept key becomes the middle one of the key before it, itself, and the new key. */
#pragma unroll
		for (int i = KEPT - 1; i > 0; i--)
			kept[i] = max(kept[i - 1], min(kept[i], key));
		kept[0] = min(kept[0], key);
	}
}

/* The whole warp selects the keys of one member, up to the (k + 1)-th; keys behind it are arbitrary. */
template <int KEPT>
static __device__ __forceinline__ void
select_by_warp(struct bundle_room<KEPT> *room, const struct round *round,
			   const struct anchor_offset *member, uint32_t k, uint32_t *kept)
{
	constexpr int rows = KEPT / INDEX_WIDTH;
	uint32_t	found = 0;
	uint32_t	taken = 0;
	uint32_t	next = key_at<rows>(kept, k);

	for (uint32_t first = 0; first < round->staged; first += INDEX_WIDTH)
	{
		uint32_t	number = first + warp_lane();
		uint32_t	waiting = first + INDEX_WIDTH < round->staged ? INDEX_WIDTH - 1 : 0;
		uint32_t	key = key_of<KEPT>(member, room->staged[min(number, round->staged - 1)], number);
		uint32_t	mask = __ballot_sync(ALL_LANES, number < round->staged && key < next);

		if (mask >> warp_lane() & 1)
			room->pending[(found + lanes_before(mask)) % (2 * INDEX_WIDTH)] = key;
		found += __popc(mask);
		for (; found > taken + waiting; taken += INDEX_WIDTH)
		{
			uint32_t	pending = taken + warp_lane();

			__syncwarp();
			take_keys<rows>(kept, pending < found ? room->pending[pending % (2 * INDEX_WIDTH)] : KEY_NONE);
			next = key_at<rows>(kept, k);
			__syncwarp();
		}
	}
}

/* Return another lane's offset, without its norm. */
static __device__ __forceinline__ struct anchor_offset
offset_of_lane(const struct anchor_offset *offset, uint32_t lane)
{
	struct anchor_offset other = {};

	other.x = __shfl_sync(ALL_LANES, offset->x, lane);
	other.y = __shfl_sync(ALL_LANES, offset->y, lane);
	other.z = __shfl_sync(ALL_LANES, offset->z, lane);
	other.square = __shfl_sync(ALL_LANES, offset->square, lane);
	return other;
}

#endif							/* GEONN_BUNDLE_SELECT_CUH */
