/*
 * estimate.h
 *		Estimates for the planner: how many rows joins have, and what they cost.
 */
#ifndef GEONN_ESTIMATE_H
#define GEONN_ESTIMATE_H

#include "nodes/pathnodes.h"

/* the cost of finding one observation's references, in operators */
#define GEONN_OPERATORS_A_SEARCH 10

typedef struct JoinEstimate
{
	double		observations;	/* how many rows each side has */
	double		references;
	double		matches;		/* how many rows of the result have a reference */
	double		rows;			/* how many rows the result has */
	Cost		cost;			/* what finding all of them costs */
} JoinEstimate;

/*
 * Expressions are those of the query, not copies: by its address a call is known while the plan is made.
 *
 * Estimate the join with the bounds that its arguments set, and with a narrower radius, in metres, or k; infinity:
 * with no narrower one.  Returns false if nothing is known of the observations.
 */
extern bool geonn_estimate_join(PlannerInfo *root, const FuncExpr *expression, double radius, double k,
								JoinEstimate *estimate);

/*
 * Estimate the cost of reading the references, which a join does before its
 * first row.  Returns false if it is not known.
 */
extern bool geonn_estimate_references(PlannerInfo *root, const FuncExpr *expression, Cost *cost);

/*
 * Estimate the join that is this relation, if it reads only the observations that meet these clauses
 * (observation_filter.h).  Returns false if nothing is known of the observations.
 */
extern bool geonn_estimate_filtered(PlannerInfo *root, Index relid,
									const RangeTblFunction *call, List *clauses, JoinEstimate *estimate);

/*
 * Set the numbers of rows of the relation, which is this join in FROM, and of its paths, by the query's
 * conditions on obs_id, ref_id, distance and rank (row_conditions.c).
 */
extern void geonn_estimate_row_conditions(PlannerInfo *root, RelOptInfo *rel,
										  const RangeTblFunction *call);

#endif							/* GEONN_ESTIMATE_H */
