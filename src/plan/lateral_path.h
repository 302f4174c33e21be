/*
 * lateral_path.h
 *		The planner's path of a node over outer rows, and the forms of what outer rows can ask for.
 */
#ifndef GEONN_LATERAL_PATH_H
#define GEONN_LATERAL_PATH_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "plan/join_node.h"

typedef struct LateralForm LateralForm;

/* the path of a node; copies of it differ in their outer paths */
typedef struct LateralPath
{
	CustomPath	path;			/* first */
	JoinType	type;
	Relids		inner;			/* the relation of the rows that are asked for, or those of the references */
	List	   *neighbours;		/* clauses by which two rows match */
	List	   *rows;			/* clauses that rows of the join must meet */
	List	   *columns;		/* Vars that the join's relation returns, then those that the outer and the inner one do; a search
								 * takes the first of a relation and number */
	List	   *outer_columns;	/* Vars that are used of outer rows and of inner rows, as `columns` has them */
	List	   *inner_columns;

	/* set by the form's recognise */
	const LateralForm *form;
	void	   *question;		/* as the form has it */
	List	   *question_columns;	/* expressions with all columns that the question needs of outer rows */
	AttrNumber	least_column;	/* the node can return an inner relation's columns from this number on */
	List	   *conditions;		/* RestrictInfos of the inner relation: two rows match only if its row meets them */
	List	   *answered;		/* the join's clauses (RestrictInfo) that are in the question: the node itself tests no
								 * pairs by them */
	Path	   *references;		/* a child of the node, beside that of the outer rows; NULL: none */

	/* set by its keep_own_path */
	Path	   *own;			/* the path of PostgreSQL's own plan for an outer row, by an index; NULL: none */
	bool		own_suits_workers;
} LateralPath;

/*
 * What outer rows ask for: the rows of a call (lateral_call.c), or what another room registers.
 */
struct LateralForm
{
	const JoinNodeMethods *node;
	bool		shares_references;	/* processes below a Gather have one dataset */

	bool		takes_right;	/* the node can return rows of the inner relation that no outer row matches, too */

	/*
	 * Set the path's question, if the inner relation or one of these clauses (RestrictInfo) asks it; path->type is set.
	 * False: it does not, or the node cannot answer.
	 */
	bool		(*recognise) (PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *clauses, LateralPath *path);

	/*
	 * Can a statement that updates, deletes or locks rows have the node?  NULL: none can.
	 */
	bool		(*takes_update) (PlannerInfo *root, const RelOptInfo *outer, const RelOptInfo *inner);

	/* Set path->own and path->own_suits_workers where PostgreSQL has an index.  NULL: the form keeps no such path. */
	void		(*keep_own_path) (PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, LateralPath *path);

	/* Set the costs of the path, whose first child and number of rows are set. */
	void		(*set_cost) (PlannerInfo *root, const LateralPath *template, CustomPath *path);

	/* Can workers execute the question's expressions? */
	bool		(*suits_workers) (PlannerInfo *root, const LateralPath *path);

	/* Make the node of the children's plans. */
	CustomScan *(*make_node) (PlannerInfo *root, LateralPath *path, List *targets, List *children);
};

/*
 * Costs, in units of about 4 microseconds of a backend: a search with new references; and what a reference takes besides its
 * reading, in operators
 */
#define COST_OF_NEW_SEARCH 500
#define OPERATORS_A_REFERENCE 10

/* Have the planner consider a form; called when the module is loaded. */
extern void geonn_register_lateral_form(const LateralForm *form);

/*
 * Add the columns that these expressions use to the path's lists, each once.  False: the node cannot return one: it is no
 * column of the outer rows or of an inner relation.
 */
extern bool geonn_note_columns(LateralPath *path, List *used, const RelOptInfo *outer, const RelOptInfo *inner);

/* The list of a LateralPrivate (lateral.h) with this question. */
extern List *geonn_lateral_private(const LateralPath *path, const Plan *outer, List *question);

extern const LateralForm geonn_call_form;

#endif							/* GEONN_LATERAL_PATH_H */
