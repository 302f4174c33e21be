/*
 * plan.c
 *		Faults to order: what is to fail, and when.
 *
 * Nothing here calls what it makes fail: no memory is allocated, no stream
 * opened.  A plan is read by the server's thread, before its other threads exist
 * or while none of them works for the test; they see it piece by piece.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "plan.h"

#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fcntl.h>

#define NAP_MICROSECONDS 2000

enum action
{
	ACTION_NONE,
	ACTION_WAIT,
	ACTION_HANG,
	ACTION_KILL,
	ACTION_EXHAUST,
	ACTION_FAIL,
	ACTION_LOSE,
	ACTION_CROWD
};

static const char *const action_names[] = {"none", "wait", "hang", "kill", "exhaust", "fail", "lose", "crowd"};
static const char *const place_names[] = {"start", "references", "sort", "build", "search", "drain"};
static const char *const family_names[] = {"call", "cuda"};

#define COUNT_OF(names) ((int) (sizeof(names) / sizeof((names)[0])))

static struct
{
	atomic_int	action;
	atomic_int	target;			/* enum fault_place or fault_family */
	atomic_long left;			/* times until it happens */
	atomic_bool exhausted;
	atomic_bool hangs;
	atomic_int	place;			/* the last one that a thread got to */
}			plan;

static bool
path_of(char *path, const char *name)
{
	const char *folder = getenv("GEONN_FAULTS");

	return folder != NULL && snprintf(path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

static int
find_name(const char *const *names, int count, const char *name)
{
	for (int i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -1;
}

/*
 * Tell the test what happened.
 */
static void
report(const char *what)
{
	char		path[PATH_MAX];
	char		line[128];
	int			length = snprintf(line, sizeof(line), "%s %s\n",
								  place_names[atomic_load(&plan.place)], what);
	int			file;

	if (!path_of(path, "fired") ||
		(file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0)
		return;
	if (write(file, line, (size_t) length) != length)
		abort();
	close(file);
}

static void
wait_for_test(void)
{
	char		path[PATH_MAX];
	struct stat status;

	if (!path_of(path, "fired"))
		return;
	while (stat(path, &status) == 0)
		usleep(NAP_MICROSECONDS);
}

static void
follow(const char *action_name, const char *target_name, long number)
{
	int			action = find_name(action_names, COUNT_OF(action_names), action_name);
	bool		counts_calls = action == ACTION_FAIL || action == ACTION_LOSE || action == ACTION_CROWD;
	int			target = counts_calls ?
		find_name(family_names, COUNT_OF(family_names), target_name) :
		find_name(place_names, COUNT_OF(place_names), target_name);

	if (action < 0 || (target < 0 && action != ACTION_NONE))
		abort();				/* the test is wrong */
	atomic_store(&plan.action, ACTION_NONE);
	atomic_store(&plan.exhausted, false);
	atomic_store(&plan.target, target);
	atomic_store(&plan.left, number);
	atomic_store(&plan.action, action);
}

void
fault_read_plan(const char *name)
{
	char		path[PATH_MAX];
	char		text[64] = "";
	char		action[16];
	char		target[16];
	long		number;
	int			file;
	ssize_t		length;

	if (!path_of(path, name) || (file = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		return;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length <= 0 || sscanf(text, "%15s %15s %ld", action, target, &number) != 3)
		abort();
	follow(action, target, number);
	unlink(path);
}

void
fault_reach(enum fault_place place)
{
	int			action = atomic_load(&plan.action);

	atomic_store(&plan.place, (int) place);
	if ((action != ACTION_WAIT && action != ACTION_HANG && action != ACTION_KILL &&
		 action != ACTION_EXHAUST) ||
		atomic_load(&plan.target) != (int) place || atomic_fetch_sub(&plan.left, 1) != 1)
		return;
	if (action == ACTION_EXHAUST)
		atomic_store(&plan.exhausted, true);
	atomic_store(&plan.hangs, action == ACTION_HANG);
	report(action_names[action]);
	if (action == ACTION_KILL)
		kill(getpid(), SIGKILL);
	if (action == ACTION_WAIT || action == ACTION_HANG)
		wait_for_test();
	atomic_store(&plan.hangs, false);
}

bool
fault_crowds(void)
{
	return atomic_load(&plan.action) == ACTION_CROWD && atomic_fetch_sub(&plan.left, 1) > 0;
}

bool
fault_hangs(void)
{
	return atomic_load(&plan.hangs);
}

bool
fault_fails(enum fault_family family, const char *call, bool takes_memory)
{
	int			action = atomic_load(&plan.action);
	long		left;

	if (takes_memory && atomic_load(&plan.exhausted))
		return true;
	if ((action != ACTION_FAIL && action != ACTION_LOSE) || atomic_load(&plan.target) != (int) family)
		return false;
	left = atomic_fetch_sub(&plan.left, 1);
	if (left == 1)
		report(call);
	return left == 1 || (left < 1 && action == ACTION_LOSE);
}
