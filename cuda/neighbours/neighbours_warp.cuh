/*
 * neighbours_warp.cuh
 *		Code for the kernels in which a warp answers one observation.
 */
#ifndef GEONN_NEIGHBOURS_WARP_CUH
#define GEONN_NEIGHBOURS_WARP_CUH

#include "common/metric.h"
#include "common/window.h"
#include "cuda/index/warp_share.cuh"
#include "cuda/neighbours/neighbours.cuh"

/* Return the index's metric, with a promise to the compiler: by this metric the chord decides. */
static __device__ __forceinline__ enum geonn_metric
warp_metric(const struct index *index)
{
	__builtin_assume(geonn_metric_chord_decides(index->metric));
	return index->metric;
}

/* Return the vector of an observation, for the index's metric. */
static __device__ __forceinline__ struct geonn_vector
observation_vector(const struct neighbours *search, uint32_t row)
{
	double2		point;

	if (search->record != NULL)
		return search->record[row].vector;
	point = search->curve.point[row];
	return geonn_metric_vector(search->index.metric, point.x, point.y);
}

/* an observation; all lanes have the same values */
struct warp_observation
{
	struct geonn_vector from;
	int32_t		group;
	int64_t		excluded_first; /* the tags that the observation excludes: see batch_layout.h */
	int64_t		excluded_last;
	double		max_distance;	/* metres: the search's, or the observation's radius */
	struct index_windows windows;	/* set if CONDITIONED */
};

/* Return whether points have radiuses or windows: kernels have versions with and without these conditions. */
static inline bool
warp_conditioned(const struct neighbours *search)
{
	return (search->index.columns & INDEX_COLUMNS_CONDITIONS) != 0;
}

/* Return the greatest distance that the question and the observation's own radius allow. */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ double
warp_max_distance(const struct neighbours *search, uint32_t row)
{
	if (CONDITIONED != INDEX_CONDITIONED || search->conditions.radius == NULL)
		return search->max_distance;
	return geonn_metric_reach(search->max_distance, search->conditions.radius[row]);
}

/* Return the bits of index_windows' `inside` for an observation's windows. */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ uint32_t
warp_inside(const struct index *index, const struct index_windows *windows)
{
	uint32_t	exclusive = *index->exclusive;
	uint32_t	inside = 0;

#pragma unroll
	for (int i = 0; i < CONDITIONED; i++)
		if ((exclusive >> i & 1) == 0)
			inside |= (index_is_inside(windows->low[i], geonn_low_edge(windows->edges, i), INT64_MAX) |
					   index_is_inside(windows->high[i], geonn_high_edge(windows->edges, i),
									   INT64_MIN) << 1) << 2 * i;
	return inside;
}

template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ struct warp_observation
warp_observation(const struct neighbours *search, uint32_t row)
{
	struct warp_observation observation;

	observation.from = observation_vector(search, row);
	observation.group = search->group == NULL ? 0 : search->group[row];
	observation.excluded_first = search->excluded_first == NULL ? 0 : search->excluded_first[row];
	observation.excluded_last = search->excluded_last == NULL ? -1 : search->excluded_last[row];
	observation.max_distance = warp_max_distance<CONDITIONED>(search, row);
	if (CONDITIONED != INDEX_UNCONDITIONED && search->conditions.edges != NULL)
	{
#pragma unroll
		for (int i = 0; i < CONDITIONED; i++)
		{
			bool		present = search->conditions.low[i] != NULL;

			observation.windows.low[i] = present ? search->conditions.low[i][row] : 0;
			observation.windows.high[i] = present ? search->conditions.high[i][row] : 0;
		}
		observation.windows.edges = search->conditions.edges[row];
		observation.windows.inside = warp_inside<CONDITIONED>(&search->index, &observation.windows);
	}
	return observation;
}

/* Return the squared chord to this lane's position; INFINITY if the position is absent or of another group. */
static __device__ __forceinline__ double
warp_chord(const struct index *index, const struct warp_observation *observation,
		   uint32_t position)
{
	if (position >= index->shape.positions ||
		(index->group != NULL && index->group[position] != observation->group))
		return INFINITY;
	return geonn_chord_squared(observation->from, index_vector(index, position));
}

/* Return whether all windows of a position overlap the observation's windows. */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ bool
warp_overlaps(const struct index *index, const struct warp_observation *observation,
			  uint32_t position)
{
	const struct index_windows *windows = &observation->windows;
	bool		overlaps = true;
	uint16_t	edges;

	if (CONDITIONED == INDEX_UNCONDITIONED || index->conditions.edges == NULL)
		return true;
	edges = index->conditions.edges[position];
#pragma unroll
	for (int i = 0; i < CONDITIONED; i++)
		if (index->conditions.low[i] != NULL)
			overlaps = overlaps &&
				geonn_windows_overlap(i, windows->low[i], windows->high[i], windows->edges,
									  index->conditions.low[i][position],
									  index->conditions.high[i][position], edges);
	return overlaps;
}

/* Return whether an observation at this distance, in metres, is within a position's radius. */
template <enum index_conditioned CONDITIONED>
static __device__ __forceinline__ bool
warp_reaches(const struct index *index, uint32_t position, double distance)
{
	return CONDITIONED != INDEX_CONDITIONED || index->conditions.radius == NULL ||
		distance <= index->conditions.radius[position];
}

/* Return whether the observation excludes a reference, by the reference's tag. */
static __device__ __forceinline__ bool
warp_is_excluded(const struct index *index, const struct warp_observation *observation,
			 uint32_t reference)
{
	return observation->excluded_first <= observation->excluded_last &&
		index->tag[reference] >= observation->excluded_first &&
		index->tag[reference] <= observation->excluded_last;
}

#endif							/* GEONN_NEIGHBOURS_WARP_CUH */
