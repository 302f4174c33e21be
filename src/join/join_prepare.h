/*
 * join_prepare.h
 *		The references of a join: read and sent to the engine, or found there.
 */
#ifndef GEONN_JOIN_PREPARE_H
#define GEONN_JOIN_PREPARE_H

#include "join/call.h"
#include "join/groups.h"
#include "join/join.h"
#include "join/live.h"
#include "join/references.h"
#include "join/result_row.h"

/* a join whose references are in the engine, so that its observations can be sent, or are known here */
typedef struct PreparedJoin
{
	GeonnQuestion question;		/* the question that the engine gets */
	GeonnClient *client;		/* NULL: observations are answered here (alone) */
	GeonnReferences *references;
	GeonnGroups *groups;		/* NULL: the join is by no columns */
	LiveReferences *live;		/* what this process may know of the references; NULL: nothing */
	bool		alone;			/* it knows them: the observations are answered by geonn_live_table */
	MemoryContext row_context;	/* for what comparing ids and keys of a row allocates */

	/* how the references got into the engine; all is 0 where another process has sent them */
	uint64		counts[POINT_STATUSES]; /* how many were read, by status */
	bool		kept;			/* they were in the engine already */
	bool		named;			/* the result, or exclude_self, needs their ids */
	int			workers;		/* how many parallel workers helped to read them */
} PreparedJoin;

/*
 * Check what can be checked, and bring the references into the engine, unless it keeps them.  The caller has begun to
 * read the observations, which checks its privileges on them.  What is prepared lives as long as the
 * current memory context.  The rows are those that the join is to return.
 */
extern PreparedJoin geonn_join_prepare(const GeonnJoin *join, const GeonnResultRow *row,
									   const GeonnCall *call);

/* Prepare the join with the references that another process has sent: this sealed dataset. */
extern PreparedJoin geonn_join_attach(const GeonnJoin *join, const GeonnResultRow *row,
									  const GeonnCall *call, uint64 dataset);

/* The column of the observations' ids; where observations are given, ord, which has their numbers. */
extern const PointColumn *geonn_observation_id(const GeonnJoin *join);

#endif							/* GEONN_JOIN_PREPARE_H */
