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
	struct dataset *first;		/* the first in a list that is linked by next_discard */
	unsigned	under_way;		/* how many threads have taken requests and not yet fulfilled them */
	pthread_cond_t done;		/* signalled when none is under way any more */
};

/* Begin with no requests. */
extern void discards_begin(struct discards *discards, struct device *device);

/*
 * Request that the device discards a dataset's part, and count it among the
 * dataset's discards.
 */
extern void discards_add(struct discards *discards, struct dataset *dataset);

/* Whether discards are requested or under way. */
extern bool discards_left(const struct discards *discards);

/*
 * Take datasets, whose parts the calling thread then discards: one dataset, so that
 * searches need not wait for thousands; or with `all` every one, after other threads
 * have discarded what they had taken.  NULL: no dataset.
 */
extern struct dataset *discards_take(struct discards *discards, bool all, pthread_mutex_t *lock);

/* Discard the part of the first taken dataset; the caller does not hold the lock.  Returns the
 * other ones. */
extern struct dataset *discards_fulfil(struct discards *discards, struct dataset *taken);

/* Note that a thread has discarded all that it took. */
extern void discards_end(struct discards *discards);

#endif							/* GEONN_DISCARDS_H */
