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

/* a join whose references are in the engine, so that its observations can be sent */
typedef struct PreparedJoin
{
	GeonnQuestion question;		/* as the engine is asked */
	GeonnClient *client;
	GeonnReferences *references;
	GeonnGroups *groups;		/* NULL: the join is by no columns */

	/* how the references got there; all is 0 where another process has sent them */
	uint64		counts[POINT_STATUSES];
	bool		kept;			/* the references were in the engine already */
	bool		named;			/* the references' ids are of use */
	int			workers;		/* parallel workers that helped to read */
} PreparedJoin;

/*
 * Check what can be checked, and have the references in the engine.  The caller has begun to
 * read the observations, which checks its privileges on them.  What is prepared lives as long as the
 * current memory context.  The rows are those that the join is to return.
 */
extern PreparedJoin geonn_join_prepare(const GeonnJoin *join, const GeonnResultRow *row,
									   const GeonnCall *call);

/* Have the references of another process, which are this sealed dataset. */
extern PreparedJoin geonn_join_attach(const GeonnJoin *join, const GeonnResultRow *row,
									  const GeonnCall *call, uint64 dataset);

/* The observations' id: a column of theirs, or where they are given their numbers, ord. */
extern const PointColumn *geonn_observation_id(const GeonnJoin *join);

#endif							/* GEONN_JOIN_PREPARE_H */
