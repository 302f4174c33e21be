/*
 * client.h
 *		A session with the engine: references in, observations in, pairs out.
 *
 * First every reference is added and the dataset sealed, then observations
 * are added while pairs are taken:
 *
 *	client = geonn_client_open(question, label, call);
 *	geonn_client_add_reference(client, ...) for each;
 *	geonn_client_seal(client);
 *	for each observation:
 *		while (geonn_client_places(client) == 0)
 *			take pairs: with waiting for the first, the rest without
 *		if (geonn_client_add_observation(client, ...))
 *			take what pairs there are, without waiting
 *	geonn_client_finish(client);
 *	take pairs, with waiting, until there are no more
 *
 * Others may attach to the dataset once it is sealed, and then add observations
 * of their own.  What they must know of the references beside their tags is in
 * files, which are left with the dataset before it is sealed.  It lives as long
 * as anyone has a client of it, and longer if it is kept.
 *
 * The client lives as long as the memory context that was current when it was
 * opened; whatever ends that ends the engine's side too.
 */
#ifndef GEONN_CLIENT_H
#define GEONN_CLIENT_H

#include "common/protocol.h"
#include "memory_file.h"
#include "question.h"

/*
 * A client of a new dataset; or, where one is kept under one of these labels, of that
 * one, as if it was attached to.  There are at most GEONN_LABELS_MAX, and the first is
 * a new one's.  The call is what it works for.
 */
extern GeonnClient *geonn_client_open(const GeonnQuestion *question,
									  const struct geonn_label *labels, int count,
									  const struct geonn_call *call);

/* Is the dataset sealed?  Then it has its references. */
extern bool geonn_client_is_sealed(const GeonnClient *client);

/*
 * Have a dataset that was opened with a label be found by it once it is sealed, with a
 * note of so many bytes, at most GEONN_NOTE_BYTES.
 */
extern void geonn_client_keep(GeonnClient *client, const void *note, Size bytes);

/* The note of the kept dataset, [GEONN_NOTE_BYTES]. */
extern const void *geonn_client_note(const GeonnClient *client);

/*
 * A client of a dataset that another one has sealed, of the same metric and with
 * the same columns.
 */
extern GeonnClient *geonn_client_attach(const GeonnQuestion *question, uint64 dataset,
										const struct geonn_call *call);

/* Had the engine the same references already when they were sealed? */
extern bool geonn_client_is_recognised(const GeonnClient *client);

/* The sealed dataset, for others to attach to; the engine gives no two the same. */
extern uint64 geonn_client_dataset(const GeonnClient *client);

/* How many references there are; of a dataset that is sealed. */
extern uint64 geonn_client_references(const GeonnClient *client);

/* Leave a sealed file with the dataset, the only one of its kind (enum geonn_file_kind). */
extern void geonn_client_leave_file(GeonnClient *client, int kind, const MemoryFile *file);

/*
 * The file of this kind that was left with the dataset attached to.  It goes with
 * the current memory context; purpose is that of geonn_memory_file_create.
 */
extern MemoryFile *geonn_client_take_file(GeonnClient *client, int kind, const char *purpose);

/*
 * Coordinates are valid; group and identity count where the question's columns
 * have them.  Waits where the ring is full.
 */
extern void geonn_client_add_reference(GeonnClient *client, int64 tag, double latitude,
									   double longitude, int32 group, int32 identity);

/* The same for so many at once, where there are no columns. */
extern void geonn_client_add_references(GeonnClient *client, uint32 rows, const int64 *tags,
										const double *latitudes, const double *longitudes);

/*
 * Their order is that in which they came, or else by (tag, latitude,
 * longitude).  Returns how many references there are.
 */
extern uint64 geonn_client_seal(GeonnClient *client, bool in_order);

/* How many observations can be added without pairs being taken first? */
extern uint32 geonn_client_places(GeonnClient *client);

/*
 * Add an observation; geonn_client_places has said that it can be.  The id is copied.
 * Returns whether that sent a batch: the time to see whether others have come
 * back.
 */
extern bool geonn_client_add_observation(GeonnClient *client, Datum id, double latitude,
										 double longitude, int32 group, int32 identity);

/*
 * The same for so many at once, of which there are places for all; the ids are
 * values, and there are no columns.
 */
extern bool geonn_client_add_observations(GeonnClient *client, uint32 rows, const Datum *ids,
										  const double *latitudes, const double *longitudes);

/* There are no more observations. */
extern void geonn_client_finish(GeonnClient *client);

/*
 * Take one pair.  Those of one observation come one after the other, by rank,
 * the observations in no particular order.  Returns false where there is none:
 * with wait, where all observations that were sent are answered; without,
 * where it has not come back yet.
 */
extern bool geonn_client_next_pair(GeonnClient *client, bool wait,
								   GeonnPair *pair);

/*
 * Take all that there are of such pairs at hand, at once; false: there are none at hand, and
 * geonn_client_next_pair may have others.
 */
extern bool geonn_client_take_run(GeonnClient *client, GeonnRun *run);

extern GeonnWork geonn_client_work(const GeonnClient *client);

/* Tell the engine what the client's part of the call has come to; raises no error. */
extern void geonn_client_tell(GeonnClient *client, const struct geonn_finished *finished);

#endif							/* GEONN_CLIENT_H */
