/*
 * line_test.c
 *		How long a session waits that joins the line late, by a clock of the
 *		test's own.
 *
 * rooms: engine/search
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "engine/search/line.h"
#include "../lib/verdict.h"

#define THREADS_MAX 32
#define SESSIONS_MAX 64

/* a session that has waited for so long counts as forgotten */
#define FORGOTTEN_US INT64_C(100000000)

static int64_t time_us;

/* in the place of the system's, for line.c */
extern int	__wrap_clock_gettime(clockid_t clock, struct timespec *now);

int
__wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	(void) clock;
	now->tv_sec = (time_t) (time_us / 1000000);
	now->tv_nsec = (long) (time_us % 1000000 * 1000);
	return 0;
}

/* as many threads as a device has, each with a search under way or none */
struct thread
{
	struct search *search;
	int64_t		end_us;
};

/*
 * Let threads that are free take searches, then go on until the first turn
 * ends, and put its search back.
 */
static void
advance(struct thread *threads, int count, int64_t turn_us)
{
	struct thread *next = NULL;

	for (int i = 0; i < count; i++)
	{
		struct thread *thread = &threads[i];

		if (thread->search == NULL && line_first() != NULL)
		{
			thread->search = line_take(line_first());
			/* turns differ a little, so that they end one by one */
			thread->end_us = time_us + turn_us + i * 37 % 11 * 100;
		}
		if (thread->search != NULL && (next == NULL || thread->end_us < next->end_us))
			next = thread;
	}
	time_us = next->end_us;
	line_end_turn(next->search, true);
	next->search = NULL;
}

/* end all turns, and empty the line */
static void
finish(struct thread *threads, int count, struct search_queue *queues, int sessions)
{
	for (int i = 0; i < count; i++)
		if (threads[i].search != NULL)
			line_end_turn(threads[i].search, false);
	for (int i = 0; i < sessions; i++)
		line_drop(&queues[i]);
}

/*
 * How long a session waits for its first turn, if it joins the line after
 * others have been busy for 20 seconds with `each` searches apiece.
 */
static int64_t
waits_us(int others, int each, int count, int64_t turn_us)
{
	struct search_queue *queues = calloc((size_t) others + 1, sizeof(*queues));
	struct search *searches = calloc((size_t) others * (size_t) each + 1, sizeof(*searches));
	struct search *last = &searches[others * each];
	struct thread threads[THREADS_MAX] = {{0}};
	int64_t		began_us = time_us;
	int64_t		waited_us;

	if (queues == NULL || searches == NULL)
		abort();
	for (int i = 0; i < others * each; i++)
		line_append(&queues[i / each], &searches[i]);
	while (time_us < began_us + 20000000)
		advance(threads, count, turn_us);
	began_us = time_us;
	line_append(&queues[others], last);
	while (last->taken_us < began_us && time_us < began_us + FORGOTTEN_US)
		advance(threads, count, turn_us);
	waited_us = (last->taken_us < began_us ? time_us : last->taken_us) - began_us;
	finish(threads, count, queues, others + 1);
	free(searches);
	free(queues);
	return waited_us;
}

/* A session that is late waits for two turns of each other at most, and for the turns under way. */
static bool
waits_for_its_turn(int others, int each, int count)
{
	const int64_t turn_us = 20000;
	int64_t		waited_us = waits_us(others, each, count, turn_us);
	int64_t		most_us = (2 * others / count + 2) * (turn_us + 1000);

	if (waited_us <= most_us)
		return true;
	printf("# %d sessions with %d searches each, %d threads: %" PRId64 " us, expected %" PRId64 " at most\n",
		   others, each, count, waited_us, most_us);
	return false;
}

/*
 * How long a session with small searches waits beside one that has had a turn of two seconds, as of a build, while the
 * small searches went on in another thread; now both have one thread, and the turns of the other take 50 ms.
 */
static int64_t
waits_after_long_turn(void)
{
	struct search_queue queues[2] = {{0}};
	struct search searches[2] = {{0}};
	struct search *longer = &searches[0];
	struct search *small = &searches[1];
	int64_t		worst_us = 0;
	int64_t		waits_since_us;

	line_append(&queues[0], longer);
	line_take(&queues[0]);
	line_append(&queues[1], small);
	for (int64_t end_us = time_us + 2000000; time_us < end_us;)
	{
		line_take(&queues[1]);
		time_us += 1000;
		line_end_turn(small, true);
	}
	line_end_turn(longer, true);
	waits_since_us = time_us;
	for (int turn = 0; turn < 500; turn++)
	{
		struct search *taken = line_take(line_first());

		if (taken == small && time_us - waits_since_us > worst_us)
			worst_us = time_us - waits_since_us;
		time_us += taken == small ? 1000 : 50000;
		line_end_turn(taken, true);
		if (taken == small)
			waits_since_us = time_us;
	}
	line_drop(&queues[0]);
	line_drop(&queues[1]);
	return time_us - waits_since_us > worst_us ? time_us - waits_since_us : worst_us;
}

int
main(void)
{
	static const int others[] = {1, 3, 8, 17, 33, SESSIONS_MAX};
	bool		late[3] = {true, true, true};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
	{
		late[0] = waits_for_its_turn(others[i], 1, 1) && late[0];
		for (int count = 2; count <= THREADS_MAX; count *= 2)
		{
			late[1] = waits_for_its_turn(others[i], 1, count) && late[1];
			late[2] = waits_for_its_turn(others[i], 3, count) && late[2];
		}
	}
	report("a session that joins late waits for two turns of each other at most, with one thread", late[0]);
	report("and with many threads, that have a search of each session under way", late[1]);
	report("and with several searches of one session under way at a time", late[2]);
	report_measure("a long turn saves no time up: a small search waits for one turn of that session at most",
				   waits_after_long_turn() <= 50000, "the longest wait", (double) waits_after_long_turn() / 1000, "ms");
	return summed_up();
}
