/*
 * discards.h
 *		Requests to a device to discard what it has built of datasets.
 */
#ifndef GEONN_DISCARDS_H
#define GEONN_DISCARDS_H

#include <pthread.h>
#include <stdbool.h>

#include "engine/search/device.h"

/* a device's requests; guarded by the scheduler's lock */
struct discards
{
	struct device *device;
	struct dataset *first;		/* of a list by next_discard */
	unsigned	under_way;		/* threads that have taken some */
	pthread_cond_t done;		/* none is under way any more */
};

/* begin with no requests */
extern void discards_begin(struct discards *discards, struct device *device);

/*
 * Request that the device discards a dataset's part, and count it among the
 * dataset's discards.
 */
extern void discards_add(struct discards *discards, struct dataset *dataset);

/* Whether some are requested or under way. */
extern bool discards_left(const struct discards *discards);

/*
 * Take the datasets of which a thread discards parts before it goes on: one, so that
 * searches need not wait for thousands; or all, and what other threads have
 * taken is done, too.  NULL: none.
 */
extern struct dataset *discards_take(struct discards *discards, bool all, pthread_mutex_t *lock);

/* Discard the part of the first of those that were taken, without the lock; returns the others. */
extern struct dataset *discards_fulfil(struct discards *discards, struct dataset *taken);

/* Note that a thread has done with those that it took. */
extern void discards_end(struct discards *discards);

#endif							/* GEONN_DISCARDS_H */
