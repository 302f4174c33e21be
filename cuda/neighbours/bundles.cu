/*
 * bundles.cu
 *		Finds the first k neighbours of observations, a bundle of them at a time.
 *
 * Observations that follow each other in the order of search need the same
 * leaves.  A warp takes a bundle of up to 32 of them, one in each lane, and answers it
 * in rounds.  A round has an anchor, the vector of one of the observations left;
 * those near it are its members.
 *
 * stage	The warp walks the index from the anchor, and stages the positions within
 *			a reach of it in shared memory, as float32 offsets from the anchor.  The
 *			reach is what the members' k-th neighbours are expected to need: the
 *			radius of the members, and the distance of the anchor's k-th neighbour,
 *			somewhat widened.
 * select	Members are compared with all staged positions.  Of each the KEPT smallest
 *			keys, KEPT > k, are kept in order, in registers.  A key is a squared
 *			distance with the position's number in place of its last bits.  If KEPT is
 *			small, all lanes compare the same position at a time, and each keeps the keys of
 *			its own observation; otherwise the warp takes one member after the other.
 * answer	Lanes measure the pairs of several members in float64, put those of each in
 *			the order (distance, place), and write them.
 *
 * A member whose first k are not certain is left to a round in which it is the
 * anchor, so that a reach that was too short costs only time.  If it is the anchor, or
 * float32 cannot tell its k-th neighbour from the next position, it goes to a list, and
 * neighbours_select.cu answers it from the start.
 *
 * bundle_select.cuh has the first two, and says why no neighbour is lost.
 */
#include <math.h>

#include "cuda/neighbours/bundle_select.cuh"

/* A block has this many warps, so that their shared memory is within 48 kB. */
#define BLOCK_WARPS 4
#define BLOCK_THREADS (BLOCK_WARPS * INDEX_WIDTH)

/* how many counts a block of begin_kernel() writes */
#define BEGIN_ROWS (8 * BLOCK_THREADS)

/* Return the position of a pair, or INDEX_NONE. */
template <int KEPT>
static __device__ __forceinline__ uint32_t
pair_position(const struct bundle_room<KEPT> *room, uint32_t pair)
{
	uint32_t	number = room->number[pair];

	return number == NUMBER_NONE ? INDEX_NONE : __float_as_uint(room->staged[number].w);
}

static __device__ __forceinline__ uint32_t
first_reference(const struct index *index, uint32_t position)
{
	/* If no two references coincide, positions and references have the same numbers. */
	return index->references == index->shape.positions ? position : index->start[position];
}

/* Put the pairs of each member in order; for most members they are in order already. */
template <int KEPT>
static __device__ __forceinline__ void
put_in_order(const struct index *index, struct bundle_room<KEPT> *room, uint32_t k, uint32_t pairs)
{
	bool		moved;

	do
	{
		moved = false;
		for (uint32_t odd = 0; odd < 2; odd++)
		{
			for (uint32_t pair = odd + 2 * warp_lane(); pair + 1 < pairs; pair += 2 * INDEX_WIDTH)
			{
				double		distance = room->distance[pair];
				double		next = room->distance[pair + 1];
				uint16_t	number = room->number[pair];

				if (distance < next || distance == INFINITY || (pair + 1) % k == 0 ||
					(distance == next &&
					 index->place[first_reference(index, pair_position<KEPT>(room, pair))] <
					 index->place[first_reference(index, pair_position<KEPT>(room, pair + 1))]))
					continue;
				room->distance[pair] = next;
				room->distance[pair + 1] = distance;
				room->number[pair] = room->number[pair + 1];
				room->number[pair + 1] = number;
				moved = true;
			}
			__syncwarp();
		}
	} while (__any_sync(ALL_LANES, moved));
}

/* Write a neighbour into a slot, by its index in the sorted order. */
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
 * Write a member's neighbours, from its first pair on, where a position may stand for several references.  Returns false
 * if two positions are equally far: their references would have to be merged in order.
 */
template <int KEPT>
static __device__ __forceinline__ bool
write_coincident(const struct neighbours *search, const struct bundle_room<KEPT> *room,
				 uint32_t row, uint32_t pair)
{
	const struct index *index = &search->index;
	uint64_t	slot = (uint64_t) row * search->k;
	uint32_t	end = pair + search->k;
	uint32_t	count = 0;

	for (; pair < end && count < search->k; pair++)
	{
		double		distance = room->distance[pair];
		uint32_t	position;

		if (distance > search->max_distance || distance == INFINITY)
			break;
		if (pair + 1 < end && distance == room->distance[pair + 1])
			return false;
		position = pair_position<KEPT>(room, pair);
		for (uint32_t reference = index->start[position];
			 reference < index->start[position + 1] && count < search->k; reference++)
			write_neighbour(search, slot + count++, distance, reference);
	}
	search->selected[row] = count;
	return true;
}

/*
 * Write the pair of this rank if it is within max_distance.  If it is beyond, and the pair before
 * it, at distance `before`, is within, write the number of neighbours: fewer than k.
 */
static __device__ __forceinline__ void
write_pair(const struct neighbours *search, uint32_t row, uint32_t rank, double distance,
		   double before, uint32_t position)
{
	bool		counts = distance <= search->max_distance && distance < INFINITY;

	if (counts)
		write_neighbour(search, (uint64_t) row * search->k + rank, distance,
						first_reference(&search->index, position));
	else if (rank == 0 || (before <= search->max_distance && before < INFINITY))
		search->selected[row] = rank;
}

/*
 * Measure the pairs of these members, put those of each in order, and write them.  Returns the
 * lanes of the members for which this kernel cannot tell the order.
 */
template <int KEPT>
static __device__ __forceinline__ uint32_t
answer(const struct neighbours *search, struct bundle_room<KEPT> *room, uint32_t row,
	   struct geonn_vector vector, uint32_t members)
{
	const struct index *index = &search->index;
	uint32_t	k = search->k;
	uint32_t	pairs = members * k;
	uint32_t	part = 65536 / k + 1;	/* n * part >> 16 is n / k for n below 256 */
	bool		coincide = false;
	bool		in_order = true;
	uint32_t	unsure = 0;

	__syncwarp();				/* lanes read numbers and owners that other lanes have written */
	/* The first turn takes the pairs as measured; the second sorts them first, if the first found them out of order. */
	for (int turn = 0; turn < 2; turn++)
	{
		double		last = 0.0;

		for (uint32_t first = 0; first < pairs; first += INDEX_WIDTH)
		{
			uint32_t	pair = min(first + warp_lane(), pairs - 1);
			uint32_t	member = pair * part >> 16;
			uint32_t	rank = pair - member * k;
			uint32_t	owner = room->owner[member];
			struct geonn_vector from = vector_of_lane(vector, owner);
			uint32_t	its_row = __shfl_sync(ALL_LANES, row, owner);
			uint32_t	position = pair_position<KEPT>(room, pair);
			double		distance = INFINITY;
			double		before;

			if (turn > 0)
				distance = room->distance[pair];
			else if (position != INDEX_NONE)
			{
				distance = geonn_metric_distance_of(index->metric, from, index_vector(index, position));
				coincide = coincide || (index->references != index->shape.positions &&
										index->start[position + 1] - index->start[position] > 1);
			}
			before = __shfl_up_sync(ALL_LANES, distance, 1);
			before = warp_lane() == 0 ? last : before;
			last = __shfl_sync(ALL_LANES, distance, INDEX_WIDTH - 1);
			if (first + warp_lane() < pairs)
			{
				in_order = in_order && (rank == 0 || before < distance || distance == INFINITY);
				if (turn == 0)
					room->distance[pair] = distance;
				write_pair(search, its_row, rank, distance, before, position);
			}
		}
		if (turn > 0 || __all_sync(ALL_LANES, in_order && !coincide))
			break;
		__syncwarp();
		put_in_order<KEPT>(index, room, k, pairs);
	}
	if (__any_sync(ALL_LANES, coincide))
	{
		uint32_t	owner = room->owner[min(warp_lane(), members - 1)];
		uint32_t	its_row = __shfl_sync(ALL_LANES, row, owner);

		if (warp_lane() < members &&
			!write_coincident<KEPT>(search, room, its_row, warp_lane() * k))
			unsure = 1u << owner;
		unsure = warp_fold(unsure, [](uint32_t a, uint32_t b) { return a | b; });
	}
	__syncwarp();				/* wait: the next pairs use the shared memory again */
	return unsure;
}

/*
 * Answer the members of a round.  Returns the finished lanes, and adds to *listed those that
 * neighbours_select.cu has to answer.
 */
template <int KEPT>
static __device__ __forceinline__ uint32_t
answer_by_lanes(const struct neighbours *search, float square_limit, struct bundle_room<KEPT> *room,
				const struct round *round, uint32_t row, struct geonn_vector vector, uint32_t *listed)
{
	uint32_t	k = search->k;
	uint32_t	limit = key_limit<KEPT>(round);
	uint32_t	last = 0;
	uint32_t	next = 0;
	uint32_t	kept[KEPT];
	bool		certain;
	uint32_t	left;			/* the lanes with pairs to be answered */
	uint32_t	done;

	fill_keys<KEPT>(kept, limit);
	select_by_lanes<KEPT>(room, round, kept);
#pragma unroll
	for (int i = 0; i < KEPT; i++)
	{
		last = i + 1 == k ? kept[i] : last;
		next = i == k ? kept[i] : next;
	}
	certain = is_certain<KEPT>(&round->member, limit, last, next, square_limit);
	left = __ballot_sync(ALL_LANES, round->is_member && certain);
	done = __ballot_sync(ALL_LANES, round->is_member && !certain &&
						 (warp_lane() == round->source || next < limit));
	*listed |= done;
	done |= left;
	while (left != 0)
	{
		uint32_t	member = lanes_before(left);
		bool		takes_part = (left >> warp_lane() & 1) && (member + 1) * k <= room->pairs;
		uint32_t	lanes = __ballot_sync(ALL_LANES, takes_part);

		if (takes_part)
		{
			room->owner[member] = (uint8_t) warp_lane();
#pragma unroll
			for (int i = 0; i < KEPT; i++)
				if (i < k)
					room->number[member * k + i] = kept[i] < limit ?
						(uint16_t) (kept[i] & room->key_number) : NUMBER_NONE;
		}
		*listed |= answer<KEPT>(search, room, row, vector, __popc(lanes));
		left &= ~lanes;
	}
	return done;
}

/* Answer the members of a round as answer_by_lanes() does, but the whole warp works on one member at a time. */
template <int KEPT>
static __device__ __forceinline__ uint32_t
answer_by_warp(const struct neighbours *search, float square_limit, struct bundle_room<KEPT> *room,
			   const struct round *round, uint32_t row, struct geonn_vector vector, uint32_t *listed)
{
	constexpr int rows = KEPT / INDEX_WIDTH;
	uint32_t	k = search->k;
	uint32_t	limits = key_limit<KEPT>(round);
	uint32_t	done = 0;
	uint32_t	filled = 0;

	for (uint32_t left = __ballot_sync(ALL_LANES, round->is_member); left != 0;)
	{
		uint32_t	lane = __ffs(left) - 1;
		uint32_t	limit = __shfl_sync(ALL_LANES, limits, lane);
		struct anchor_offset member = offset_of_lane(&round->member, lane);
		uint32_t	kept[rows];
		uint32_t	next;

		left &= left - 1;
		fill_keys<rows>(kept, limit);
		select_by_warp<KEPT>(room, round, &member, k, kept);
		next = key_at<rows>(kept, k);
		if (is_certain<KEPT>(&member, limit, key_at<rows>(kept, k - 1), next, square_limit))
		{
#pragma unroll
			for (int i = 0; i < rows; i++)
			{
				uint32_t	rank = i * INDEX_WIDTH + warp_lane();

				if (rank < k)
					room->number[filled * k + rank] = kept[i] < limit ?
						(uint16_t) (kept[i] & room->key_number) : NUMBER_NONE;
			}
			if (warp_lane() == 0)
				room->owner[filled] = (uint8_t) lane;
			filled++;
			done |= 1u << lane;
		}
		else if (lane == round->source || next < limit)
		{
			*listed |= 1u << lane;
			done |= 1u << lane;
		}
		if (filled > 0 && (left == 0 || (filled + 1) * k > room->pairs))
		{
			*listed |= answer<KEPT>(search, room, row, vector, filled);
			filled = 0;
		}
	}
	return done;
}

/* Put the listed lanes' rows on the list, which grows from the end down.  All lanes of the warp must call this. */
static __device__ __forceinline__ void
list_row(const struct neighbours *search, uint32_t row, uint32_t listed)
{
	uint32_t	end = 0;

	if (listed == 0)
		return;
	if (warp_lane() == 0)
		end = atomicSub(&search->status->next, __popc(listed));
	end = __shfl_sync(ALL_LANES, end, 0);
	if (listed >> warp_lane() & 1)
		search->row[end - 1 - lanes_before(listed)] = row;
}

/* Return the middle one of the lanes whose bits are set. */
static __device__ __forceinline__ uint32_t
middle_lane(uint32_t left)
{
	for (int skip = (__popc(left) - 1) / 2; skip > 0; skip--)
		left &= left - 1;
	return __ffs(left) - 1;
}

/* Return how many blocks a multiprocessor runs: with more blocks, threads would have to keep registers in memory. */
static constexpr int
resident_blocks_of(int kept)
{
	return kept <= LANE_KEPT_MAX ? 7 : kept <= INDEX_WIDTH ? 8 : 5;
}

template <int KEPT>
static __global__ void __launch_bounds__(BLOCK_THREADS, resident_blocks_of(KEPT))
bundle_kernel(const __grid_constant__ struct neighbours search, uint32_t bundle, float square_limit)
{
	__shared__ struct bundle_room<KEPT> rooms[BLOCK_WARPS];
	struct bundle_room<KEPT> *room = &rooms[threadIdx.x / INDEX_WIDTH];
	uint32_t	first = (blockIdx.x * BLOCK_WARPS + threadIdx.x / INDEX_WIDTH) * bundle;
	uint32_t	left = __ballot_sync(ALL_LANES, warp_lane() < bundle &&
									 first + warp_lane() < search.rows);
	uint32_t	row = search.order[min(first + warp_lane(), search.rows - 1)];
	struct geonn_vector vector = observation_vector(&search, row);
	uint32_t	listed = 0;
	float		spread = KEPT <= LANE_KEPT_MAX ? SPREAD : SPREAD_MANY;

	while (left != 0)
	{
		struct round round;
		bool		staged;
		uint32_t	done;

		round.source = middle_lane(left);
		round.anchor = vector_of_lane(vector, round.source);
		round.member = anchor_offset_of(vector, round.anchor);
		round.is_member = left >> warp_lane() & 1;
		round.home = index_order_home(&search.index, &search.curve,
									  search.curve.sorted_key[first + round.source]);
		staged = stage<KEPT>(&search, square_limit, spread, room, &round);
		done = __ballot_sync(ALL_LANES, round.is_member);
		if (!staged && __popc(done) > 1 && spread > SPREAD_MIN)
		{
			spread /= 4.0f;
			continue;
		}
		if (!staged)
			listed |= done;
		else if constexpr (KEPT <= LANE_KEPT_MAX)
			done = answer_by_lanes<KEPT>(&search, square_limit, room, &round, row, vector, &listed);
		else
			done = answer_by_warp<KEPT>(&search, square_limit, room, &round, row, vector, &listed);
		left &= ~done;
		__syncwarp();			/* wait: the next round uses the shared memory again */
	}
	list_row(&search, row, listed);
}

/*
 * Begin with an empty list, and set the number of neighbours of all observations to k.  Bundles then write only smaller
 * numbers: 4 bytes at an arbitrary row cost the memory two accesses of 64 bytes.
 */
static __global__ void
begin_kernel(const __grid_constant__ struct neighbours search)
{
	uint32_t	first = blockIdx.x * BEGIN_ROWS + threadIdx.x;

	if (first == 0)
		search.status->next = search.rows;
#pragma unroll
	for (uint32_t row = first; row < first + BEGIN_ROWS; row += BLOCK_THREADS)
		if (row < search.rows)
			search.selected[row] = search.k;
}

bool
bundles_fit(const struct neighbours *search)
{
	return search->index.columns == 0 &&
		search->k > 0 && search->k < KEPT_MAX;
}

bool
bundles_fill(const struct neighbours *search)
{
	return bundles_fit(search) && !search->ties && search->k <= search->index.references &&
		isinf(search->max_distance);
}

template <int KEPT>
static cudaError_t
launch(const struct neighbours *search)
{
	double		limit = geonn_metric_radius_limit(search->index.metric, search->max_distance);
	float		square_limit = (float) (limit * (1.0 + 0x1p-20)) + ANCHOR_FLOOR;
	uint32_t	multiprocessors;
	uint32_t	bundle;

	CUDA_TRY(count_multiprocessors(&multiprocessors));
	/* Spread few observations over all warps that run at the same time. */
	bundle = search->rows / (multiprocessors * resident_blocks_of(KEPT) * BLOCK_WARPS) + 1;
	if (bundle > INDEX_WIDTH)
		bundle = INDEX_WIDTH;
	begin_kernel<<<blocks_for(search->rows, BEGIN_ROWS), BLOCK_THREADS, 0, search->stream>>> (*search);
	bundle_kernel<KEPT> <<<blocks_for(search->rows, bundle * BLOCK_WARPS), BLOCK_THREADS, 0,
		search->stream>>> (*search, bundle, square_limit);
	return cudaGetLastError();
}

cudaError_t
bundles_enqueue(const struct neighbours *search)
{
	if (!bundles_fit(search))
		return cudaSuccess;
	if (search->k < 4)
		return launch<4>(search);
	if (search->k < 8)
		return launch<8>(search);
	if (search->k < 11)
		return launch<11>(search);
	if (search->k < LANE_KEPT_MAX)
		return launch<LANE_KEPT_MAX>(search);
	if (search->k < 32)
		return launch<32>(search);
	return search->k < 64 ? launch<64>(search) : launch<KEPT_MAX>(search);
}
