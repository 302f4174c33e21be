/*
 * memory_columns.h
 *		Columns that lie in one block of memory, and are filled piece by piece.
 *
 * A function places all columns of a block.  It is called twice: without memory it
 * tells how many bytes the block has, and with memory it sets the columns.
 */
#ifndef GEONN_MEMORY_COLUMNS_H
#define GEONN_MEMORY_COLUMNS_H

#include <stddef.h>
#include <stdint.h>

#include "common/batch_layout.h"

struct column_block
{
	void	   *memory;			/* the block; NULL: the columns are only measured */
	size_t		bytes;			/* how many bytes all columns so far take */
};

static inline void *
column_block_next(struct column_block *block, size_t bytes)
{
	uintptr_t	column = (uintptr_t) block->memory + block->bytes;

	block->bytes += geonn_align(bytes, 64);
	return (void *) column;
}

/* Set a pointer to the block's next column, which has `count` values of the pointer's type. */
#define COLUMN_PLACE(block, pointer, count) \
	((pointer) = column_block_next((block), (size_t) (count) * sizeof(*(pointer))))

/* a piece of the work that fills columns has this many rows */
#define PIECE_ROWS ((size_t) 1 << 14)

static inline size_t
pieces_of(size_t rows)
{
	return (rows + PIECE_ROWS - 1) / PIECE_ROWS;
}

static inline size_t
piece_end(size_t number, size_t rows)
{
	size_t		end = (number + 1) * PIECE_ROWS;

	return end < rows ? end : rows;
}

/* Return the index of the last of `count` rising numbers that is at most `number`; 0 if all are greater. */
static inline uint32_t
last_up_to(const uint32_t *numbers, uint32_t count, size_t number)
{
	uint32_t	first = 0;

	while (count - first > 1)
	{
		uint32_t	middle = first + (count - first) / 2;

		if (numbers[middle] <= number)
			first = middle;
		else
			count = middle;
	}
	return first;
}

#endif							/* GEONN_MEMORY_COLUMNS_H */
