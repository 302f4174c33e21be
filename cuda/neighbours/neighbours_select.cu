/*
 * neighbours_select.cu
 *		Finds the first k neighbours of an observation, with a warp.
 *
 * The warp keeps the first k candidates that it has seen, in the order (value,
 * place): in registers, lane i the i-th, where k is at most 32, else in the
 * observation's slots in memory.  Values are distances.
 *
 * While the warp has fewer than k candidates, max_distance bounds further
 * ones; afterwards the last candidate does.  geonn_metric_radius_limit() turns
 * the bound into a limit on squared chords, which leaves out leaves and most
 * positions.  For a position within the limit the distance is calculated, and
 * decides.
 *
 * A position stands for references in the order of their places, all at one
 * distance.  So when one of them comes too late, so do all that follow.
 */
#include "cuda/neighbours/neighbours_warp.cuh"

/* The candidates of one observation.  All lanes have the same values, except value, place and reference. */
struct selection
{
	const struct index *index;
	uint32_t	k;
	uint32_t	count;

	/* once k candidates are present: value and place of the last one, which a new candidate must precede */
	double		last_value;
	uint32_t	last_place;

	/* where registers hold the candidates, lane i has the i-th; INFINITY: the lane has no candidate */
	double		value;
	uint32_t	place;
	uint32_t	reference;

	/*
	 * columns for candidates that memory holds, and for answers; `tags` has references first, and
	 * tags at the end; it may be NULL
	 */
	double	   *values;
	uint32_t   *references;
	int64_t    *tags;
};

/* Return the reference of a candidate that memory holds. */
static __device__ __forceinline__ uint32_t
kept_reference(const struct selection *selection, uint32_t number)
{
	return selection->tags != NULL ? (uint32_t) selection->tags[number] :
		selection->references[number];
}

static __device__ __forceinline__ void
keep(struct selection *selection, uint32_t number, double value, uint32_t reference)
{
	selection->values[number] = value;
	if (selection->tags != NULL)
		selection->tags[number] = reference;
	else
		selection->references[number] = reference;
}

/* Insert a candidate that precedes the last one, or while fewer than k are present. */
template <bool IN_REGISTERS>
static __device__ __forceinline__ void
insert(struct selection *selection, double value, uint32_t place, uint32_t reference)
{
	uint32_t	last = selection->k - 1;

	if (IN_REGISTERS)
	{
		bool		after = comes_before(value, place, selection->value, selection->place);
		uint32_t	first_after = __ffs(__ballot_sync(ALL_LANES, after)) - 1;
		double		value_before = __shfl_up_sync(ALL_LANES, selection->value, 1);
		uint32_t	place_before = __shfl_up_sync(ALL_LANES, selection->place, 1);
		uint32_t	reference_before = __shfl_up_sync(ALL_LANES, selection->reference, 1);

		if (after)
		{
			bool		here = warp_lane() == first_after;

			selection->value = here ? value : value_before;
			selection->place = here ? place : place_before;
			selection->reference = here ? reference : reference_before;
		}
	}
	else
	{
		uint32_t	end = min(selection->count, last);
		uint32_t	chunk = (end + 31) / 32;
		uint32_t	here = 0;

		/* Move the later candidates by one slot, beginning at the end. */
		while (chunk-- > 0)
		{
			uint32_t	number = chunk * 32 + warp_lane();
			double		other = INFINITY;
			uint32_t	other_reference = 0;
			bool		after = true;

			if (number < end)
			{
				other = selection->values[number];
				other_reference = kept_reference(selection, number);
				after = comes_before(value, place, other,
										   selection->index->place[other_reference]);
			}
			__syncwarp();
			if (after && number < end)
				keep(selection, number + 1, other, other_reference);
			here = chunk * 32 + __popc(__ballot_sync(ALL_LANES, !after));
			if (here > chunk * 32)
				break;
		}
		if (warp_lane() == 0)
			keep(selection, here, value, reference);
		__syncwarp();
	}

	if (selection->count < selection->k)
		selection->count++;
	if (selection->count < selection->k)
		return;
	if (IN_REGISTERS)
	{
		selection->last_value = __shfl_sync(ALL_LANES, selection->value, last);
		selection->last_place = __shfl_sync(ALL_LANES, selection->place, last);
	}
	else
	{
		selection->last_value = selection->values[last];
		selection->last_place = selection->index->place[kept_reference(selection, last)];
	}
}

/*
 * Insert the references of a position that qualify.
 */
template <bool IN_REGISTERS>
static __device__ __forceinline__ void
take_position(struct selection *selection, const struct warp_observation *observation,
			  double value, uint32_t first, uint32_t end)
{
	const struct index *index = selection->index;

	for (; first < end; first += 32)
	{
		uint32_t	reference = first + warp_lane();
		uint32_t	place = reference < end ? index->place[reference] : UINT32_MAX;
		bool		qualifies = reference < end && !warp_is_excluded(index, observation, reference);
		uint32_t	left = __ballot_sync(ALL_LANES, qualifies);

		while (left != 0)
		{
			uint32_t	lane = __ffs(left) - 1;
			uint32_t	its_place = __shfl_sync(ALL_LANES, place, lane);

			if (!comes_before(value, its_place, selection->last_value, selection->last_place))
				return;
			insert<IN_REGISTERS>(selection, value, its_place, first + lane);
			left &= left - 1;
		}
	}
}

/*
 * Look at a leaf's positions.
 */
template <bool IN_REGISTERS, enum index_conditioned CONDITIONED>
static __device__ __forceinline__ void
take_leaf(struct selection *selection, const struct warp_observation *observation,
		  uint32_t leaf, double *limit)
{
	const struct index *index = selection->index;
	uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
	double		value = warp_chord(index, observation, position);
	bool		passes = value <= *limit && value < INFINITY &&
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
		passes = warp_reaches<CONDITIONED>(index, position, value);
		first = index->start[position];
		end = index->start[position + 1];
	}
	left = __ballot_sync(ALL_LANES, passes && value <= selection->last_value);
	if (left == 0)
		return;
	do
	{
		uint32_t	lane = __ffs(left) - 1;

		take_position<IN_REGISTERS>(selection, observation,
									__shfl_sync(ALL_LANES, value, lane),
									__shfl_sync(ALL_LANES, first, lane),
									__shfl_sync(ALL_LANES, end, lane));
		left &= left - 1;
	} while (left != 0);
	/* The limit must include all candidates that could precede the last selected one. */
	if (selection->count == selection->k)
		*limit = geonn_metric_radius_limit(warp_metric(index), selection->last_value);
}

static __device__ __forceinline__ void
begin_selection(struct selection *selection, const struct neighbours *search, uint32_t row,
				double max_distance, double *limit)
{
	uint64_t	slot = (uint64_t) row * search->k;

	*limit = geonn_metric_radius_limit(warp_metric(&search->index), max_distance);
	selection->index = &search->index;
	selection->k = search->k;
	selection->count = 0;
	selection->last_value = max_distance;
	selection->last_place = UINT32_MAX;
	selection->value = INFINITY;
	selection->place = UINT32_MAX;
	selection->reference = 0;
	selection->values = search->value + slot;
	selection->references = search->reference + slot;
	selection->tags = search->tag == NULL ? NULL : search->tag + slot;
}

template <bool IN_REGISTERS, enum index_conditioned CONDITIONED>
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS)
select_kernel(const __grid_constant__ struct neighbours search)
{
	struct warp_share share;
	uint32_t	number;

	warp_share_begin(&share, &search.status->next, search.rows, true);
	while (warp_share_next(&share, &number))
	{
		uint32_t	row = search.order[number];
		struct warp_observation observation = warp_observation<CONDITIONED>(&search, row);
		struct selection selection;
		struct index_walk walk;
		uint32_t	home = INDEX_NONE;
		uint32_t	leaf;
		double		limit;

		begin_selection(&selection, &search, row, observation.max_distance, &limit);
		if (search.index.leaf_code != NULL)
			home = index_home_leaf(&search.index, index_code(observation.from), 0,
								   search.index.shape.nodes[0]);
		index_walk_begin<CONDITIONED>(&walk, &search.index, observation.from, observation.group,
									  home, &observation.windows);
		while (index_walk_next<CONDITIONED>(&walk, limit, &leaf))
			take_leaf<IN_REGISTERS, CONDITIONED>(&selection, &observation, leaf, &limit);

		if (IN_REGISTERS && warp_lane() < selection.count)
			keep(&selection, warp_lane(), selection.value, selection.reference);
		if (selection.tags != NULL)
			for (uint32_t i = warp_lane(); i < selection.count; i += INDEX_WIDTH)
				selection.tags[i] = search.index.tag[selection.tags[i]];
		if (warp_lane() == 0)
			search.selected[row] = selection.count;
	}
}

template <bool IN_REGISTERS>
static cudaError_t
launch_select(const struct neighbours *search)
{
	auto kernel = warp_conditioned(search) ?
		select_kernel<IN_REGISTERS, INDEX_CONDITIONED> :
		select_kernel<IN_REGISTERS, INDEX_UNCONDITIONED>;

	return launch_resident(kernel, UINT32_MAX, search->stream, *search);
}

cudaError_t
neighbours_select(const struct neighbours *search)
{
	/* registers hold one candidate for each lane */
	bool		in_registers = search->k <= INDEX_WIDTH;
	struct neighbours listed;

	if (bundles_fit(search))
	{
		listed = *search;
		listed.order = search->row;
		search = &listed;
	}
	return in_registers ? launch_select<true>(search) : launch_select<false>(search);
}
