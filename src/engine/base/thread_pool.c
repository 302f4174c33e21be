/*
 * thread_pool.c
 *		The CPU device's threads.
 *
 * A job is a function and a number of pieces.  Every thread takes the next
 * piece until none is left, so a thread that the system slows down takes
 * fewer.  Threads are created when a job first asks for that many; then they
 * stay, and sleep between jobs.  If the setting is lowered, the surplus
 * threads stay asleep.
 *
 * Three kinds of threads ask for jobs: the CPU device's thread for its turns,
 * a GPU's thread for the work that it leaves to the host, and a thread that
 * sorts a session's references.  One job runs at a time, so two jobs never
 * share the cores; the other callers wait, in the order in which they asked.
 * A caller that asks for one job after another goes to the end of that line
 * each time, so the jobs of other callers run in between.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/base/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/protocol.h"
#include "engine/base/host.h"

#define NICE_LEVEL 10

static atomic_uint wanted_threads;	/* 0: one for each core */

static struct
{
	pthread_mutex_t lock;
	pthread_cond_t work;		/* a job began, or the pool closes */
	pthread_cond_t done;		/* the last worker left the job */
	pthread_cond_t turn;		/* another caller's turn began */

	/* guarded by lock */
	unsigned long asked;		/* callers that have asked for a turn so far */
	unsigned long served;		/* callers whose turn is over */
	pthread_t	workers[GEONN_CPU_THREADS_MAX];
	unsigned	created;
	unsigned	invited;		/* workers that may join the current job */
	unsigned	inside;			/* workers in it */
	unsigned long job;			/* number of the current or last job */
	bool		closing;

	/* immutable during a job */
	thread_pool_piece piece;
	void	   *context;
	size_t		end;			/* of the pieces */

	atomic_size_t next;
}			pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.done = PTHREAD_COND_INITIALIZER,
	.turn = PTHREAD_COND_INITIALIZER
};

void
thread_pool_set_threads(uint64_t threads)
{
	atomic_store(&wanted_threads, (unsigned) threads);
}

unsigned
thread_pool_threads(void)
{
	unsigned	threads = atomic_load(&wanted_threads);

	if (threads == 0)
		threads = host_cores();
	return threads < GEONN_CPU_THREADS_MAX ? threads : GEONN_CPU_THREADS_MAX;
}

void
thread_pool_lower_priority(void)
{
	setpriority(PRIO_PROCESS, (id_t) syscall(SYS_gettid), NICE_LEVEL);
}

static void
take_pieces(void)
{
	size_t		number;

	while ((number = atomic_fetch_add(&pool.next, 1)) < pool.end)
		pool.piece(pool.context, number);
}

static void *
worker_main(void *argument)
{
	unsigned	place = (unsigned) (size_t) argument;
	unsigned long seen = 0;

	thread_pool_lower_priority();
	pthread_mutex_lock(&pool.lock);
	while (!pool.closing)
	{
		if (pool.job == seen || place >= pool.invited)
		{
			seen = pool.job;
			pthread_cond_wait(&pool.work, &pool.lock);
			continue;
		}
		seen = pool.job;
		pool.inside++;
		pthread_mutex_unlock(&pool.lock);
		take_pieces();
		pthread_mutex_lock(&pool.lock);
		if (--pool.inside == 0)
			pthread_cond_signal(&pool.done);
	}
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

/* begin_turn and end_turn are called under the lock */
static void
begin_turn(void)
{
	unsigned long number = pool.asked++;

	while (pool.served != number)
		pthread_cond_wait(&pool.turn, &pool.lock);
}

static void
end_turn(void)
{
	pool.served++;
	pthread_cond_broadcast(&pool.turn);
}

static void
run_job(thread_pool_piece piece, void *context, size_t first, size_t end)
{
	size_t		pieces = end - first;
	size_t		helpers = thread_pool_threads() - 1;

	/* the caller takes pieces, too: a single piece wakes no helper */
	if (helpers >= pieces)
		helpers = pieces > 0 ? pieces - 1 : 0;

	pthread_mutex_lock(&pool.lock);
	begin_turn();
	while (pool.created < helpers && !pool.closing &&
		   pthread_create(&pool.workers[pool.created], NULL, worker_main,
						  (void *) (size_t) pool.created) == 0)
		pool.created++;
	pool.piece = piece;
	pool.context = context;
	pool.end = end;
	atomic_store(&pool.next, first);
	pool.invited = (unsigned) helpers;
	pool.job++;
	if (helpers > 0)
		pthread_cond_broadcast(&pool.work);
	pthread_mutex_unlock(&pool.lock);

	take_pieces();

	pthread_mutex_lock(&pool.lock);
	pool.invited = 0;			/* a worker that wakes late finds the job over */
	while (pool.inside > 0)
		pthread_cond_wait(&pool.done, &pool.lock);
	end_turn();
	pthread_mutex_unlock(&pool.lock);
}

void
thread_pool_run(thread_pool_piece piece, void *context, size_t pieces)
{
	run_job(piece, context, 0, pieces);
}

bool
thread_pool_run_turns(thread_pool_piece piece, void *context, size_t pieces,
					  size_t turn, const atomic_bool *cancelled)
{
	for (size_t first = 0; first < pieces; first += turn)
	{
		if (cancelled != NULL && atomic_load(cancelled))
			return false;
		run_job(piece, context, first, pieces - first < turn ? pieces : first + turn);
	}
	return cancelled == NULL || !atomic_load(cancelled);
}

void
thread_pool_close(void)
{
	pthread_mutex_lock(&pool.lock);
	begin_turn();
	pool.closing = true;
	pthread_cond_broadcast(&pool.work);
	pthread_mutex_unlock(&pool.lock);
	for (unsigned i = 0; i < pool.created; i++)
		pthread_join(pool.workers[i], NULL);
	pthread_mutex_lock(&pool.lock);
	pool.created = 0;
	end_turn();
	pthread_mutex_unlock(&pool.lock);
}
