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
 * Bytes of room if CUDA cannot tell how many: more than any GPU has, so that
 * they are refused, but few enough that sums with them do not overflow.
 */
#define INDEX_NO_ROOM (SIZE_MAX / 4)

/* a point on its way through a sort: gathered as one sector of memory */
struct __align__(32) index_record
{
	struct geonn_vector vector;
	uint64_t	payload;
};

/* Columns that say with whom a point can pair up; each may be NULL. */
struct index_conditions
{
	double	   *radius;			/* metres, may be infinite */
	int64_t    *low[GEONN_WINDOWS_MAX]; /* windows, by window.h */
	int64_t    *high[GEONN_WINDOWS_MAX];
	uint16_t   *edges;			/* not NULL if a point has windows */
};

/* the columns of index_conditions */
#define INDEX_COLUMNS_CONDITIONS (GEONN_COLUMN_RADIUS | GEONN_COLUMNS_WINDOWS)

/*
 * A dataset's index (index_shape.h); addresses are the GPU's.  One block of
 * memory, so that a peer copy and a different base address make another.
 */
struct index
{
	uint32_t	references;		/* at least 1 */
	enum geonn_metric metric;	/* what the vectors are */
	uint32_t	columns;		/* GEONN_COLUMN_... */
	struct index_shape shape;	/* positions is known once it is built */

	/* positions, filled up to a whole leaf with the last one */
	double	   *x;				/* [positions] vectors */
	double	   *y;
	double	   *z;
	uint32_t   *start;			/* [positions + 1] its references are start[i]
								 * ... start[i + 1] - 1 of the sorted order */
	int32_t    *group;			/* [positions], or NULL */

	/* references in the sorted order */
	uint32_t   *place;			/* [references] index in the dataset */
	int64_t    *tag;			/* [references] */
	int32_t    *identity;		/* [references], or NULL */

	/* nodes of all levels, where shape says */
	double	   *low_x;			/* [all_nodes] boxes */
	double	   *low_y;
	double	   *low_z;
	double	   *high_x;
	double	   *high_y;
	double	   *high_z;
	int32_t    *low_group;		/* [all_nodes], or NULL */
	int32_t    *high_group;

	/* [nodes of level 0] curve code of the first position of each leaf; only
	 * for sorting observations, so without groups */
	uint64_t   *leaf_code;

	/*
	 * conditions of positions, each NULL where the dataset has no such column; and of
	 * nodes what all their positions are within: the greatest limit on squared
	 * chords that a radius gives, the first low and the last high of each window
	 */
	struct index_conditions conditions;	/* [positions] */
	float	   *node_limit;		/* [all_nodes], rounded up */
	int64_t    *node_low[GEONN_WINDOWS_MAX];	/* [all_nodes] */
	int64_t    *node_high[GEONN_WINDOWS_MAX];
	uint32_t   *exclusive;		/* bits of the windows that have exclusive edges; NULL: no windows */
	struct window_order *order; /* by which positions are sorted; likewise */
};

/*
 * Lay out an index of up to this many references from address memory (NULL to
 * learn only the size).  Returns the bytes taken.
 */
extern size_t index_place(void *memory, uint32_t references, enum geonn_metric metric,
						  uint32_t columns, struct index *index);

/* Lay out, from an offset on, the conditions of so many rows; absent ones become NULL. */
extern void index_place_conditions(void *memory, size_t *offset, uint32_t rows, uint32_t columns,
								struct index_conditions *conditions);

/*
 * What an index is built from: the dataset's columns on the GPU, and room for
 * the building.
 */
struct index_source
{
	const double *latitude;		/* [references] degrees */
	const double *longitude;
	const int64_t *tag;
	const int32_t *group;		/* or NULL */
	const int32_t *identity;	/* or NULL */
	struct index_conditions conditions;
};

/* Bytes of room that index_build needs beside the index and its source. */
extern size_t index_build_room(uint32_t references);

/*
 * Build an index that index_place has laid out; the caller has copied the order
 * of a dataset with windows to its place there.  Waits for the stream once, to
 * learn the number of positions.  The room, of index_build_room() bytes, and
 * the source may be freed once the stream has executed what was enqueued.
 */
extern cudaError_t index_build(struct index *index, const struct index_source *source,
							   void *room, cudaStream_t stream);

/*
 * Find the nearest reference of each observation: the first in the order
 * (distance, place).  For metrics whose chord decides, without groups, identities and
 * ties; the rest is neighbours.cuh's.
 */
struct index_nearest
{
	const struct index *index;
	uint32_t	rows;			/* observations, at least 1 */
	const double *latitude;		/* [rows] degrees, on the GPU */
	const double *longitude;
	double		max_distance;	/* metres, inclusive; may be infinite */

	/*
	 * [rows] the rows to search for, of columns that may have more, on the GPU; NULL:
	 * all.  Not together with `row`.
	 */
	const uint32_t *list;

	/*
	 * Results on the GPU: at the observation's row, or, where row is not NULL,
	 * in the order of the search, which leaves out nothing and writes faster,
	 * with the number of the observation.  An observation without a neighbour
	 * has distance infinity and tag 0.
	 */
	int64_t    *tag;			/* [rows] */
	double	   *distance;		/* [rows] metres */
	uint32_t   *row;			/* [rows], or NULL */

	struct index_status *status;	/* on the GPU; zeroed by index_nearest_enqueue */
	void	   *room;			/* of index_nearest_room() bytes */
	cudaStream_t stream;
	cudaEvent_t sorted;			/* to record when the observations are in
								 * order, or NULL */
};

/* What the search reports to the host, which copies it after a launch. */
struct index_status
{
	uint32_t	out_of_range;	/* 1 where some coordinates are no point */
	uint32_t	unmatched;		/* observations without a neighbour */
	uint32_t	ambiguous;		/* observations that float64 has to decide alone */
	uint32_t	decided;		/* how many of these it has decided, or more than all if all */
};

/* Bytes of room for searching this many observations at a time. */
extern size_t index_nearest_room(uint32_t rows);

/*
 * Enqueue the search.  If the status then has fewer decided than ambiguous
 * observations, since a launch ends after some 25 ms, the caller calls
 * index_nearest_decide(), which enqueues more, until all are decided.
 */
extern cudaError_t index_nearest_enqueue(const struct index_nearest *search);
extern cudaError_t index_nearest_decide(const struct index_nearest *search);

/*
 * The same for the observations on search->list, of which *count, on the GPU, says how
 * many there are: none is answered if these are more than search->rows.  Each is
 * answered by a warp alone; row, status, room and sorted do not count.  A launch takes
 * some 25 ms at most; the caller enqueues more until all are decided: *decided, on the
 * GPU and 0 at first, is how many are answered, or more than all.
 */
extern cudaError_t index_alone_enqueue(const struct index_nearest *search, const uint32_t *count,
									   uint32_t *decided);

#endif							/* GEONN_INDEX_CUH */
