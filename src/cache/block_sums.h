/*
 * block_sums.h
 *		Sums of the rows that a source has for each block of a baseline.
 */
#ifndef GEONN_CACHE_BLOCK_SUMS_H
#define GEONN_CACHE_BLOCK_SUMS_H

#include "postgres.h"

#include "utils/memutils.h"

#include "cache/baseline.h"

typedef struct BlockSum
{
	uint64		hash[2];
	uint64		rows;
} BlockSum;

/* Sums of no rows for all blocks, in the current memory context. */
static inline BlockSum *
geonn_block_sums_create(const GeonnBaseline *baseline)
{
	return MemoryContextAllocExtended(CurrentMemoryContext, baseline->count * sizeof(BlockSum),
									  MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
}

static inline void
geonn_block_sum_add(BlockSum *sum, const Fingerprint *fingerprint)
{
	sum->hash[0] += fingerprint->hash[0];
	sum->hash[1] += fingerprint->hash[1];
	sum->rows++;
}

/* Is the sum the one that the directory has for this block? */
static inline bool
geonn_block_sum_is(const BlockSum *sum, const BaselineBlock *block)
{
	return sum->rows == block->rows && sum->hash[0] == block->hash[0] &&
		sum->hash[1] == block->hash[1];
}

#endif							/* GEONN_CACHE_BLOCK_SUMS_H */
