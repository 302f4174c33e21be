/*
 * dataset.cuh
 *		What a GPU holds of a dataset.
 */
#ifndef GEONN_CUDA_DATASET_CUH
#define GEONN_CUDA_DATASET_CUH

#include "cuda/brute/brute.cuh"
#include "cuda/index/index.cuh"

extern "C"
{
#include "engine/search/device.h"
}

/* the structures that searches read; each is built when one first needs it */
enum cuda_part
{
	CUDA_BRUTE,					/* references of brute.cuh */
	CUDA_INDEX
};

#define CUDA_PARTS 2

enum cuda_part_state
{
	PART_ABSENT,
	PART_BUILDING,
	PART_BUILT
};

/* One part's block of memory on a GPU. */
struct cuda_block
{
	enum cuda_part_state state; /* guarded by dataset.cu's lock */

	/* immutable once it is built */
	void	   *memory;
	size_t		bytes;
};

/*
 * What dataset->built[device->number] points to.  While a search is under way,
 * the part that cuda_part_of names for it is there and does not change.
 */
struct cuda_built
{
	struct device *device;
	struct cuda_block blocks[CUDA_PARTS];
	struct brute_references references;
	struct index index;
};

/*
 * Which part a search works on: for the single nearest reference of a plain
 * dataset by brute force the references, otherwise the index.  (Brute force
 * with more neighbours, groups, identities, or a metric whose chord does not decide, goes through
 * all of the index's positions.)
 */
extern enum cuda_part cuda_part_of(const struct search *search);

/*
 * Link a device, at the end of its probe, to all that came before, so that
 * they can copy datasets from each other.
 */
extern void cuda_join(struct device *device);

/* Link it to no others any more; a device that never joined is left alone. */
extern void cuda_leave(struct device *device);

/* device.h's build and discard */
extern bool cuda_build(struct device *device, const struct search *search,
					   struct failure *failure);
extern void cuda_discard(struct device *device, void *built);

#endif							/* GEONN_CUDA_DATASET_CUH */
