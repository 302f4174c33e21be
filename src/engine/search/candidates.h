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

/*
 * Put the candidates into order, move those that answer the question to the front, and return their number.  The answers
 * are the first k (0: all) within max_distance, with ties also all at the distance of the k-th, but only those behind the
 * cutoff, if it is present.  The caller has already checked groups and excluded tags.
 */
extern size_t candidates_choose(struct candidate *candidates, size_t count,
								const struct question *question,
								const struct cutoff *cutoff);

#endif							/* GEONN_CANDIDATES_H */
