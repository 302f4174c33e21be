/*
 * row_call.h
 *		Which call in FROM asks for the neighbours of the outer rows' points, and what is left of it without them.
 */
#ifndef GEONN_ROW_CALL_H
#define GEONN_ROW_CALL_H

#include "plan/own_rows.h"

/*
 * Set the call that the node of lateral.h can make for these outer rows: a LATERAL one for each of them, or one that
 * would read them itself.  clauses are the join's (RestrictInfo).  Returns the query's own call; NULL: the node cannot
 * make it.
 */
extern FuncExpr *geonn_find_row_call(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *function, List *clauses,
									 RowCall *call);

#endif							/* GEONN_ROW_CALL_H */
