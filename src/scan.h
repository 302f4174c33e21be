/*
 * scan.h
 *		The plan node of joins in FROM: rows as they come.
 */
#ifndef GEONN_SCAN_H
#define GEONN_SCAN_H

#include "nodes/extensible.h"
#include "nodes/primnodes.h"

/* For the planner: what makes the node's state of a plan whose only expression
 * is the join's FuncExpr, and whose scan target list has columns of its row type. */
extern const CustomScanMethods geonn_scan_methods;

/* Plans in which functions in FROM may be this node. */
extern void geonn_plan_scans(void);

#endif							/* GEONN_SCAN_H */
