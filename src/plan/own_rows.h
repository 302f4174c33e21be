/*
 * own_rows.h
 *		Joins of a call's rows with the rows of the table of its observations.
 */
#ifndef GEONN_OWN_ROWS_H
#define GEONN_OWN_ROWS_H

#include "nodes/pathnodes.h"

/* what the outer rows of such a join have of an observation */
typedef struct OwnRows
{
	Oid			table;
	AttrNumber	number;			/* the row type's column obs_id */
	Node	   *id;				/* as values of that column */
	Node	   *latitude;		/* as double precision */
	Node	   *longitude;
} OwnRows;

/*
 * Are these outer rows joined with the rows of the call by the unique id of its observations, so that
 * the call's rows are the neighbours of the outer rows themselves?  clauses are those of the join
 * (RestrictInfo).
 */
extern bool geonn_find_own_rows(PlannerInfo *root, RelOptInfo *function,
								const RangeTblFunction *call, RelOptInfo *outer, List *clauses,
								OwnRows *own);

/*
 * Have the table's rows come with their coordinates, if the call, which is in FROM, is joined with them
 * in this way; before paths are made.
 */
extern void geonn_want_own_points(PlannerInfo *root, const FuncExpr *expression);

#endif							/* GEONN_OWN_ROWS_H */
