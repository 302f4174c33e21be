/*
 * estimate.h
 *		What the planner is told about the joins: their rows, and their cost.
 */
#ifndef GEONN_ESTIMATE_H
#define GEONN_ESTIMATE_H

#include "nodes/pathnodes.h"

/*
 * The cost of a join whose rows are taken as they come: until the first one, and of
 * all.  False: not known.
 */
extern bool geonn_estimate_scan(PlannerInfo *root, FuncExpr *call, Cost *startup, Cost *total);

#endif							/* GEONN_ESTIMATE_H */
