/*
 * results.cuh
 *		Turns the neighbours found into a batch's results: counts and packed
 *		pairs.
 */
#ifndef GEONN_RESULTS_CUH
#define GEONN_RESULTS_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

/* how much of the results fits into the room */
struct results_status
{
	uint32_t	observations;	/* the first observations, with all their pairs */
	uint32_t	pairs;			/* pairs of these */
};

/*
 * What was found for some observations.  Addresses are the GPU's;
 * results_place() fills in some fields, the caller all others.
 */
struct results
{
	uint32_t	rows;			/* observations */
	uint32_t	room;			/* most pairs of the results */

	/* the neighbours, in order: row r's from r * stride, or if stride is 0
	 * from offset[r] */
	uint32_t	stride;
	const double *distance;
	uint32_t	distance_step;	/* float64 from one distance to the next */
	const uint32_t *reference;	/* index of each pair's tag; NULL: that of the pair itself */
	const int64_t *tag;

	uint32_t   *count;			/* [rows + 1] the last one for results_scan() */
	uint64_t   *offset;			/* [rows + 1] pairs before each observation's */
	void	   *scan_room;
	size_t		scan_bytes;
	struct results_status *status;

	/* packed */
	int64_t    *packed_tag;		/* [room] */
	double	   *packed_distance;	/* [room] */
};

/* Lay out what results_scan() needs for this many rows: count ... status. */
extern size_t results_place(void *memory, uint32_t rows, struct results *results);

/*
 * Enqueue the adding up of the counts: offsets, and in the status how many
 * observations fit into the room.
 */
extern cudaError_t results_scan(const struct results *results, cudaStream_t stream);

/*
 * Enqueue the packing of the pairs of those observations that fit.
 */
extern cudaError_t results_pack(const struct results *results, cudaStream_t stream);

/*
 * Enqueue the counting for a search with at most one neighbour an observation,
 * at stride 1: neighbours at most max_distance away count; an infinite
 * distance means no neighbour.
 */
extern cudaError_t results_count_one(const struct results *results, double max_distance,
									 cudaStream_t stream);

#endif							/* GEONN_RESULTS_CUH */
