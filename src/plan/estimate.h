/*
 * estimate.h
 *		What the planner is told about the joins: their rows, and their cost.
 */
#ifndef GEONN_ESTIMATE_H
#define GEONN_ESTIMATE_H

#include "nodes/pathnodes.h"

/*
 * Estimate the cost of reading the references, which a join does before its
 * first row.  False: not known.
 */
extern bool geonn_estimate_references(PlannerInfo *root, const FuncExpr *expression, Cost *cost);

/*
 * Estimate the join, which is this relation, of those observations that meet these clauses
 * (observation_filter.h).  False: not known.
 */
extern bool geonn_estimate_filtered(PlannerInfo *root, Index relid, FuncExpr *expression,
									List *clauses, double *rows, Cost *cost);

#endif							/* GEONN_ESTIMATE_H */
