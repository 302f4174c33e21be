/*
 * given_time_test.c
 *		How much time a process was given: by the clock where it waits or is
 *		stopped, by its CPU time where it has no CPU, and no more than its observer
 *		could see.
 *
 * rooms: common
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/given_time.h"
#include "../lib/verdict.h"

#define NAP_US 300000
#define ANY_TIME INT64_MAX
#define SPINNERS 3

static int64_t
clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/*
 * Start a process that waits for a signal, or one that spins.
 */
static pid_t
start(bool spins)
{
	pid_t		child = fork();

	if (child < 0)
		exit(EXIT_FAILURE);
	if (child > 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		if (!spins)
			pause();
}

static void
end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/*
 * What a process is given in a nap, and how long that nap was at least.
 */
static int64_t
given_in_nap(pid_t process, int64_t most, int64_t *passed)
{
	struct geonn_given_time given;
	int64_t		began;

	geonn_given_time_begin(&given, process);
	began = clock_ms();
	usleep(NAP_US);
	*passed = clock_ms() - began;
	geonn_given_time_look(&given, process, most);
	return given.ms;
}

static void
test_clock(void)
{
	pid_t		child = start(false);
	int64_t		passed;
	int64_t		given;

	usleep(NAP_US);
	given = given_in_nap(child, ANY_TIME, &passed);
	report("a process that waits is given what the clock says", given >= passed);
	kill(child, SIGSTOP);
	usleep(NAP_US);
	given = given_in_nap(child, ANY_TIME, &passed);
	report("and so is one that is stopped", given >= passed);
	given = given_in_nap(child, 120, &passed);
	report("but no more than its observer could see", given == 120);
	end(child);

	given = given_in_nap(getpid(), ANY_TIME, &passed);
	report("a process that observes itself has no other thread that is ready to run", given >= passed);
}

/*
 * Several processes on one CPU, of which the observed one runs when no other wants to.
 */
static void
test_no_cpu(void)
{
	struct sched_param lowest = {0};
	pid_t		spinners[SPINNERS];
	cpu_set_t	cpus;
	pid_t		child;
	int64_t		passed;
	int64_t		given;
	int			cpu = 0;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0)
		exit(EXIT_FAILURE);
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	child = start(true);
	sched_setaffinity(child, sizeof(cpus), &cpus);
	sched_setscheduler(child, SCHED_IDLE, &lowest);
	for (int i = 0; i < SPINNERS; i++)
	{
		spinners[i] = start(true);
		sched_setaffinity(spinners[i], sizeof(cpus), &cpus);
	}
	usleep(NAP_US);
	given = given_in_nap(child, ANY_TIME, &passed);
	if (given > passed / 2)
		printf("# given %lld of %lld ms\n", (long long) given, (long long) passed);
	report("a process that is ready to run and has no CPU is given next to nothing", given <= passed / 2);
	for (int i = 0; i < SPINNERS; i++)
		end(spinners[i]);
	end(child);
}

int
main(void)
{
	test_clock();
	test_no_cpu();
	return summed_up();
}
