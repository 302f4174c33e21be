/*
 * index.cuh
 *		The index of a dataset on a GPU, and the search for the nearest
 *		reference by it.
 */
#ifndef GEONN_INDEX_CUH
#define GEONN_INDEX_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime.h>

#include "common/metric.h"
#include "cuda/index/window_order.cuh"

extern "C"
{
#include "common/protocol.h"
#include "engine/search/index_shape.h"
}

/*
 * Functions return this number of bytes if CUDA cannot tell how many are needed.  No GPU has as
 * much, so an allocation of it fails, and a sum that includes it does not overflow.
 */
#define INDEX_NO_ROOM (SIZE_MAX / 4)

/* A point while it is being sorted.  One record has 32 bytes, so that the GPU reads it as one sector of memory. */
struct __align__(32) index_record
{
	struct geonn_vector vector;
	uint64_t	payload;
};

/* Columns that limit which references a point can pair up with; each may be NULL. */
struct index_conditions
{
	double	   *radius;			/* metres, may be infinite */
	int64_t    *low[GEONN_WINDOWS_MAX]; /* the lows of each window (window.h) */
	int64_t    *high[GEONN_WINDOWS_MAX];
	uint16_t   *edges;			/* edges of all windows; NULL: points have no windows */
};

/* the columns of index_conditions */
#define INDEX_COLUMNS_CONDITIONS (GEONN_COLUMN_RADIUS | GEONN_COLUMNS_WINDOWS)

/*
 * The index of a dataset (index_shape.h).  Addresses are the GPU's.  The whole index is one block
 * of memory: another GPU gets a copy of the block, with addresses computed anew.
 */
struct index
{
	uint32_t	references;		/* how many references the index has, at least 1 */
	enum geonn_metric metric;	/* the metric for which the vectors were computed */
	uint32_t	columns;		/* the columns that the dataset has: GEONN_COLUMN_... */
	struct index_shape shape;	/* shape.positions is known once the index is built */

	/* positions; copies of the last one fill the last leaf up */
	double	   *x;				/* [positions] vectors */
	double	   *y;
	double	   *z;
	uint32_t   *start;			/* [positions + 1] the references of position i are start[i] ... start[i + 1] - 1 in
								 * the sorted order */
	int32_t    *group;			/* [positions], or NULL */

	/* references in the sorted order */
	uint32_t   *place;			/* [references] index in the dataset */
	int64_t    *tag;			/* [references] */

	/* nodes of all levels, placed by shape */
	double	   *low_x;			/* [all_nodes] boxes around the positions of each node */
	double	   *low_y;
	double	   *low_z;
	double	   *high_x;
	double	   *high_y;
	double	   *high_z;
	int32_t    *low_group;		/* [all_nodes] the smallest and largest group of each node, or NULL */
	int32_t    *high_group;

	/* [nodes of level 0] the curve code of each leaf's first position; used only to
	 * sort observations, in an index without groups */
	uint64_t   *leaf_code;

	/*
	 * Conditions of positions, each NULL if the dataset has no such column.  A node
	 * has bounds for all its positions: the greatest limit that their radiuses set
	 * on squared chords, and each window's first low and last high.
	 */
	struct index_conditions conditions;	/* [positions] */
	float	   *node_limit;		/* [all_nodes], rounded up */
	int64_t    *node_low[GEONN_WINDOWS_MAX];	/* [all_nodes] */
	int64_t    *node_high[GEONN_WINDOWS_MAX];
	uint32_t   *exclusive;		/* one bit for each window, set if the window's range of some reference has an
								 * exclusive edge; NULL: no windows */
	struct window_order *order; /* the order by which positions are sorted; NULL: no windows */
};

/*
 * Lay out an index of up to this many references from address memory on (NULL
 * to learn only the size).  Returns the bytes that the index takes.
 */
extern size_t index_place(void *memory, uint32_t references, enum geonn_metric metric,
						  uint32_t columns, struct index *index);

/* Lay out the condition columns of `rows` rows from *offset on; those that `columns` lacks become
 * NULL. */
extern void index_place_conditions(void *memory, size_t *offset, uint32_t rows, uint32_t columns,
								struct index_conditions *conditions);

/*
 * The columns of a dataset, on the GPU, from which its index is built.
 */
struct index_source
{
	const double *latitude;		/* [references] degrees */
	const double *longitude;
	const int64_t *tag;
	const int32_t *group;		/* or NULL */
	struct index_conditions conditions;
};

/* Return the bytes of memory that index_build() needs beside the index and its source. */
extern size_t index_build_room(uint32_t references);

/*
 * Build an index that index_place() has laid out.  If the dataset has windows,
 * the caller has copied their order to index->order.  Waits for the stream
 * once, to learn the number of positions.  `room` has index_build_room() bytes;
 * it and the source may be freed once the stream has executed what was
 * enqueued.
 */
extern cudaError_t index_build(struct index *index, const struct index_source *source,
							   void *room, cudaStream_t stream);

/*
 * A search for the nearest reference of each observation: the first in the order
 * (distance, place).  It needs geonn_metric_chord_decides(), and no groups,
 * excluded tags or ties; neighbours.cuh answers all other questions.
 */
struct index_nearest
{
	const struct index *index;
	uint32_t	rows;			/* observations, at least 1 */
	const double *latitude;		/* [rows] degrees, on the GPU */
	const double *longitude;
	double		max_distance;	/* metres, inclusive; may be infinite */

	/*
	 * Results on the GPU.  If row is NULL, each is at its observation's row.
	 * Otherwise results come in the order of the search, which writes faster,
	 * and row[i] is the observation of result i.  An observation without a
	 * neighbour has distance infinity and tag 0.
	 */
	int64_t    *tag;			/* [rows] */
	double	   *distance;		/* [rows] metres */
	uint32_t   *row;			/* [rows], or NULL */

	struct index_status *status;	/* on the GPU; index_nearest_enqueue() zeroes the status */
	void	   *room;			/* memory of index_nearest_room() bytes */
	cudaStream_t stream;
	cudaEvent_t sorted;			/* the event to record when the observations are
								 * sorted, or NULL */
};

/* What the kernels of a search report; the host copies the report after each launch. */
struct index_status
{
	uint32_t	out_of_range;	/* 1 if some coordinates are invalid */
	uint32_t	unmatched;		/* how many observations have no neighbour */
	uint32_t	ambiguous;		/* observations whose nearest float32 could not decide; for each of them a warp decides
								 * in float64 */
	uint32_t	decided;		/* how many of the ambiguous observations are decided; a greater
								 * number than `ambiguous` also means all */
};

/* Return the bytes of memory that a search for this many observations needs. */
extern size_t index_nearest_room(uint32_t rows);

/*
 * index_nearest_enqueue() enqueues the search.  A launch ends after some 25 ms,
 * so the status may then have fewer decided than ambiguous observations: the
 * caller calls index_nearest_decide(), which enqueues another launch, until all
 * are decided.
 */
extern cudaError_t index_nearest_enqueue(const struct index_nearest *search);
extern cudaError_t index_nearest_decide(const struct index_nearest *search);

#endif							/* GEONN_INDEX_CUH */
