/*
 * discards.h
 *		Datasets whose structures a device is to discard.
 */
#ifndef GEONN_DISCARDS_H
#define GEONN_DISCARDS_H

#include <pthread.h>

#include "engine/search/device.h"
#include "engine/search/overdue.h"

/* A device's list of datasets to discard; guarded by the scheduler's lock. */
struct discards
{
	struct device *device;
	struct dataset *first;		/* linked by next_discard */
	unsigned	under_way;		/* how many threads have taken datasets of the list, and have not finished */
	pthread_cond_t ended;		/* signalled when no thread is discarding any more */
};

extern void discards_open(struct discards *discards, struct device *device);

/* Put a dataset on the list; the dataset then waits for one device more.  The caller holds the lock. */
extern void discards_add(struct discards *discards, struct dataset *dataset);

/* Return whether the device still has something to discard.  The caller holds the lock. */
extern bool discards_are_left(const struct discards *discards);

/*
 * Take datasets off the list, for the calling thread to discard their structures, or return NULL if the list is empty.
 * Take one dataset, so that searches need not wait for thousands.  With `all`, first wait until other threads have done
 * their discards, then take every dataset.  The caller holds the lock.
 */
extern struct dataset *discards_take(struct discards *discards, bool all, pthread_mutex_t *lock);

/*
 * Discard the structures that the device has built of the taken datasets.  Each discard is an operation
 * of the thread (overdue.h).  The last device to discard a dataset frees it.
 */
extern void discards_fulfil(struct discards *discards, struct dataset *taken, struct operation *operation,
							pthread_mutex_t *lock);

#endif							/* GEONN_DISCARDS_H */
