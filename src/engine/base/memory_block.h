/*
 * memory_block.h
 *		Large blocks of the host's memory.
 */
#ifndef GEONN_MEMORY_BLOCK_H
#define GEONN_MEMORY_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/failure.h"

/*
 * A zeroed block, aligned to a page, for `purpose` ("the index of 65536
 * references").  NULL where the host has less than that, with the failure that
 * gives both numbers: to go on regardless would bring the kernel to kill us.
 */
extern void *memory_block_allocate(size_t bytes, struct failure *failure, const char *purpose,...)
			__attribute__((format(printf, 3, 4)));

/* Free what memory_block_allocate gave; NULL is allowed. */
extern void memory_block_release(void *memory, size_t bytes);

#endif							/* GEONN_MEMORY_BLOCK_H */
