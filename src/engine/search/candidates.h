/*
 * candidates.h
 *		One observation's candidates become its pairs.
 *
 * A search narrows the references down by their squared chords; what is left
 * comes here with its distances, and is put in order and trimmed to what was
 * asked for.  Both devices use it on the host, with any metric.
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
 * Fill in the distances of candidates, where the chord does not decide: a
 * microsecond each, unless the one before is the same point.  Ends early, with
 * the rest undefined, once *cancelled is set.
 */
extern void candidates_measure(const struct dataset *dataset, double latitude, double longitude,
							   struct candidate *candidates, size_t count,
							   const atomic_bool *cancelled);

/*
 * Put the candidates into order, and move those that answer the question to
 * the front: of those within max_distance the first `neighbours` (0: all), and
 * what ties with the last of these where asked for, but those up to a present
 * cutoff.  Groups and identities have been seen to.  Returns how many they are.
 */
extern size_t candidates_choose(struct candidate *candidates, size_t count,
								const struct question *question,
								const struct cutoff *cutoff);

#endif							/* GEONN_CANDIDATES_H */
