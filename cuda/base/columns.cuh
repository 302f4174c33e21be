/*
 * columns.cuh
 *		Lays out columns in one block of a GPU's memory.
 */
#ifndef GEONN_CUDA_COLUMNS_CUH
#define GEONN_CUDA_COLUMNS_CUH

#include <stddef.h>
#include <stdint.h>

/* every column begins at a multiple of this number of bytes */
#define COLUMN_ALIGNMENT 256

/* Return the bytes that a column takes, rounded up so that the next column is aligned. */
static inline size_t
column_room(size_t bytes)
{
	return (bytes + COLUMN_ALIGNMENT - 1) / COLUMN_ALIGNMENT * COLUMN_ALIGNMENT;
}

/*
 * Return the address of the next column, which takes `bytes`, in a block that
 * begins at `memory`, and move *offset behind the column.  With NULL as memory,
 * only the offset counts: at the end it is the size of the block.
 */
static inline void *
next_column(void *memory, size_t *offset, size_t bytes)
{
	void	   *column = (void *) ((uintptr_t) memory + *offset);

	*offset += column_room(bytes);
	return column;
}

/*
 * Lay out several columns, one after the other, with `rows` rows each, and set
 * each pointer to its column's address.
 */
template <typename... Types>
static inline void
place_columns(void *memory, size_t *offset, size_t rows, Types **... columns)
{
	((*columns = (Types *) next_column(memory, offset, rows * sizeof(Types))), ...);
}

#endif							/* GEONN_CUDA_COLUMNS_CUH */
