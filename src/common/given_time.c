/*
 * given_time.c
 *		How much time a process was given to work, which tells whether it hangs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "common/given_time.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define LOOK_LEAST_MS 100

static int64_t
milliseconds_of(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return 0;
	return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Return the CPU time of a process's threads, in milliseconds; 0 if it is not known. */
static int64_t
cpu_milliseconds(pid_t process)
{
	clockid_t	clock;

	return clock_getcpuclockid(process, &clock) == 0 ? milliseconds_of(clock) : 0;
}

/*
 * Return whether a thread runs or waits for a CPU: its file stat then has the state R.  The state
 * follows the thread's name, which is in parentheses and may contain parentheses itself.
 */
static bool
is_ready(int folder, const char *thread)
{
	char		path[32];
	char		text[128];
	const char *end;
	ssize_t		length;
	int			file;

	if (snprintf(path, sizeof(path), "%s/stat", thread) >= (int) sizeof(path))
		return false;
	file = openat(folder, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return false;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length <= 0)
		return false;
	text[length] = '\0';
	end = strrchr(text, ')');
	return end != NULL && strncmp(end, ") R", 3) == 0;
}

/* Return whether a thread of the process, other than the calling one, runs or waits for a CPU. */
static bool
has_ready_thread(pid_t process)
{
	char		path[40];
	DIR		   *folder;
	bool		ready = false;

	snprintf(path, sizeof(path), "/proc/%ld/task", (long) process);
	folder = opendir(path);
	if (folder == NULL)
		return false;
	for (const struct dirent *entry; !ready && (entry = readdir(folder)) != NULL;)
		ready = entry->d_name[0] != '.' && atol(entry->d_name) != syscall(SYS_gettid) &&
			is_ready(dirfd(folder), entry->d_name);
	closedir(folder);
	return ready;
}

void
geonn_given_time_begin(struct geonn_given_time *given, pid_t process)
{
	given->ms = 0;
	given->looked_ms = milliseconds_of(CLOCK_MONOTONIC);
	given->cpu_ms = cpu_milliseconds(process);
}

void
geonn_given_time_look(struct geonn_given_time *given, pid_t process, int64_t most)
{
	int64_t		now = milliseconds_of(CLOCK_MONOTONIC);
	int64_t		passed = now - given->looked_ms;
	int64_t		cpu_now;

	if (passed < LOOK_LEAST_MS)
		return;
	cpu_now = cpu_milliseconds(process);
	if (passed > most)
		passed = most;
	if (cpu_now - given->cpu_ms < passed && has_ready_thread(process))
		passed = cpu_now - given->cpu_ms;
	given->ms += passed;
	given->looked_ms = now;
	given->cpu_ms = cpu_now;
}
