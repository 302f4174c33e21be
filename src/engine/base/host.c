/*
 * host.c
 *		The cores and the memory of the host that this process may use.
 *
 * A container sees all cores and all memory of its host, but its control group
 * may limit it to the time of two cores, and have it killed beyond some
 * gigabytes.  With more threads than cores that it may use, the kernel would
 * stop the process for most of each period, in the middle of a piece that the
 * other threads wait for.  So the engine takes the limits of the control
 * groups for the host's own.  It reads them from version 2 of control groups,
 * at each level up to the mounted one.  It ignores version 1, which no current
 * distribution starts with.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/base/host.h"

#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/assertion.h"
#include "engine/base/clock.h"

#define GROUPS_ROOT "/sys/fs/cgroup"
#define LOOK_MS 10000

/*
 * Read numbers from the file root/path/name, by a format of scanf, from the first line that the
 * format fits.  Returns how many numbers were read.
 */
static int
__attribute__((format(scanf, 4, 5)))
read_numbers(const char *root, const char *path, const char *name, const char *format,...)
{
	char		line[PATH_MAX];
	int			length = snprintf(line, sizeof(line), "%s%s/%s", root, path, name);
	FILE	   *file = length > 0 && (size_t) length < sizeof(line) ? fopen(line, "r") : NULL;
	int			read = 0;

	if (file == NULL)
		return 0;
	while (read <= 0 && fgets(line, sizeof(line), file) != NULL)
	{
		va_list		numbers;

		va_start(numbers, format);
		read = vsscanf(line, format, numbers);
		va_end(numbers);
	}
	fclose(file);
	return read > 0 ? read : 0;
}

/* Shorten a group's path to the path of its parent.  Returns false at the top. */
static bool
go_up(char *path)
{
	char	   *slash = strrchr(path, '/');

	if (slash == NULL)
		return false;
	*slash = '\0';
	return true;
}

static bool
copy_path(char *copy, const char *path)
{
	size_t		length = strlen(path);

	if (length >= PATH_MAX)
		return false;
	memcpy(copy, path, length + 1);
	if (length > 0 && copy[length - 1] == '/')
		copy[length - 1] = '\0';
	return true;
}

/* Return the CPU time that one control group may use, in cores, rounded up; UINT64_MAX: no limit. */
static uint64_t
cores_of(const char *root, const char *group)
{
	unsigned long long quota;
	unsigned long long period;

	if (read_numbers(root, group, "cpu.max", "%llu %llu", &quota, &period) != 2 ||
		quota == 0 || period == 0)
		return UINT64_MAX;
	return (quota - 1) / period + 1;
}

/*
 * Return how many bytes one control group may still take; UINT64_MAX: no limit.  Inactive file pages
 * count as free, because the kernel drops them first.
 */
static uint64_t
memory_free_of(const char *root, const char *group)
{
	unsigned long long limit;
	unsigned long long current;
	unsigned long long inactive = 0;

	if (read_numbers(root, group, "memory.max", "%llu", &limit) != 1 ||
		read_numbers(root, group, "memory.current", "%llu", &current) != 1)
		return UINT64_MAX;
	(void) read_numbers(root, group, "memory.stat", "inactive_file %llu", &inactive);
	current = current > inactive ? current - inactive : 0;
	return limit > current ? limit - current : 0;
}

/* Call of_group() for a control group and all groups above it, and return the smallest amount. */
static uint64_t
least_of_groups(const char *root, const char *path,
				uint64_t (*of_group) (const char *root, const char *group))
{
	char		group[PATH_MAX];
	uint64_t	least = UINT64_MAX;

	if (!copy_path(group, path))
		return least;
	do
	{
		uint64_t	amount = of_group(root, group);

		least = amount < least ? amount : least;
	} while (go_up(group));
	return least;
}

unsigned
host_group_cores(const char *root, const char *path)
{
	uint64_t	cores = least_of_groups(root, path, cores_of);

	return cores < UINT_MAX ? (unsigned) cores : UINT_MAX;
}

uint64_t
host_group_memory_free(const char *root, const char *path)
{
	return least_of_groups(root, path, memory_free_of);
}

/* Find the path of this process's control group of version 2; "" if the process has none. */
static void
find_group(char *path)
{
	FILE	   *file = fopen("/proc/self/cgroup", "r");
	char		line[PATH_MAX + 8];

	path[0] = '\0';
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "0::/", 4) == 0)
		{
			line[strcspn(line, "\n")] = '\0';
			copy_path(path, line + 3);
		}
	fclose(file);
}

unsigned
host_cores(void)
{
	static atomic_llong looked_ms;
	static atomic_uint known;
	long long	now = now_ms();
	unsigned	cores = atomic_load(&known);
	char		group[PATH_MAX];
	cpu_set_t	allowed;

	if (cores > 0 && now - atomic_load(&looked_ms) < LOOK_MS)
		return cores;
	find_group(group);
	cores = host_group_cores(GROUPS_ROOT, group);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
		(unsigned) CPU_COUNT(&allowed) < cores)
		cores = (unsigned) CPU_COUNT(&allowed);
	if (cores == UINT_MAX)
		cores = 1;
	geonn_assert(cores >= 1);
	atomic_store(&looked_ms, now);
	atomic_store(&known, cores);
	return cores;
}

uint64_t
host_memory_free(void)
{
	char		group[PATH_MAX];
	unsigned long long kilobytes;
	uint64_t	free_bytes;

	find_group(group);
	free_bytes = host_group_memory_free(GROUPS_ROOT, group);
	if (read_numbers("/proc", "", "meminfo", "MemAvailable: %llu kB", &kilobytes) == 1 &&
		kilobytes * 1024 < free_bytes)
		free_bytes = kilobytes * 1024;
	return free_bytes;
}

uint64_t
host_memory_resident(void)
{
	unsigned long long resident;

	if (read_numbers("/proc/self", "", "statm", "%*u %llu", &resident) != 1)
		return 0;
	return resident * (uint64_t) sysconf(_SC_PAGESIZE);
}
