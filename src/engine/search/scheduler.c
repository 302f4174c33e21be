/*
 * scheduler.c
 *		Decides which device works on which search next.
 *
 * Every session has a queue of searches; the queues that are not empty stand
 * in line.  A device that is free takes the first search of the first queue
 * that it may serve.  So sessions get their turns batch by batch, and each
 * batch goes to a device that is free.
 *
 * Turns differ in length: ten observations take microseconds, a large batch
 * some 50 ms.  A small search should not wait until each large one has had a
 * turn.  So each session is charged the device time that it uses, and the line
 * is in the order of the charge after the session's next turn, if that takes
 * as long as its last one did.  The scheduler's clock is the charge of a
 * session that always had an even share: each turn advances the clock by the
 * turn's time divided by the number of queues.  A session that joins the line,
 * for the first time or again, is charged at least as much as the clock shows,
 * so no session can save time up.  No session waits for ever either, however
 * many come after it: once the clock has reached its place in the line, later
 * ones are behind it, and that takes no longer than if each of the others had
 * two turns as long as its own.  A long turn counts as TURN_MOST_US at most,
 * so a session never waits for more than two turns of each other session, or
 * twice that time.
 *
 * Each device has one thread, device_main below.  The thread probes the device
 * and then repeats two steps: it fills the device's lanes with searches, and
 * builds what the device still needs of their datasets; then it lets the
 * device advance.  While one device builds a dataset, devices that would wait
 * for it serve other sessions first.  A thread sleeps only while its device
 * has nothing to do.  Finished searches go to a list that the server's thread
 * empties.
 *
 * A driver that hangs takes its device's thread with it.  So every operation
 * of a device has a time by which it should be over.  When one is overdue, the
 * server stops answering the supervisor's pings, and the supervisor starts
 * another engine.  If a probe hangs, the engine waits for a while and then
 * serves with the other devices.
 *
 * One lock guards the line, the list and the requests to discard datasets;
 * nothing slow happens under it.  The server's thread never waits for a
 * device, and a device's thread never waits for the server's.
 */
#include "engine/search/scheduler.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/log.h"
#include "engine/calls/calls.h"
#include "engine/search/backends.h"

/* how long to wait for probes before serving without those devices */
#define PROBE_PATIENCE_MS 30000

/* how long an operation of a device may take.  A build may take one microsecond
 * more for each reference, and may spend half of this time waiting for another
 * device's build. */
#define OPERATION_PATIENCE_MS 60000

/* what a turn counts as at most.  A session whose turn was longer, because an
 * index had to be built or the host is busy, need not wait until all others
 * have had as much. */
#define TURN_MOST_US 25000

/* one device's request to discard its part of a dataset */
struct discard
{
	struct dataset *dataset;
	struct discard *next;
};

struct device_thread
{
	pthread_t	thread;
	struct device *device;

	/* guarded by the scheduler's lock */
	struct discard *discards;
};

static struct
{
	/* immutable after scheduler_open */
	int			device_count;
	void		(*changed) (void);
	int64_t		opened_ms;

	pthread_mutex_t lock;
	pthread_cond_t work;		/* a search, a discard, or the end */

	/* guarded by lock */
	struct device_thread threads[GEONN_DEVICES_MAX];
	int			probed;
	struct search_queue *first_queue;	/* in the order of served_us + last_us */
	int			queues;
	int64_t		clock_us;
	struct search *first_finished;
	struct search *last_finished;
	struct device *lost;
	bool		closing;
}			scheduler = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER
};

atomic_uint_fast64_t gpu_memory_limit;

/*
 * Whether some device has a higher rank for choice auto than this one;
 * by_usable: count usable devices alone.
 */
static bool
is_outranked(const struct device *device, bool by_usable)
{
	for (int i = 0; i < scheduler.device_count; i++)
	{
		const struct device *other = scheduler.threads[i].device;

		if (other->operations->auto_rank > device->operations->auto_rank &&
			(!by_usable || atomic_load(&other->usable)))
			return true;
	}
	return false;
}

static bool
serves(const struct device *device, enum geonn_device_choice choice)
{
	if (choice == GEONN_DEVICE_AUTO)
		return !is_outranked(device, true);
	return choice == geonn_device_choice_of(device->operations->kind);
}

bool
scheduler_auto_uses(const struct device *device)
{
	return atomic_load(&device->usable) && serves(device, GEONN_DEVICE_AUTO);
}

bool
scheduler_fell_back(const struct search *search)
{
	return search->choice == GEONN_DEVICE_AUTO &&
		is_outranked(scheduler.threads[search->device].device, false);
}

bool
scheduler_can_serve(enum geonn_device_choice choice, struct failure *failure)
{
	for (int i = 0; i < scheduler.device_count; i++)
		if (atomic_load(&scheduler.threads[i].device->usable) &&
			serves(scheduler.threads[i].device, choice))
			return true;
	return fail(failure, GEONN_ERROR_NO_DEVICE,
				backends_means_gpus(choice) ? "no GPU can be used" : "no device can be used");
}

/*
 * Put a queue into its place in the line: behind all queues whose charge after
 * their next turn is the same or less.
 */
static void
insert_queue(struct search_queue *queue)
{
	struct search_queue **link = &scheduler.first_queue;

	while (*link != NULL &&
		   (*link)->served_us + (*link)->last_us <= queue->served_us + queue->last_us)
		link = &(*link)->next;
	queue->next = *link;
	queue->waiting = true;
	*link = queue;
	scheduler.queues++;
}

static void
remove_queue(struct search_queue *queue)
{
	struct search_queue **link = &scheduler.first_queue;

	while (*link != queue)
		link = &(*link)->next;
	*link = queue->next;
	queue->waiting = false;
	scheduler.queues--;
}

/*
 * Put a queue that was empty, and now has a search, into the line.
 */
static void
begin_waiting(struct search_queue *queue)
{
	if (queue->served_us < scheduler.clock_us)
		queue->served_us = scheduler.clock_us;
	insert_queue(queue);
}

/*
 * Begin a search's turn: charge its queue the time that the turn is expected
 * to take, so that the queue's next search has its right place in the line for
 * other devices.
 */
static void
begin_turn(struct search *search)
{
	struct search_queue *queue = search->queue;

	if (scheduler.clock_us < queue->served_us)
		scheduler.clock_us = queue->served_us;
	search->taken_us = now_us();
	search->expected_us = queue->last_us;
	queue->served_us += queue->last_us;
}

/*
 * End a search's turn: charge its queue the time that the turn took instead.
 */
static void
end_turn(const struct search *search)
{
	struct search_queue *queue = search->queue;
	int64_t		took_us = now_us() - search->taken_us;
	bool		waiting = queue->waiting;

	if (took_us > TURN_MOST_US)
		took_us = TURN_MOST_US;
	if (waiting)
		remove_queue(queue);
	scheduler.clock_us += took_us / (scheduler.queues + 1);
	queue->served_us += took_us - search->expected_us;
	queue->last_us = took_us;
	if (waiting)
		insert_queue(queue);
}

static void
append_finished(struct search *search)
{
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

void
scheduler_submit(struct search_queue *queue, struct search *search)
{
	call_move(search->call, &search->phase, GEONN_PHASE_WAITING);
	pthread_mutex_lock(&scheduler.lock);
	search->queue = queue;
	search->next = NULL;
	if (queue->first != NULL)
		queue->last->next = search;
	else
		queue->first = search;
	queue->last = search;
	if (!queue->waiting)
		begin_waiting(queue);
	pthread_cond_broadcast(&scheduler.work);
	pthread_mutex_unlock(&scheduler.lock);
}

void
scheduler_drop(struct search_queue *queue)
{
	pthread_mutex_lock(&scheduler.lock);
	if (queue->waiting)
		remove_queue(queue);
	while (queue->first != NULL)
	{
		struct search *search = queue->first;

		queue->first = search->next;
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
	bool		ready;

	pthread_mutex_lock(&scheduler.lock);
	ready = scheduler.probed == scheduler.device_count;
	pthread_mutex_unlock(&scheduler.lock);
	return ready || scheduler_ready_within_ms() == 0;
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
	for (int i = 0; i < scheduler.device_count; i++)
	{
		struct device *device = scheduler.threads[i].device;
		int64_t		due_ms = atomic_load(&device->due_ms);

		if (due_ms != 0 && now_ms() > due_ms)
			return device;
	}
	return NULL;
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

/* note that an operation of the device begins, or ends */
static void
begin_operation(struct device *device, int64_t patience_ms)
{
	atomic_store(&device->due_ms, now_ms() + patience_ms);
}

static void
end_operation(struct device *device)
{
	atomic_store(&device->due_ms, 0);
}

struct device *
scheduler_lost_device(void)
{
	struct device *lost;

	pthread_mutex_lock(&scheduler.lock);
	lost = scheduler.lost;
	pthread_mutex_unlock(&scheduler.lock);
	return lost;
}

void
scheduler_discard(struct dataset *dataset)
{
	bool		free_now;

	/* counted down by every device thread that lives, and by this function */
	pthread_mutex_lock(&scheduler.lock);
	atomic_store(&dataset->discards, 1);
	for (int i = 0; i < scheduler.device_count; i++)
	{
		struct device_thread *thread = &scheduler.threads[i];
		struct discard *discard;

		if (!atomic_load(&thread->device->usable))
			continue;
		discard = malloc(sizeof(*discard));
		if (discard == NULL)
			continue;			/* the part stays until the engine ends */
		atomic_fetch_add(&dataset->discards, 1);
		discard->dataset = dataset;
		discard->next = thread->discards;
		thread->discards = discard;
	}
	free_now = atomic_fetch_sub(&dataset->discards, 1) == 1;
	pthread_cond_broadcast(&scheduler.work);
	pthread_mutex_unlock(&scheduler.lock);
	if (free_now)
		dataset_free(dataset);
}

bool
scheduler_is_discarding(void)
{
	bool		discarding = false;

	pthread_mutex_lock(&scheduler.lock);
	for (int i = 0; i < scheduler.device_count; i++)
		discarding = discarding || scheduler.threads[i].discards != NULL;
	pthread_mutex_unlock(&scheduler.lock);
	return discarding;
}

/*
 * Take the discards that a device does before it goes on: one, so that
 * searches need not wait for thousands, or all if the search that the device
 * has taken found memory short.  The lock is held.
 */
static struct discard *
take_discards(struct device_thread *thread, const struct search *taken)
{
	struct discard *discards = thread->discards;

	if (discards == NULL)
		return NULL;
	if (taken != NULL && taken->wants_memory)
	{
		thread->discards = NULL;
		return discards;
	}
	thread->discards = discards->next;
	discards->next = NULL;
	return discards;
}

/*
 * Whether this device would have to wait for another one to begin a search.
 */
static bool
is_built_elsewhere(const struct device *device, const struct dataset *dataset)
{
	return dataset->built[device->number] == NULL && atomic_load(&dataset->builders) > 0;
}

/*
 * Take the next search for this device out of the line.  A search for which
 * the device would wait for another device's build is taken only if may_wait.
 * From then on the device counts among the builders of the search's dataset.
 * The lock is held.
 */
static struct search *
take_search(struct device *device, bool may_wait)
{
	for (struct search_queue *queue = scheduler.first_queue; queue != NULL; queue = queue->next)
	{
		struct search *search = queue->first;

		if (!serves(device, search->choice) ||
			(!may_wait && is_built_elsewhere(device, search->dataset)))
			continue;
		remove_queue(queue);
		begin_turn(search);
		queue->first = search->next;
		if (queue->first != NULL)
			insert_queue(queue);
		atomic_fetch_add(&search->dataset->builders, 1);
		return search;
	}
	return NULL;
}

/*
 * Put a search whose turn ended at the head of its own queue, and the queue
 * into its place in the line.  The lock is held.
 */
static void
put_back(struct search *search)
{
	struct search_queue *queue = search->queue;

	call_move(search->call, &search->phase, GEONN_PHASE_WAITING);
	search->next = queue->first;
	if (queue->first == NULL)
		queue->last = search;
	queue->first = search;
	if (!queue->waiting)
		insert_queue(queue);
}

static void
discard_datasets(struct device_thread *thread, struct discard *discards)
{
	struct device *device = thread->device;

	while (discards != NULL)
	{
		struct discard *discard = discards;
		struct dataset *dataset = discard->dataset;

		discards = discard->next;
		if (dataset->built[device->number] != NULL)
		{
			begin_operation(device, OPERATION_PATIENCE_MS);
			device->operations->discard(device, dataset->built[device->number]);
			end_operation(device);
		}
		dataset->built[device->number] = NULL;
		if (atomic_fetch_sub(&dataset->discards, 1) == 1)
			dataset_free(dataset);
		free(discard);
	}
}

/*
 * Start a search, unless its dataset can't be built.  Returns whether it is
 * under way.
 */
static bool
start_search(struct device *device, struct search *search)
{
	if (search->device != (uint32_t) device->number)
		search->device_state = 0;
	search->device = (uint32_t) device->number;
	if (!atomic_load(search->cancelled))
	{
		int64_t		begun = now_us();

		call_move(search->call, &search->phase, GEONN_PHASE_BUILDING);
		begin_operation(device, OPERATION_PATIENCE_MS + (int64_t) (search->dataset->count / 1000));
		search->failed = !device->operations->build(device, search, &search->failure);
		end_operation(device);
		search->build_microseconds += (uint32_t) (now_us() - begun);
	}
	atomic_fetch_sub(&search->dataset->builders, 1);
	if (search->failed || atomic_load(search->cancelled))
		return false;
	call_use_device(search->call, device->number);
	call_move(search->call, &search->phase, GEONN_PHASE_SEARCHING);
	begin_operation(device, OPERATION_PATIENCE_MS);
	device->operations->start(device, search);
	end_operation(device);
	return true;
}

/*
 * Report that a device is lost, so that nothing can be done with it any more:
 * the server ends the engine, and the supervisor starts a new one.
 */
static void
report_lost(struct device *device)
{
	pthread_mutex_lock(&scheduler.lock);
	if (scheduler.lost == NULL)
		scheduler.lost = device;
	pthread_mutex_unlock(&scheduler.lock);
	scheduler.changed();
}

/*
 * Take and advance searches until the scheduler closes or the device is lost.
 */
static void
serve(struct device_thread *thread)
{
	struct device *device = thread->device;
	int			under_way = 0;

	while (atomic_load(&device->usable))
	{
		struct search *taken = NULL;
		struct search *ended = NULL;
		struct discard *discards;
		enum device_progress progress = DEVICE_FINISHED;

		pthread_mutex_lock(&scheduler.lock);
		for (;;)
		{
			if (!scheduler.closing && under_way < device->lanes)
				taken = take_search(device, false);
			/* a device with nothing else to do may wait for another one */
			if (!scheduler.closing && taken == NULL && under_way == 0)
				taken = take_search(device, true);
			discards = take_discards(thread, taken);
			if (taken != NULL || discards != NULL || under_way > 0 || scheduler.closing)
				break;
			pthread_cond_wait(&scheduler.work, &scheduler.lock);
		}
		pthread_mutex_unlock(&scheduler.lock);

		discard_datasets(thread, discards);
		if (taken != NULL)
		{
			if (start_search(device, taken))
			{
				under_way++;
				continue;		/* fill the next lane */
			}
			ended = taken;
		}
		else if (under_way > 0)
		{
			begin_operation(device, OPERATION_PATIENCE_MS);
			progress = device->operations->advance(device, &ended);
			end_operation(device);
			if (progress != DEVICE_IDLE)
				under_way--;
		}
		else if (discards == NULL)
			break;				/* the scheduler closes */

		if (ended == NULL)
			continue;
		if (progress == DEVICE_FINISHED)
			atomic_fetch_add(&device->batches, 1);
		pthread_mutex_lock(&scheduler.lock);
		end_turn(ended);
		if (progress == DEVICE_YIELDED && !atomic_load(ended->cancelled))
			put_back(ended);
		else
			append_finished(ended);
		pthread_mutex_unlock(&scheduler.lock);
		scheduler.changed();
	}

	if (!atomic_load(&device->usable))
		report_lost(device);
}

static void *
device_main(void *argument)
{
	struct device_thread *thread = argument;
	struct device *device = thread->device;
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
	scheduler.probed++;
	pthread_mutex_unlock(&scheduler.lock);
	scheduler.changed();

	if (usable)
		serve(thread);
	device->operations->close(device);
	return NULL;
}

bool
scheduler_open(struct device *devices, int device_count, void (*changed) (void),
			   struct failure *failure)
{
	scheduler.changed = changed;
	scheduler.device_count = device_count;
	scheduler.opened_ms = now_ms();
	for (int i = 0; i < device_count; i++)
	{
		scheduler.threads[i].device = &devices[i];
		fail(&devices[i].lost, GEONN_ERROR_NO_DEVICE, "device %d has not answered yet", i);
	}
	for (int i = 0; i < device_count; i++)
	{
		int			reason = pthread_create(&scheduler.threads[i].thread, NULL,
											device_main, &scheduler.threads[i]);

		if (reason != 0)
		{
			fail(failure, GEONN_ERROR_MEMORY, "could not create a thread for device %d", i);
			fail_detail(failure, "%s", strerror(reason));
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
	pthread_cond_broadcast(&scheduler.work);
	pthread_mutex_unlock(&scheduler.lock);
	for (int i = 0; i < scheduler.device_count; i++)
		pthread_join(scheduler.threads[i].thread, NULL);
}
