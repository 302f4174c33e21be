/*
 * nearest_columns.cu
 *		Finds the nearest neighbour of an observation, with a warp, where an
 *		index has groups or windows.
 *
 * Datasets with columns have no part in nearest.cu's way, in which a warp
 * searches for many observations at once: neighbours in the order of search may
 * be of other groups or moments.  But for one neighbour a warp need not keep
 * candidates in order, as neighbours_select.cu does.  It keeps the nearest so
 * far and its squared chord, and calculates distances only of positions whose
 * chords are too close to tell.
 *
 * A warp takes observations that follow each other in the order of search.  So
 * what was the nearest of the last one is a good guess for the next, if it is a
 * candidate at all: the walk begins with a limit.
 *
 *
 * Why the answer is exact
 *
 * The limit is geonn_chord_limit() of the least squared chord of any candidate
 * so far, or geonn_radius_limit() of max_distance.  What is above it is farther
 * than that candidate, or too far away.  If no other candidate so far is within
 * the limit, the candidate of the least chord comes first of them, in the order
 * (distance, place).  If others are, all of them are compared by that order.  As
 * the limit only shrinks, what was left out stays out.
 */
#include "cuda/neighbours/neighbours_warp.cuh"

/* the nearest candidate of an observation so far, the same in every lane */
struct nearest
{
	double		least;			/* the least squared chord of any candidate */
	double		limit;			/* the limit on squared chords of the rest of the walk */
	double		chord;			/* the squared chord of the nearest */
	uint32_t	position;		/* the position of the nearest; INDEX_NONE: no candidate yet */
};

/* the place in the dataset of a position's first reference */
static __device__ __forceinline__ uint32_t
first_place(const struct index *index, uint32_t position)
{
	return index->place[index->start[position]];
}

/*
 * Compare by (distance, place) the positions of these lanes and the nearest so
 * far, if any.  Returns the lane of the first position; INDEX_NONE if the
 * nearest so far is first.
 */
static __device__ __noinline__ uint32_t
decide(const struct index *index, struct geonn_vector from, uint32_t position, uint32_t lanes,
	   uint32_t nearest)
{
	double		value = INFINITY;
	uint32_t	place = UINT32_MAX;
	uint32_t	own_place;

	if (lanes >> warp_lane() & 1)
	{
		value = geonn_metric_distance_of(index->metric, from, index_vector(index, position));
		place = first_place(index, position);
	}
	own_place = place;
	warp_first(&value, &place);
	if (nearest != INDEX_NONE &&
		!comes_before(value, place,
					  geonn_metric_distance_of(index->metric, from, index_vector(index, nearest)),
					  first_place(index, nearest)))
		return INDEX_NONE;
	return __ffs(__ballot_sync(ALL_LANES, own_place == place)) - 1;
}

/*
 * Look at a leaf's positions.
 */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ void
take_leaf(const struct index *index, const struct warp_observation *observation, uint32_t leaf,
		  struct nearest *nearest)
{
	uint32_t	position = leaf * INDEX_WIDTH + warp_lane();
	double		chord = warp_chord(index, observation, position);
	bool		passes = chord <= nearest->limit && chord < INFINITY &&
		position != nearest->position &&
		warp_overlaps<CONDITIONED>(index, observation, position);
	double		smallest;
	uint32_t	lanes;
	uint32_t	winner;
	bool		keeps;

	if (!__any_sync(ALL_LANES, passes))
		return;
	smallest = warp_smallest(passes ? chord : INFINITY);
	if (smallest < nearest->least)
	{
		nearest->least = smallest;
		nearest->limit = fmin(nearest->limit, geonn_chord_limit(smallest));
	}
	lanes = __ballot_sync(ALL_LANES, passes && chord <= nearest->limit);
	keeps = nearest->position != INDEX_NONE && nearest->chord <= nearest->limit;
	if (lanes == 0)
		return;
	winner = __ffs(lanes) - 1;
	if (keeps || __popc(lanes) > 1)
		winner = decide(index, observation->from, position, lanes,
						keeps ? nearest->position : INDEX_NONE);
	if (winner != INDEX_NONE)
	{
		nearest->chord = __shfl_sync(ALL_LANES, chord, winner);
		nearest->position = leaf * INDEX_WIDTH + winner;
	}
}

/*
 * Begin an observation with a guess: the nearest position of the last
 * observation, or INDEX_NONE.
 */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ void
begin(const struct index *index, const struct warp_observation *observation, uint32_t guess,
	  struct nearest *nearest)
{
	double		chord;

	nearest->least = INFINITY;
	nearest->limit = geonn_radius_limit(observation->max_distance);
	nearest->chord = INFINITY;
	nearest->position = INDEX_NONE;
	if (guess == INDEX_NONE)
		return;
	chord = warp_chord(index, observation, guess);
	if (chord <= nearest->limit && chord < INFINITY &&
		warp_overlaps<CONDITIONED>(index, observation, guess))
	{
		nearest->least = chord;
		nearest->limit = fmin(nearest->limit, geonn_chord_limit(chord));
		nearest->chord = chord;
		nearest->position = guess;
	}
}

/* a multiprocessor runs this many blocks, though registers spill: warps wait most of the time */
#define BLOCKS_MIN 8

template <enum index_conditioned CONDITIONED>
static __global__ void __launch_bounds__(WARP_BLOCK_THREADS, BLOCKS_MIN)
nearest_kernel(const __grid_constant__ struct neighbours search)
{
	const struct index *index = &search.index;
	uint32_t	guess = INDEX_NONE;
	struct warp_share share;
	uint32_t	number;

	warp_share_begin(&share, &search.status->next, search.rows, true);
	while (warp_share_next(&share, &number))
	{
		uint32_t	row = search.order[number];
		struct warp_observation observation = warp_observation<CONDITIONED>(&search, row);
		struct nearest nearest;
		struct index_walk walk;
		uint32_t	leaf;

		begin<CONDITIONED>(index, &observation, guess, &nearest);
		index_walk_begin<CONDITIONED>(&walk, index, observation.from, observation.group,
									  INDEX_NONE, &observation.windows);
		while (index_walk_next<CONDITIONED>(&walk, nearest.limit, &leaf))
			take_leaf<CONDITIONED>(index, &observation, leaf, &nearest);

		guess = nearest.position;
		if (warp_lane() == 0)
		{
			double		distance = INFINITY;

			if (guess != INDEX_NONE)
				distance = geonn_metric_distance_of(index->metric, observation.from,
													index_vector(index, guess));
			search.selected[row] = guess != INDEX_NONE && distance <= observation.max_distance;
			if (guess != INDEX_NONE)
			{
				search.value[row] = distance;
				search.reference[row] = index->start[guess];
			}
		}
	}
}

bool
nearest_columns_fits(const struct neighbours *search)
{
	uint32_t	columns = search->index.columns;

	return search->k == 1 &&
		columns != 0 && (columns & (GEONN_COLUMN_EXCLUDED | GEONN_COLUMN_RADIUS)) == 0;
}

cudaError_t
nearest_columns_enqueue(const struct neighbours *search)
{
	auto kernel = !warp_conditioned(search) ? nearest_kernel<INDEX_UNCONDITIONED> :
		(search->index.columns & GEONN_COLUMNS_WINDOWS) == GEONN_COLUMN_WINDOW ?
		nearest_kernel<INDEX_ONE_WINDOW> : nearest_kernel<INDEX_CONDITIONED>;

	return launch_resident(kernel, UINT32_MAX, search->stream, *search);
}
