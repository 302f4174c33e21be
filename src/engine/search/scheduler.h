/*
 * scheduler.h
 *		Which device works on which search next.
 */
#ifndef GEONN_SCHEDULER_H
#define GEONN_SCHEDULER_H

#include "engine/search/device.h"

/* a session's searches that wait for a device; zero it before first use */
struct search_queue
{
	struct search *first;
	struct search *last;
	struct search_queue *next;	/* in the line of queues that are not empty */
	bool		waiting;		/* in that line */
	int64_t		served_us;		/* device time that it has had, on the scheduler's clock */
	int64_t		last_us;		/* that its last turn took */
};

/*
 * Probe every device on a thread of its own and let it take searches.
 * changed() is called, from any thread, whenever there is something new for
 * the server: devices probed, searches finished, a device lost.
 */
extern bool scheduler_open(struct device *devices, int device_count,
						   void (*changed) (void), struct failure *failure);

/*
 * Whether all devices have been probed, or have had their time for that.  One
 * that answers later still becomes usable.
 */
extern bool scheduler_ready(void);

/* Milliseconds until scheduler_ready is true at the latest. */
extern int	scheduler_ready_within_ms(void);

/* A device whose thread has not come back from a call into it, or NULL. */
extern struct device *scheduler_stuck_device(void);

/* Why a device is not usable. */
extern struct failure scheduler_why_unusable(const struct device *device);

/*
 * Whether some device can serve this choice, else why not.
 */
extern bool scheduler_can_serve(enum geonn_device_choice choice,
								struct failure *failure);

/* Whether choice auto uses this device. */
extern bool scheduler_auto_uses(const struct device *device);

/* Whether a search of choice auto was answered by a device that comes after others, which cannot be used. */
extern bool scheduler_fell_back(const struct search *search);

/*
 * Bytes that the engine may take on each GPU, beside what its driver takes; 0:
 * what is free.  It holds for what is allocated from then on.
 */
extern void scheduler_set_gpu_memory_limit(uint64_t bytes);

/* Append a search to its session's queue. */
extern void scheduler_submit(struct search_queue *queue, struct search *search);

/*
 * Finish all that waits in a queue, unanswered; what devices are at work on
 * stays with them.
 */
extern void scheduler_drop(struct search_queue *queue);

/* The next search that finished, or NULL. */
extern struct search *scheduler_collect(void);

/* A device that was ready and is lost, or NULL. */
extern struct device *scheduler_lost_device(void);

/* Let every device discard what it made of a dataset, and free it; any thread. */
extern void scheduler_discard(struct dataset *dataset);

/* Whether a device still has something to discard. */
extern bool scheduler_is_discarding(void);

/* End the device threads, once they are done with what they have started. */
extern void scheduler_close(void);

#endif							/* GEONN_SCHEDULER_H */
