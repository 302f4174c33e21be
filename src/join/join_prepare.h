/*
 * join_prepare.h
 *		The references of a join: read and sent to the engine, or found there.
 */
#ifndef GEONN_JOIN_PREPARE_H
#define GEONN_JOIN_PREPARE_H

#include "join/call.h"
#include "join/groups.h"
#include "join/join.h"
#include "join/references.h"
#include "join/result_row.h"

/* This process answers at most this many points by itself, without the engine's devices. */
#define POINTS_ALONE	64

/* How this process answers observations by the references that it knows. */
typedef struct OwnAnswers
{
	/* Find the neighbours of an observation of this group.  Returns how many it has. */
	uint32		(*find) (void *state, const PointRow *row, int32 group);

	/*
	 * Set the tag, the distance and the place of a pair: the pair of the last observation with its neighbour of this
	 * number, from 0 on.
	 */
	void		(*pair) (const void *state, uint32 number, GeonnBlock *block);

	/* Note the call, once all of its observations are answered. */
	void		(*note_call) (const void *state, const struct geonn_finished *work);
} OwnAnswers;

/* A join that is ready for its observations: its references are in the engine, or this process knows them. */
typedef struct PreparedJoin
{
	GeonnQuestion question;		/* the question that the engine gets */
	GeonnClient *client;		/* NULL: this process answers observations */
	GeonnReferences *references;
	GeonnGroups *groups;		/* NULL: the join is by no columns */
	GeonnGroups *parties[GEONN_PARTIES_MAX];	/* one for each column that differs; NULL: the join has fewer such
												 * columns */
	const OwnAnswers *own;		/* NULL: the engine answers observations */
	GeonnFate	fates[GEONN_FATES_MAX]; /* as in GeonnReport */
	void	   *own_state;
	MemoryContext row_context;	/* memory for comparing the ids and keys of one row */

	/* How the references got into the engine; all fields are 0 if another process has sent them. */
	uint64		counts[POINT_STATUSES]; /* how many were read, by status */
	bool		kept;			/* the engine had kept the references, or this process knows them */
	TableDifference difference; /* as in GeonnReport */
	GeonnReadReason read_reason;	/* if the references were not kept, why this process has read them */
	uint64		kept_bytes;		/* as in GeonnReport */
	bool		named;			/* the result, or exclude_self, needs the references' ids */
} PreparedJoin;

/*
 * Check the join, and send the references to the engine, unless it keeps them.  The caller has begun to read the
 * observations, which checks privileges on them.  The result lives as long as the current memory context.  row
 * describes the rows to return.  are_few reads some observations, and tells whether all are at most POINTS_ALONE;
 * `state` is its argument.  NULL as are_few: nothing can tell.
 */
extern PreparedJoin geonn_join_prepare(const GeonnJoin *join, const GeonnResultRow *row,
									   const GeonnCall *call, bool (*are_few) (void *state), void *state);

/* Prepare the join with these references, which another process or search has sent, and read them as they were read there. */
extern PreparedJoin geonn_join_attach(const GeonnJoin *join, const GeonnResultRow *row,
									  const GeonnCall *call, const SharedReferences *references);

/* Raise an error if a side has shapes, and the join asks for clusters, or for another metric than the sphere's. */
extern void geonn_check_question_of_shapes(const GeonnJoin *join);

/* Remember that the observations of this join, in a column of points, have a shape. */
extern void geonn_note_shapes_of_observations(const GeonnJoin *join);

/* If the engine runs, have it count all calls that this process has answered without the engine. */
extern void geonn_count_own_calls(void);

/* Return the id column of the observations; for given observations the column ord, their numbers. */
extern const PointColumn *geonn_observation_id(const GeonnJoin *join);

#endif							/* GEONN_JOIN_PREPARE_H */
