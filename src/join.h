/*
 * join.h
 *		A join: two sources of points, a question, and where the pairs go.
 */
#ifndef GEONN_JOIN_H
#define GEONN_JOIN_H

#include "fmgr.h"

#include "client.h"
#include "columns.h"
#include "reader.h"

typedef struct GeonnJoin
{
	PointSource *observations;	/* NULL: points of arrays */
	PointSource *references;
	GeonnQuestion question;		/* but for columns and ids, which the join knows */
	bool		exclude_self;
	bool		keep_unmatched;
	InvalidPolicy invalid;

	/* instead of observations: their ids are 1 ... points */
	int			points;
	const double *latitude;		/* [points] */
	const double *longitude;
	const bool *latitude_is_null;
	const bool *longitude_is_null;
} GeonnJoin;

/*
 * Answer the call with the join's pairs: a tuplestore of its row type.
 */
extern void geonn_run_join(FunctionCallInfo fcinfo, GeonnJoin *join);

#endif							/* GEONN_JOIN_H */
