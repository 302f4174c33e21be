/*
 * discards.h
 *		Datasets whose structures a device is to discard.
 */
#ifndef GEONN_DISCARDS_H
#define GEONN_DISCARDS_H

#include <pthread.h>

#include "engine/search/device.h"
#include "engine/search/overdue.h"

/* a device's list; guarded by the scheduler's lock */
struct discards
{
	struct device *device;
	struct dataset *first;		/* linked by next_discard */
	unsigned	under_way;		/* how many threads have taken datasets of the list, and are not done */
	pthread_cond_t ended;		/* signalled when no thread is discarding any more */
};

extern void discards_open(struct discards *discards, struct device *device);

/* Put a dataset on the list; it then waits for one device more.  The lock is held. */
extern void discards_add(struct discards *discards, struct dataset *dataset);

/* Whether the device still has something to discard.  The lock is held. */
extern bool discards_are_left(const struct discards *discards);

/*
 * Take datasets whose structures the calling thread is to discard: one, so that searches need not
 * wait for thousands; with `all`, every one.  In that case first wait until other threads have done
 * their discards.  NULL: no dataset.  The lock is held.
 */
extern struct dataset *discards_take(struct discards *discards, bool all, pthread_mutex_t *lock);

/*
 * Discard the structures that the device has built of the datasets that the thread has taken; each is an
 * operation of the thread.  The last device to do so frees the dataset.
 */
extern void discards_fulfil(struct discards *discards, struct dataset *taken, struct operation *operation,
							pthread_mutex_t *lock);

#endif							/* GEONN_DISCARDS_H */
