/*
 * neighbours_warp.cuh
 *		What the kernels share in which a warp answers one observation.
 *
 * A launch fills the GPU once; its warps take observations, in the order of
 * search, until none is left or the launch has lasted long enough.  So no
 * launch lasts much longer than that, however many leaves an observation
 * needs, and the next one goes on from status->next.
 */
#ifndef GEONN_NEIGHBOURS_WARP_CUH
#define GEONN_NEIGHBOURS_WARP_CUH

#include "../src/common/spheroid.h"
#include "index_walk.cuh"
#include "neighbours.cuh"

#define WARP_BLOCK_THREADS 128
#define WARP_BLOCK_WARPS (WARP_BLOCK_THREADS / 32)

/* how long warps of a launch take observations */
#define LAUNCH_NANOSECONDS 25000000

/* observations that a warp takes at a time where there are many */
#define TAKE_ROWS 8
#define TAKE_ROWS_FROM (1u << 16)

/* the GPU's clock: nanoseconds from some time on */
static __device__ __forceinline__ uint64_t
warp_clock(void)
{
	uint64_t	nanoseconds;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
	return nanoseconds;
}

/* observations that a warp has taken and not yet answered */
struct warp_share
{
	uint64_t	started;
	uint32_t	next;
	uint32_t	end;
};

static __device__ __forceinline__ void
warp_share_begin(struct warp_share *share)
{
	share->started = warp_clock();
	share->next = 0;
	share->end = 0;
}

/*
 * The next observation of `rows` for this warp; false where it is to end.
 */
static __device__ __forceinline__ bool
warp_share_next(struct warp_share *share, const struct neighbours *search, uint32_t rows,
				uint32_t *row)
{
	if (share->next == share->end)
	{
		uint32_t	take = rows >= TAKE_ROWS_FROM ? TAKE_ROWS : 1;
		uint32_t	first = UINT32_MAX;

		if (index_lane() == 0 && warp_clock() - share->started < LAUNCH_NANOSECONDS)
			first = atomicAdd(&search->status->next, take);
		share->next = __shfl_sync(INDEX_ALL_LANES, first, 0);
		if (share->next >= rows)
			return false;
		share->end = min(share->next + take, rows);
	}
	*row = search->order[share->next++];
	return true;
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

	observation.from.x = search->x[row];
	observation.from.y = search->y[row];
	observation.from.z = search->z[row];
	observation.group = search->group == NULL ? 0 : search->group[row];
	observation.identity = search->identity == NULL ? 0 : search->identity[row];
	return observation;
}

/*
 * This lane's position in a leaf: its squared chord, INFINITY where it is no
 * candidate.
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

/* is a reference left out for its identity? */
static __device__ __forceinline__ bool
warp_is_self(const struct index *index, const struct warp_observation *observation,
			 uint32_t reference)
{
	return index->identity != NULL && index->identity[reference] == observation->identity;
}

/*
 * Blocks that fill the current GPU with a kernel.
 */
template <typename Kernel>
static cudaError_t
resident_blocks(Kernel kernel, uint32_t *blocks)
{
	int			device;
	int			multiprocessors;
	int			of_one;
	cudaError_t error;

	if ((error = cudaGetDevice(&device)) != cudaSuccess ||
		(error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount,
										device)) != cudaSuccess ||
		(error = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel,
															   WARP_BLOCK_THREADS,
															   0)) != cudaSuccess)
		return error;
	*blocks = (uint32_t) (multiprocessors * of_one);
	return *blocks > 0 ? cudaSuccess : cudaErrorLaunchOutOfResources;
}

#endif							/* GEONN_NEIGHBOURS_WARP_CUH */
