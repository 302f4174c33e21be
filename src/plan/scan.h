/*
 * scan.h
 *		The plan node of joins in FROM: rows as they come.
 */
#ifndef GEONN_SCAN_H
#define GEONN_SCAN_H

#include "commands/explain.h"
#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/parsenodes.h"
#include "nodes/primnodes.h"

#include "join/join.h"

/*
 * For the planner: creates the node's state from a plan.  The plan's first
 * custom expression is the join's call (RangeTblFunction); the others are clauses that observations
 * have to meet, on columns of the scan's target list.  That list has columns of the join's
 * row type, as Vars.
 */
extern const CustomScanMethods geonn_scan_methods;

/*
 * The attribute numbers of the Vars in a target list, from this place on (from 0), in memory of the caller's
 * with room for one more.
 */
extern AttrNumber *geonn_attributes(const List *targets, int first);

/* Raise an error unless the user may execute the function. */
extern void geonn_check_execute(Oid function);

/* The join that a call with these arguments asks for, in the current memory context. */
extern GeonnJoin *geonn_called_join(const FuncExpr *expression, FmgrInfo *function,
									const NullableDatum *values);

/*
 * The arguments' values, [list_length(arguments)], in the current memory context.  Relations that the
 * leader of a parallel plan has found are in the place of their arguments; InvalidOid: to be found.
 */
extern NullableDatum *geonn_evaluate_arguments(const FuncExpr *expression, List *arguments,
											   ExprContext *expressions, Oid observations,
											   Oid references);

/*
 * Check that these attributes of the row type still have the types that they had when the
 * statement was planned.
 */
extern void geonn_check_row_type(TupleDesc row_type, TupleDesc planned,
								 const AttrNumber *attributes);

/* Show a relation or query, if the plan has it. */
extern void geonn_explain_side(ExplainState *explain, const char *label, Node *argument);

/* Show the columns that decide which references are candidates, if the plan has them. */
extern void geonn_explain_columns(ExplainState *explain, const FuncExpr *expression);

/*
 * Can the references be shared with parallel workers?  They must be plain tables, as far as the plan
 * knows.
 */
extern bool geonn_references_are_plain(const FuncExpr *expression);

/* Have the statement planned anew when a relation in the call's arguments changes. */
extern void geonn_depend_on_relations(PlannerInfo *root, const FuncExpr *expression);

/* The number by which so many workers, and the leader, divide rows. */
extern double geonn_parallel_divisor(int workers);

/* Have the planner consider this node for a join in FROM. */
extern void geonn_plan_scans(void);

#endif							/* GEONN_SCAN_H */
