/*
 * columns.cuh
 *		Laying out columns in one block of a GPU's memory.
 */
#ifndef GEONN_CUDA_COLUMNS_CUH
#define GEONN_CUDA_COLUMNS_CUH

#include <stddef.h>
#include <stdint.h>

/*
 * The address of the next column of so many bytes, in a block that begins at
 * `memory` (NULL to learn only its size, which the offset tells afterwards).
 * Every column begins at a multiple of 256 bytes.
 */
static inline void *
next_column(void *memory, size_t *offset, size_t bytes)
{
	void	   *column = (void *) ((uintptr_t) memory + *offset);

	*offset += (bytes + 255) / 256 * 256;
	return column;
}

#endif							/* GEONN_CUDA_COLUMNS_CUH */
