/*
 * known.h
 *		What the planner knows of the call of a join in FROM: its row type and its arguments.
 */
#ifndef GEONN_KNOWN_H
#define GEONN_KNOWN_H

#include "access/tupdesc.h"
#include "nodes/pathnodes.h"

#include "points/columns.h"

/*
 * Can the statement have the plan nodes of joins?  One that asks for rows anew after another session's update cannot
 * (UPDATE, DELETE, MERGE, FOR UPDATE).
 */
extern bool geonn_statement_takes_nodes(const PlannerInfo *root);

/*
 * The call of a function in FROM that is a join: its expression, which is a FuncExpr, and the column
 * definition list, if it has one.  NULL for anything else in FROM.
 */
extern RangeTblFunction *geonn_join_call(RangeTblEntry *entry);

/*
 * The type of the call's rows, as it is now, in the current memory context: the composite type of the
 * argument row_type, or of type record, what the column definition list says.  NULL: neither.
 */
extern TupleDesc geonn_row_type(const RangeTblFunction *call);

/*
 * The function in FROM whose expression this is, and its call.  NULL: it is none in FROM, or its arguments
 * refer to other relations.
 */
extern RelOptInfo *geonn_relation_of_call(PlannerInfo *root, const FuncExpr *expression,
										  RangeTblFunction **call);

/* The number of the column of this name in the call's row type; 0: it has none. */
extern AttrNumber geonn_row_column(const RangeTblFunction *call, const char *name);

/* Is the expression this column of the relation, by whatever name of its type? */
extern bool geonn_is_column(const Node *expression, Index relid, AttrNumber number);

/*
 * The expression that equals this column of the relation by the clause, by its mergeopfamilies; NULL: the clause is
 * no such equality.
 */
extern Node *geonn_compared_with(const RestrictInfo *clause, Index relid, AttrNumber number);

/*
 * The clauses (RestrictInfo) that say, for all rows of the statement, that the relation's column equals an
 * expression of another relation.
 */
extern List *geonn_equalities(PlannerInfo *root, RelOptInfo *rel, AttrNumber number);

/*
 * The value of an argument, if it is known while planning; NULL: it is not known, or it is NULL.  It is good
 * for estimates alone: the value of a parameter may be that of this execution.
 */
extern Const *geonn_known_value(PlannerInfo *root, Node *argument);

/*
 * The relation in an argument of type regclass, named as text or not; InvalidOid: not known, or no
 * such relation.  Raises no error.  With root it may be the value of a parameter in this
 * execution alone; where root is NULL, it is what the plan itself says.  Where the plan says it by a
 * name, another relation can have the name when the plan is executed.
 */
extern Oid	geonn_known_relation(PlannerInfo *root, Node *argument);

/*
 * Is the argument a value that comes with the parameters of an execution, and that the
 * planner does not know, as in a generic plan?
 */
extern bool geonn_comes_later(PlannerInfo *root, Node *argument);

/* The column names (char *) in an argument that is an array of them, as far as the planner knows it. */
extern List *geonn_known_names(PlannerInfo *root, Node *argument);

/* The columns of one side, "obs" or "ref", that the options name, as far as the planner knows them. */
extern GeonnColumnNames geonn_named_columns(PlannerInfo *root, const FuncExpr *expression,
											const char *side);

/*
 * The relation of one side, with the columns that the join will choose; NULL: the side is no relation
 * that is known, the user may not look it up, or the join will raise an error about its columns.
 */
extern PointSource *geonn_known_source(PlannerInfo *root, const FuncExpr *expression,
									   const char *side);

#endif							/* GEONN_KNOWN_H */
