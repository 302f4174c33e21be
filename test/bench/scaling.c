/*
 * scaling.c
 *		How many times as much several threads of this machine compute as one
 *		does, whatever program they run.
 *
 * Each thread runs the same loop of multiplications and additions, on vectors
 * as wide as the processor has, in registers: no memory, no branch that could
 * be guessed wrong, and enough independent chains to keep the units busy.
 */
#include "scaling.h"

#include <pthread.h>
#include <stdlib.h>

#include "../lib/engine_process.h"
#include "bench.h"

#define REPETITIONS 9
#define ROUNDS (1 << 22)
#define CHAINS 16				/* compute unrolls a loop of them */

typedef double vector __attribute__((vector_size(64)));

static inline __attribute__((always_inline)) double
compute(double start)
{
	vector		chain[CHAINS];
	vector		factor = {start, start, start, start, start, start, start, start};
	double		sum = 0;

	for (int i = 0; i < CHAINS; i++)
		chain[i] = factor * i;
	for (int round = 0; round < ROUNDS; round++)
#pragma GCC unroll 16
		for (int i = 0; i < CHAINS; i++)
			chain[i] = chain[i] * factor + factor;
	for (int i = 0; i < CHAINS; i++)
		for (int lane = 0; lane < 8; lane++)
			sum += chain[i][lane];
	return sum;
}

#ifdef __x86_64__
__attribute__((target("avx512f,fma")))
static double
compute_wide(double start)
{
	return compute(start);
}

__attribute__((target("avx2,fma")))
static double
compute_half(double start)
{
	return compute(start);
}
#endif

static void *
compute_alone(void *sum)
{
	/* below 1, so that the chains stay finite; read anew, so that the compiler does not compute them */
	volatile double start = 0.999;

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f"))
	{
		*(double *) sum = compute_wide(start);
		return NULL;
	}
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
	{
		*(double *) sum = compute_half(start);
		return NULL;
	}
#endif
	*(double *) sum = compute(start);
	return NULL;
}

/*
 * The milliseconds that so many threads take, each for the whole loop; 0: they cannot be created.
 */
static double
time_threads(int threads)
{
	pthread_t  *thread = bench_allocate((size_t) threads, sizeof(*thread));
	double	   *sum = bench_allocate((size_t) threads, sizeof(*sum));
	double		begun = now_ms();
	double		taken;
	int			created = 0;

	while (created < threads && pthread_create(&thread[created], NULL, compute_alone, &sum[created]) == 0)
		created++;
	for (int i = 0; i < created; i++)
		pthread_join(thread[i], NULL);
	taken = created == threads ? now_ms() - begun : 0;
	free(thread);
	free(sum);
	return taken;
}

bool
measure_scaling(int threads, struct scaling *scaling)
{
	double		ratio[REPETITIONS];

	for (int i = 0; i < REPETITIONS; i++)
	{
		double		one = time_threads(1);
		double		many = time_threads(threads);

		if (one == 0 || many == 0)
			return false;
		ratio[i] = threads * one / many;
	}
	bench_summarize(ratio, REPETITIONS, &scaling->least, &scaling->median, &scaling->greatest);
	return true;
}
