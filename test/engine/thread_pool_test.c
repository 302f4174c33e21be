/*
 * thread_pool_test.c
 *		The pieces of jobs: each runs once, none begins after the job is
 *		cancelled, and other jobs run between them.
 *
 * rooms: engine/base
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/base/thread_pool.h"
#include "../lib/verdict.h"

#define PIECES 1000
#define TURN 400

struct work
{
	atomic_uint runs[PIECES];
	atomic_uint begun_late;		/* pieces that began after the cancellation */
	atomic_bool cancelled;
	size_t		cancelling;		/* the piece that cancels the work */
};

static void
work_piece(void *context, size_t number)
{
	struct work *work = context;

	if (atomic_load(&work->cancelled))
		atomic_fetch_add(&work->begun_late, 1);
	atomic_fetch_add(&work->runs[number], 1);
	if (number == work->cancelling)
		atomic_store(&work->cancelled, true);
}

static bool
all_run_once(unsigned threads)
{
	struct work work = {.cancelling = PIECES};
	bool		once = true;

	thread_pool_set_threads(threads);
	once = thread_pool_run_turns(work_piece, &work, PIECES, TURN, &work.cancelled);
	for (size_t i = 0; i < PIECES; i++)
		once = once && atomic_load(&work.runs[i]) == 1;
	return once;
}

/* each other thread may have been about to begin a piece */
static bool
none_begins_late(unsigned threads, size_t cancelling)
{
	struct work work = {.cancelling = cancelling};
	bool		done;
	unsigned	late;

	thread_pool_set_threads(threads);
	done = thread_pool_run_turns(work_piece, &work, PIECES, TURN, &work.cancelled);
	late = atomic_load(&work.begun_late);
	if (late >= threads)
		printf("# %u threads: %u pieces began after piece %zu had cancelled the work\n", threads, late, cancelling);
	return !done && late < threads;
}

/* a job of one thread, beside which another thread has a job */
struct beside
{
	atomic_bool begun;
	atomic_bool other_run;
	unsigned	waits;			/* pieces of the first job that waited for the other job */
};

static void
wait_piece(void *context, size_t number)
{
	struct beside *beside = context;

	(void) number;
	atomic_store(&beside->begun, true);
	if (atomic_load(&beside->other_run))
		return;
	usleep(10000);
	beside->waits++;
}

static void
other_piece(void *context, size_t number)
{
	struct beside *beside = context;

	(void) number;
	atomic_store(&beside->other_run, true);
}

static void *
run_other(void *context)
{
	struct beside *beside = context;

	while (!atomic_load(&beside->begun))
		usleep(1000);
	thread_pool_run(other_piece, beside, 1);
	return NULL;
}

static bool
lets_pass(void)
{
	struct beside beside = {.waits = 0};
	pthread_t	other;

	thread_pool_set_threads(1);
	if (pthread_create(&other, NULL, run_other, &beside) != 0)
		return false;
	thread_pool_run(wait_piece, &beside, PIECES);
	pthread_join(other, NULL);
	return beside.waits < PIECES;
}

int
main(void)
{
	report("each piece runs once, on one thread or several", all_run_once(1) && all_run_once(4));
	report("no piece of a job begins after it is cancelled, on one thread",
		   none_begins_late(1, 0) && none_begins_late(1, TURN + 7));
	report("or on several", none_begins_late(4, 0) && none_begins_late(4, TURN + 7));
	report("a job lets another one pass between two pieces, where one thread may work", lets_pass());
	thread_pool_close();
	return summed_up();
}
