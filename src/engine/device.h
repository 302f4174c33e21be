/*
 * device.h
 *		What the engine asks of a device, and what a search is.
 *
 * A device is one GPU, or the CPU with its thread pool.  Each has one host
 * thread, which runs scheduler.c's loop: it takes searches from the sessions'
 * queues, starts them here, moves them on and hands back those that ended.
 * Every operation below is called from that thread, but for probe (before the
 * thread starts its loop, on that same thread) and share / unshare (the
 * server's thread).
 *
 * Devices know nothing of sessions or sockets.  All of them give the same
 * bytes for the same search: geodesy.h decides.
 */
#ifndef GEONN_DEVICE_H
#define GEONN_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../common/protocol.h"
#include "atomics.h"
#include "dataset.h"
#include "failure.h"

struct session;
struct search_queue;
struct device;

/*
 * One batch of observations to be answered.  It belongs to a session and is
 * the device's from start until advance returns it.
 */
struct search
{
	/* immutable while a device has it */
	struct session *session;
	uint32_t	slot;			/* of the session's ring */
	struct dataset *dataset;	/* sealed, not empty */
	enum geonn_device_choice choice;
	struct geonn_batch_columns columns;
	uint32_t	first;			/* the first observation to answer */
	uint32_t	rows;			/* observations in the batch */
	const atomic_bool *cancelled;	/* nobody waits for it any more */

	/*
	 * The result so far: observations first ... first + answered - 1 have
	 * their counts, and these pairs stand from 0 in the tag and distance
	 * columns.
	 */
	uint32_t	answered;
	uint32_t	pairs;
	bool		failed;
	struct failure failure;		/* where failed */

	/* the scheduler's */
	struct search_queue *queue;
	struct search *next;
};

enum device_progress
{
	DEVICE_IDLE,				/* none of the started searches ended */
	DEVICE_FINISHED,			/* this one is answered, as far as its room
								 * goes, or failed, or was found cancelled */
	DEVICE_YIELDED				/* this one has had its turn and goes back to
								 * its session's queue, not yet answered */
};

struct device_operations
{
	enum geonn_device_kind kind;

	/*
	 * Find out whether the device can be used, down to a computation that
	 * comes out right, and fill in its description.  False: unusable, with
	 * the reason in the failure.
	 */
	bool		(*probe) (struct device *device, struct failure *failure);

	/* free bytes of its memory now; any thread */
	uint64_t	(*memory_free) (struct device *device);

	/*
	 * Make what a search needs from a sealed dataset, NULL with the failure
	 * where that does not work.
	 */
	void	   *(*build) (struct device *device, struct dataset *dataset,
						  struct failure *failure);
	void		(*discard) (struct device *device, void *built);

	/*
	 * Start a search, whose dataset has been built.  At most device->lanes
	 * are under way at a time.  A failure is reported by advance.
	 */
	void		(*start) (struct device *device, struct search *search);

	/*
	 * Do what can be done now, without waiting longer than about 50 ms, and
	 * report at most one search that ended.
	 */
	enum device_progress (*advance) (struct device *device,
									 struct search **search);

	/*
	 * (optional) A batch's memory will be, or is no longer, used for copies
	 * by any device of this kind; one of them is told.  share may fail: copies
	 * are slower then, nothing else.
	 */
	void		(*share) (struct device *device, void *start, size_t bytes);
	void		(*unshare) (struct device *device, void *start);

	/* Free everything. */
	void		(*close) (struct device *device);
};

struct device
{
	const struct device_operations *operations;
	int			number;			/* index of dataset->built; 0 is the CPU */
	int			ordinal;		/* of a GPU among those that CUDA shows */
	int			lanes;			/* searches that may be under way */

	/* filled in by probe, immutable afterwards */
	char		name[128];
	char		uuid[48];
	uint32_t	capability_major;
	uint32_t	capability_minor;
	uint64_t	memory_total;	/* bytes */
	void	   *private_data;	/* the implementation's */

	/*
	 * Becomes true when probe says so, and false again when the device is
	 * lost: its driver reported a fault after which nothing works in this
	 * process.
	 */
	atomic_bool usable;
	struct failure lost;		/* why, while usable is false */

	/* when its thread should be back from a call into it; 0: not in one */
	atomic_llong due_ms;

	atomic_uint_fast64_t batches;	/* searches finished */
};

/* the CPU, with the threads of thread_pool.h */
extern const struct device_operations cpu_device_operations;

/*
 * The GPUs.  cuda_device_count is how many CUDA shows, or 0 with the reason
 * in the failure; it is there also in a build without CUDA.
 */
extern const struct device_operations cuda_device_operations;
extern int	cuda_device_count(struct failure *failure);

#endif							/* GEONN_DEVICE_H */
