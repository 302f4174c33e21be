/*
 * columns.cuh
 *		Lays out columns in one block of a GPU's memory.
 */
#ifndef GEONN_CUDA_COLUMNS_CUH
#define GEONN_CUDA_COLUMNS_CUH

#include <stddef.h>
#include <stdint.h>

/* every column begins at a multiple of so many bytes */
#define COLUMN_ALIGNMENT 256

/* bytes that a column of so many bytes takes */
static inline size_t
column_room(size_t bytes)
{
	return (bytes + COLUMN_ALIGNMENT - 1) / COLUMN_ALIGNMENT * COLUMN_ALIGNMENT;
}

/*
 * The address of the next column of so many bytes, in a block that begins at
 * `memory` (NULL to learn only its size, which the offset tells afterwards).
 */
static inline void *
next_column(void *memory, size_t *offset, size_t bytes)
{
	void	   *column = (void *) ((uintptr_t) memory + *offset);

	*offset += column_room(bytes);
	return column;
}

/*
 * The same for columns that follow each other, of so many rows each: each pointer
 * becomes the address of its column.
 */
template <typename... Types>
static inline void
place_columns(void *memory, size_t *offset, size_t rows, Types **... columns)
{
	((*columns = (Types *) next_column(memory, offset, rows * sizeof(Types))), ...);
}

#endif							/* GEONN_CUDA_COLUMNS_CUH */
