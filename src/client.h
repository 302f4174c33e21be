/*
 * client.h
 *		A session with the engine: references in, observations in, pairs out.
 *
 * First every reference is added and the dataset sealed, then observations
 * are added while pairs are taken:
 *
 *	client = geonn_client_open(device);
 *	geonn_client_add_reference(client, ...) for each;
 *	geonn_client_seal(client);
 *	for each observation:
 *		while (!geonn_client_has_place(client))
 *			take pairs: with waiting for the first, the rest without
 *		if (geonn_client_add_observation(client, ...))
 *			take what pairs there are, without waiting
 *	geonn_client_finish(client);
 *	take pairs, with waiting, until there are no more
 *
 * The client lives as long as the memory context that was current when it was
 * opened; whatever ends that ends the engine's side too.
 */
#ifndef GEONN_CLIENT_H
#define GEONN_CLIENT_H

typedef struct GeonnClient GeonnClient;

typedef struct GeonnPair
{
	int64		observation_id;
	int64		reference_id;
	double		distance;		/* metres */
} GeonnPair;

/* device is one of enum geonn_device_choice */
extern GeonnClient *geonn_client_open(int device);

/* Coordinates are valid.  Waits where the ring is full. */
extern void geonn_client_add_reference(GeonnClient *client, int64 id,
									   double latitude, double longitude);

/* Returns how many references there are. */
extern uint64 geonn_client_seal(GeonnClient *client);

/* Can an observation be added without pairs being taken first? */
extern bool geonn_client_has_place(GeonnClient *client);

/*
 * Add an observation; geonn_client_has_place has said yes.  Returns whether
 * that sent a batch: the time to see whether others have come back.
 */
extern bool geonn_client_add_observation(GeonnClient *client, int64 id,
										 double latitude, double longitude);

/* There are no more observations. */
extern void geonn_client_finish(GeonnClient *client);

/*
 * Take one pair.  Those of one observation come one after the other, the
 * observations in no particular order.  Returns false where there is none:
 * with wait, where all observations that were sent are answered; without,
 * where it has not come back yet.
 */
extern bool geonn_client_next_pair(GeonnClient *client, bool wait,
								   GeonnPair *pair);

#endif							/* GEONN_CLIENT_H */
