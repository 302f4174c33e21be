/*
 * memory_block.c
 *		Large blocks of the host's memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "engine/base/memory_block.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>

#include "common/assertion.h"
#include "engine/base/host.h"
#include "engine/base/thread_pool.h"

#define PAGE_BYTES 4096

/* A piece writes to this many bytes of a block; a job has this many pieces for each thread, and takes some 10 ms. */
#define PIECE_BYTES ((size_t) 1 << 18)
#define PIECES_PER_THREAD 64

struct block
{
	char	   *memory;
	size_t		bytes;
};

static void *
allocate(size_t bytes, struct failure *failure, const char *purpose, va_list arguments)
{
	uint64_t	available = host_memory_free();
	void	   *memory = MAP_FAILED;
	char		what[160];

	geonn_assert(bytes > 0);
	if (bytes <= available)
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
	{
		madvise(memory, bytes, MADV_HUGEPAGE);	/* a hint, so a failure does no harm */
		return memory;
	}

	vsnprintf(what, sizeof(what), purpose, arguments);
	fail(failure, GEONN_ERROR_MEMORY,
		 "not enough memory on the host for %s: %zu bytes needed, %llu bytes free", what,
		 bytes, (unsigned long long) available);
	return NULL;
}

void *
memory_block_allocate(size_t bytes, struct failure *failure, const char *purpose,...)
{
	va_list		arguments;
	void	   *memory;

	va_start(arguments, purpose);
	memory = allocate(bytes, failure, purpose, arguments);
	va_end(arguments);
	return memory;
}

static void
write_piece(void *context, size_t number)
{
	const struct block *block = context;
	size_t		end = (number + 1) * PIECE_BYTES;

	for (size_t i = number * PIECE_BYTES; i < end && i < block->bytes; i += PAGE_BYTES)
		block->memory[i] = 0;
}

void *
memory_block_take(size_t bytes, const atomic_bool *cancelled, struct failure *failure, const char *purpose,...)
{
	static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
	struct block block = {.bytes = bytes};
	va_list		arguments;

	pthread_mutex_lock(&turn);
	va_start(arguments, purpose);
	block.memory = allocate(bytes, failure, purpose, arguments);
	va_end(arguments);
	if (block.memory != NULL)
		thread_pool_run_turns(write_piece, &block, (bytes + PIECE_BYTES - 1) / PIECE_BYTES,
							  PIECES_PER_THREAD * thread_pool_threads(), cancelled);
	pthread_mutex_unlock(&turn);
	return block.memory;
}

void
memory_block_release(void *memory, size_t bytes)
{
	geonn_assert((uintptr_t) memory % PAGE_BYTES == 0);
	if (memory != NULL)
		munmap(memory, bytes);
}
