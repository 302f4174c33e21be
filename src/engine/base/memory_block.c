/*
 * memory_block.c
 *		Large blocks of the host's memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/base/memory_block.h"

#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "engine/base/host.h"

void *
memory_block_allocate(size_t bytes, struct failure *failure, const char *purpose,...)
{
	uint64_t	available = host_memory_free();
	void	   *memory = MAP_FAILED;
	char		what[160];
	va_list		arguments;

	if (bytes <= available)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
	{
		madvise(memory, bytes, MADV_HUGEPAGE);	/* a hint, so a failure does no harm */
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
memory_block_release(void *memory, size_t bytes)
{
	if (memory != NULL)
		munmap(memory, bytes);
}
