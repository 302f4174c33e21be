/*
 * warp_share.cuh
 *		Work shared among warps, by launches that end in time.
 *
 * A launch fills the GPU once; its warps take items until none is left or the
 * launch has lasted long enough.  So a launch lasts at most that time plus the
 * items that a warp takes at a time, and the next launch goes on from the
 * counter of items taken.
 */
#ifndef GEONN_WARP_SHARE_CUH
#define GEONN_WARP_SHARE_CUH

#include "cuda/base/blocks.cuh"
#include "cuda/base/try.cuh"
#include "cuda/index/index_walk.cuh"

#define WARP_BLOCK_THREADS 128
#define WARP_BLOCK_WARPS (WARP_BLOCK_THREADS / 32)

/* how long warps of a launch take items */
#define LAUNCH_NANOSECONDS 25000000

/*
 * A warp takes up to TAKE_ITEMS short items at a time; but it takes items at least TAKE_TIMES
 * times, so that all warps end at about the same time.
 */
#define TAKE_ITEMS 8
#define TAKE_TIMES 4

/* the items next ... end - 1 that a warp has taken and not yet begun */
struct warp_share
{
	uint32_t   *taken;			/* counter of the items that warps have taken, in this launch and earlier ones */
	uint32_t	count;			/* number of all items */
	uint32_t	take;			/* how many items a warp takes at a time */
	uint64_t	started;
	uint32_t	next;
	uint32_t	end;
};

/* Read the GPU's clock, which counts nanoseconds. */
static __device__ __forceinline__ uint64_t
warp_clock(void)
{
	uint64_t	nanoseconds;

	asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(nanoseconds));
	return nanoseconds;
}

static __device__ __forceinline__ void
warp_share_begin(struct warp_share *share, uint32_t *taken, uint32_t count, bool short_items)
{
	/* Other warps may have taken items already; a warp that starts later then takes fewer at a time. */
	uint32_t	left = count - min(*(volatile uint32_t *) taken, count);

	share->taken = taken;
	share->count = count;
	share->take = short_items ?
		min(left / (gridDim.x * WARP_BLOCK_WARPS * TAKE_TIMES) + 1, (uint32_t) TAKE_ITEMS) : 1;
	share->started = warp_clock();
	share->next = 0;
	share->end = 0;
}

/*
 * Set *item to the next item for this warp; false: no item is left, or the
 * launch has lasted long enough.
 */
static __device__ __forceinline__ bool
warp_share_next(struct warp_share *share, uint32_t *item)
{
	if (share->next == share->end)
	{
		uint32_t	first = UINT32_MAX;

		if (warp_lane() == 0 && warp_clock() - share->started < LAUNCH_NANOSECONDS)
			first = atomicAdd(share->taken, share->take);
		share->next = __shfl_sync(ALL_LANES, first, 0);
		if (share->next >= share->count)
			return false;
		share->end = min(share->next + share->take, share->count);
	}
	*item = share->next++;
	return true;
}

/*
 * Count the blocks of a kernel that the current GPU runs at the same time, if each block has `shared` bytes of dynamic
 * shared memory.
 */
template <typename Kernel>
static cudaError_t
resident_blocks(Kernel kernel, uint32_t *blocks, size_t shared = 0)
{
	uint32_t	multiprocessors;
	int			of_one;

	CUDA_TRY(count_multiprocessors(&multiprocessors));
	CUDA_TRY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_one, kernel, WARP_BLOCK_THREADS, shared));
	*blocks = multiprocessors * (uint32_t) of_one;
	return *blocks > 0 ? cudaSuccess : cudaErrorLaunchOutOfResources;
}

/*
 * Enqueue a launch of as many blocks as the GPU runs at the same time, and at most `useful`.
 * launch_resident_shared() gives each block `shared` bytes of dynamic shared memory.
 */
template <typename Kernel, typename... Arguments>
static cudaError_t
launch_resident_shared(Kernel kernel, uint32_t useful, size_t shared, cudaStream_t stream, const Arguments &... arguments)
{
	uint32_t	blocks;

	CUDA_TRY(resident_blocks(kernel, &blocks, shared));
	if (blocks > useful)
		blocks = useful;
	kernel<<<blocks, WARP_BLOCK_THREADS, shared, stream>>> (arguments...);
	return cudaGetLastError();
}

template <typename Kernel, typename... Arguments>
static cudaError_t
launch_resident(Kernel kernel, uint32_t useful, cudaStream_t stream, const Arguments &... arguments)
{
	return launch_resident_shared(kernel, useful, 0, stream, arguments...);
}

#endif							/* GEONN_WARP_SHARE_CUH */
