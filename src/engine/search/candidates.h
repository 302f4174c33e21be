/*
 * candidates.h
 *		Turns the candidates of one observation into its pairs.
 *
 * A search narrows the references down by their squared chords to candidates.
 * The functions here put the candidates in order, and
 * trim them to the pairs that the question asks for.
 */
#ifndef GEONN_CANDIDATES_H
#define GEONN_CANDIDATES_H

#include <stddef.h>

#include "engine/search/device.h"

struct candidate
{
	double		distance;		/* metres */
	uint32_t	place;			/* index in the dataset */
	uint32_t	own;			/* where on the observation the pair is, if that is a shape (arcs_probe.h); else 0 */
};

/* Return whether a comes before b in the order (distance, place). */
static inline bool
candidate_before(struct candidate a, struct candidate b)
{
	return a.distance < b.distance || (a.distance == b.distance && a.place < b.place);
}

/* Put candidates into order; this is quick if they are in order already. */
extern void candidates_sort(struct candidate *candidates, size_t count);

/* How far candidates_merge() has come; at first .run is 1, and all else 0. */
struct candidates_merging
{
	size_t		run;			/* so many candidates that follow each other are in order */
	bool		in_room;		/* the runs are in the second half of the room for candidates */
	size_t		at;				/* how many candidates have gone to runs twice as long */
	size_t		left;			/* the next candidate of each of the two runs that are being merged */
	size_t		right;
};

/*
 * Put many candidates into order, until is_over(context), which is asked from time to time; candidates has room for twice
 * `count`.  Returns whether they are in order; if not, another call goes on.
 */
extern bool candidates_merge(struct candidates_merging *merging, struct candidate *candidates, size_t count,
							 bool (*is_over) (void *context), void *context);

/*
 * Put the candidates into order, move those that answer the question to the front, and return their number.  The answers
 * are the first k (0: all) within max_distance, with ties also all at the distance of the k-th, but only those behind the
 * cutoff, if it is present.  The caller has already checked groups and excluded tags.
 */
extern size_t candidates_choose(struct candidate *candidates, size_t count,
								const struct question *question,
								const struct cutoff *cutoff);

#endif							/* GEONN_CANDIDATES_H */
