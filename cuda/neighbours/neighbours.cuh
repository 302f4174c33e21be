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

	/* for neighbours_alone.cu */
	uint32_t	in_range;		/* candidates in the range of the last choice */
	uint32_t	entries;		/* entries that were written */
};

/* The key of a candidate in the order of an observation's candidates. */
struct neighbours_key
{
	double		value;			/* distance, or squared chord where that does not decide */
	uint32_t	place;
};

/*
 * A range of an observation's candidates: the candidates after `after`, if
 * that bound is set, up to and including `last`.
 */
struct neighbours_range
{
	bool		has_after;
	struct neighbours_key after;
	struct neighbours_key last;
};

/* digits of a key, and values of a digit */
#define NEIGHBOURS_KEY_DIGITS 12
#define NEIGHBOURS_DIGITS 256

/* The state of neighbours_alone.cu. */
struct neighbours_alone
{
	struct neighbours_range range;

	/* while a key is being chosen */
	bool		choosing;
	uint32_t	rank;			/* of the wanted key among the keys that begin with... */
	struct neighbours_key begin;	/* ... these digits, as far as they are known */
	uint32_t	digits[NEIGHBOURS_DIGITS];	/* how many keys go on with each digit */
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
	bool		every_leaf;		/* brute force: search all leaves */
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
	uint32_t   *row;			/* [rows]; later what neighbours_few() lists, or
								 * how far brute force has written */
	void	   *sort_room;
	size_t		sort_bytes;

	/* the first k of each, from row * k, in order */
	double	   *value;			/* distances, or squared chords where these do not decide */
	uint32_t   *reference;		/* in the index's order */
	int64_t    *tag;			/* in place of reference, where neighbours_fill() says
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

	struct neighbours_alone *alone; /* if the search has one observation */
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
 * neighbours_few.cu: whether every observation has k pairs, so that the slots
 * can be the result, without packing.  Needs the index and the question.
 */
extern bool neighbours_fill(const struct neighbours *search);

/*
 * neighbours_few.cu: enqueue the search for few neighbours of many
 * observations.  The observations that it leaves to neighbours_select() are
 * listed in row[], from status->next to the end.  Does nothing if
 * neighbours_few_fits() returns false.
 */
extern bool neighbours_few_fits(const struct neighbours *search);
extern cudaError_t neighbours_few(const struct neighbours *search);

/*
 * neighbours_one.cu: the same as neighbours_select() for the nearest neighbour
 * alone in an index with groups or windows, which this can do if
 * neighbours_one_fits() returns true.
 */
extern bool neighbours_one_fits(const struct neighbours *search);
extern cudaError_t neighbours_one(const struct neighbours *search);

/*
 * neighbours_select.cu: enqueue a launch that finds the first `neighbours` of
 * observations from status->next on, in leaves first_leaf ... end_leaf - 1.
 * The launch before it, if any, had the leaves up to first_leaf.  It ends
 * after some 30 ms, whether or not it took all observations.
 */
extern cudaError_t neighbours_select(const struct neighbours *search, uint32_t first_leaf,
									 uint32_t end_leaf);

/*
 * neighbours_collect.cu: enqueue a launch that counts all candidates of
 * observations from status->next on, or writes those of the first `rows`
 * observations to where the offsets say.  By brute force, those in leaves
 * first_leaf ... end_leaf - 1, like neighbours_select().
 */
extern cudaError_t neighbours_count(const struct neighbours *search, uint32_t first_leaf,
									uint32_t end_leaf);
extern cudaError_t neighbours_collect(const struct neighbours *search, uint32_t rows,
									  uint32_t first_leaf, uint32_t end_leaf);

/*
 * neighbours_alone.cu: for one observation with any number of candidates.
 *
 * Enqueue a step of choosing the rank-th candidate of the range, rank at least
 * 1: the digits 0 ... NEIGHBOURS_KEY_DIGITS - 1 of its key, one after the
 * other.  After the last step the range ends at that candidate, or with ties
 * behind all candidates at its distance.  If the range has fewer candidates
 * than rank, it remains as it is.  Where the chord does not decide, widen
 * moves the end up to the limit that the first `rank` by distance cannot
 * exceed.
 */
extern cudaError_t neighbours_alone_begin(const struct neighbours *search,
										  const struct neighbours_range *range);
extern cudaError_t neighbours_alone_choose(const struct neighbours *search, int digit,
										   uint32_t rank, bool ties, bool widen);

/* let the range begin after a key */
extern cudaError_t neighbours_alone_after(const struct neighbours *search,
										  struct neighbours_key after);

/*
 * Enqueue the writing of the range's candidates among references first ... end
 * - 1 of the index's order, in any order.  The caller provides enough room.
 */
extern cudaError_t neighbours_alone_write(const struct neighbours *search, uint32_t first,
										  uint32_t end);

/* ---- pieces of searches ---- */

/* neighbours.cu's operations; and neighbours_part.cu's, for one observation alone */
extern const struct piece_operations neighbours_operations;
extern const struct piece_operations neighbours_part_operations;

struct candidate;

/* Candidates that the host measures and trims to pairs; malloc()ed. */
struct neighbours_decision
{
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

enum neighbours_part_phase
{
	PART_COPY_IN,
	PART_RANGE,					/* find the range of all that may be a pair */
	PART_FIND,					/* find the candidates after the cutoff, up to the room */
	PART_PACK,
	PART_COPY_OUT,
	PART_COPY_CHUNK,			/* copy a chunk of candidates to the host */
	PART_MERGE_CHUNK			/* merge the chunk into the candidates that are kept */
};

/* The host's side of a part, where the host decides; malloc()ed. */
struct neighbours_part_chunks
{
	bool		for_bound;		/* to learn only the distance of the k-th */
	double		bound;			/* metres; no pair is farther */
	uint32_t	first;			/* of the next chunk's references */
	uint32_t	end;
	uint32_t	keep;			/* how many candidates are worth keeping */
	uint32_t	kept;
	uint32_t   *place;			/* of a chunk's candidates */
	struct candidate *chunk;
	struct candidate *best;		/* [keep] the first so far, in order */
	struct candidate *merged;	/* [keep] */
};

/* One observation, whose pairs come in parts. */
struct neighbours_part
{
	enum neighbours_part_phase phase;
	int			digit;			/* of the key that is being chosen */
	struct neighbours work;
	double		degrees[2];		/* as the GPU has them */
	double		radius;			/* metres; infinite without that column */
	struct neighbours_part_chunks chunks;
	struct results_status written;	/* by the host */
	bool		more;			/* more pairs than the room holds */
	struct neighbours_key last; /* of the pairs written */
};

/* most entries of a piece where the host decides */
#define NEIGHBOURS_DECISION_ROOM ((uint32_t) 1 << 20)

/*
 * neighbours_decide.cu: allocate a decision, and enqueue the copies of its
 * candidates from the GPU.  False: memory is short.
 */
extern bool neighbours_decision_begin(struct neighbours_decision *decision,
									  const struct neighbours *search, uint32_t rows,
									  uint32_t count, cudaError_t *error);

/*
 * Do some 30 ms of the remaining work.  Returns whether all work is done: then
 * the pairs of the first *answered observations, *pairs in all, have been
 * written to the batch.
 */
extern bool neighbours_decide(struct neighbours_decision *decision, const struct search *search,
							  uint32_t *answered, uint32_t *pairs);
extern void neighbours_decision_end(struct neighbours_decision *decision);

/*
 * neighbours_merge.cu: prepare for chunks of the candidates of up to
 * NEIGHBOURS_CHUNK references; false if memory is short.  Take a chunk of so
 * many candidates, whose places have been copied; in the end, write the pairs
 * to the batch.
 */
#define NEIGHBOURS_CHUNK ((uint32_t) 1 << 16)

extern bool neighbours_merge_begin(struct neighbours_part *part, const struct search *search);
extern void neighbours_merge(struct neighbours_part *part, const struct search *search,
							 uint32_t candidates);
extern void neighbours_merge_write(struct neighbours_part *part, const struct search *search);
extern void neighbours_merge_end(struct neighbours_part *part);

/* whether all chunks were taken; if not, the next chunk has been set up */
extern bool neighbours_merge_done(struct neighbours_part *part, const struct search *search);

#endif							/* GEONN_NEIGHBOURS_CUH */
