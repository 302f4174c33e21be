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

/* how many points this process answers at most, rather than the engine's devices */
#define POINTS_ALONE	64

/* how this process answers observations by the references that it knows */
typedef struct OwnAnswers
{
	/* Find the neighbours of an observation of this group; returns how many. */
	uint32		(*find) (void *state, const PointRow *row, int32 group);

	/* Set the tag, the distance and the place of a pair: of the neighbour with this number, from 0 on, that was found last. */
	void		(*pair) (const void *state, uint32 number, GeonnBlock *block);

	/* Note the call, all of whose observations were answered. */
	void		(*note_call) (const void *state, const struct geonn_finished *work);
} OwnAnswers;

/* a join whose references are in the engine, so that its observations can be sent, or are known here */
typedef struct PreparedJoin
{
	GeonnQuestion question;		/* the question that the engine gets */
	GeonnClient *client;		/* NULL: this process answers observations */
	GeonnReferences *references;
	GeonnGroups *groups;		/* NULL: the join is by no columns */
	GeonnGroups *parties[GEONN_PARTIES_MAX];	/* by column that differs; NULL: the join has fewer */
	const OwnAnswers *own;		/* NULL: the engine answers observations */
	void	   *own_state;
	MemoryContext row_context;	/* for allocations in comparing a row's ids and keys */

	/* how the references got into the engine; all is 0 where another process has sent them */
	uint64		counts[POINT_STATUSES]; /* how many were read, by status */
	bool		kept;			/* they were there already, or are known here */
	TableDifference difference; /* as in GeonnReport */
	GeonnReadReason read_reason;	/* if not, and this process has read them: why */
	uint64		kept_bytes;		/* as in GeonnReport */
	bool		named;			/* the result, or exclude_self, needs their ids */
	int			workers;		/* how many parallel workers helped to read them */
} PreparedJoin;

/*
 * Check the join, and send the references to the engine, unless it keeps them.  The caller has begun to read
 * the observations, which checks privileges on them.  The result lives as long as the current memory context.
 * row describes the rows to return.  are_few tells, with its state, whether all observations are POINTS_ALONE at most,
 * after reading some of them; NULL: that cannot be told.
 */
extern PreparedJoin geonn_join_prepare(const GeonnJoin *join, const GeonnResultRow *row,
									   const GeonnCall *call, bool (*are_few) (void *state), void *state);

/* Prepare the join with this sealed dataset, which another process has sent. */
extern PreparedJoin geonn_join_attach(const GeonnJoin *join, const GeonnResultRow *row,
									  const GeonnCall *call, uint64 dataset);

/* Have the engine count all calls that this process has answered without it, if the engine runs. */
extern void geonn_count_own_calls(void);

/* The id column of the observations; of given ones the column ord, their numbers. */
extern const PointColumn *geonn_observation_id(const GeonnJoin *join);

#endif							/* GEONN_JOIN_PREPARE_H */
