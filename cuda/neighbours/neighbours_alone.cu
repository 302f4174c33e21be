/*
 * neighbours_alone.cu
 *		Answers one observation with any number of candidates, with the whole
 *		GPU.
 *
 * An observation that has more pairs than its batch has room for is answered
 * in parts: each part has the pairs after the end of the part before, as many
 * as the room holds.  Every thread takes references of its own, in the index's
 * order, and calculates their keys (value, place) anew whenever they are
 * needed; so no memory is needed, however many candidates exist.
 *
 * The key of a given rank is found digit by digit: 12 digits of 8 bits, the
 * value's first.  (The bits of float64 that are not negative are in the order
 * of the numbers.)  For each digit, the candidates whose keys begin with the
 * digits found so far are counted by their next digit; then a single thread
 * adds the counts up.
 */
#include "cuda/base/multiprocessors.cuh"
#include "cuda/neighbours/neighbours_warp.cuh"

#define BLOCK_THREADS 256
#define VALUE_DIGITS 8
#define PLACE_DIGITS 4

static_assert(VALUE_DIGITS + PLACE_DIGITS == NEIGHBOURS_KEY_DIGITS, "all of a key");
static_assert(BLOCK_THREADS == NEIGHBOURS_DIGITS, "a thread for each digit");

/*
 * The position of a reference: the last position that starts at or before it.
 */
static __device__ uint32_t
position_of(const struct index *index, uint32_t reference)
{
	uint32_t	first = 0;
	uint32_t	end = index->shape.positions;

	while (end - first > 1)
	{
		uint32_t	middle = first + (end - first) / 2;

		if (index->start[middle] <= reference)
			first = middle;
		else
			end = middle;
	}
	return first;
}

/*
 * A reference's key; false if the reference is not a candidate, or, where the chord
 * does not decide, is not one for certain, or possibly.
 */
template <enum index_conditioned CONDITIONED, enum warp_reach REACH>
static __device__ bool
key_of(const struct neighbours *search, const struct warp_observation *observation,
	   uint32_t reference, struct neighbours_key *key)
{
	const struct index *index = &search->index;
	uint32_t	position = position_of(index, reference);

	if (warp_is_self(index, observation, reference))
		return false;
	key->value = warp_chord(index, observation, position);
	if (key->value == INFINITY || !warp_overlaps<CONDITIONED>(index, observation, position))
		return false;
	if (geonn_metric_chord_decides(index->metric))
	{
		key->value = geonn_metric_distance_of(index->metric, observation->from,
											  index_vector(index, position));
		if (!warp_reaches<true, CONDITIONED, REACH>(index, position, key->value, key->value))
			return false;
	}
	else if (!warp_reaches<false, CONDITIONED, REACH>(index, position, key->value, key->value))
		return false;
	key->place = index->place[reference];
	return true;
}

static __device__ bool
key_before(struct neighbours_key a, struct neighbours_key b)
{
	return a.value < b.value || (a.value == b.value && a.place < b.place);
}

/*
 * The range of an observation: also up to the limit of its own radius.
 */
template <enum index_conditioned CONDITIONED>
static __device__ struct neighbours_range
range_of(const struct neighbours *search, const struct warp_observation *observation)
{
	struct neighbours_range range = search->alone->range;
	struct neighbours_key last = {observation->max_distance, UINT32_MAX};

	if (CONDITIONED == INDEX_UNCONDITIONED)
		return range;
	if (!geonn_metric_chord_decides(search->index.metric))
		last.value = geonn_metric_radius_limit(search->index.metric, observation->max_distance);
	if (key_before(last, range.last))
		range.last = last;
	return range;
}

static __device__ bool
in_range(const struct neighbours_range *range, struct neighbours_key key)
{
	return !key_before(range->last, key) &&
		(!range->has_after || key_before(range->after, key));
}

/*
 * Whether a key begins with the digits before this one; if so, its next digit.
 */
static __device__ bool
next_digit(struct neighbours_key key, struct neighbours_key begin, int digit, uint32_t *next)
{
	uint64_t	value = (uint64_t) __double_as_longlong(key.value);
	uint64_t	value_begin = (uint64_t) __double_as_longlong(begin.value);

	if (digit < VALUE_DIGITS)
	{
		int			shift = 8 * (VALUE_DIGITS - 1 - digit);

		*next = value >> shift & 255;
		return digit == 0 || value >> (shift + 8) == value_begin >> (shift + 8);
	}
	else
	{
		int			shift = 8 * (VALUE_DIGITS + PLACE_DIGITS - 1 - digit);

		*next = key.place >> shift & 255;
		return value == value_begin &&
			(digit == VALUE_DIGITS || key.place >> (shift + 8) == begin.place >> (shift + 8));
	}
}

template <enum index_conditioned CONDITIONED>
static __global__ void
count_digits_kernel(const __grid_constant__ struct neighbours search, int digit)
{
	__shared__ uint32_t digits[NEIGHBOURS_DIGITS];
	struct warp_observation observation = warp_observation<CONDITIONED>(&search, 0);
	struct neighbours_range range = range_of<CONDITIONED>(&search, &observation);

	if (!search.alone->choosing)
		return;
	digits[threadIdx.x] = 0;
	__syncthreads();
	for (uint64_t reference = (uint64_t) blockIdx.x * BLOCK_THREADS + threadIdx.x;
		 reference < search.index.references; reference += (uint64_t) gridDim.x * BLOCK_THREADS)
	{
		struct neighbours_key key;
		uint32_t	next;

		if (key_of<CONDITIONED, REACH_CERTAIN>(&search, &observation, (uint32_t) reference, &key) &&
			in_range(&range, key) && next_digit(key, search.alone->begin, digit, &next))
			atomicAdd(&digits[next], 1);
	}
	__syncthreads();
	if (digits[threadIdx.x] > 0)
		atomicAdd(&search.alone->digits[threadIdx.x], digits[threadIdx.x]);
}

static __global__ void
begin_choice_kernel(const __grid_constant__ struct neighbours search, uint32_t rank)
{
	struct neighbours_alone *alone = search.alone;

	alone->choosing = true;
	alone->rank = rank;
	alone->begin.value = 0.0;
	alone->begin.place = 0;
	for (int i = 0; i < NEIGHBOURS_DIGITS; i++)
		alone->digits[i] = 0;
}

static __global__ void
add_digit_kernel(const __grid_constant__ struct neighbours search, int digit, bool ties,
				 bool widen)
{
	struct neighbours_alone *alone = search.alone;
	uint32_t	before = 0;
	uint32_t	chosen = 0;

	if (digit == 0)
	{
		uint32_t	all = 0;

		for (int i = 0; i < NEIGHBOURS_DIGITS; i++)
			all += alone->digits[i];
		search.status->in_range = all;
		alone->choosing = all >= alone->rank;
	}
	if (!alone->choosing)
		return;

	while (before + alone->digits[chosen] < alone->rank)
		before += alone->digits[chosen++];
	alone->rank -= before;
	for (int i = 0; i < NEIGHBOURS_DIGITS; i++)
		alone->digits[i] = 0;
	if (digit < VALUE_DIGITS)
	{
		uint64_t	value = (uint64_t) __double_as_longlong(alone->begin.value);

		value |= (uint64_t) chosen << 8 * (VALUE_DIGITS - 1 - digit);
		alone->begin.value = __longlong_as_double((long long) value);
	}
	else
		alone->begin.place |= chosen << 8 * (VALUE_DIGITS + PLACE_DIGITS - 1 - digit);

	if (digit == VALUE_DIGITS + PLACE_DIGITS - 1)
	{
		struct neighbours_key last = alone->begin;

		if (widen)
			last.value = fmin(geonn_metric_chord_limit(warp_metric<false>(&search.index),
													   last.value),
							  alone->range.last.value);
		if (ties || widen)
			last.place = UINT32_MAX;
		alone->range.last = last;
	}
}

static cudaError_t
all_blocks(uint32_t references, uint32_t *blocks)
{
	uint32_t	needed = (uint32_t) (((uint64_t) references + BLOCK_THREADS - 1) / BLOCK_THREADS);
	uint32_t	multiprocessors;
	cudaError_t error = count_multiprocessors(&multiprocessors);

	*blocks = min(needed, 8 * multiprocessors);
	return error;
}

cudaError_t
neighbours_alone_begin(const struct neighbours *search, const struct neighbours_range *range)
{
	return cudaMemcpyAsync(&search->alone->range, range, sizeof(*range), cudaMemcpyHostToDevice,
						   search->stream);
}

cudaError_t
neighbours_alone_choose(const struct neighbours *search, int digit, uint32_t rank, bool ties,
						bool widen)
{
	uint32_t	blocks;
	cudaError_t error = all_blocks(search->index.references, &blocks);

	if (error != cudaSuccess)
		return error;
	if (digit == 0)
		begin_choice_kernel<<<1, 1, 0, search->stream>>> (*search, rank);
	if (warp_conditioned(search))
		count_digits_kernel<INDEX_CONDITIONED> <<<blocks, BLOCK_THREADS, 0, search->stream>>> (*search, digit);
	else
		count_digits_kernel<INDEX_UNCONDITIONED> <<<blocks, BLOCK_THREADS, 0, search->stream>>> (*search, digit);
	add_digit_kernel<<<1, 1, 0, search->stream>>> (*search, digit, ties, widen);
	return cudaGetLastError();
}

static __global__ void
after_kernel(const __grid_constant__ struct neighbours search, struct neighbours_key after)
{
	search.alone->range.has_after = true;
	search.alone->range.after = after;
}

cudaError_t
neighbours_alone_after(const struct neighbours *search, struct neighbours_key after)
{
	after_kernel<<<1, 1, 0, search->stream>>> (*search, after);
	return cudaGetLastError();
}

template <enum index_conditioned CONDITIONED>
static __global__ void
write_kernel(const __grid_constant__ struct neighbours search, uint32_t first, uint32_t end)
{
	struct warp_observation observation = warp_observation<CONDITIONED>(&search, 0);
	struct neighbours_range range = range_of<CONDITIONED>(&search, &observation);

	for (uint64_t reference = (uint64_t) first + blockIdx.x * BLOCK_THREADS + threadIdx.x;
		 reference < end; reference += (uint64_t) gridDim.x * BLOCK_THREADS)
	{
		struct neighbours_key key;
		uint32_t	here;

		if (!key_of<CONDITIONED, REACH_POSSIBLE>(&search, &observation, (uint32_t) reference, &key) ||
			!in_range(&range, key))
			continue;
		here = atomicAdd(&search.status->entries, 1);
		if (!geonn_metric_chord_decides(search.index.metric))
		{
			search.entry_reference[here] = key.place;
			continue;
		}
		search.entry[here].value = key.value;
		search.entry[here].row = 0;
		search.entry[here].place = key.place;
		search.entry_reference[here] = (uint32_t) reference;
	}
}

cudaError_t
neighbours_alone_write(const struct neighbours *search, uint32_t first, uint32_t end)
{
	uint32_t	blocks;
	cudaError_t error;

	if ((error = all_blocks(end - first, &blocks)) != cudaSuccess ||
		(error = cudaMemsetAsync(&search->status->entries, 0, sizeof(uint32_t),
								 search->stream)) != cudaSuccess)
		return error;
	if (warp_conditioned(search))
		write_kernel<INDEX_CONDITIONED> <<<blocks, BLOCK_THREADS, 0, search->stream>>> (*search, first, end);
	else
		write_kernel<INDEX_UNCONDITIONED> <<<blocks, BLOCK_THREADS, 0, search->stream>>> (*search, first, end);
	return cudaGetLastError();
}
