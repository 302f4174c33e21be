/*
 * host_test.c
 *		Limits of control groups, as folders that look like them have them.
 *
 * rooms: engine/base
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "engine/base/host.h"
#include "../lib/verdict.h"

static char root[] = "/tmp/geonn-host-test-XXXXXX";

static void
write_file(const char *path, const char *name, const char *text)
{
	char		file[PATH_MAX];
	FILE	   *stream;

	snprintf(file, sizeof(file), "%s%s", root, path);
	mkdir(file, 0700);
	snprintf(file, sizeof(file), "%s%s/%s", root, path, name);
	stream = fopen(file, "w");
	if (stream == NULL || fputs(text, stream) < 0 || fclose(stream) != 0)
	{
		perror(file);
		exit(EXIT_FAILURE);
	}
}

static bool
cores_are(const char *path, unsigned expected)
{
	unsigned	cores = host_group_cores(root, path);

	if (cores != expected)
		printf("# %s: %u cores, expected %u\n", path, cores, expected);
	return cores == expected;
}

static bool
memory_is(const char *path, uint64_t expected)
{
	uint64_t	bytes = host_group_memory_free(root, path);

	if (bytes != expected)
		printf("# %s: %" PRIu64 " bytes, expected %" PRIu64 "\n", path, bytes, expected);
	return bytes == expected;
}

int
main(void)
{
	char		command[sizeof(root) + 16];
	uint64_t	free_bytes = host_memory_free();

	if (mkdtemp(root) == NULL)
	{
		perror(root);
		return EXIT_FAILURE;
	}
	report("without groups the host has no limit",
		   cores_are("", UINT_MAX) && cores_are("/a/b", UINT_MAX) && memory_is("/a", UINT64_MAX));

	write_file("/a", "cpu.max", "max 100000\n");
	write_file("/a/b", "cpu.max", "250000 100000\n");
	write_file("/a/b/c", "cpu.max", "1 100000\n");
	report("parts of a core's time count as a core",
		   cores_are("/a", UINT_MAX) && cores_are("/a/b", 3) && cores_are("/a/b/c", 1));
	write_file("/a", "cpu.max", "200000 100000\n");
	report("a group has no more than those above it", cores_are("/a/b", 2) && cores_are("/a/b/", 2));

	write_file("/a", "memory.max", "max\n");
	write_file("/a", "memory.current", "700\n");
	write_file("/a/b", "memory.max", "1000\n");
	write_file("/a/b", "memory.current", "400\n");
	report("memory is what is left of the limit", memory_is("/a/b", 600) && memory_is("/a", UINT64_MAX));
	write_file("/a/b", "memory.stat", "anon 90\ninactive_file 300\nactive_file 10\n");
	report("and what files' pages take that can be dropped", memory_is("/a/b", 900));
	write_file("/a", "memory.max", "750\n");
	report("memory, too, is limited from above", memory_is("/a/b", 50));
	write_file("/a", "memory.current", "800\n");
	report("a group beyond its limit has none left", memory_is("/a/b", 0));

	report("this process has a core and some memory",
		   host_cores() >= 1 && free_bytes > 0 && free_bytes < UINT64_MAX);

	snprintf(command, sizeof(command), "rm -r %s", root);
	if (system(command) != 0)
		report("the folders are removed again", false);
	return summed_up();
}
