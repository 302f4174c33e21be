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
	uint32		observation;	/* the index of the pair's observation in the arrays of observations */
	uint32		pair;			/* the index of the pair in the arrays of pairs */
	bool		matched;		/* false: the observation has no neighbour, and no pair is present */
	uint64		rank;			/* the pair's rank among the observation's pairs, or the number of the radius, from 1
								 * on; 1 if no pair is present */

	/* the pairs that follow */
	bool		one_each;		/* every observation has one pair */
	uint32		step;			/* from one present pair to the next: how many pairs a radius of a count has in the
								 * batch; otherwise 1 */
	uint32		left;			/* how many pairs of the observation follow the present one in the batch */
	uint32		end;			/* the index after the last observation */
	uint32		pairs;			/* the index after the last pair */
	bool		(*next_observation) (GeonnClient *client);	/* go on to the next observation with a pair, or return false;
															 * geonn_block_next calls it */
	GeonnClient *client;		/* the client whose answer this is; NULL: the present pair is the only one */

	/* of observations */
	uint64		number;			/* number of the observation with index 0 among all that the client added, from 0 on */
	const Datum *observation_id;	/* NULL, as the next two may be: the observation has no such value, and no pair */
	const double *observation_latitude;
	const double *observation_longitude;

	/* of pairs */
	const int64 *tag;			/* the tag of each pair's reference; for a count, how many references are within the
								 * radius */

	/*
	 * metres; for a count the sums of the weights, [weights].  With extremes, the least weights follow, Infinity for
	 * none, and then the greatest weights, -Infinity for none.
	 */
	const double *distance;

	/*
	 * the shape's nearest place and its fraction (protocol_search.h), or NULL if the question does not ask for places;
	 * for pairs that this process found without the engine, the reference's point, and NaN
	 */
	const double *place_latitude;
	const double *place_longitude;
	const double *place_fraction;

	/* the nearest place of an observation that is a shape, or NULL: the observation is a point, or no places were asked for */
	const double *near_latitude;
	const double *near_longitude;

	/* the place's arc, the observation's side of it, and the measure there; NULL: the question does not ask for it */
	const int32 *place_segment;
	const int32 *place_side;
	const double *place_measure;
} GeonnBlock;

/* Go on to the next pair of the block.  Returns false if the block has no more. */
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

/*
 * One of the block's arrays, whose elements have the size of a Datum, and the index of its present element, both as
 * offsets in GeonnBlock.
 */
typedef struct BlockColumn
{
	size_t		values;			/* 0: the values lie in none of the arrays */
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
