/*
 * entries.cuh
 *		Sorts the pairs that a search on a GPU has found into the order of results.
 */
#ifndef GEONN_ENTRIES_CUH
#define GEONN_ENTRIES_CUH

#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

/* A pair, or what may become one. */
struct entry
{
	double		value;			/* the distance in metres */
	uint32_t	row;			/* the observation's row */
	uint32_t	place;			/* place of the reference in the dataset */
};

/* Pairs, and the memory for their sort.  Addresses are the GPU's. */
struct entries
{
	uint32_t	room;			/* how many there can be */
	struct entry *entry;		/* [room] */
	uint32_t   *reference;		/* [room] a number that goes with each entry */
	void	   *sort_room;
};

/* Lay out memory for so many entries, as place_columns() does. */
extern void entries_place(void *memory, size_t *offset, uint32_t room, struct entries *entries);

/*
 * Enqueue a sort of the first `count` entries, with their references, by (row, value, place).  All rows are below `rows`.
 * The sorted columns may lie elsewhere: entries->entry and entries->reference become their addresses.
 */
extern cudaError_t entries_sort(struct entries *entries, uint32_t count, uint32_t rows, cudaStream_t stream);

#endif							/* GEONN_ENTRIES_CUH */
