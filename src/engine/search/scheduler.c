/*
 * scheduler.c
 *		Lets the devices' threads take searches, and hands back those that end.
 *
 * A free device takes the next search of the line that it may serve; line.c
 * says in which order sessions stand there.
 *
 * A GPU has one thread, device_main below.  The thread probes the device and
 * then repeats two steps: it fills the device's lanes with searches, and
 * builds what the device still needs of their datasets; then it lets the
 * device advance.  The CPU has that thread, too, and as many more as there are
 * searches for, up to its number of threads.  Each does turns of one search at
 * a time, and cpu/device.c says when others help it.  A search wakes one
 * thread of each device that may serve it, and no more.  If a GPU hands a
 * search over, what is left of it goes back to its queue, for the CPU.
 *
 * While one device builds a dataset, devices that would wait for it serve
 * other sessions first.  While one of the CPU's threads builds, the others
 * leave that dataset's searches alone.  A build of many references takes much
 * longer than a turn, and the sessions that wait have had no part in it.  So
 * the CPU's threads that are at such builds come on top of its number of
 * threads, though no more than as many again: others take turns meanwhile, in
 * seats that builds leave after each of their pieces (thread_pool.c).  A thread
 * sleeps only while it has nothing to do.  Finished searches go to a list that the server's thread
 * empties.
 *
 * Every operation of a thread has a time by which it should be over
 * (overdue.c).  If a probe hangs, the engine waits for a while and then serves
 * with the other devices.
 *
 * One lock guards the line, the list, the threads and the lists of datasets to
 * discard (discards.c).  Nothing slow happens under it, but that a thread is created, once
 * for each that the CPU gets.  Beside that, the server's thread never waits for
 * a device, and a device's thread never waits for the server's.
 */
#include "engine/search/scheduler.h"

#include <pthread.h>
#include <stdlib.h>

#include "common/assertion.h"
#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/base/thread_pool.h"
#include "engine/calls/calls.h"
#include "engine/search/backends.h"
#include "engine/search/discards.h"
#include "engine/search/overdue.h"
#include "engine/search/ways.h"

/* The engine waits at most this many ms for probes, then serves without the devices that have not answered. */
#define PROBE_PATIENCE_MS 30000

struct device_thread
{
	pthread_t	thread;
	struct served_device *served;
	struct device_thread *next; /* the next thread of the same device */

	bool		busy;			/* guarded by the scheduler's lock */

	struct operation operation;	/* the present one */
};

struct served_device
{
	struct device *device;		/* immutable after scheduler_open */
	pthread_cond_t work;		/* signalled when a search or a discard may wait, or the scheduler
								 * closes */

	/* guarded by the scheduler's lock */
	struct device_thread first; /* the first thread; its `next` leads to the others */
	unsigned	threads;
	unsigned	busy;			/* of a device that works by turns: how many threads have something to do other than a
								 * long build */
	unsigned	long_builds;	/* how many threads are at a long build */
	unsigned	asleep;			/* how many threads sleep and have not been woken */
	unsigned	woken;			/* how many threads have been woken, but have not run yet */
	struct discards discards;
};

static struct
{
	/* immutable after scheduler_open */
	void		(*changed) (void);
	int64_t		opened_ms;

	atomic_int	probed;			/* how many devices have been probed */
	_Atomic(struct device *) lost;	/* a device that was ready and is lost, or NULL */

	pthread_mutex_t lock;

	/* guarded by lock */
	struct served_device served[GEONN_DEVICES_MAX];
	struct search *first_finished;
	struct search *last_finished;
	bool		closing;
}			scheduler = {
	.lock = PTHREAD_MUTEX_INITIALIZER
};

atomic_uint_fast64_t gpu_memory_limit;

static void
append_finished(struct search *search)
{
	geonn_assert_locked(&scheduler.lock);
	search->next = NULL;
	if (scheduler.last_finished != NULL)
		scheduler.last_finished->next = search;
	else
		scheduler.first_finished = search;
	scheduler.last_finished = search;
}

void
scheduler_set_gpu_memory_limit(uint64_t bytes)
{
	atomic_store(&gpu_memory_limit, bytes);
}

static void *extra_main(void *argument);

/* Give a device one more thread.  If that fails, the device's other threads do the work.  The caller holds the lock. */
static void
add_thread(struct served_device *served)
{
	struct device_thread *thread = calloc(1, sizeof(*thread));

	if (thread == NULL)
		return;
	thread->served = served;
	if (pthread_create(&thread->thread, NULL, extra_main, thread) != 0)
	{
		free(thread);
		return;
	}
	thread->next = served->first.next;
	served->first.next = thread;
	served->threads++;
}

/*
 * Let a thread of a device look for work: a sleeping thread, or a new one.  Do nothing if a thread is about to look
 * anyway, or if as many are busy as the settings allow.  A thread that leaves work for others calls this again.  While the
 * scheduler closes, all threads are awake and being joined: wake none and add none.  The caller holds the lock.
 */
static void
wake(struct served_device *served)
{
	const struct device_operations *operations = served->device->operations;

	geonn_assert_locked(&scheduler.lock);
	geonn_assert(scheduler.closing ||
				 served->busy + served->long_builds + served->asleep + served->woken <= served->threads);
	if (scheduler.closing ||
		served->busy + served->long_builds + served->asleep < served->threads ||
		(operations->turn != NULL && served->busy >= operations->threads()))
		return;
	if (served->asleep > 0)
	{
		served->asleep--;
		served->woken++;
		pthread_cond_signal(&served->work);
	}
	else if (operations->turn != NULL && atomic_load(&served->device->usable) &&
			 served->threads < operations->threads() + served->long_builds)
		add_thread(served);
}

/* Wake a thread of each device that may serve a search.  The caller holds the lock. */
static void
wake_for(const struct search *search)
{
	for (int i = 0; i < engine_device_count; i++)
		if (backends_serves(scheduler.served[i].device, search->choice))
			wake(&scheduler.served[i]);
}

void
scheduler_submit(struct search_queue *queue, struct search *search)
{
	geonn_assert(search->dataset->sealed && search->dataset->count > 0);
	geonn_assert(search->first < search->rows && search->answered == 0 && search->pairs == 0);
	call_move(search->call, &search->phase, GEONN_PHASE_WAITING);
	pthread_mutex_lock(&scheduler.lock);
	line_append(queue, search);
	wake_for(search);
	pthread_mutex_unlock(&scheduler.lock);
}

void
scheduler_drop(struct search_queue *queue)
{
	struct search *search;
	struct search *next;

	pthread_mutex_lock(&scheduler.lock);
	for (search = line_drop(queue); search != NULL; search = next)
	{
		next = search->next;
		append_finished(search);
	}
	pthread_mutex_unlock(&scheduler.lock);
	scheduler.changed();
}

struct search *
scheduler_collect(void)
{
	struct search *search;

	pthread_mutex_lock(&scheduler.lock);
	search = scheduler.first_finished;
	if (search != NULL)
	{
		scheduler.first_finished = search->next;
		if (scheduler.first_finished == NULL)
			scheduler.last_finished = NULL;
	}
	pthread_mutex_unlock(&scheduler.lock);
	return search;
}

bool
scheduler_ready(void)
{
	return atomic_load(&scheduler.probed) == engine_device_count ||
		scheduler_ready_within_ms() == 0;
}

int
scheduler_ready_within_ms(void)
{
	int64_t		left = scheduler.opened_ms + PROBE_PATIENCE_MS - now_ms();

	return left > 0 ? (int) left : 0;
}

struct device *
scheduler_stuck_device(void)
{
	struct device *stuck = NULL;

	overdue_look();
	pthread_mutex_lock(&scheduler.lock);
	for (int i = 0; i < engine_device_count; i++)
		for (struct device_thread *thread = &scheduler.served[i].first; thread != NULL;
			 thread = thread->next)
			if (operation_is_overdue(&thread->operation) && stuck == NULL)
				stuck = scheduler.served[i].device;
	pthread_mutex_unlock(&scheduler.lock);
	return stuck;
}

struct failure
scheduler_why_unusable(const struct device *device)
{
	struct failure why;

	pthread_mutex_lock(&scheduler.lock);
	why = device->lost;
	pthread_mutex_unlock(&scheduler.lock);
	return why;
}

struct device *
scheduler_lost_device(void)
{
	return atomic_load(&scheduler.lost);
}

void
scheduler_discard(struct dataset *dataset)
{
	bool		free_now;

	geonn_assert(dataset->users == 0 && !dataset->kept);
	/*
	 * Every usable device counts dataset->discards down, and so does this function at its end: the
	 * dataset stays until then.
	 */
	pthread_mutex_lock(&scheduler.lock);
	atomic_store(&dataset->discards, 1);
	for (int i = 0; i < engine_device_count; i++)
	{
		struct served_device *served = &scheduler.served[i];

		if (!atomic_load(&served->device->usable))
			continue;
		discards_add(&served->discards, dataset);
		wake(served);
	}
	free_now = atomic_fetch_sub(&dataset->discards, 1) == 1;
	pthread_mutex_unlock(&scheduler.lock);
	if (free_now)
		dataset_free(dataset);
}

bool
scheduler_is_discarding(void)
{
	bool		discarding = false;

	pthread_mutex_lock(&scheduler.lock);
	for (int i = 0; i < engine_device_count; i++)
		discarding = discarding || discards_are_left(&scheduler.served[i].discards);
	pthread_mutex_unlock(&scheduler.lock);
	return discarding;
}

/*
 * Return the algorithm by which a device would answer a search.  A choice of the index holds as long as the same device
 * answers; another device chooses anew, and a choice of brute force holds for one turn only.
 */
static enum geonn_algorithm
algorithm_on(const struct device *device, const struct search *search)
{
	bool		holds = search->algorithm == GEONN_ALGORITHM_INDEX && search->device == (uint32_t) device->number;

	if (search->question.algorithm != GEONN_ALGORITHM_AUTO || holds)
		return search->algorithm;
	if (device->operations->choose == NULL)
		return GEONN_ALGORITHM_INDEX;
	return device->operations->choose(search, !search->stays && search->dataset->built[device->number] == NULL);
}

/*
 * Return whether a thread of this device may begin a search now.  may_wait: the device may wait for
 * another device's build.
 */
static bool
may_begin(const struct served_device *served, const struct search *search, bool may_wait)
{
	const struct device *device = served->device;
	const struct dataset *dataset = search->dataset;

	if (!backends_serves(device, search->choice))
		return false;
	if (device->operations->turn != NULL)
		return !dataset->building[device->number] &&
			(served->long_builds < device->operations->threads() ||
			 !device->operations->builds_long(device, search, algorithm_on(device, search)));
	return may_wait || dataset->built[device->number] != NULL || atomic_load(&dataset->builders) == 0;
}

/* Return the first queue of the line whose next search a thread of this device may begin, or NULL. */
static struct search_queue *
find_queue(const struct served_device *served, bool may_wait)
{
	struct search_queue *queue = line_first();

	while (queue != NULL && !may_begin(served, queue->first, may_wait))
		queue = queue->next;
	return queue;
}

/*
 * Return the dataset of which a device that works by turns must build structures next, so that a search can begin: the
 * search's dataset, then its shapes, which no other search has; NULL: none.
 */
static struct dataset *
lacking(const struct device *device, const struct search *search)
{
	if (device->operations->turn == NULL)
		return NULL;
	if (!device->operations->is_built(device, search, search->algorithm))
		return search->dataset;
	return search->shapes != NULL && search->shapes->built[device->number] == NULL ? search->shapes : NULL;
}

/*
 * Take the next search for this device out of the line.  From then on the device counts among the
 * builders of the search's dataset.  The caller holds the lock.
 */
static struct search *
take_search(struct served_device *served, bool may_wait)
{
	struct device *device = served->device;
	struct search_queue *queue = find_queue(served, may_wait);
	struct search *search;

	if (queue == NULL)
		return NULL;
	search = line_take(queue);

	/* The queue's next search may be for other devices: wake them. */
	if (queue->first != NULL && !backends_serves(device, queue->first->choice))
		wake_for(queue->first);

	search->algorithm = algorithm_on(device, search);
	geonn_assert(search->algorithm != GEONN_ALGORITHM_AUTO);
	atomic_fetch_add(&search->dataset->builders, 1);
	search->builds = lacking(device, search);
	search->builds_long = search->builds != NULL && device->operations->builds_long(device, search, search->algorithm);
	geonn_assert(search->builds == NULL || !search->builds->building[device->number]);
	if (search->builds != NULL)
		search->builds->building[device->number] = true;
	if (search->builds_long)
		served->long_builds++;
	return search;
}

/* Set whether a thread is busy, and count it.  The caller holds the lock. */
static void
set_busy(struct device_thread *thread, bool busy)
{
	geonn_assert_locked(&scheduler.lock);
	geonn_assert(!thread->busy || thread->served->busy > 0);
	if (thread->busy)
		thread->served->busy--;
	if (busy)
		thread->served->busy++;
	thread->busy = busy;
}

/*
 * Take a thread's next work: a search, unless its lanes are full, and discards.  Without work the
 * thread sleeps until some comes, unless it has searches under way or the scheduler closes.
 */
static struct search *
await_work(struct device_thread *thread, int under_way, struct dataset **discards)
{
	struct served_device *served = thread->served;
	struct device *device = served->device;
	bool		by_turns = device->operations->turn != NULL;
	struct search *taken = NULL;

	geonn_assert(by_turns ? under_way == 0 : under_way <= device->lanes);
	pthread_mutex_lock(&scheduler.lock);
	set_busy(thread, false);
	for (;;)
	{
		bool		free = by_turns ? served->busy < device->operations->threads() :
			under_way < device->lanes;

		if (!scheduler.closing && free)
			taken = take_search(served, false);
		/* A device with nothing else to do may take a search for which it waits for another device's build. */
		if (!scheduler.closing && !by_turns && taken == NULL && under_way == 0)
			taken = take_search(served, true);
		set_busy(thread, by_turns && taken != NULL && !taken->builds_long);
		*discards = discards_take(&served->discards, taken != NULL && taken->wants_memory, &scheduler.lock);
		if (taken != NULL || *discards != NULL || under_way > 0 || scheduler.closing)
			break;
		thread_pool_leave();
		served->asleep++;
		while (served->woken == 0 && !scheduler.closing)
			pthread_cond_wait(&served->work, &scheduler.lock);
		served->woken -= served->woken > 0;
	}
	set_busy(thread, by_turns && !(taken != NULL && taken->builds_long));
	if (by_turns && !scheduler.closing &&
		(served->discards.first != NULL || find_queue(served, false) != NULL))
		wake(served);
	pthread_mutex_unlock(&scheduler.lock);
	return taken;
}

/*
 * Note that a thread has built the structures that its search needs, or has failed to: from now on
 * the device's other threads may take searches of that dataset.
 */
static void
end_build(struct device_thread *thread, struct search *search)
{
	struct served_device *served = thread->served;

	pthread_mutex_lock(&scheduler.lock);
	geonn_assert(search->builds != NULL && search->builds->building[served->device->number]);
	geonn_assert(!search->builds_long || served->long_builds > 0);
	search->builds->building[served->device->number] = false;
	if (search->builds_long)
	{
		served->long_builds--;
		set_busy(thread, true);
	}
	wake(served);
	pthread_mutex_unlock(&scheduler.lock);
}

/*
 * Let the CPU answer a search of arcs if their index did not fit on the GPU and the session left the choice of
 * devices to the engine.  Returns whether it does.
 */
static bool
goes_to_cpu(const struct device *device, struct search *search)
{
	if (!search->failed || !device->operations->is_gpu || search->choice != GEONN_DEVICE_AUTO ||
		(search->dataset->columns & GEONN_COLUMN_ARC) == 0 ||
		(search->failure.code != GEONN_ERROR_MEMORY && search->failure.code != GEONN_ERROR_LIMIT))
		return false;
	search->failed = false;
	search_leave_to_cpu(search, GEONN_CPU_MEMORY);
	return true;
}

/*
 * Build the structures that a search needs, and start the search, or work on it for a turn.
 * Returns the search's progress: DEVICE_IDLE while it is under way.
 */
static enum device_progress
begin_search(struct device_thread *thread, struct search *search)
{
	struct device *device = thread->served->device;
	const struct device_operations *operations = device->operations;
	enum device_progress progress = DEVICE_IDLE;

	if (search->device != (uint32_t) device->number)
		search->device_state = 0;
	search->device = (uint32_t) device->number;
	if (!atomic_load(search->cancelled))
	{
		int64_t		begun = now_us();

		operation_begin(&thread->operation, OPERATION_PATIENCE_MS + (int64_t) ((search->dataset->count + search->arcs) / 1000));
		call_move(search->call, &search->phase, GEONN_PHASE_BUILDING);
		search->failed = !operations->build(device, search, &search->failure);
		operation_end(&thread->operation);
		search->build_microseconds += (uint32_t) (now_us() - begun);
	}
	geonn_assert(atomic_load(&search->dataset->builders) > 0);
	atomic_fetch_sub(&search->dataset->builders, 1);
	if (search->builds != NULL)
		end_build(thread, search);
	if (goes_to_cpu(device, search))
		return DEVICE_YIELDED;
	if (search->failed || atomic_load(search->cancelled))
		return DEVICE_FINISHED;
	call_use_device(search->call, device->number);
	call_move(search->call, &search->phase, GEONN_PHASE_SEARCHING);
	if (operations->turn != NULL)
	{
		/* one observation is the least that a turn does, and may take a geodesic for each reference */
		operation_begin(&thread->operation, OPERATION_PATIENCE_MS + (int64_t) (search->dataset->count / 300));
		progress = operations->turn(device, search);
	}
	else
	{
		operation_begin(&thread->operation, OPERATION_PATIENCE_MS);
		operations->start(device, search);
	}
	operation_end(&thread->operation);
	return progress;
}

/*
 * Hand back a search that ended, or put it into the line again.
 */
static void
end_search(struct device_thread *thread, struct search *search, enum device_progress progress)
{
	bool		goes_on = progress == DEVICE_YIELDED && !atomic_load(search->cancelled);

	geonn_assert(progress != DEVICE_IDLE);
	geonn_assert(search->answered <= search->rows - search->first && search->pairs <= search->columns.room);
	if (progress == DEVICE_FINISHED)
		atomic_fetch_add(&thread->served->device->batches, 1);
	if (goes_on)
		call_move(search->call, &search->phase, GEONN_PHASE_WAITING);
	pthread_mutex_lock(&scheduler.lock);
	set_busy(thread, false);
	line_end_turn(search, goes_on);
	if (!goes_on)
		append_finished(search);
	else if (!backends_serves(thread->served->device, search->choice))
		wake_for(search);
	pthread_mutex_unlock(&scheduler.lock);
	scheduler.changed();
}

/* Take and advance searches until the scheduler closes or the device is lost. */
static void
serve(struct device_thread *thread)
{
	struct device *device = thread->served->device;
	int			under_way = 0;

	while (atomic_load(&device->usable))
	{
		struct dataset *discards;
		struct search *search = await_work(thread, under_way, &discards);
		enum device_progress progress;

		discards_fulfil(&thread->served->discards, discards, &thread->operation, &scheduler.lock);
		if (search != NULL)
		{
			progress = begin_search(thread, search);
			if (progress == DEVICE_IDLE)
				under_way++;	/* fill the next lane */
		}
		else if (under_way > 0)
		{
			operation_begin(&thread->operation, OPERATION_PATIENCE_MS);
			progress = device->operations->advance(device, &search);
			operation_end(&thread->operation);
			if (progress != DEVICE_IDLE)
				under_way--;
		}
		else if (discards != NULL)
			continue;
		else
			break;				/* the scheduler closes */
		if (progress != DEVICE_IDLE)
			end_search(thread, search, progress);
	}

	thread_pool_leave();
	if (!atomic_load(&device->usable))
	{
		/* The server sees the lost device and ends the engine; the supervisor starts a new one. */
		atomic_store(&scheduler.lost, device);
		scheduler.changed();
	}
}

static void *
extra_main(void *argument)
{
	thread_pool_lower_priority();
	serve(argument);
	return NULL;
}

/* Wait for the end of a device's extra threads.  At this time no thread adds any more. */
static void
join_extra_threads(struct served_device *served)
{
	struct device_thread *thread = served->first.next;

	while (thread != NULL)
	{
		struct device_thread *next = thread->next;

		pthread_join(thread->thread, NULL);
		free(thread);
		thread = next;
	}
}

static void *
device_main(void *argument)
{
	struct device_thread *thread = argument;
	struct served_device *served = thread->served;
	struct device *device = served->device;
	struct failure failure;
	bool		usable = device->operations->probe(device, &failure);

	if (usable)
	{
		atomic_store(&device->usable, true);
		log_line(LOG_NOTE, "device %d (%s) is ready", device->number, device->name);
	}
	else
		log_line(LOG_WARNING, "device %d can't be used: %s%s%s", device->number,
				 failure.message, failure.detail[0] ? ": " : "", failure.detail);
	pthread_mutex_lock(&scheduler.lock);
	if (!usable)
		device->lost = failure;
	pthread_mutex_unlock(&scheduler.lock);
	atomic_fetch_add(&scheduler.probed, 1);
	scheduler.changed();

	if (usable)
		serve(thread);
	join_extra_threads(served);
	device->operations->close(device);
	return NULL;
}

bool
scheduler_open(void (*changed) (void), struct failure *failure)
{
	scheduler.changed = changed;
	scheduler.opened_ms = now_ms();
	overdue_open();
	for (int i = 0; i < engine_device_count; i++)
	{
		struct served_device *served = &scheduler.served[i];

		served->device = &engine_devices[i];
		served->first.served = served;
		served->threads = 1;
		pthread_cond_init(&served->work, NULL);
		discards_open(&served->discards, served->device);
		fail(&engine_devices[i].lost, GEONN_ERROR_NO_DEVICE, "device %d has not answered yet", i);
	}
	for (int i = 0; i < engine_device_count; i++)
	{
		struct device_thread *thread = &scheduler.served[i].first;
		int			reason = pthread_create(&thread->thread, NULL, device_main, thread);

		if (reason != 0)
		{
			fail(failure, GEONN_ERROR_MEMORY, "could not create a thread for device %d", i);
			fail_reason(failure, reason);
			return false;
		}
	}
	return true;
}

void
scheduler_close(void)
{
	pthread_mutex_lock(&scheduler.lock);
	scheduler.closing = true;
	for (int i = 0; i < engine_device_count; i++)
		pthread_cond_broadcast(&scheduler.served[i].work);
	pthread_mutex_unlock(&scheduler.lock);
	for (int i = 0; i < engine_device_count; i++)
		pthread_join(scheduler.served[i].first.thread, NULL);
}
