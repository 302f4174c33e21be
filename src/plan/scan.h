/*
 * scan.h
 *		The plan node of joins in FROM: rows as they come.
 */
#ifndef GEONN_SCAN_H
#define GEONN_SCAN_H

#include "nodes/pathnodes.h"

/*
 * Can the references be shared with parallel workers?  They must be plain tables, as far as the plan
 * knows.
 */
extern bool geonn_references_are_plain(const FuncExpr *expression);

/*
 * Make a node's plan, except its methods, custom plans and private list; columns (Var) become the scan's.  If the
 * first of the expressions is a call (RangeTblFunction), the plan becomes invalid when a relation in the call's
 * arguments changes.
 */
extern CustomScan *geonn_make_scan(PlannerInfo *root, const CustomPath *path, List *targets,
								   List *clauses, List *expressions, List *columns);

/* Turn path into one whose rows this many workers and the leader share.  Returns the divisor of its rows. */
extern double geonn_divide_path(Path *path, int workers);

/* Have the planner consider this node for a join in FROM. */
extern void geonn_plan_scans(void);

#endif							/* GEONN_SCAN_H */
