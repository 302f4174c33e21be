/*
 * neighbours.cuh
 *		Answers any question on a GPU: k neighbours, ties, all within a
 *		distance.
 *
 * For the sources of these searches; neighbours.cu has the essay.
 */
#ifndef GEONN_NEIGHBOURS_CUH
#define GEONN_NEIGHBOURS_CUH

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

#include "cuda/index/index_order.cuh"
#include "cuda/index/index_sums.cuh"
#include "cuda/lane/entries.cuh"
#include "cuda/lane/results.cuh"

struct piece_operations;
struct question;
struct search;

/* What the kernels report; the host copies the report when they have ended. */
struct neighbours_status
{
	uint32_t	next;			/* how many observations warps have taken, in the order of search */
	uint32_t	out_of_range;	/* 1 if some coordinates are invalid */
};

/*
 * Some observations, the question about them, and memory for its answer.
 * Addresses are the GPU's.
 */
struct neighbours
{
	struct index index;
	uint32_t	rows;			/* observations, at least 1 */
	uint32_t	k;				/* 0 ... GEONN_K_MAX; 0: all */
	bool		ties;
	double		max_distance;	/* metres, inclusive; may be infinite */

	/* observations, [rows] */
	double	   *latitude;		/* degrees */
	double	   *longitude;
	int32_t    *group;			/* or NULL */
	int64_t    *excluded_first; /* the tags that each excludes (batch_layout.h), or NULL */
	int64_t    *excluded_last;
	struct index_conditions conditions;
	uint32_t   *order;			/* rows in the order of search */
	uint32_t   *row;			/* [rows] used by the sort; afterwards bundles_enqueue() lists
								 * observations here */

	/* how observations without groups and windows are sorted, with their degrees by row */
	struct index_order curve;

	/*
	 * Vectors of observations with groups or windows, for the index's metric, and memory for sorting them; otherwise NULL
	 */
	struct index_record *record;
	uint64_t   *code;			/* [2 * rows] keys */
	void	   *sort_room;
	size_t		sort_bytes;

	/* the first k neighbours of each observation, in order; those of row r begin at index r * k */
	double	   *value;			/* distances */
	uint32_t   *reference;		/* index of the reference in the index's order */
	int64_t    *tag;			/* [rows * k] tags of the neighbours if bundles_fill(): then the columns `value` and
								 * `tag` are the result, and `reference` is unused; otherwise NULL */
	uint32_t   *selected;		/* [rows] how many neighbours are selected */

	/* pairs that may be answers; those of one observation follow each other */
	struct entries entries;		/* `reference` of an entry is an index in the index's order */

	/* counts, offsets and packed pairs; results.count counts the selected neighbours
	 * if these are the answer, otherwise the entries */
	struct results results;

	struct index_weights weights;	/* the weights that counts add up; weights.count is 0 if references have none */

	/*
	 * [index.references] by place in the dataset: the reference's index in the index's order; NULL
	 * unless a search counts and excludes tags
	 */
	uint32_t   *by_place;

	struct neighbours_status *status;
	cudaStream_t stream;
};

/*
 * neighbours_sort.cu: neighbours_place_order() lays out the memory for sorting
 * this many observations with these columns from address memory on, with the
 * order, and returns its bytes; INDEX_NO_ROOM if CUDA cannot tell.
 * neighbours_sort() enqueues the kernels that sort observations along the
 * references' curve, and make the vectors of those that have groups or windows.
 */
extern size_t neighbours_place_order(void *memory, uint32_t rows, uint32_t columns,
									 struct neighbours *search);
extern cudaError_t neighbours_sort(struct neighbours *search);

/*
 * bundles.cu: return whether every observation will have k pairs, so that the columns with k places
 * for each can be the result, without packing.  Reads only the index and the question.
 */
extern bool bundles_fill(const struct neighbours *search);

/*
 * bundles.cu: bundles_enqueue() enqueues the search for few neighbours of many
 * observations, if bundles_fit() is true; otherwise it does nothing.  It lists
 * the observations that it leaves to neighbours_select() in row[], from
 * status->next to the end.
 */
extern bool bundles_fit(const struct neighbours *search);
extern cudaError_t bundles_enqueue(const struct neighbours *search);

/*
 * neighbours_select.cu: enqueue a launch that finds the first k neighbours of
 * observations from status->next on.  It ends after some 30 ms, whether or not
 * it took all observations.
 */
extern cudaError_t neighbours_select(const struct neighbours *search);

/*
 * neighbours_collect.cu: each function enqueues a launch that ends after some 30 ms, whether or not it took all
 * observations.  neighbours_count() counts the candidates of each observation.  neighbours_collect() writes the candidates
 * of the first `rows` observations to where the offsets say.
 */
extern cudaError_t neighbours_count(const struct neighbours *search);
extern cudaError_t neighbours_collect(const struct neighbours *search, uint32_t rows);

/*
 * counts.cu, for searches that count.  counts_prepare() enqueues the work that a piece needs once.  counts_enqueue()
 * enqueues a launch for observations from status->next on, which counts the candidates within the question's radii and
 * adds up their weights, as packed pairs (protocol_search.h), and sets results.count to how many pairs there are.  The launch
 * ends after some 30 ms, whether or not it took all observations.
 */
extern cudaError_t counts_prepare(const struct neighbours *search);
extern cudaError_t counts_enqueue(const struct neighbours *search, const struct question *question);

/* ---- pieces of searches ---- */

/* neighbours.cu's operations */
extern const struct piece_operations neighbours_operations;

#endif							/* GEONN_NEIGHBOURS_CUH */
