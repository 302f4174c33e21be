/*
 * own_rows.h
 *		Joins of a call's rows with the rows of the table of its observations.
 */
#ifndef GEONN_OWN_ROWS_H
#define GEONN_OWN_ROWS_H

#include "nodes/pathnodes.h"

/* a call that the node of lateral.h can make for many outer rows at once */
typedef struct RowCall
{
	RangeTblFunction *call;		/* without points in its arguments */
	List	   *point;			/* as in CallExpressions (lateral.h) */
	AttrNumber	number;			/* number of ord or obs_id, which tells a neighbour's outer row */
	Oid			table;			/* as in CallPrivate (lateral.h); InvalidOid: none */
} RowCall;

/*
 * Are the outer rows joined with the call by the unique id of its observations, so that its rows are the
 * neighbours of these outer rows?  clauses are the join's (RestrictInfo).  If so, sets the fields of own,
 * except call.
 */
extern bool geonn_find_own_rows(PlannerInfo *root, RelOptInfo *function, RelOptInfo *outer,
								List *clauses, RowCall *own);

/*
 * Before paths are made: if the call, in FROM, is joined with its table in this way, have the table's scan
 * return the coordinates.
 */
extern void geonn_want_own_points(PlannerInfo *root, const FuncExpr *expression);

#endif							/* GEONN_OWN_ROWS_H */
