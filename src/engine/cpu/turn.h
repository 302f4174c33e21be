/*
 * turn.h
 *		A turn of a search on the CPU: some 50 ms of the work of one thread, and
 *		of those that help it.
 */
#ifndef GEONN_CPU_TURN_H
#define GEONN_CPU_TURN_H

#include "engine/cpu/built.h"
#include "engine/cpu/base/vectors.h"

/*
 * How long a turn should take.  For CPU_TURN_LIMIT times as long after its preparation a turn still begins observations; a
 * shape that has a turn for itself ends the turn after this time, wherever its search is then.
 */
#define CPU_TURN_MS 50
#define CPU_TURN_LIMIT 4

/* Brute force can compare an observation with this many references in a turn, even if each needs a vector. */
#define CPU_COLUMNS_MAX ((size_t) 1 << 24)

/* Writing so many pairs of clusters or of an assignment takes some milliseconds: a turn writes no more. */
#define CPU_TURN_PAIRS_MOST 131072

/*
 * The distance of an observation that has no answer yet because a table of squares leaves it to the index; also of a
 * task without an answer.
 */
#define CPU_TURN_UNANSWERED (-1.0)

/* memory for turns, kept from one turn to the next */
struct cpu_turn_room
{
	struct cpu_turn_room *next; /* the next room in the list of rooms that no turn uses */
	void	   *memory;
	size_t		bytes;
};

/*
 * Return whether nearest.c can answer a search of a built dataset.  The search must go by the index, ask for one nearest
 * reference with geonn_metric_chord_decides(), and begin without a cutoff.  The dataset must be of points; it may have
 * groups, windows, parties and radiuses of observations, but no radiuses of references and no excluded tags.
 */
extern bool cpu_turn_is_nearest(const struct search *search, const struct cpu_built *built);

/*
 * Return whether a search by brute force reads the dataset's columns, without vectors: if the device has chosen the
 * algorithm, for few observations, and no observation can take longer than a turn.
 */
extern bool cpu_turn_by_columns(const struct search *search);

/*
 * Do a turn of a search: answer some of its observations.  Returns whether another turn may follow;
 * if not, the search has ended, has failed, or was cancelled.
 */
extern bool cpu_turn_pairs(struct search *search, struct cpu_built *built,
						   struct cpu_turn_room *room);

/* Let turns take about so many ms instead of CPU_TURN_MS.  Only before the first turn. */
extern void cpu_turn_set_ms(int64_t ms);

/* Return when a turn of this many observations that begins now should end, on the clock of now_ms(). */
extern int64_t cpu_turn_end(const struct search *search, uint32_t rows);

/*
 * Return how many of the next `rows` observations a turn should take, observation `first` and on: one of very many sides, or
 * one that was left (arcs_probe.h), has its turns for itself.
 */
extern uint32_t cpu_turn_rows(const struct search *search, uint32_t first, uint32_t rows);

/* Return whether a turn has left the observation of this number to the next one. */
extern bool cpu_turn_has_left(const struct search *search, uint32_t observation);

/* Do a turn of a search that counts. */
extern bool cpu_turn_counts(struct search *search, struct cpu_built *built,
							struct cpu_turn_room *room);

/* Do a turn of a search for clusters, or for a thinning. */
extern bool cpu_turn_clusters(struct search *search);

/* Do a turn of a search that assigns. */
extern bool cpu_turn_assign(struct search *search);

/*
 * Do a turn of a search by a table of squares, cpu_built_cells().  The turn may
 * leave observations to cpu_turn_pairs().
 */
extern bool cpu_turn_cells(struct search *search, struct cpu_built *built,
						   const struct cpu_cells *cells);

/* Return the probes of a search whose observations are shapes; NULL: they are points. */
static inline struct cpu_probes *
cpu_turn_probes(const struct search *search)
{
	return search->shapes == NULL ? NULL : ((const struct cpu_built *) search->shapes->built[CPU_NUMBER])->probes;
}

/*
 * Read up to CPU_VECTORS_BLOCK observations, numbers first + row[i], or first + i if row is NULL, and compute their
 * vectors.  degrees[0] and degrees[1] become their latitudes and longitudes.  Each coordinate is read once, because the
 * client can change the batch meanwhile.  Of a shape they are those of its first vertex.  Returns false if some
 * coordinates are invalid.
 */
extern bool cpu_turn_read_points(const struct search *search, uint32_t first, const uint32_t *row,
								 uint32_t count, double (*degrees)[CPU_VECTORS_BLOCK],
								 double *x, double *y, double *z);

/* Compute only the vectors, as cpu_turn_read_points() does. */
extern bool cpu_turn_read_vectors(const struct search *search, uint32_t first, const uint32_t *row,
								  uint32_t count, double *x, double *y, double *z);

/*
 * Return the number by which an observation of a batch is sorted before its code: the number of its part, or with windows
 * of its group.  Returns 0 without groups, and if a key has no room for all numbers: then only the curve sorts.
 */
extern uint32_t cpu_turn_part(const struct search *search, const struct cpu_index *index,
							  uint32_t number);

/* Enlarge the memory for a turn of this many rows, if necessary.  Returns false with the failure if memory is short. */
extern bool cpu_turn_reserve(struct cpu_turn_room *room, size_t bytes, uint32_t rows,
							 struct failure *failure);

/*
 * Note that the next `rows` observations of a search have been answered.  counts says how many pairs
 * each has; NULL: each has one.
 */
extern void cpu_turn_account(struct search *search, uint32_t rows, const uint32_t *counts,
							 uint32_t pairs);

/* Let the search fail because some coordinates are invalid. */
extern void cpu_turn_out_of_range(struct search *search);

#endif							/* GEONN_CPU_TURN_H */
