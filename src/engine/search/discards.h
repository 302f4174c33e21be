/*
 * discards.h
 *		Requests to a device to discard what it has built of datasets.
 */
#ifndef GEONN_DISCARDS_H
#define GEONN_DISCARDS_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/search/device.h"

struct discard;

/* a device's requests; guarded by the scheduler's lock */
struct discards
{
	struct discard *first;
	unsigned	under_way;		/* threads that have taken some */
	pthread_cond_t done;		/* none is under way any more */
};

/* begin with no requests */
extern void discards_begin(struct discards *discards);

/*
 * Request that the device discards a dataset's part, and count it among the
 * dataset's discards.  If memory is short, the part stays until the engine
 * ends.
 */
extern void discards_add(struct discards *discards, struct dataset *dataset);

/* Whether some are requested or under way. */
extern bool discards_left(const struct discards *discards);

/*
 * Take the requests that a thread fulfils before it goes on: one, so that
 * searches need not wait for thousands; or all, and what other threads have
 * taken is done, too.  NULL: none.
 */
extern struct discard *discards_take(struct discards *discards, bool all, pthread_mutex_t *lock);

/* Fulfil the first of those that were taken, without the lock; returns the others. */
extern struct discard *discards_fulfil(struct discard *discard, struct device *device);

/* Note that a thread has fulfilled those that it took. */
extern void discards_end(struct discards *discards);

#endif							/* GEONN_DISCARDS_H */
