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
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"

#define GROUPS_ROOT "/sys/fs/cgroup"
#define LOOK_MS 10000

/*
 * Open a file of a group: root, path and name together.
 */
static FILE *
open_file(const char *root, const char *path, const char *name)
{
	char		file[PATH_MAX];
	int			length = snprintf(file, sizeof(file), "%s%s/%s", root, path, name);

	return length > 0 && (size_t) length < sizeof(file) ? fopen(file, "r") : NULL;
}

/* read one number; false if the file has none, as in "max" */
static bool
read_number(const char *root, const char *path, const char *name, uint64_t *number)
{
	FILE	   *file = open_file(root, path, name);
	unsigned long long value;
	bool		is_number;

	if (file == NULL)
		return false;
	is_number = fscanf(file, "%llu", &value) == 1;
	fclose(file);
	*number = is_number ? value : 0;
	return is_number;
}

/* bytes of a group's inactive file pages, which the kernel drops first */
static uint64_t
read_inactive(const char *root, const char *path)
{
	FILE	   *file = open_file(root, path, "memory.stat");
	char		line[128];
	unsigned long long bytes = 0;

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "inactive_file %llu", &bytes) == 1)
			break;
	fclose(file);
	return bytes;
}

/*
 * Shorten a group's path to that of its parent.  False at the top.
 */
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

/* how many cores' time one group may use, rounded up; UINT64_MAX: no limit */
static uint64_t
cores_of(const char *root, const char *group)
{
	FILE	   *file = open_file(root, group, "cpu.max");
	unsigned long long quota;
	unsigned long long period;
	bool		is_limited;

	if (file == NULL)
		return UINT64_MAX;
	is_limited = fscanf(file, "%llu %llu", &quota, &period) == 2 && quota > 0 && period > 0;
	fclose(file);
	return is_limited ? (quota - 1) / period + 1 : UINT64_MAX;
}

/* how many bytes one group may still take; UINT64_MAX: no limit */
static uint64_t
memory_free_of(const char *root, const char *group)
{
	uint64_t	limit;
	uint64_t	current;
	uint64_t	inactive;

	if (!read_number(root, group, "memory.max", &limit) ||
		!read_number(root, group, "memory.current", &current))
		return UINT64_MAX;
	inactive = read_inactive(root, group);
	current = current > inactive ? current - inactive : 0;
	return limit > current ? limit - current : 0;
}

/*
 * The smallest amount of a group and all groups above it.
 */
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

/*
 * Find the path of this process's group of version 2; "" if it has none.
 */
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
	atomic_store(&looked_ms, now);
	atomic_store(&known, cores);
	return cores;
}

uint64_t
host_memory_free(void)
{
	FILE	   *file = fopen("/proc/meminfo", "r");
	char		line[256];
	char		group[PATH_MAX];
	unsigned long long kilobytes;
	uint64_t	free_bytes;

	find_group(group);
	free_bytes = host_group_memory_free(GROUPS_ROOT, group);
	if (file == NULL)
		return free_bytes;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
		{
			uint64_t	bytes = (uint64_t) kilobytes * 1024;

			free_bytes = bytes < free_bytes ? bytes : free_bytes;
			break;
		}
	fclose(file);
	return free_bytes;
}

uint64_t
host_memory_resident(void)
{
	FILE	   *file = fopen("/proc/self/statm", "r");
	unsigned long long size;
	unsigned long long resident;
	bool		is_known;

	if (file == NULL)
		return 0;
	is_known = fscanf(file, "%llu %llu", &size, &resident) == 2;
	fclose(file);
	return is_known ? (uint64_t) resident * (uint64_t) sysconf(_SC_PAGESIZE) : 0;
}
