/*
 * block.h
 *		The pairs of an answer, as they lie in a batch, for a caller that takes one after the other.
 *
 * The pairs of an observation follow each other, by rank; observations come in no particular order.  A block has a present
 * pair.  geonn_block_next goes on to the next one, and geonn_client_next_pair from the last one of a block to the first
 * one of the next.  Callers read what they need of the present pair from the arrays, by its index and its observation's.
 */
#ifndef GEONN_BLOCK_H
#define GEONN_BLOCK_H

#include "client/question.h"

typedef struct GeonnBlock
{
	/* the present pair */
	uint32		observation;	/* the index of its observation in the arrays of observations */
	uint32		pair;			/* its own in the arrays of pairs */
	bool		matched;		/* false: the observation has no neighbour, and no pair */
	uint64		rank;			/* among the observation's pairs, or the number of the radius, from 1 on;
								 * 1 without a pair */

	/* those that follow */
	bool		one_each;		/* every observation has one pair */
	uint32		step;			/* from one pair to the next: pairs of a batch that a radius of a count has, or 1 */
	uint32		left;			/* how many pairs of the batch the observation has after the present one */
	uint32		end;			/* the index after the last observation */
	uint32		pairs;			/* the index after the last pair */
	bool		(*next_observation) (GeonnClient *client);	/* go on to the next one with a pair, as geonn_block_next does */
	GeonnClient *client;		/* whose answer it is; NULL: the present pair is the only one */

	/* of observations */
	uint64		number;			/* of the one with index 0 among those that were added, from 0 on */
	const Datum *observation_id;	/* NULL, as the next two: the observation lacks it, and has no pair */
	const double *observation_latitude;
	const double *observation_longitude;

	/* of pairs */
	const int64 *tag;			/* the reference's tag; or how many references are within the radius */

	/* metres; or the sums of a count's weights, [weights]; with extremes, then the least ones, Infinity where none is there,
	 * and the greatest ones, -Infinity likewise */
	const double *distance;

	/* where the question has places, else NULL: the shape's nearest place and its fraction (protocol_search.h); of pairs that
	 * this process found alone: the reference's point, and NaN */
	const double *place_latitude;
	const double *place_longitude;
	const double *place_fraction;
} GeonnBlock;

/* Go on to the next pair of the block; false: it has no more. */
static inline bool
geonn_block_next(GeonnBlock *block)
{
	if (block->left > 0)
	{
		block->left -= block->step;
		block->pair += block->step;
		block->rank++;
		return true;
	}
	if (!block->one_each)
		return block->next_observation(block->client);
	if (block->observation + 1 == block->end)
		return false;
	block->observation++;
	block->pair++;
	return true;
}

/* one of these arrays, whose elements have the size of a Datum, and the index of the present element, by their offsets */
typedef struct BlockColumn
{
	size_t		values;			/* 0: none of them */
	size_t		index;
} BlockColumn;

#define BLOCK_OF_OBSERVATION(array) {offsetof(GeonnBlock, array), offsetof(GeonnBlock, observation)}
#define BLOCK_OF_PAIR(array) {offsetof(GeonnBlock, array), offsetof(GeonnBlock, pair)}

static inline Datum
geonn_block_value(const GeonnBlock *block, BlockColumn column)
{
	const Datum *values = *(const Datum *const *) ((const char *) block + column.values);
	Datum		value;

	memcpy(&value, values + *(const uint32 *) ((const char *) block + column.index), sizeof(Datum));
	return value;
}

#endif							/* GEONN_BLOCK_H */
