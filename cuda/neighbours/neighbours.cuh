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

#include "cuda/index/index.cuh"
#include "cuda/lane/results.cuh"

struct piece_operations;
struct search;

/* What the kernels report to the host, which copies it when they have ended. */
struct neighbours_status
{
	uint32_t	next;			/* observations taken, in the order of search */
	uint32_t	out_of_range;	/* 1 if some coordinates are not a point */
};

/* A pair of an answer. */
struct neighbours_entry
{
	double		value;			/* distance in metres */
	uint32_t	row;			/* observation */
	uint32_t	place;			/* of the reference, in the dataset */
};

/*
 * Some observations and what is asked of them.  Addresses are the GPU's.
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
	int32_t    *identity;		/* or NULL */
	struct index_conditions conditions;
	struct index_record *record;	/* their vectors, as the index has them */
	uint32_t   *order;			/* rows in the order of search */

	/* for the sorting of the observations */
	void	   *code;			/* [2 * rows] uint32_t, or uint64_t with groups or windows */
	uint32_t   *row;			/* [rows]; later what small_k_enqueue() lists */
	void	   *sort_room;
	size_t		sort_bytes;

	/* the first k of each, from row * k, in order */
	double	   *value;			/* distances, or squared chords where these do not decide */
	uint32_t   *reference;		/* in the index's order */
	int64_t    *tag;			/* in place of reference, where small_k_fills() says
								 * so: then these slots are the result; or NULL */
	uint32_t   *selected;		/* [rows] number of selected neighbours */

	/* pairs that may be answers, adjacent for each observation */
	uint32_t	entry_room;
	struct neighbours_entry *entry; /* [entry_room], where the chord decides */
	uint32_t   *entry_reference;	/* [entry_room] in the index's order; where
									 * the chord does not decide, places in the
									 * dataset */
	void	   *entry_sort_room;

	/* counts, offsets and packed pairs; count is that of the selected if these
	 * are the answer, otherwise that of the entries */
	struct results results;

	struct neighbours_status *status;
	cudaStream_t stream;
};

/*
 * neighbours_sort.cu: enqueue the kernels that make vectors and sort
 * observations along the references' curve.  The bytes that codes take, and
 * that a sort needs beside them: INDEX_NO_ROOM if CUDA cannot tell.
 */
extern size_t neighbours_code_bytes(uint32_t rows, uint32_t columns);
extern size_t neighbours_sort_bytes(uint32_t rows, uint32_t columns);
extern cudaError_t neighbours_sort(const struct neighbours *search);

/*
 * Sort entries by (row, value, place), with their references.  The sorted
 * columns may be elsewhere: search->entry, entry_reference and results point
 * to them.
 */
extern size_t neighbours_entry_sort_bytes(uint32_t entries);
extern cudaError_t neighbours_sort_entries(struct neighbours *search, uint32_t entries);

/*
 * small_k.cu: whether every observation has k pairs, so that the slots
 * can be the result, without packing.  Needs the index and the question.
 */
extern bool small_k_fills(const struct neighbours *search);

/*
 * small_k.cu: enqueue the search for few neighbours of many
 * observations.  The observations that it leaves to neighbours_select() are
 * listed in row[], from status->next to the end.  Does nothing if
 * small_k_fits() returns false.
 */
extern bool small_k_fits(const struct neighbours *search);
extern cudaError_t small_k_enqueue(const struct neighbours *search);

/*
 * nearest_columns.cu: the same as neighbours_select() for the nearest neighbour
 * alone in an index with groups or windows, which this can do if
 * nearest_columns_fits() returns true.
 */
extern bool nearest_columns_fits(const struct neighbours *search);
extern cudaError_t nearest_columns_enqueue(const struct neighbours *search);

/*
 * neighbours_select.cu: enqueue a launch that finds the first k neighbours of
 * observations from status->next on.  It ends after some 30 ms, whether or not
 * it took all observations.
 */
extern cudaError_t neighbours_select(const struct neighbours *search);

/*
 * neighbours_collect.cu: enqueue such a launch that counts all candidates of
 * observations, or writes those of the first `rows` observations to where the
 * offsets say.
 */
extern cudaError_t neighbours_count(const struct neighbours *search);
extern cudaError_t neighbours_collect(const struct neighbours *search, uint32_t rows);

/* ---- pieces of searches ---- */

/* neighbours.cu's operations */
extern const struct piece_operations neighbours_operations;

struct candidate;

/* Candidates that the host measures and trims to pairs. */
struct neighbours_decision
{
	void	   *memory;			/* of all columns; malloc()ed */
	uint32_t	rows;			/* observations */
	uint32_t	count;			/* candidates */
	double	   *latitude;		/* [rows] degrees, as the GPU has them */
	double	   *longitude;
	double	   *radius;			/* [rows] metres, or NULL */
	uint64_t   *offset;			/* [rows + 1] where each observation's candidates begin */
	uint32_t   *place;			/* [count] */
	struct candidate *candidate;	/* [count] */
	uint32_t   *chosen;			/* [rows] pairs, first among its candidates */
	uint32_t	measured;		/* candidates that have their distance */
	uint32_t	decided;		/* observations */
};

/* most entries of a piece where the host decides */
#define NEIGHBOURS_DECISION_ROOM ((uint32_t) 1 << 20)

/*
 * neighbours_decide.cu: allocate a decision, which began zeroed; false: memory
 * is short.  Then enqueue the copies of its candidates from the GPU.
 */
extern bool neighbours_decision_begin(struct neighbours_decision *decision,
									  const struct neighbours *search, uint32_t rows,
									  uint32_t count);
extern cudaError_t neighbours_decision_copy(const struct neighbours_decision *decision,
											const struct neighbours *search);

/*
 * Do some 30 ms of the remaining work.  Returns whether all work is done: then
 * the pairs of the first *answered observations, *pairs in all, have been
 * written to the batch.
 */
extern bool neighbours_decide(struct neighbours_decision *decision, const struct search *search,
							  uint32_t *answered, uint32_t *pairs);
extern void neighbours_decision_end(struct neighbours_decision *decision);

#endif							/* GEONN_NEIGHBOURS_CUH */
