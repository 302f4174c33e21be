/*
 * polygons.cuh
 *		The polygons of a dataset on a GPU, and which of them have an observation inside.
 *
 * The host builds them: engine/shapes/polygons.c has the essay.  A GPU has one block of memory with a copy of theirs, and their
 * vertices behind it.
 */
#ifndef GEONN_POLYGONS_CUH
#define GEONN_POLYGONS_CUH

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "cuda/index/index_order.cuh"

extern "C"
{
#include "engine/shapes/polygons.h"
}

/* the polygons in the host's memory */
struct polygons_of_host
{
	struct shape_vertices vertices;
	struct shape_polygons polygons;
};

/* The layout of the polygons' block: its bytes, the offsets of its arrays, and the levels of its tree. */
struct polygons_shape
{
	size_t		bytes;
	size_t		polygon;		/* offsets */
	size_t		vertex;
	size_t		stretch;
	size_t		node[SHAPE_BOXES_LEVELS];
	int			levels;			/* levels of the tree of boxes, at least 1 */
};

/* addresses are the GPU's */
struct polygons
{
	const struct shape_polygon *polygon;
	const struct geonn_vector *vertex;
	const struct shape_polygons_stretch *stretch;
	const struct shape_boxes_node *node[SHAPE_BOXES_LEVELS];
	int			levels;
};

/*
 * Build the polygons of a dataset that has polygons, by the thread pool, in the host's memory.  The caller frees them with
 * polygons_free(), after a failure as well.
 */
extern bool polygons_build(const struct dataset *dataset, const atomic_bool *cancelled, struct polygons_of_host *built,
						   struct failure *failure);
extern void polygons_free(struct polygons_of_host *built);

extern struct polygons_shape polygons_shape_of(const struct polygons_of_host *built);

/* Set the addresses of the arrays in a block that begins at `memory`, and return the block's bytes. */
extern size_t polygons_place(void *memory, const struct polygons_shape *shape, struct polygons *polygons);

/* no polygon */
#define POLYGONS_NONE UINT32_MAX

/*
 * Enqueue a kernel that finds the first of the polygons that an observation is in or on the border of, for slots
 * begin ... end - 1 of the order of the search: arc[slot] becomes that polygon's first arc in the dataset, or
 * POLYGONS_NONE.  *refused falls to the first row that needs too many stretches.
 */
extern cudaError_t polygons_find(const struct polygons *polygons, const struct index_order *order, uint32_t begin,
								 uint32_t end, uint32_t *arc, uint32_t *refused, cudaStream_t stream);

#endif							/* GEONN_POLYGONS_CUH */
