/*
 * warp.cuh
 *		What the lanes of a warp find out together.
 *
 * For kernels.  All lanes of the warp must call a function that takes a value of
 * each.
 */
#ifndef GEONN_WARP_CUH
#define GEONN_WARP_CUH

#include <stdint.h>

#include <cuda_runtime.h>

#include "common/metric.h"

#define ALL_LANES 0xFFFFFFFFu

static __device__ __forceinline__ uint32_t
warp_lane(void)
{
	return threadIdx.x % 32;
}

/* Return how many of the mask's lanes come before this lane. */
static __device__ __forceinline__ uint32_t
lanes_before(uint32_t mask)
{
	return __popc(mask & ((1u << warp_lane()) - 1));
}

/* Return the vector that another lane has. */
static __device__ __forceinline__ struct geonn_vector
vector_of_lane(struct geonn_vector vector, uint32_t lane)
{
	vector.x = __shfl_sync(ALL_LANES, vector.x, lane);
	vector.y = __shfl_sync(ALL_LANES, vector.y, lane);
	vector.z = __shfl_sync(ALL_LANES, vector.z, lane);
	return vector;
}

/* Join all lanes' values into one, two at a time, and return the result in every lane. */
template <typename Value, typename Join>
static __device__ __forceinline__ Value
warp_fold(Value value, Join join)
{
	for (int lanes = 16; lanes > 0; lanes /= 2)
		value = join(value, __shfl_xor_sync(ALL_LANES, value, lanes));
	return value;
}

template <typename Value>
static __device__ __forceinline__ Value
warp_largest(Value value)
{
	return warp_fold(value, [](Value a, Value b) { return max(a, b); });
}

static __device__ __forceinline__ uint32_t
warp_sum(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
	return __reduce_add_sync(ALL_LANES, value);
#else
	return warp_fold(value, [](uint32_t a, uint32_t b) { return a + b; });
#endif
}

static __device__ __forceinline__ uint32_t
warp_smallest(uint32_t value)
{
#if __CUDA_ARCH__ >= 800
	return __reduce_min_sync(ALL_LANES, value);
#else
	return warp_fold(value, [](uint32_t a, uint32_t b) { return min(a, b); });
#endif
}

/* Return the smallest of the lanes' values, which must be at least 0. */
static __device__ __forceinline__ double
warp_smallest(double value)
{
	uint32_t	high = (uint32_t) __double2hiint(value);
	uint32_t	low = (uint32_t) __double2loint(value);
	uint32_t	smallest = warp_smallest(high);

	low = warp_smallest(high == smallest ? low : UINT32_MAX);
	return __hiloint2double((int) smallest, (int) low);
}

/* Return whether a reference comes before another one in the order (distance, place). */
static __device__ __forceinline__ bool
comes_before(double distance, uint32_t place, double other_distance, uint32_t other_place)
{
	return distance < other_distance || (distance == other_distance && place < other_place);
}

/* Find the first of all lanes' references in the order (distance, place), and set it in every lane. */
static __device__ __forceinline__ void
warp_first(double *distance, uint32_t *place)
{
	for (int lanes = 16; lanes > 0; lanes /= 2)
	{
		double		other_distance = __shfl_xor_sync(ALL_LANES, *distance, lanes);
		uint32_t	other_place = __shfl_xor_sync(ALL_LANES, *place, lanes);

		if (comes_before(other_distance, other_place, *distance, *place))
		{
			*distance = other_distance;
			*place = other_place;
		}
	}
}

/*
 * Give each lane that `wants` a number of its own, from the counter *taken, which rises by the
 * number of these lanes.  Other lanes get UINT32_MAX.
 */
static __device__ __forceinline__ uint32_t
warp_take(uint32_t *taken, bool wants)
{
	uint32_t	lanes = __ballot_sync(ALL_LANES, wants);
	uint32_t	first = 0;

	if (lanes == 0)
		return UINT32_MAX;
	if (warp_lane() == 0)
		first = atomicAdd(taken, __popc(lanes));
	first = __shfl_sync(ALL_LANES, first, 0);
	return wants ? first + lanes_before(lanes) : UINT32_MAX;
}

#endif							/* GEONN_WARP_CUH */
