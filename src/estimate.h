/*
 * estimate.h
 *		What the planner is told about the joins: their rows, and their cost.
 */
#ifndef GEONN_ESTIMATE_H
#define GEONN_ESTIMATE_H

#include "nodes/pathnodes.h"

/*
 * The cost of reading the references, which comes before a join's first row.
 * False: not known.
 */
extern bool geonn_estimate_references(PlannerInfo *root, FuncExpr *call, Cost *cost);

#endif							/* GEONN_ESTIMATE_H */
