/*
 * neighbours_collect.cu
 *		Counts and writes all candidates up to a bound, with a warp for each
 *		observation.
 *
 * An observation's bound is max_distance, or its radius; or, if the first k candidates were
 * selected before and k were found, the distance of the k-th.  The candidates
 * collected here are the answer.
 *
 * Counting stops when an observation has more candidates than the room holds,
 * as these would not be written anyway.
 */
#include "cuda/neighbours/neighbours_warp.cuh"

struct bound
{
	double		value;			/* metres */
	double		limit;			/* the limit on squared chords */
};

template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ struct bound
bound_of(const struct neighbours *search, uint32_t row)
{
	uint32_t	k = search->k;
	struct bound bound;

	bound.value = k > 0 && search->selected[row] == k ? search->value[(uint64_t) row * k + k - 1] :
		warp_max_distance<CONDITIONED>(search, row);
	bound.limit = geonn_metric_radius_limit(warp_metric(&search->index), bound.value);
	return bound;
}

/*
 * Count a leaf's candidates, or write them from *written on.
 */
template <bool WRITE, enum index_conditioned CONDITIONED>
static __device__ __forceinline__ void
take_leaf(const struct neighbours *search, const struct warp_observation *observation,
		  uint32_t row, const struct bound *bound, uint32_t leaf, uint64_t *written)
{
	const struct index *index = &search->index;
	uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
	double		value = warp_chord(index, observation, position);
	bool		passes = value <= bound->limit && value < INFINITY &&
		warp_overlaps<CONDITIONED>(index, observation, position);
	uint32_t	first = 0;
	uint32_t	end = 0;
	uint32_t	left;

	if (!__any_sync(ALL_LANES, passes))
		return;
	if (passes)
	{
		value = geonn_metric_distance_of(index->metric, observation->from,
										 index_vector(index, position));
		passes = value <= bound->value && warp_reaches<CONDITIONED>(index, position, value);
	}
	if (passes)
	{
		first = index->start[position];
		end = index->start[position + 1];
	}

	left = __ballot_sync(ALL_LANES, passes);
	while (left != 0)
	{
		uint32_t	lane = __ffs(left) - 1;
		double		its_value = __shfl_sync(ALL_LANES, value, lane);
		uint32_t	its_first = __shfl_sync(ALL_LANES, first, lane);
		uint32_t	its_end = __shfl_sync(ALL_LANES, end, lane);

		left &= left - 1;
		if (!WRITE && search->excluded_first == NULL)
		{
			*written += its_end - its_first;
			continue;
		}
		for (; its_first < its_end; its_first += 32)
		{
			uint32_t	reference = its_first + warp_lane();
			bool		qualifies = reference < its_end &&
				!warp_is_excluded(index, observation, reference);
			uint32_t	mask = __ballot_sync(ALL_LANES, qualifies);

			if (WRITE && qualifies)
			{
				uint64_t	here = *written + lanes_before(mask);

				search->entries.entry[here].value = its_value;
				search->entries.entry[here].row = row;
				search->entries.entry[here].place = index->place[reference];
				search->entries.reference[here] = reference;
			}
			*written += __popc(mask);
		}
	}
}

template <bool WRITE, enum index_conditioned CONDITIONED>
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS)
collect_kernel(const __grid_constant__ struct neighbours search, uint32_t rows)
{
	struct warp_share share;
	uint32_t	number;

	warp_share_begin(&share, &search.status->next, search.rows, search.k > 0);
	while (warp_share_next(&share, &number))
	{
		uint32_t	row = search.order[number];
		struct warp_observation observation;
		struct bound bound;
		struct index_walk walk;
		uint32_t	leaf;
		uint64_t	written;

		if (WRITE && row >= rows)
			continue;
		written = WRITE ? search.results.offset[row] : 0;
		observation = warp_observation<CONDITIONED>(&search, row);
		bound = bound_of<CONDITIONED>(&search, row);
		index_walk_begin<CONDITIONED>(&walk, &search.index, observation.from, observation.group,
									  INDEX_NONE, &observation.windows);
		while (index_walk_next<CONDITIONED>(&walk, bound.limit, &leaf) &&
			   (WRITE || written <= search.entries.room))
			take_leaf<WRITE, CONDITIONED>(&search, &observation, row, &bound, leaf, &written);
		if (!WRITE && warp_lane() == 0)
			search.results.count[row] = (uint32_t) written;
	}
}

template <bool WRITE>
static cudaError_t
launch_collect(const struct neighbours *search, uint32_t rows)
{
	auto kernel = warp_conditioned(search) ? collect_kernel<WRITE, INDEX_CONDITIONED> :
		collect_kernel<WRITE, INDEX_UNCONDITIONED>;

	return launch_resident(kernel, UINT32_MAX, search->stream, *search, rows);
}

cudaError_t
neighbours_count(const struct neighbours *search)
{
	return launch_collect<false>(search, search->rows);
}

cudaError_t
neighbours_collect(const struct neighbours *search, uint32_t rows)
{
	return launch_collect<true>(search, rows);
}
