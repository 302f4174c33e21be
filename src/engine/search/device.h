/*
 * device.h
 *		What a search is, and what the engine calls a device for.
 *
 * A device is one GPU, or the CPU with its thread pool; backends.c lists the
 * kinds.  A device's first host thread calls probe, runs scheduler.c's loop, and
 * calls close at the end.  In the loop, the thread takes searches from the
 * sessions' queues, starts them on the device, lets them advance, and hands
 * back those that ended.  A GPU has that thread alone, and it calls all
 * operations below, unless an operation's comment says "any thread", but
 * count, which is called before the thread starts, and share and unshare,
 * which the server's thread calls.
 *
 * A device that has `turn` instead of start and advance works by turns: several
 * threads run that loop, each with one search at a time, and call is_built,
 * build, turn, rest and discard side by side; but never two of them build
 * something of one dataset.  Such a device has `threads`, too.
 *
 * Devices know nothing of sessions or sockets.  All devices give the same
 * bytes for the same search: geodesy.h decides.
 *
 * Each host has the CPU as a device, and the CPU answers any question.  A GPU
 * answers no search that begins with a cutoff or would end with one, and looks
 * at every pair only for the nearest reference of a plain dataset.  Such
 * searches are for the CPU from the start (search_choice), or a GPU hands the
 * rest of one over between two turns: it sets choice to GEONN_DEVICE_CPU, and
 * yields.
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
 * The question that a search asks about each of its observations.
 *
 * The candidates are the references at most max_distance away.  If the dataset
 * has groups, only references of the observation's group are candidates; if it
 * has identities, references of the observation's identity are not; if it has
 * radiuses, only references no farther than the smaller radius of the two are;
 * and if it has windows, only references whose windows overlap the
 * observation's (common/window.h).  The
 * answer is the first k candidates in the order (distance, place in the
 * dataset); with ties, also all candidates at the distance of the k-th; or, if
 * k is 0, all candidates.  The pairs come in that order.
 */
struct question
{
	uint32_t	k;				/* 0 ... GEONN_K_MAX; 0: all */
	bool		ties;
	enum geonn_algorithm algorithm; /* auto: the device chooses */
	double		max_distance;	/* metres, inclusive; may be infinite */
};

/*
 * The place where the pairs of one observation were cut off for want of room:
 * after the pair of this distance and place.
 */
struct cutoff
{
	bool		present;
	double		distance;		/* metres */
	uint32_t	place;			/* index in the dataset */
};

/*
 * One batch of observations to be answered.  A search belongs to a session; a
 * device owns it from start until advance returns it.
 */
struct search
{
	/* immutable while a device owns the search */
	struct session *session;
	uint32_t	slot;			/* of the session's ring */
	struct dataset *dataset;	/* sealed, not empty */
	bool		stays;			/* later calls find the dataset by its label */
	enum geonn_device_choice choice;	/* a GPU may change it, as above */
	struct question question;
	enum geonn_algorithm algorithm; /* that answers it, as the device chose that took the search last;
									 * auto before */
	struct geonn_batch_columns columns;
	uint32_t	first;			/* the first observation to answer */
	uint32_t	rows;			/* observations in the batch */
	double		pairs_each;		/* pairs of an observation in the slot's last
								 * search, if that asked the same question; 0:
								 * not known */
	const atomic_bool *cancelled;	/* the session has ended */
	struct call *call;			/* the call that it works for, or NULL */

	/*
	 * The result so far: observations first ... first + answered - 1 have
	 * their counts (no counts are written while one_each is set), and their
	 * pairs fill the tag and distance columns from 0 to pairs - 1.  A search
	 * ends when all its observations are answered, or when the room is too
	 * small for the next one's pairs.
	 *
	 * The pairs of an observation are cut off only if it is the first one and
	 * has more pairs than the batch has room for.  Then answered stays 0, the
	 * observation's count is the number of pairs that were written, and the
	 * cutoff becomes present.  A search that begins with a present cutoff
	 * leaves out the first observation's pairs up to it; the device then makes
	 * the cutoff absent again.
	 */
	uint32_t	answered;
	uint32_t	pairs;
	bool		one_each;		/* so far every observation has one pair, and
								 * no count is written */
	struct cutoff cutoff;
	bool		failed;
	struct failure failure;		/* if failed */

	/*
	 * What the device remembers from one turn to the next; only that device
	 * understands it.  0 at first, and when another device takes the search.
	 */
	uint64_t	device_state;

	/* the scheduler's */
	uint32_t	device;			/* number of the device that owns the search, or owned it last */
	uint32_t	build_microseconds; /* time to build what it needed of the dataset */
	bool		wants_memory;	/* memory was short for it before: the device
								 * first discards all datasets that it may */
	enum geonn_phase phase;		/* of its call: the phase that this search is in */
	int64_t		taken_us;		/* when its turn began */
	int64_t		expected_us;	/* time that its turn was expected to take */
	bool		builds;			/* its thread builds something of the dataset, and
								 * others of the device must not */
	bool		builds_long;	/* and that takes longer than a turn */
	struct search_queue *queue;
	struct search *next;
};

/*
 * Note that the next `rows` observations are answered with the next `pairs`
 * pairs, which are in their places.  one_each: each observation has one pair,
 * and the counts have not been written; otherwise the counts are in their
 * places, too.
 */
extern void search_account(struct search *search, uint32_t rows, uint32_t pairs,
						   bool one_each);

/*
 * Whether a search asks for the one nearest reference, without ties, by a metric
 * whose chord decides.
 */
extern bool search_is_nearest(const struct search *search);

/*
 * The same of a dataset that has coordinates and tags alone: the question that
 * most searches ask.
 */
extern bool search_is_plain_nearest(const struct search *search);

/* Which devices may begin a search, of those that its session has chosen. */
extern enum geonn_device_choice search_choice(const struct search *search,
											  enum geonn_device_choice chosen);

enum device_progress
{
	DEVICE_IDLE,				/* none of the started searches ended */
	DEVICE_FINISHED,			/* this search is answered as far as its room
								 * goes, or it failed or was cancelled */
	DEVICE_YIELDED				/* this search has had its turn; it goes back
								 * to its session's queue, not yet answered */
};

struct device_operations
{
	enum geonn_device_kind kind;
	bool		is_gpu;
	int			auto_rank;		/* choice auto uses the usable devices of the
								 * highest rank */

	/*
	 * (optional) How many devices of this kind the host shows, or 0 with the
	 * reason in the failure.  Without count, the kind has one device.  Called
	 * once, before all other operations.
	 */
	int			(*count) (struct failure *failure);

	/* (with turn) most host threads that work on its searches; any thread */
	unsigned	(*threads) (void);

	/*
	 * Find out whether the device can be used, by a computation with known
	 * results at the end, and fill in its description.  False with the reason
	 * in the failure if the device is unusable.
	 */
	bool		(*probe) (struct device *device, struct failure *failure);

	/* free bytes of its memory now; any thread */
	uint64_t	(*memory_free) (struct device *device);

	/*
	 * Choose the algorithm for a search that leaves this to the device.
	 * is_first: the device has built nothing of its dataset, and no later call
	 * will find that.  Called under the scheduler's lock.
	 */
	enum geonn_algorithm (*choose) (const struct search *search, bool is_first);

	/*
	 * Whether what a search by this algorithm, which is not auto, needs of its
	 * dataset has been built.
	 */
	bool		(*is_built) (const struct device *device, const struct search *search,
							 enum geonn_algorithm algorithm);

	/*
	 * Build what a search needs of its sealed dataset, unless
	 * dataset->built[device->number] has it already.  False with the failure
	 * if that fails.
	 */
	bool		(*build) (struct device *device, const struct search *search,
						  struct failure *failure);
	void		(*discard) (struct device *device, void *built);

	/*
	 * (with turn) The calling thread has no search now, and goes to sleep or
	 * ends.
	 */
	void		(*rest) (struct device *device);

	/*
	 * (instead of start and advance) Do a turn of a search, whose dataset has
	 * been built: of about 50 ms, within the limits that advance has.
	 */
	enum device_progress (*turn) (struct device *device, struct search *search);

	/*
	 * Start a search, whose dataset has been built.  At most device->lanes
	 * searches are under way at a time.  advance reports a failure.
	 */
	void		(*start) (struct device *device, struct search *search);

	/*
	 * Do what can be done now, for about 50 ms at most, and report at most one
	 * search that ended.  A turn that takes longer than expected ends after
	 * some 200 ms, or with its first observation if that alone takes longer.
	 */
	enum device_progress (*advance) (struct device *device,
									 struct search **search);

	/*
	 * (optional) Prepare a batch's memory for copies by all devices of this
	 * kind, or end that; called for one device of the kind.  share may fail:
	 * copies are then slower, and nothing else changes.
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
	int			lanes;			/* searches that may be under way, without turn */

	/* filled in by probe, immutable afterwards */
	char		name[128];
	char		uuid[48];
	uint32_t	capability_major;
	uint32_t	capability_minor;
	uint64_t	memory_total;	/* bytes */
	void	   *private_data;	/* of the kind's own code */

	/*
	 * usable becomes true when probe succeeds, and false again when the device
	 * is lost: its driver reported a fault after which nothing works in this
	 * process.
	 */
	atomic_bool usable;
	struct failure lost;		/* why, while usable is false */

	atomic_uint_fast64_t batches;	/* searches finished */
};

/* bytes to take on each GPU at most; 0: what is free */
extern atomic_uint_fast64_t gpu_memory_limit;

/* the CPU, with the threads of thread_pool.h */
extern const struct device_operations cpu_device_operations;

/* the GPUs that CUDA shows; none in a build without CUDA */
extern const struct device_operations cuda_device_operations;

#endif							/* GEONN_DEVICE_H */
