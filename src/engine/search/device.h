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
 * build, turn and discard side by side; but never two of them build
 * something of one dataset.  Such a device has `threads`, too.
 *
 * Devices know nothing of sessions or sockets.  All devices give the same
 * bytes for the same search: geodesy.h decides.
 *
 * Each host has the CPU as a device, and the CPU answers any question.  ways.c has the questions that a GPU answers; all others
 * are for the CPU from the start.  A GPU hands the rest of a search over to the CPU where it meets weights without a common size,
 * or observations that would hold up the others, and where the search would end with a cutoff: between two turns it calls
 * search_leave_to_cpu, and yields.
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
 * The candidates are the references at most max_distance away.  Columns of the dataset narrow them down: with groups, a
 * candidate has the observation's group; with parties, each of its parties differs from the observation's; with excluded tags,
 * its tag is not one of them; with radiuses, it is no farther than the observation's radius and its own; with windows,
 * its windows overlap the observation's (common/window.h).  The answer is the first k candidates, or all if k is 0, in
 * the order (distance, index in the dataset), in which the pairs are written.  With ties, all candidates at the distance
 * of the k-th are added.
 *
 * With radii, a search counts the candidates within each radius, adds up their weights, and finds the extremes of the
 * weights if the question asks for them; protocol_search.h says what the pairs are.  k is 0.  With places, a search
 * writes the place and the fraction of each pair.
 *
 * With min_points, the observations are the references, and the question is for their clusters: k and radii are 0, and the
 * radius is max_distance.  If it thins, it asks for the keeper of each reference (protocol_search.h).
 *
 * With assigns, the observations are assigned to references, and each answer has two pairs (protocol_search.h).
 */
struct question
{
	uint32_t	k;				/* 0 ... GEONN_K_MAX; 0: all */
	bool		ties;
	enum geonn_algorithm algorithm; /* auto: the device chooses */
	double		max_distance;	/* metres, inclusive; may be infinite */
	uint32_t	radii;			/* 0 ... GEONN_RADII_MAX */
	bool		extremes;		/* find the extremes of weights as well; false without radii */
	bool		places;			/* pairs have their places; only of arcs */
	double		radius[GEONN_RADII_MAX];	/* metres, inclusive, rising; may be infinite */
	uint32_t	min_points;		/* how many references are around a core point, itself among them; 0: no clusters */
	bool		thins;			/* thin the references out, in place of clusters; min_points is 1 */
	bool		assigns;		/* assign observations to references; k, radii and min_points are 0 */
	uint32_t	capacity;		/* how many observations each reference may have, where the dataset has no weights */
};

/* The last pair that fitted, where the batch was full before all pairs of an observation were written. */
struct cutoff
{
	bool		present;
	double		distance;		/* metres */
	uint32_t	place;			/* index in the dataset */
};

/*
 * One batch of observations to be answered.  A search belongs to a session; from start() until
 * advance() returns it, a device owns it.
 */
struct search
{
	/* immutable while a device owns the search */
	struct session *session;
	uint32_t	slot;			/* the search's slot in the session's ring */
	struct dataset *dataset;	/* the dataset, sealed and not empty */
	const struct dataset *asking;	/* the observations of a search that assigns, sealed: columns are theirs; or NULL */
	bool		stays;			/* later calls can find the dataset by its label */
	enum geonn_device_choice choice;	/* the devices that may take the search; search_leave_to_cpu changes it */
	enum geonn_cpu_reason left; /* why a GPU has left the search to the CPU; NONE: no GPU has */
	struct question question;
	enum geonn_algorithm algorithm; /* the algorithm that answers the search, as the device chose it that took the
									 * search last; auto before */
	struct geonn_batch_columns columns;
	struct dataset *shapes;		/* the arcs of observations that are shapes, with no other columns; NULL: they are points.  The
								 * device that builds structures of them first copies them from the batch.  Of a search for
								 * clusters, and of one that assigns, an empty dataset, for what devices build */
	uint32_t	arcs;			/* how many rows of the batch are arcs of shapes */
	uint32_t	first;			/* the first observation to answer */
	uint32_t	rows;			/* how many observations the batch has */
	double		pairs_each;		/* the mean number of pairs of an observation in the slot's last search, if that asked
								 * the same question; 0: not known */
	const atomic_bool *cancelled;	/* becomes true when the session has ended */
	struct call *call;			/* the call for which the search works, or NULL */

	/*
	 * The result so far: observations first ... first + answered - 1 have their
	 * counts, unless one_each is set.  Their pairs fill the tag and distance
	 * columns, and those of places if the question asks, from index 0 to pairs - 1.  A search ends when all its observations
	 * are answered, or when the batch lacks space for the next one's pairs.
	 *
	 * The pairs of an observation are cut off only if it is the first one and
	 * has more pairs than fit into the batch.  Then answered stays 0, the
	 * observation's count is the number of pairs that were written, and the
	 * cutoff becomes present.  A search that begins with a present cutoff
	 * leaves out the first observation's pairs up to it; the device then makes
	 * the cutoff absent again.
	 */
	uint32_t	answered;
	uint32_t	pairs;
	bool		one_each;		/* so far each has one pair, or the two of an assignment, and no counts are written */
	struct cutoff cutoff;
	uint32_t	ways[GEONN_DEVICE_KIND_COUNT];	/* by kind of device: how it has answered, bits 1 << enum geonn_way */
	bool		failed;
	struct failure failure;		/* why the search failed */

	/*
	 * What the device remembers from one turn to the next, in a form of its own.  The session sets it to 0 at
	 * first, and the scheduler when another device takes the search.
	 */
	uint64_t	device_state;

	/* set by the scheduler alone */
	uint32_t	device;			/* number of the device that owns the search, or the last that did */
	uint32_t	build_microseconds; /* how long devices took to build the structures that the search needs */
	bool		wants_memory;	/* memory was short when the search was tried before: the device that takes the
								 * search next begins by discarding all datasets that it may */
	enum geonn_phase phase;		/* the phase of the search, as a part of its call */
	int64_t		taken_us;		/* when the search's turn began */
	int64_t		expected_us;	/* how long the search's turn was expected to take */
	struct dataset *builds;		/* the dataset, or the search's shapes, of which the thread that has taken the search
								 * builds structures; other threads of the device must not; NULL: nothing is built */
	bool		builds_long;	/* the build takes longer than a turn */
	struct search_queue *queue;
	struct search *next;
};

/*
 * Count the next `rows` observations as answered, with the next `pairs` pairs, which the device has
 * written into the batch's columns.  one_each: each observation has one pair, and the device has
 * written no counts; otherwise it has written the counts.
 */
extern void search_account(struct search *search, uint32_t rows, uint32_t pairs,
						   bool one_each);

/* Return whether a search asks for the one nearest reference, without ties, by a metric whose chord decides (metric.h). */
extern bool search_is_nearest(const struct search *search);

/* Return how many pairs each observation has in the answer of a search with radii. */
extern uint32_t search_counts_each(const struct search *search);

enum device_progress
{
	DEVICE_IDLE,				/* none of the started searches ended */
	DEVICE_FINISHED,			/* the search is answered as far as its pairs fit into the batch, or it failed or was
								 * cancelled */
	DEVICE_YIELDED				/* the search has had its turn and is not yet answered: it goes back to its session's
								 * queue */
};

struct device_operations
{
	enum geonn_device_kind kind;
	bool		is_gpu;			/* choice auto prefers usable GPUs to the CPU, which would finish its batch last */

	/*
	 * (optional) Return how many devices of this kind the host shows; 0, with the reason in the failure, if none.  Without
	 * this operation the kind has one device.  Called once, before all other operations.
	 */
	int			(*count) (struct failure *failure);

	/*
	 * (with turn) Return the greatest number of host threads that work on the device's searches.
	 * Any thread may call this.
	 */
	unsigned	(*threads) (void);

	/*
	 * Find out whether the device can be used, at the end by a computation with known results, and fill in its
	 * description.  Return false, with the reason in the failure, if the device is unusable.
	 */
	bool		(*probe) (struct device *device, struct failure *failure);

	/* Return how many bytes of the device's memory are free now.  Any thread may call this. */
	uint64_t	(*memory_free) (struct device *device);

	/*
	 * (optional) Choose the algorithm for a search that leaves the choice to the device; without this operation it is the
	 * index.  is_first: the device has built nothing of the search's dataset, which is not kept for later calls.  Called
	 * under the scheduler's lock, while no thread of a device that works by turns builds anything of that dataset.
	 */
	enum geonn_algorithm (*choose) (const struct search *search, bool is_first);

	/*
	 * Return whether the device has built the structures of the dataset that a search needs for
	 * this algorithm, which must not be auto.
	 */
	bool		(*is_built) (const struct device *device, const struct search *search,
							 enum geonn_algorithm algorithm);

	/*
	 * (with turn) Return whether the device would have to build for long before a search by this algorithm could begin: the
	 * dataset's structures or, once these are built, those of the search's shapes.
	 */
	bool		(*builds_long) (const struct device *device, const struct search *search,
								enum geonn_algorithm algorithm);

	/*
	 * Build the structures that a search needs of its sealed dataset, unless dataset->built[device->number] has them
	 * already.  With turn: build those of search->builds; shapes become sealed.  Return false, with the failure, if the device
	 * cannot build them.
	 */
	bool		(*build) (struct device *device, const struct search *search,
						  struct failure *failure);
	void		(*discard) (struct device *device, void *built);

	/*
	 * (instead of start and advance) Work on a search, whose dataset has been built, for a turn of about 50 ms, within the
	 * limits that advance has.  The calling thread keeps a seat of the thread pool until it has no search.
	 */
	enum device_progress (*turn) (struct device *device, struct search *search);

	/*
	 * Start a search, whose dataset has been built.  The scheduler has at most device->lanes
	 * searches under way at a time.  advance reports a failure.
	 */
	void		(*start) (struct device *device, struct search *search);

	/*
	 * Work on the started searches, for about 50 ms at most, and report at most one search that ended.  If the work takes
	 * longer than expected, end the turn after some 200 ms, or with its first observation if that alone takes longer.
	 */
	enum device_progress (*advance) (struct device *device,
									 struct search **search);

	/*
	 * (optional) share prepares a batch's memory for copies by all devices of this kind; unshare ends that.  Called for
	 * one device of the kind.  share may fail: copies are then slower, and nothing else changes.
	 */
	void		(*share) (struct device *device, void *start, size_t bytes);
	void		(*unshare) (struct device *device, void *start);

	/* Free everything. */
	void		(*close) (struct device *device);
};

struct device
{
	const struct device_operations *operations;
	int			number;			/* the device's index in dataset->built; 0 is the CPU */
	int			ordinal;		/* the device's number among the devices of its kind, from 0 */
	int			lanes;			/* how many searches may be under way, for a device without turn */

	/* Filled in by probe, immutable afterwards. */
	char		name[128];
	char		uuid[48];
	uint32_t	capability_major;
	uint32_t	capability_minor;
	uint64_t	memory_total;	/* how many bytes of memory the device has */
	void	   *private_data;	/* state that only the code of the device's kind understands */

	/*
	 * usable becomes true when probe succeeds, and false again when the device is lost: its driver
	 * has reported a fault after which nothing works in this process.
	 */
	atomic_bool usable;
	struct failure lost;		/* why the device is lost, while usable is false */

	atomic_uint_fast64_t batches;	/* how many searches the device has finished */
};

/* how many bytes the engine may take on each GPU; 0: all that are free */
extern atomic_uint_fast64_t gpu_memory_limit;

/* the CPU, with the threads of thread_pool.h */
extern const struct device_operations cpu_device_operations;

/* the GPUs that CUDA shows; none in a build without CUDA */
extern const struct device_operations cuda_device_operations;

#endif							/* GEONN_DEVICE_H */
