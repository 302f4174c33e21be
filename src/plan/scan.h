/*
 * scan.h
 *		The plan node of joins in FROM: rows as they come.
 */
#ifndef GEONN_SCAN_H
#define GEONN_SCAN_H

#include "nodes/extensible.h"
#include "nodes/primnodes.h"

/*
 * For the planner: they make the node's state of a plan whose only custom
 * expression is the join's FuncExpr, whose scan target list has columns of its
 * row type, and whose private list has the numbers of these.
 */
extern const CustomScanMethods geonn_scan_methods;

/* From now on the planner may take the node for a join in FROM. */
extern void geonn_plan_scans(void);

#endif							/* GEONN_SCAN_H */
