/*
 * scan.h
 *		The plan node of joins in FROM: rows as they come.
 */
#ifndef GEONN_SCAN_H
#define GEONN_SCAN_H

#include "nodes/extensible.h"
#include "nodes/primnodes.h"

/*
 * For the planner: creates the node's state from a plan.  The plan's first
 * custom expression is the join's FuncExpr; the others are clauses that observations
 * have to meet, on columns of the scan's target list.  That list has columns of the join's
 * row type, and the private list their attribute numbers.
 */
extern const CustomScanMethods geonn_scan_methods;

/* Have the planner consider this node for a join in FROM. */
extern void geonn_plan_scans(void);

#endif							/* GEONN_SCAN_H */
