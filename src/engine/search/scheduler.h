/*
 * scheduler.h
 *		Lets the devices' threads take searches, and hands back those that end.
 */
#ifndef GEONN_SCHEDULER_H
#define GEONN_SCHEDULER_H

#include "engine/search/line.h"

/*
 * Start a thread for each device (backends.h), which probes the device and then takes searches.  The scheduler calls
 * changed(), from any thread, whenever it has news for the server: devices probed, searches finished, a device lost.
 */
extern bool scheduler_open(void (*changed) (void), struct failure *failure);

/*
 * Return whether all devices have been probed, or have had their time for the probe.  A device that
 * answers later still becomes usable.
 */
extern bool scheduler_ready(void);

/* Return the milliseconds after which scheduler_ready() returns true at the latest. */
extern int	scheduler_ready_within_ms(void);

/*
 * Return a device that has been in one operation for longer than the engine allows, or NULL.  The
 * server's thread asks at each ping, and while a ping waits for its answer.
 */
extern struct device *scheduler_stuck_device(void);

/* Why a device is not usable. */
extern struct failure scheduler_why_unusable(const struct device *device);

/*
 * Set how many bytes the engine may take on each GPU, beside the driver's own;
 * 0: all that are free.  The limit applies to allocations from then on.
 */
extern void scheduler_set_gpu_memory_limit(uint64_t bytes);

/* Append a search to its session's queue. */
extern void scheduler_submit(struct search_queue *queue, struct search *search);

/* Finish all searches that wait in a queue, unanswered; devices go on with the searches that they have taken. */
extern void scheduler_drop(struct search_queue *queue);

/* Return the next search that finished, or NULL. */
extern struct search *scheduler_collect(void);

/* Return a device that was ready and is lost, or NULL. */
extern struct device *scheduler_lost_device(void);

/* Let every device discard its structures of a dataset, then free the dataset.  Any thread may call this. */
extern void scheduler_discard(struct dataset *dataset);

/* Return whether some device still has something to discard. */
extern bool scheduler_is_discarding(void);

/* End the device threads, once they have finished the searches that they have started. */
extern void scheduler_close(void);

#endif							/* GEONN_SCHEDULER_H */
