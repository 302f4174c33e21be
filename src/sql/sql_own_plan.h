/*
 * sql_own_plan.h
 *		PostgreSQL's own plan for one outer row, which answers where a node's search does not.
 */
#ifndef GEONN_SQL_OWN_PLAN_H
#define GEONN_SQL_OWN_PLAN_H

#include "plan/lateral.h"

/*
 * A path that joins one row of these columns (Vars of the outer relation) with the rows that `own`, a path of
 * the inner relation, has for it, and returns these expressions of the inner relation.
 */
extern Path *geonn_own_path(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, List *outer_columns, Path *own,
							List *expressions);

/* The Vars of a base relation, as its paths have them, for Vars above a join.  False: they lack one. */
extern bool geonn_own_columns(const RelOptInfo *inner, const List *above, List **columns);

/*
 * Begin the plan of such a path, whose columns are the node's outer columns, as a child of the node.  NULL: it has none, or
 * PostgreSQL rechecks an updated row (EvalPlanQual).
 */
extern PlanState *geonn_own_plan_begin(LateralNode *lateral, EState *estate, int flags);

/* Have the plan return the rows for this outer row of the present round; and get the next one, NULL: none is left. */
extern void geonn_own_plan_show(PlanState *own, uint64 number);
extern TupleTableSlot *geonn_own_plan_next(PlanState *own);

/* Have PostgreSQL know the plan's lowest node, for workers. */
extern void geonn_own_plan_register(void);

#endif							/* GEONN_SQL_OWN_PLAN_H */
