/*
 * cpu_memory.c
 *		Large blocks of the host's memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "cpu_memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

uint64_t
cpu_memory_free(void)
{
	FILE	   *file = fopen("/proc/meminfo", "r");
	char		line[256];
	unsigned long long kilobytes = 0;

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if (sscanf(line, "MemAvailable: %llu kB", &kilobytes) == 1)
			break;
	fclose(file);
	return (uint64_t) kilobytes * 1024;
}

void *
cpu_allocate(size_t bytes, struct failure *failure, const char *purpose,...)
{
	uint64_t	available = cpu_memory_free();
	void	   *memory = MAP_FAILED;
	char		what[160];
	va_list		arguments;

	if (available == 0 || bytes <= available)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
	{
		madvise(memory, bytes, MADV_HUGEPAGE);	/* where the kernel likes to */
		return memory;
	}

	va_start(arguments, purpose);
	vsnprintf(what, sizeof(what), purpose, arguments);
	va_end(arguments);
	fail(failure, GEONN_ERROR_MEMORY,
		 "not enough memory on the host for %s: %zu bytes needed, %llu bytes free", what,
		 bytes, (unsigned long long) available);
	return NULL;
}

void
cpu_release(void *memory, size_t bytes)
{
	if (memory != NULL)
		munmap(memory, bytes);
}
