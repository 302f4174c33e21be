/*
 * own_rows.h
 *		Joins of a call's rows with the rows of the table of its observations.
 */
#ifndef GEONN_OWN_ROWS_H
#define GEONN_OWN_ROWS_H

#include "nodes/pathnodes.h"

/* a call of a join that the node of lateral.h can make: what it searches for, row by row */
typedef struct RowCall
{
	RangeTblFunction *call;		/* without points in its arguments */
	List	   *point;			/* the expressions LATERAL_LATITUDE to LATERAL_VALUE (lateral.h) */
	AttrNumber	number;			/* the row type's column that tells which row a neighbour is of: ord, or obs_id */
	Oid			table;			/* as LATERAL_TABLE (lateral.h) */
} RowCall;

/*
 * Are these outer rows joined with the rows of the call by the unique id of its observations, so that
 * the call's rows are the neighbours of the outer rows themselves?  clauses are those of the join
 * (RestrictInfo).  If so, sets the fields of own, but for the call.
 */
extern bool geonn_find_own_rows(PlannerInfo *root, RelOptInfo *function, RelOptInfo *outer,
								List *clauses, RowCall *own);

/*
 * Have the table's rows come with their coordinates, if the call, which is in FROM, is joined with them
 * in this way; before paths are made.
 */
extern void geonn_want_own_points(PlannerInfo *root, const FuncExpr *expression);

#endif							/* GEONN_OWN_ROWS_H */
