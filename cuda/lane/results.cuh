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

/* how much of the results fits into the space for pairs */
struct results_status
{
	uint32_t	observations;	/* how many of the first observations fit with all their pairs */
	uint32_t	pairs;			/* how many pairs the fitting observations have */
};

/*
 * The neighbours that were found for some observations.  All addresses are the
 * GPU's.  results_place() fills in count, offset, scan_room, scan_bytes and
 * status; the caller fills in all other fields.
 */
struct results
{
	uint32_t	rows;			/* how many observations were searched for */
	uint32_t	room;			/* the greatest number of pairs that fit */

	/* the neighbours, in order: row r's from r * stride, or if stride is 0
	 * from offset[r] */
	uint32_t	stride;
	const double *distance;
	uint32_t	distance_step;	/* how many float64 values lie from one distance to the next */
	const uint32_t *reference;	/* index in `tag` of each pair's tag; NULL: the pair's own index */
	const int64_t *tag;

	uint32_t   *count;			/* [rows + 1] pairs of each observation; results_scan() uses the
								 * last one */
	uint64_t   *offset;			/* [rows + 1] how many pairs come before those of each observation */
	void	   *scan_room;
	size_t		scan_bytes;
	struct results_status *status;

	/* the packed pairs: those of the observations that fit, one after the other */
	int64_t    *packed_tag;		/* [room] */
	double	   *packed_distance;	/* [room] */
};

/* Lay out the columns from count to status, which results_scan() needs, for this many rows. */
extern size_t results_place(void *memory, uint32_t rows, struct results *results);

/*
 * Enqueue the kernels that add the counts up to offsets, and write into the
 * status how many observations fit into the space for pairs.
 */
extern cudaError_t results_scan(const struct results *results, cudaStream_t stream);

/*
 * Enqueue the kernel that packs the pairs of those observations that fit.
 */
extern cudaError_t results_pack(const struct results *results, cudaStream_t stream);

/*
 * Enqueue the kernel that sets the counts for a search with at most one neighbour for each observation, at stride 1.  The
 * count is 1 if the neighbour is at most max_distance away.  A distance of infinity stands for no neighbour.
 */
extern cudaError_t results_count_one(const struct results *results, double max_distance,
									 cudaStream_t stream);

#endif							/* GEONN_RESULTS_CUH */
