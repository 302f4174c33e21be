/*
 * arcs.cuh
 *		The index of arcs on a GPU, and the search for the nearest shape by it; cuda/shapes/shapes_within.cuh has that for all
 *		shapes within a distance.
 *
 * The index is that of engine/cpu/arcs/arcs.c, whose essay says why the boxes hold the arcs: arcs in the order of
 * the curve by their middles, eight of them a leaf, and a tree of boxes above the leaves, eight in each node, as
 * float32.  An arc longer than a quarter circle is two.  The first of the arcs that are as near stands for its
 * shape, as the arcs of a shape follow each other in the dataset: so the search for the nearest does not look at shapes.
 */
#ifndef GEONN_ARCS_CUH
#define GEONN_ARCS_CUH

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "cuda/arcs/polygons.cuh"
#include "cuda/index/index.cuh"

extern "C"
{
#include "engine/dataset/dataset.h"
}

/* arcs of a leaf, and boxes of a node */
#define ARCS_WIDTH SHAPE_BOXES_WIDTH

/* levels of nodes: enough for 2^28 leaves */
#define ARCS_LEVELS_MAX 10

struct __align__(16) arcs_leaf
{
	double		a[3][ARCS_WIDTH];	/* the vectors of the ends, by axis */
	double		b[3][ARCS_WIDTH];
	double		inverse[ARCS_WIDTH];	/* one by the square of the chord; finite */
	uint32_t	arc[ARCS_WIDTH];	/* index in the dataset */
};

/* the sizes of an index */
struct arcs_shape
{
	uint32_t	arcs;			/* how many arcs the dataset has, at least 1 */
	uint32_t	long_arcs;		/* how many arcs of the dataset are too long for one arc of the index, and become two
								 * there */
	uint32_t	leaves;
	int			levels;			/* levels of nodes: level 0 has the boxes of leaves, the last level a single node */
	uint32_t	nodes[ARCS_LEVELS_MAX];
	uint32_t	first[ARCS_LEVELS_MAX]; /* index of a level's first node in the numbering of all nodes */
	uint32_t	all_nodes;
};

/*
 * The index of a dataset's arcs.  Addresses are the GPU's.  The whole index is one block of memory: another
 * GPU gets a copy of the block, with addresses computed anew.
 */
struct arcs
{
	struct arcs_shape shape;
	struct arcs_leaf *leaf;		/* copies of the last arc fill up the last leaf */
	struct shape_boxes_node *node;	/* each at a multiple of 16 bytes */
	int64_t    *tag;			/* [arcs] in the dataset's order */
	int32_t    *shape_of;		/* [arcs] the number of each arc's shape, in the dataset's order */
	struct index curve;			/* the leaves' places on the curve; only the fields that index_order.cuh reads: the
								 * number of leaves, and their codes */
};

/* the long arcs of a dataset, in the host's memory */
struct arcs_long
{
	uint32_t	count;
	uint32_t   *arc;			/* [count] rising */
	struct geonn_vector *middle;	/* [count] their middles */
	void	   *memory;
	size_t		bytes;
};

/*
 * List the long arcs of a dataset.  Returns false with the failure if memory is short, or soon after the search is
 * cancelled.  The caller frees the list with arcs_free_long(), after a failure as well.
 */
extern bool arcs_list_long(const struct dataset *dataset, const atomic_bool *cancelled, struct arcs_long *listed,
						   struct failure *failure);
extern void arcs_free_long(struct arcs_long *listed);

/* Compute the sizes of an index of `arcs` arcs, of which `long_arcs` are long. */
extern struct arcs_shape arcs_shape_of(uint32_t arcs, uint32_t long_arcs);

/*
 * Lay out an index of this shape from address memory on, and return its bytes.  With NULL as memory, only
 * compute the bytes.
 */
extern size_t arcs_place(void *memory, const struct arcs_shape *shape, struct arcs *arcs);

/* the columns from which an index is built; addresses are the GPU's */
struct arcs_source
{
	double	   *latitude;		/* [arcs] degrees */
	double	   *longitude;
	double	   *end_latitude;
	double	   *end_longitude;
	uint32_t   *long_arc;		/* [long_arcs] rising */
	struct geonn_vector *middle;	/* [long_arcs] their middles */
};

/* Return the bytes of memory that a build needs. */
extern size_t arcs_build_room(const struct arcs_shape *shape);

/* Enqueue the kernels that build an index; the caller copies its tags and the numbers of shapes. */
extern cudaError_t arcs_build(const struct arcs *arcs, const struct arcs_source *source, void *room,
							  cudaStream_t stream);

/* What the kernels of a search report; the host copies the report. */
struct arcs_status
{
	uint32_t	out_of_range;	/* 1 if some coordinates are invalid */
	uint32_t	refused;		/* the first row that needs too much work: this row and all later ones have no answers;
								 * UINT32_MAX: all rows have answers */
};

/* Finds the nearest shape of each observation; addresses are the GPU's. */
struct arcs_nearest
{
	const struct arcs *arcs;
	const struct polygons *polygons;	/* NULL: the dataset has none */
	uint32_t	rows;			/* at least 1 */
	const double *latitude;		/* [rows] degrees */
	const double *longitude;
	double		max_distance;	/* metres, inclusive; may be infinite */

	/* results; distance infinity and tag 0: the observation has no neighbour */
	int64_t    *tag;			/* [rows] */
	double	   *distance;		/* [rows] metres */

	struct arcs_status *status;
	void	   *room;			/* memory of arcs_nearest_room() bytes */
	cudaStream_t stream;

	uint32_t	enqueued;		/* how many observations the launches so far took; the caller sets 0 at first */
};

extern size_t arcs_nearest_room(uint32_t rows);

/* Enqueue the search for the next slice of observations, small enough that a cancelled search ends soon. */
extern cudaError_t arcs_nearest_enqueue(struct arcs_nearest *search);

#endif							/* GEONN_ARCS_CUH */
