/*
 * thread_pool.c
 *		How many threads work at a time, and the jobs that they share.
 *
 * As many threads work at a time as the setting says: each has a seat.  The
 * CPU device's threads take a seat for turn after turn; a GPU's thread, for
 * the work that it leaves to the host, and a thread that sorts a session's
 * references take one for each job.  The seats that are left are for the
 * pool's own workers, which help with jobs.  A thread that finds no seat free
 * waits in line, and each worker leaves its seat, after the piece that it is
 * working on, as long as anyone waits.  The line is in the order in which they
 * asked.  A thread that asks for one job after another goes to the end of the
 * line each time, so the jobs of others run in between.
 *
 * A job is a function and a number of pieces.  Its caller takes the next piece
 * until none is left, and so does every worker that helps, so a thread that
 * the system slows down takes fewer.  If threads wait, a caller that took its
 * seat for the job alone goes to the end of the line after SEAT_US, between two
 * pieces: it works for as long as each of the others, or half of that.  Jobs of
 * several callers run side by side.  A caller invites workers into the seats
 * that are free as its job begins; a seat that becomes free later goes to a
 * worker, too, while some job has pieces left.  So with as many callers as
 * seats, each caller does its jobs alone, and no thread is woken; a single
 * caller has the help of all.
 *
 * Workers are created when they are first invited; then they stay, and sleep
 * between jobs.  If the setting is lowered, the surplus workers stay asleep.
 * The CPU device's threads are not workers, so there may be twice as many
 * threads as the setting says, or three times as many while it builds, and all
 * without a seat sleep.
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

#include "common/assertion.h"
#include "common/protocol.h"
#include "engine/base/clock.h"
#include "engine/base/host.h"

#define NICE_LEVEL 10

/* half of a turn (cpu/turn.c) */
#define SEAT_US 25000

static atomic_uint wanted_threads;	/* how many threads may work at a time; 0: one for each core */

struct job
{
	thread_pool_piece piece;
	void	   *context;
	const atomic_bool *cancelled;	/* may be NULL */
	size_t		end;			/* the number of pieces */
	atomic_size_t next;

	/* guarded by the pool's lock */
	struct job *other;			/* the next job in the list of jobs with which workers may help */
	unsigned	inside;			/* how many workers are helping with it */
	pthread_cond_t left;		/* signalled when the last worker has left the job */
};

static struct
{
	pthread_mutex_t lock;
	pthread_cond_t work;		/* signalled when a worker is invited, or the pool is closing */
	pthread_cond_t seat;		/* signalled when a seat is free for a thread in line */

	/* guarded by lock */
	unsigned long asked;		/* how many threads have asked for a seat so far */
	unsigned long admitted;		/* how many threads have been given a seat so far */
	unsigned	working;		/* how many seats are taken */
	pthread_t	workers[GEONN_CPU_THREADS_MAX];
	unsigned	created;
	unsigned	resting;		/* how many workers rest, and may be invited */
	unsigned	invited;		/* how many workers have a seat and are not awake yet */
	struct job *jobs;
	bool		closing;

	atomic_uint waiting;		/* how many threads are in line; changed under the lock */
}			pool = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.work = PTHREAD_COND_INITIALIZER,
	.seat = PTHREAD_COND_INITIALIZER
};

/* this thread has taken a seat by thread_pool_enter() */
static _Thread_local bool has_seat;

#ifdef USE_ASSERT_CHECKING
static _Thread_local bool is_in_piece;
#endif

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

static void *worker_main(void *argument);

/* Return a job that has pieces left, or NULL.  The caller holds the lock. */
static struct job *
open_job(void)
{
	struct job *job = pool.jobs;

	geonn_assert_locked(&pool.lock);
	while (job != NULL && atomic_load(&job->next) >= job->end)
		job = job->other;
	return job;
}

/* Invite up to this many workers, as far as seats are free.  The caller holds the lock. */
static void
invite(size_t workers)
{
	unsigned	threads = thread_pool_threads();
	unsigned	woken = 0;

	geonn_assert_locked(&pool.lock);
	geonn_assert(pool.resting + pool.invited <= pool.created && pool.created <= GEONN_CPU_THREADS_MAX);
	while (woken < workers && pool.working < threads && atomic_load(&pool.waiting) == 0 &&
		   !pool.closing)
	{
		if (pool.resting == 0)
		{
			if (pool.created == GEONN_CPU_THREADS_MAX ||
				pthread_create(&pool.workers[pool.created], NULL, worker_main, NULL) != 0)
				break;
			pool.created++;
			pool.resting++;
		}
		pool.resting--;
		pool.invited++;
		pool.working++;
		woken++;
	}
	if (woken > 1 && pool.resting == 0)
		pthread_cond_broadcast(&pool.work);
	else
		while (woken-- > 0)
			pthread_cond_signal(&pool.work);
}

/* The lock is held in take_seat(), give_seat() and help(). */
static void
take_seat(void)
{
	unsigned	threads = thread_pool_threads();
	unsigned long number = pool.asked++;

	if (pool.admitted != number || pool.working >= threads)
	{
		atomic_fetch_add(&pool.waiting, 1);
		do
			pthread_cond_wait(&pool.seat, &pool.lock);
		while (pool.admitted != number || pool.working >= threads);
		atomic_fetch_sub(&pool.waiting, 1);
	}
	pool.admitted++;
	pool.working++;
	geonn_assert(pool.admitted <= pool.asked);
	if (pool.working >= threads)
		return;
	if (pool.asked != pool.admitted)
		pthread_cond_broadcast(&pool.seat);
	else if (open_job() != NULL)
		invite(threads);		/* invite workers for seats that they had left to the line */
}

static void
give_seat(void)
{
	geonn_assert_locked(&pool.lock);
	geonn_assert(pool.working > 0 && pool.invited <= pool.working);
	pool.working--;
	if (pool.asked != pool.admitted)
		pthread_cond_broadcast(&pool.seat);
	else if (open_job() != NULL)
		invite(1);
}

/* Take a job's next piece.  Returns false if no piece is left; a cancelled job has none left. */
static bool
take_piece(struct job *job, size_t *number)
{
	if (job->cancelled != NULL && atomic_load(job->cancelled))
		atomic_store(&job->next, job->end);
	*number = atomic_fetch_add(&job->next, 1);
	return *number < job->end;
}

static inline void
run_piece(thread_pool_piece piece, void *context, size_t number)
{
#ifdef USE_ASSERT_CHECKING
	is_in_piece = true;
#endif
	piece(context, number);
#ifdef USE_ASSERT_CHECKING
	is_in_piece = false;
#endif
}

static void
help(struct job *job)
{
	size_t		number;

	job->inside++;
	pthread_mutex_unlock(&pool.lock);
	while (atomic_load(&pool.waiting) == 0 && take_piece(job, &number))
		run_piece(job->piece, job->context, number);
	pthread_mutex_lock(&pool.lock);
	geonn_assert(job->inside > 0);
	if (--job->inside == 0)
		pthread_cond_signal(&job->left);
}

static void *
worker_main(void *argument)
{
	struct job *job;

	(void) argument;
	thread_pool_lower_priority();
	pthread_mutex_lock(&pool.lock);
	for (;;)
	{
		while (pool.invited == 0 && !pool.closing)
			pthread_cond_wait(&pool.work, &pool.lock);
		if (pool.invited == 0)
			break;
		pool.invited--;
		while (atomic_load(&pool.waiting) == 0 && (job = open_job()) != NULL)
			help(job);
		pool.resting++;
		geonn_assert(pool.resting + pool.invited <= pool.created);
		give_seat();
	}
	pthread_mutex_unlock(&pool.lock);
	return NULL;
}

void
thread_pool_enter(void)
{
	pthread_mutex_lock(&pool.lock);
	if (has_seat && (atomic_load(&pool.waiting) > 0 || pool.working > thread_pool_threads()))
	{
		give_seat();
		has_seat = false;
	}
	if (!has_seat)
		take_seat();
	has_seat = true;
	pthread_mutex_unlock(&pool.lock);
}

void
thread_pool_leave(void)
{
	if (!has_seat)
		return;
	has_seat = false;
	pthread_mutex_lock(&pool.lock);
	give_seat();
	pthread_mutex_unlock(&pool.lock);
}

/* Begin a job: take a seat unless the caller has one, and invite workers. */
static void
begin_job(struct job *job, size_t pieces)
{
	pthread_mutex_lock(&pool.lock);
	if (!has_seat)
		take_seat();
	if (pieces > 1)
	{
		job->other = pool.jobs;
		pool.jobs = job;
		invite(pieces - 1);
	}
	pthread_mutex_unlock(&pool.lock);
}

static void
end_job(struct job *job, size_t pieces)
{
	struct job **link = &pool.jobs;

	pthread_mutex_lock(&pool.lock);
	if (pieces > 1)
	{
		while (*link != job)
			link = &(*link)->other;
		*link = job->other;
		while (job->inside > 0)
			pthread_cond_wait(&job->left, &pool.lock);
	}
	if (!has_seat)
		give_seat();
	pthread_mutex_unlock(&pool.lock);
}

/* Between two pieces of a job, let the threads in line have the seat that was taken for the job at *since_us. */
static void
let_pass(int64_t *since_us)
{
	if (atomic_load(&pool.waiting) == 0 || now_us() - *since_us < SEAT_US)
		return;
	pthread_mutex_lock(&pool.lock);
	give_seat();
	take_seat();
	pthread_mutex_unlock(&pool.lock);
	*since_us = now_us();
}

static void
run_job(thread_pool_piece piece, void *context, size_t first, size_t end,
		const atomic_bool *cancelled)
{
	struct job	job = {
		.piece = piece,
		.context = context,
		.cancelled = cancelled,
		.end = end,
		.next = first,
		.left = PTHREAD_COND_INITIALIZER
	};
	size_t		number;
	int64_t		since_us;

	geonn_assert(!is_in_piece);
	/* a job of one piece needs no help */
	if (!has_seat || end - first > 1)
		begin_job(&job, end - first);
	since_us = now_us();
	while (take_piece(&job, &number))
	{
		run_piece(piece, context, number);
		if (!has_seat && atomic_load(&job.next) < end)
			let_pass(&since_us);
	}
	if (!has_seat || end - first > 1)
		end_job(&job, end - first);
	pthread_cond_destroy(&job.left);
}

void
thread_pool_run(thread_pool_piece piece, void *context, size_t pieces)
{
	run_job(piece, context, 0, pieces, NULL);
}

bool
thread_pool_run_turns(thread_pool_piece piece, void *context, size_t pieces,
					  size_t turn, const atomic_bool *cancelled)
{
	geonn_assert(turn > 0);
	for (size_t first = 0; first < pieces; first += turn)
	{
		if (cancelled != NULL && atomic_load(cancelled))
			return false;
		run_job(piece, context, first, pieces - first < turn ? pieces : first + turn, cancelled);
	}
	return cancelled == NULL || !atomic_load(cancelled);
}

void
thread_pool_close(void)
{
	pthread_mutex_lock(&pool.lock);
	pool.closing = true;
	pthread_cond_broadcast(&pool.work);
	pthread_mutex_unlock(&pool.lock);
	for (unsigned i = 0; i < pool.created; i++)
		pthread_join(pool.workers[i], NULL);
	pthread_mutex_lock(&pool.lock);
	pool.created = 0;
	pool.resting = 0;
	pthread_mutex_unlock(&pool.lock);
}
