/*
 * memory_block.h
 *		Large blocks of the host's memory.
 */
#ifndef GEONN_MEMORY_BLOCK_H
#define GEONN_MEMORY_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/atomics.h"
#include "engine/base/failure.h"

/*
 * Allocate a zeroed block, aligned to a page, for `purpose` ("the index of 65536 references").  If
 * the host has less memory free, return NULL with a failure that gives both numbers: if the engine
 * took the memory all the same, the kernel would kill it.
 */
extern void *memory_block_allocate(size_t bytes, struct failure *failure, const char *purpose,...)
			__attribute__((format(printf, 3, 4)));

/*
 * Allocate a block as memory_block_allocate() does, and write to each of its pages before another caller of this function
 * looks for free memory, so that two callers do not both count on the same free memory.  Once *cancelled is set, some
 * pages may not be written to.  The thread pool writes: the caller must have no seat (thread_pool.h), and be no piece.
 */
extern void *memory_block_take(size_t bytes, const atomic_bool *cancelled, struct failure *failure, const char *purpose,...)
			__attribute__((format(printf, 4, 5)));

/* Free a block of memory_block_allocate() or memory_block_take(); NULL is allowed. */
extern void memory_block_release(void *memory, size_t bytes);

#endif							/* GEONN_MEMORY_BLOCK_H */
