/*
 * neighbours_warp.cuh
 *		Code for the kernels in which a warp answers one observation.
 */
#ifndef GEONN_NEIGHBOURS_WARP_CUH
#define GEONN_NEIGHBOURS_WARP_CUH

#include "common/metric.h"
#include "cuda/index/warp_share.cuh"
#include "cuda/neighbours/neighbours.cuh"

/* the index's metric, of a kind that the compiler knows */
template <bool CHORD_DECIDES>
static __device__ __forceinline__ enum geonn_metric
warp_metric(const struct index *index)
{
	__builtin_assume(geonn_metric_chord_decides(index->metric) == CHORD_DECIDES);
	return index->metric;
}

/* an observation, the same in every lane */
struct warp_observation
{
	struct geonn_vector from;
	int32_t		group;
	int32_t		identity;
};

static __device__ __forceinline__ struct warp_observation
warp_observation(const struct neighbours *search, uint32_t row)
{
	struct warp_observation observation;

	observation.from = search->record[row].vector;
	observation.group = search->group == NULL ? 0 : search->group[row];
	observation.identity = search->identity == NULL ? 0 : search->identity[row];
	return observation;
}

/*
 * The squared chord of this lane's position in a leaf; INFINITY if the
 * position is not a candidate.
 */
static __device__ __forceinline__ double
warp_chord(const struct index *index, const struct warp_observation *observation,
		   uint32_t position)
{
	if (position >= index->shape.positions ||
		(index->group != NULL && index->group[position] != observation->group))
		return INFINITY;
	return geonn_chord_squared(observation->from, index_vector(index, position));
}

/* whether a reference is left out for its identity */
static __device__ __forceinline__ bool
warp_is_self(const struct index *index, const struct warp_observation *observation,
			 uint32_t reference)
{
	return index->identity != NULL && index->identity[reference] == observation->identity;
}

#endif							/* GEONN_NEIGHBOURS_WARP_CUH */
