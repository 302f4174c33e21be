/*
 * scribble.c
 *		Shared memory that changes while the other side reads it.
 *
 * Half of what is written is any bits; the other half are numbers that could be there,
 * or are at an edge: coordinates and distances, and small counts.
 */
#include "scribble.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

/* words that are written before others may have the lock */
#define WORDS_AT_A_TIME 256

static struct
{
	pthread_mutex_t lock;
	pthread_cond_t begun;

	/* guarded by lock */
	volatile uint64_t *words;	/* NULL: none */
	size_t		count;
	uint64_t	state;			/* of the random numbers */
}			scribble = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.begun = PTHREAD_COND_INITIALIZER
};

double
scribble_number(uint64_t which)
{
	static const double numbers[] = {
		0.0, -0.0, 90.0, -90.0, 90.0000001, 180.0, -180.0, 360.0, 360.0000001, 1e-310, 1e308,
		20015115.0, 1.0, INFINITY, -INFINITY, NAN
	};

	return numbers[which % (sizeof(numbers) / sizeof(numbers[0]))];
}

static uint64_t
make_word(uint64_t random)
{
	uint64_t	word = random << 13 ^ random;
	double		number = scribble_number(random);

	switch (random >> 61)
	{
		case 0:
		case 1:
			memcpy(&word, &number, sizeof(word));
			return word;
		case 2:
		case 3:
			return (random & 3) << 32 | (random >> 2 & 3);
		default:
			return word;
	}
}

static void *
scribble_main(void *argument)
{
	(void) argument;
	pthread_mutex_lock(&scribble.lock);
	for (;;)
	{
		if (scribble.words == NULL)
			pthread_cond_wait(&scribble.begun, &scribble.lock);
		for (int i = 0; i < WORDS_AT_A_TIME && scribble.words != NULL; i++)
		{
			scribble.state = scribble.state * 6364136223846793005u + 1442695040888963407u;
			scribble.words[(scribble.state >> 24) % scribble.count] = make_word(scribble.state);
		}
		pthread_mutex_unlock(&scribble.lock);
		sched_yield();
		pthread_mutex_lock(&scribble.lock);
	}
	return NULL;
}

void
scribble_begin(void *start, size_t bytes, uint64_t seed)
{
	static pthread_t thread;

	if (thread == 0)
		pthread_create(&thread, NULL, scribble_main, NULL);
	pthread_mutex_lock(&scribble.lock);
	scribble.words = start;
	scribble.count = bytes / sizeof(uint64_t);
	scribble.state = seed;
	pthread_cond_signal(&scribble.begun);
	pthread_mutex_unlock(&scribble.lock);
}

void
scribble_stop(void)
{
	pthread_mutex_lock(&scribble.lock);
	scribble.words = NULL;
	pthread_mutex_unlock(&scribble.lock);
}
