/*
 * disposal.c
 *		Frees the memory and files of datasets that have left, on a thread of
 *		its own.
 *
 * The kernel takes some 0.2 s to free a gigabyte, and a lowered
 * geonn.kept_memory_limit frees thousands of datasets.  The server's thread
 * has to answer other sessions meanwhile, so it only hands datasets over to
 * the disposal thread.  That thread frees their columns and files, one dataset
 * at a time, and then asks the devices to discard what they have built; each
 * device's thread does that between its searches (scheduler.c).  The disposal
 * thread has the priority of the server's thread, so that datasets that have
 * left do not pile up.
 *
 * When memory or descriptors are short, the server's thread waits until the
 * disposal thread has freed all that it has: an earlier retry would fail
 * again.
 *
 * Columns of few references lie in the C library's heap, which keeps freed
 * memory.  When the disposal thread has had nothing to do for a while, it
 * gives the heap's free pages back to the system.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/server/disposal.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "common/assertion.h"
#include "engine/search/scheduler.h"

/* After this many freed bytes and seconds without work, the thread gives the heap's free pages back to the system. */
#define TRIM_BYTES ((size_t) 4 << 20)
#define TRIM_PAUSE_S 1

static struct
{
	pthread_t	thread;
	bool		running;		/* used by the server's thread alone */

	pthread_mutex_t lock;
	pthread_cond_t work;		/* signalled when a dataset is added, or the thread should end */
	pthread_cond_t done;		/* signalled when no dataset is left */

	/* guarded by lock */
	struct dataset *first;
	bool		busy;			/* the thread is freeing a dataset that it has taken out of the list */
	bool		closing;
}			disposal = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER
};

static void
dispose(struct dataset *dataset)
{
	geonn_assert(dataset->users == 0 && !dataset->kept);
	dataset_free_references(dataset);
	scheduler_discard(dataset);
}

static void
trim_heap(void)
{
#ifdef __GLIBC__
	malloc_trim(0);
#endif
}

/* Wait for work, or for long enough that devices may have discarded their structures.  The caller holds the lock. */
static int
wait_a_while(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TRIM_PAUSE_S;
	return pthread_cond_timedwait(&disposal.work, &disposal.lock, &until);
}

/*
 * Take the next dataset to free; NULL: the thread should end.  *freed counts the bytes freed since
 * the heap was last trimmed.
 */
static struct dataset *
take_next(size_t *freed)
{
	struct dataset *dataset;

	pthread_mutex_lock(&disposal.lock);
	disposal.busy = false;
	while (disposal.first == NULL && !disposal.closing)
	{
		pthread_cond_signal(&disposal.done);
		if (*freed < TRIM_BYTES)
			pthread_cond_wait(&disposal.work, &disposal.lock);
		else if (wait_a_while() == ETIMEDOUT && !scheduler_is_discarding())
		{
			pthread_mutex_unlock(&disposal.lock);
			trim_heap();
			*freed = 0;
			pthread_mutex_lock(&disposal.lock);
		}
	}
	dataset = disposal.first;
	if (dataset != NULL)
	{
		disposal.first = dataset->next[0];
		disposal.busy = true;
	}
	pthread_mutex_unlock(&disposal.lock);
	return dataset;
}

static void *
disposal_main(void *argument)
{
	struct dataset *dataset;
	size_t		freed = 0;

	(void) argument;
	while ((dataset = take_next(&freed)) != NULL)
	{
		freed += dataset_memory(dataset);
		dispose(dataset);
	}
	return NULL;
}

void
disposal_open(void)
{
	disposal.running = pthread_create(&disposal.thread, NULL, disposal_main, NULL) == 0;
}

void
disposal_add(struct dataset *dataset)
{
	geonn_assert(atomic_load(&dataset->squares_bytes) == 0);
	if (!disposal.running)
	{
		dispose(dataset);
		return;
	}
	pthread_mutex_lock(&disposal.lock);
	dataset->next[0] = disposal.first;
	disposal.first = dataset;
	pthread_cond_signal(&disposal.work);
	pthread_mutex_unlock(&disposal.lock);
}

bool
disposal_finish(void)
{
	bool		waited = false;

	if (!disposal.running)
		return false;
	pthread_mutex_lock(&disposal.lock);
	while (disposal.first != NULL || disposal.busy)
	{
		waited = true;
		pthread_cond_wait(&disposal.done, &disposal.lock);
	}
	pthread_mutex_unlock(&disposal.lock);
	return waited;
}

void
disposal_close(void)
{
	if (!disposal.running)
		return;
	pthread_mutex_lock(&disposal.lock);
	disposal.closing = true;
	pthread_cond_signal(&disposal.work);
	pthread_mutex_unlock(&disposal.lock);
	pthread_join(disposal.thread, NULL);
	disposal.running = false;
}
