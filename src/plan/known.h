/*
 * known.h
 *		What the planner knows of the call of a join in FROM: its row type and its arguments.
 */
#ifndef GEONN_KNOWN_H
#define GEONN_KNOWN_H

#include "access/tupdesc.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "points/columns.h"

/* What is found out while plans are made.  The notes of each plan belong to its memory. */
typedef struct PlanNotes
{
	struct NotesOfPlan *first;	/* of the plans that are being made; NULL: none */
} PlanNotes;

/* The notes of this plan; NIL: none. */
extern List *geonn_plan_notes(const PlanNotes *notes, const PlannerInfo *root);

/* Add a note, which is in the plan's memory (planner_cxt). */
extern void geonn_add_plan_note(PlanNotes *notes, PlannerInfo *root, void *note);

/* The planner begins with a statement, and ends: with its plan, or by an error. */
extern void geonn_planning_begins(void);
extern void geonn_planning_ends(void);

/* How many statements are being planned, each while the one before it is. */
extern int	geonn_planning_depth(void);

/*
 * May the module have another query planned while the planner is at work?  False: too many statements are being planned,
 * each while the one before it is.
 */
extern bool geonn_may_plan_another(void);

/*
 * Can the statement use geonn's plan nodes?  One that rechecks rows that other sessions update cannot
 * (UPDATE, DELETE, MERGE, FOR UPDATE), but by a form that takes it (LateralForm.takes_update).
 */
extern bool geonn_statement_takes_nodes(const PlannerInfo *root);

/*
 * May geonn plan nodes here (base/extension.h)?  If the role lacks the privilege, the plan is for this role alone, and
 * until the privilege is granted.
 */
extern bool geonn_may_plan(PlannerInfo *root);

/* Have a plan without nodes be for this role alone, and until the privilege to search is granted.  Returns the plan. */
extern PlannedStmt *geonn_without_nodes(PlannedStmt *plan);

/* Have the plan made anew for another role, and when the privilege to search is granted or revoked. */
extern void geonn_depend_on_privilege(PlannerInfo *root);

/*
 * The call of a join function in FROM: a FuncExpr and the column definition list, if it has one.  NULL for
 * anything else in FROM.
 */
extern RangeTblFunction *geonn_join_call(RangeTblEntry *entry);

/*
 * The current type of the call's rows, in the current memory context: the composite type of the argument
 * row_type, or, for type record, that of the column definition list.  NULL: neither.
 */
extern TupleDesc geonn_row_type(const RangeTblFunction *call);

/*
 * The relation in FROM that is this call; sets *call.  NULL: it is not in FROM, or its arguments refer to
 * other relations.
 */
extern RelOptInfo *geonn_relation_of_call(PlannerInfo *root, const FuncExpr *expression,
										  RangeTblFunction **call);

/* The number of the column of this name in the call's row type; 0: it has none. */
extern AttrNumber geonn_row_column(const RangeTblFunction *call, const char *name);

/* Is the expression this column of the relation, perhaps below RelabelType? */
extern bool geonn_is_column(const Node *expression, Index relid, AttrNumber number);

/* The other side of a clause that is an equality (mergeopfamilies) with this column; NULL: another clause. */
extern Node *geonn_compared_with(const RestrictInfo *clause, Index relid, AttrNumber number);

/*
 * The clauses (RestrictInfo) of equality between the relation's column and other relations' expressions; not
 * those below an outer join.
 */
extern List *geonn_equalities(PlannerInfo *root, RelOptInfo *rel, AttrNumber number);

/*
 * An argument's value; NULL: it is NULL, or unknown to the planner.  It is for estimates alone: a parameter's
 * value may hold for this execution only.
 */
extern Const *geonn_known_value(PlannerInfo *root, Node *argument);

/*
 * The relation of a regclass argument, given as a constant or a text; InvalidOid: unknown, or no such
 * relation.  Raises no error.  With root, it may be a parameter's value for this execution alone; without
 * root, only constants count.  A constant name can mean another relation when the plan is executed.
 */
extern Oid	geonn_known_relation(PlannerInfo *root, Node *argument);

/*
 * Does the argument depend on parameters alone, whose values the planner does not know, as in a generic plan?
 */
extern bool geonn_comes_later(PlannerInfo *root, Node *argument);

/* The column names (char *) in an array argument; NIL: the planner does not know it. */
extern List *geonn_known_names(PlannerInfo *root, Node *argument);

/* The columns that the options name for one side, "obs", "ref" or "points", as far as the planner knows them. */
extern GeonnColumnNames geonn_named_columns(PlannerInfo *root, const FuncExpr *expression,
											const char *side);

/*
 * The relation of one side, "obs", "ref" or "points", with the columns that the join will choose.  NULL: it is unknown,
 * the user may not look it up, or the join will raise an error about its columns.
 */
extern PointSource *geonn_known_source(PlannerInfo *root, const FuncExpr *expression,
									   const char *side);

/*
 * Is this a column of the table that is stored in its rows?  PostgreSQL 18 also has virtual generated columns, and
 * replaces them by their expressions before the coordinates are asked for.
 */
extern bool geonn_is_stored(Oid table, AttrNumber number);

#endif							/* GEONN_KNOWN_H */
