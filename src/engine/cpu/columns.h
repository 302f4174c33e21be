/*
 * columns.h
 *		Columns that lie in one block of memory.
 *
 * A function places all columns of a block.  It is called twice: without memory it
 * tells how many bytes the block has, and with memory it sets the columns.
 */
#ifndef GEONN_CPU_COLUMNS_H
#define GEONN_CPU_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "common/batch_layout.h"

struct column_block
{
	void	   *memory;			/* or NULL: the columns are measured */
	size_t		bytes;			/* of all columns so far */
};

static inline void *
column_block_next(struct column_block *block, size_t bytes)
{
	uintptr_t	column = (uintptr_t) block->memory + block->bytes;

	block->bytes += geonn_align(bytes, 64);
	return (void *) column;
}

/* Set a pointer to the block's next column, of so many values of its type. */
#define COLUMN_PLACE(block, pointer, count) \
	((pointer) = column_block_next((block), (size_t) (count) * sizeof(*(pointer))))

#endif							/* GEONN_CPU_COLUMNS_H */
