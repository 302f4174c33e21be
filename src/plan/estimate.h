/*
 * estimate.h
 *		Estimates for the planner: how many rows joins have, and what they cost.
 */
#ifndef GEONN_ESTIMATE_H
#define GEONN_ESTIMATE_H

#include "nodes/pathnodes.h"

/* one observation's search costs as much as this many operators */
#define GEONN_OPERATORS_A_SEARCH 10

typedef struct JoinEstimate
{
	double		observations;	/* how many rows each side has */
	double		references;
	double		matches;		/* how many rows of the result have a reference */
	double		rows;			/* how many rows the result has */
	Cost		cost;			/* the cost of the whole join */
} JoinEstimate;

/*
 * Estimate the join.  A radius (metres) and k narrow those of its arguments; infinity does not.  Returns false
 * if the number of observations is unknown.  The functions take the query's own FuncExpr, not a copy: they
 * recognize a call by its address.
 */
extern bool geonn_estimate_join(PlannerInfo *root, const FuncExpr *expression, double radius, double k,
								JoinEstimate *estimate);

/*
 * Estimate the cost of reading the references, which a join does before its
 * first row.  Returns false if it is not known.
 */
extern bool geonn_estimate_references(PlannerInfo *root, const FuncExpr *expression, Cost *cost);

/*
 * Estimate the join, which is this relation, as if it read only observations that meet the clauses
 * (observation_filter.h).  Returns false if their number is unknown.
 */
extern bool geonn_estimate_filtered(PlannerInfo *root, Index relid,
									const RangeTblFunction *call, List *clauses, JoinEstimate *estimate);

/*
 * Estimate the rows of the relation, which is this join in FROM, and of its paths, from the query's
 * conditions on obs_id, ref_id, distance and rank (row_conditions.c).
 */
extern void geonn_estimate_row_conditions(PlannerInfo *root, RelOptInfo *rel,
										  const RangeTblFunction *call);

#endif							/* GEONN_ESTIMATE_H */
