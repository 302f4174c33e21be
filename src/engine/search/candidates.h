/*
 * candidates.h
 *		Turns the candidates of one observation into its pairs.
 *
 * A search narrows the references down by their squared chords to candidates.
 * The functions here compute the candidates' distances, put them in order, and
 * trim them to the pairs that the question asks for.  Both kinds of devices
 * call them, on the host, with any metric.
 */
#ifndef GEONN_CANDIDATES_H
#define GEONN_CANDIDATES_H

#include <stddef.h>

#include "engine/search/device.h"

struct candidate
{
	double		distance;		/* metres */
	uint32_t	place;			/* index in the dataset */
};

/*
 * Whether a comes before b in the order (distance, place).
 */
static inline bool
candidate_before(struct candidate a, struct candidate b)
{
	return a.distance < b.distance || (a.distance == b.distance && a.place < b.place);
}

/*
 * Fill in the distances of candidates by a metric whose chord does not decide
 * (metric.h); NAN for a reference farther away than its own radius.  A distance
 * takes a microsecond, unless the candidate before is the same point.  Ends early
 * once *cancelled is set: the remaining distances are undefined.
 */
extern void candidates_measure(const struct dataset *dataset, double latitude, double longitude,
							   struct candidate *candidates, size_t count,
							   const atomic_bool *cancelled);

/* Put candidates into order, quickly if they are in order already. */
extern void candidates_sort(struct candidate *candidates, size_t count);

/*
 * Put the candidates into order, and move those that answer the question to the front.  These are the first k
 * (0: all) within max_distance (NAN is beyond it), with ties also all at the distance of the k-th, but only
 * those after a cutoff.  The caller has already checked groups and excluded tags.  Returns the number of
 * answers.
 */
extern size_t candidates_choose(struct candidate *candidates, size_t count,
								const struct question *question,
								const struct cutoff *cutoff);

#endif							/* GEONN_CANDIDATES_H */
