/*
 * point_parties.h
 *		The parties of one point, and whether they differ from a reference's.
 */
#ifndef GEONN_POINT_PARTIES_H
#define GEONN_POINT_PARTIES_H

#include "engine/dataset/dataset.h"

struct point_parties
{
	int32_t		party[GEONN_PARTIES_MAX];
};

/* Read the parties of an observation, each value once, because the client can change the batch meanwhile. */
static inline struct point_parties
point_parties_read(const struct geonn_batch_columns *batch, uint32_t row)
{
	struct point_parties parties = {0};

	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		if (batch->party[i] != NULL)
			parties.party[i] = ((const volatile int32_t *) batch->party[i])[row];
	return parties;
}

/* Return whether each party of a point differs from the party of the reference at this place. */
static inline bool
point_parties_differ(const struct point_parties *parties, const struct dataset *dataset, size_t place)
{
	for (int i = 0; i < GEONN_PARTIES_MAX; i++)
		if (dataset->party[i] != NULL && dataset->party[i][place] == parties->party[i])
			return false;
	return true;
}

#endif							/* GEONN_POINT_PARTIES_H */
