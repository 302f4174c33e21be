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
extern bool geonn_estimate_references(PlannerInfo *root, const FuncExpr *call, Cost *cost);

/*
 * The relation's name in SQL, with its schema; NULL where there is none, or it may not be
 * looked up there.  Its lock stays until the end of the transaction, so that a query by
 * this name is about this relation when it is planned.
 */
extern char *geonn_relation_name(Oid oid);

#endif							/* GEONN_ESTIMATE_H */
