/*
 * device.h
 *		What the engine asks of a device, and what a search is.
 *
 * A device is one GPU, or the CPU with its thread pool; backends.c lists the kinds.
 * Each has one host thread, which runs scheduler.c's loop: it takes searches from the
 * sessions' queues, starts them here, moves them on and hands back those that ended.
 * Every operation below is called from that thread, but for count and threads, probe
 * (before the thread starts its loop, on that same thread) and share / unshare (the
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

#include "common/batch_layout.h"
#include "engine/base/atomics.h"
#include "engine/base/failure.h"
#include "engine/dataset/dataset.h"

struct call;
struct session;
struct search_queue;
struct device;

/*
 * What is asked of every observation of a search.
 *
 * The candidates are all references, but where the dataset has groups only
 * those of the observation's group, and where it has identities none of the
 * observation's identity, and of these the ones at most max_distance away.
 * Wanted are the first `neighbours` of them in the order (distance, place in
 * the dataset), with ties also all at the distance of the last of these; or,
 * where neighbours is 0, all.  The pairs come in that order.
 */
struct question
{
	uint32_t	neighbours;		/* 0 ... GEONN_NEIGHBOURS_MAX */
	bool		ties;
	enum geonn_algorithm algorithm; /* not auto any more */
	double		max_distance;	/* metres, inclusive; may be infinite */
};

/*
 * Where the pairs of one observation were cut off, for want of room: after
 * the pair of this distance and place.
 */
struct cutoff
{
	bool		present;
	double		distance;		/* metres */
	uint32_t	place;			/* index in the dataset */
};

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
	struct question question;
	struct geonn_batch_columns columns;
	uint32_t	first;			/* the first observation to answer */
	uint32_t	rows;			/* observations in the batch */
	double		pairs_each;		/* of an observation in the slot's last search, if
								 * that asked the same; 0 where it is not known */
	const atomic_bool *cancelled;	/* its session has ended */
	struct call *call;			/* that it is for, or NULL */

	/*
	 * The result so far: observations first ... first + answered - 1 have
	 * their counts, or none where each has one_each, and these pairs stand from
	 * 0 in the tag and distance columns.  A search ends when all its
	 * observations are answered, or the next one's pairs have no room.
	 *
	 * An observation's pairs are cut off only where it is the first one and
	 * has more pairs than the batch has room.  Then nothing is answered, its
	 * count is what there is of it, and the cutoff becomes present.  A search
	 * that begins with a present cutoff leaves out the first observation's
	 * pairs up to there; it is the device's to make it absent again.
	 */
	uint32_t	answered;
	uint32_t	pairs;
	bool		one_each;		/* so far every observation has one pair, and
								 * no count is written */
	struct cutoff cutoff;
	bool		failed;
	struct failure failure;		/* where failed */

	/*
	 * What the device keeps of it from one turn to the next, known to that device alone; 0
	 * at first, and where another device takes it.
	 */
	uint64_t	device_state;

	/* the scheduler's */
	uint32_t	device;			/* number of the device that has, or had, it */
	uint32_t	build_microseconds; /* that it took to build for it */
	bool		wants_memory;	/* it found memory short before: the device first lets go of
								 * all datasets that it may */
	enum geonn_phase phase;		/* of its call that it is in */
	int64_t		taken_us;		/* when its turn began */
	int64_t		expected_us;	/* that its turn was expected to take */
	struct search_queue *queue;
	struct search *next;
};

/*
 * The next `rows` observations are answered with the next `pairs` pairs, which
 * stand where they belong; one_each: each has one, and their counts have not
 * been written.  Else their counts stand, too.
 */
extern void search_account(struct search *search, uint32_t rows, uint32_t pairs,
						   bool one_each);

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
	bool		is_gpu;
	int			auto_rank;		/* choice auto uses the usable devices that have the
								 * highest one */

	/*
	 * (optional) How many devices of this kind the host shows, or 0 with the reason in the
	 * failure; else it is one.  Called once, before all others.
	 */
	int			(*count) (struct failure *failure);

	/* (optional) host threads that a search has; any thread */
	unsigned	(*threads) (void);

	/*
	 * Find out whether the device can be used, down to a computation that
	 * comes out right, and fill in its description.  False: unusable, with
	 * the reason in the failure.
	 */
	bool		(*probe) (struct device *device, struct failure *failure);

	/* free bytes of its memory now; any thread */
	uint64_t	(*memory_free) (struct device *device);

	/*
	 * Make what a search needs of its dataset, which is sealed, unless
	 * dataset->built[device->number] has it.  False, with the failure, where
	 * that does not work.
	 */
	bool		(*build) (struct device *device, const struct search *search,
						  struct failure *failure);
	void		(*discard) (struct device *device, void *built);

	/*
	 * Start a search, whose dataset has been built.  At most device->lanes
	 * are under way at a time.  A failure is reported by advance.
	 */
	void		(*start) (struct device *device, struct search *search);

	/*
	 * Do what can be done now, without waiting longer than about 50 ms, and
	 * report at most one search that ended.  Where a turn takes longer than it
	 * seemed, it ends after some 200 ms, or with a single observation's.
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
	int			ordinal;		/* among those of its kind */
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

/* bytes to take on each GPU at most; 0: what is free */
extern atomic_uint_fast64_t gpu_memory_limit;

/* the CPU, with the threads of thread_pool.h */
extern const struct device_operations cpu_device_operations;

/* the GPUs that CUDA shows; none in a build without CUDA */
extern const struct device_operations cuda_device_operations;

#endif							/* GEONN_DEVICE_H */
