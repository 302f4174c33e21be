/*
 * dataset.cuh
 *		The parts of a dataset on a GPU.
 */
#ifndef GEONN_CUDA_DATASET_CUH
#define GEONN_CUDA_DATASET_CUH

#include "cuda/arcs/arcs.cuh"
#include "cuda/arcs/arcs_refusals.cuh"
#include "cuda/brute/brute.cuh"
#include "cuda/index/index.cuh"
#include "cuda/index/index_sums.cuh"

extern "C"
{
#include "engine/search/device.h"
}

/* The structures that searches read.  A device builds each when a search first needs it. */
enum cuda_part
{
	CUDA_BRUTE,					/* the references as brute force reads them (brute.cuh) */
	CUDA_INDEX,
	CUDA_SUMS,					/* the sums of the dataset's weights (index_sums.cuh), beside the index */
	CUDA_ARCS,					/* the index of a dataset of arcs (arcs.cuh) */
	CUDA_POLYGONS				/* the polygons of a dataset of arcs, beside the index of arcs (polygons.cuh) */
};

#define CUDA_PARTS 5

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
 * What a GPU has built of a dataset; dataset->built[device->number] points to it.  While a search is under way, the part
 * that cuda_part_of() names for the search is built and does not change; where arcs have polygons, the polygons are, too.
 */
struct cuda_built
{
	struct device *device;
	struct cuda_block blocks[CUDA_PARTS];
	struct brute_references references;
	struct index index;
	struct index_weights weights;	/* the sums of the weights are built if they fit */
	struct arcs_shape arcs_shape;	/* known before the index of arcs is built */
	struct arcs arcs;
	struct polygons_shape polygons_shape;	/* known before the polygons are built */
	struct polygons polygons;
	struct arcs_long long_of_host;	/* while the part is filled */
	struct polygons_of_host polygons_of_host;	/* the polygons in the host's memory, while the part is filled */

	/* used by the device's thread alone */
	struct arcs_refusals nearest_refusals;	/* refusals of pieces that ask for the nearest shape */
	struct arcs_refusals within_refusals;	/* refusals of pieces that ask for all shapes within a distance */
	double		within_refused_distance;	/* metres: the distance of the last refused piece that asked for all within */
};

/* Return the part of its dataset that a search by this algorithm reads. */
extern enum cuda_part cuda_part_of(const struct search *search, enum geonn_algorithm algorithm);

/*
 * Link a device, at the end of its probe, to all devices that joined before,
 * so that they can copy datasets from each other.
 */
extern void cuda_join(struct device *device);

/* End a device's links, if it has any. */
extern void cuda_leave(struct device *device);

/* Implement is_built, build and discard of device.h.  The device's thread calls them. */
extern bool cuda_is_built(const struct device *device, const struct search *search,
						  enum geonn_algorithm algorithm);
extern bool cuda_build(struct device *device, const struct search *search,
					   struct failure *failure);
extern void cuda_discard(struct device *device, void *built);

#endif							/* GEONN_CUDA_DATASET_CUH */
