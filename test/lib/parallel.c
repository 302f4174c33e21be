/*
 * parallel.c
 *		A loop on all cores.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS_MAX 256

struct loop
{
	size_t		count;
	size_t		piece;
	void		(*work) (void *argument, size_t begin, size_t end);
	void	   *argument;
	atomic_size_t next;
};

int
parallel_cores(void)
{
	cpu_set_t	cores;

	if (sched_getaffinity(0, sizeof(cores), &cores) != 0)
		return 1;
	return CPU_COUNT(&cores);
}

static void *
take_pieces(void *argument)
{
	struct loop *loop = argument;

	for (;;)
	{
		size_t		begin = atomic_fetch_add(&loop->next, loop->piece);
		size_t		left;

		if (begin >= loop->count)
			return NULL;
		left = loop->count - begin;
		loop->work(loop->argument, begin, begin + (left < loop->piece ? left : loop->piece));
	}
}

void
parallel(size_t count, size_t piece, void (*work) (void *argument, size_t begin, size_t end),
		 void *argument)
{
	struct loop loop = {.count = count,.piece = piece,.work = work,.argument = argument};
	pthread_t	threads[THREADS_MAX];
	int			wanted = parallel_cores() - 1;
	int			started = 0;

	while (started < wanted && started < THREADS_MAX &&
		   pthread_create(&threads[started], NULL, take_pieces, &loop) == 0)
		started++;
	take_pieces(&loop);
	for (int i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
}
