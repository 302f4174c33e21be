/*
 * shapes_within.cuh
 *		Finds all shapes within a distance of each observation on a GPU.
 *
 * For the sources of this search; shapes_within.cu has the essay.
 */
#ifndef GEONN_SHAPES_WITHIN_CUH
#define GEONN_SHAPES_WITHIN_CUH

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "cuda/arcs/arcs.cuh"
#include "cuda/arcs/polygons.cuh"
#include "cuda/index/index_order.cuh"
#include "cuda/lane/entries.cuh"
#include "cuda/lane/lane.cuh"
#include "cuda/lane/results.cuh"

/* how many entries an observation may have: polygons that it is in, and runs of arcs */
#define SHAPES_WITHIN_MAX 4096

/* What the kernels report; the host copies the report. */
struct shapes_within_status
{
	uint32_t	next;			/* how many bundles of observations warps have taken, in the order of the search */
	uint32_t	out_of_range;	/* 1 if some coordinates are invalid */
	uint32_t	refused;		/* the first row that needs too much work; UINT32_MAX: no row does */
};

/* Some observations, and memory for what is found.  Addresses are the GPU's. */
struct shapes_within
{
	struct arcs arcs;
	const struct polygons *polygons;	/* NULL: the dataset has none */
	uint32_t	rows;			/* observations, at least 1 */
	double		max_distance;	/* metres, inclusive; may be infinite */
	double		limit;			/* the limit on chords, in radii, that max_distance gives */
	double	   *latitude;		/* [rows] degrees */
	double	   *longitude;
	struct index_order order;

	/*
	 * What each observation finds: the polygons that it is in, then arcs.  An entry has the distance, the row, and
	 * the arc's index in the dataset; its `reference` is the number of the arc's shape
	 */
	struct entries entries;
	struct results found;		/* counts and offsets of entries; only some of the entries become pairs */
	uint32_t   *inside;			/* [rows] how many polygons an observation is in */
	uint32_t   *rank;			/* [entries.room + 1] how many pairs come before that of each entry */
	void	   *rank_room;
	size_t		rank_bytes;

	struct results results;		/* packed by shapes_pack() */
	struct shapes_within_status *status;
	cudaStream_t stream;
};

/*
 * shapes_polygons.cu, for a dataset with polygons.  shapes_count_polygons() counts the polygons that each observation is in.
 * shapes_collect_polygons() writes the polygons of the first `rows` observations to where the offsets say.
 */
extern cudaError_t shapes_count_polygons(const struct shapes_within *search);
extern cudaError_t shapes_collect_polygons(const struct shapes_within *search, uint32_t rows);

/*
 * shapes_collect.cu: each function enqueues a launch that ends after some 30 ms, whether or not it took all observations.
 * shapes_count() counts the entries of each observation, polygons included; the count of a refused row is UINT32_MAX, and
 * the counts of later rows mean nothing.  shapes_collect() writes the arcs of the first `rows` observations to where the
 * offsets say, behind the polygons.
 */
extern cudaError_t shapes_count(const struct shapes_within *search);
extern cudaError_t shapes_collect(const struct shapes_within *search, uint32_t rows);

/*
 * shapes_pack.cu: shapes_place_ranks() lays out the memory for ranks, as place_columns() does.
 * shapes_pack() enqueues what makes pairs of this many entries of the first `rows` observations: a sort, and then of each
 * shape the first entry, unless that is farther than max_distance.
 */
extern void shapes_place_ranks(void *memory, size_t *offset, struct shapes_within *search);
extern cudaError_t shapes_pack(struct shapes_within *search, uint32_t rows, uint32_t entries);

/* ---- pieces of searches ---- */

/* shapes_within.cu's operations */
extern const struct piece_operations shapes_within_operations;

#endif							/* GEONN_SHAPES_WITHIN_CUH */
