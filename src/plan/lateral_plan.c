/*
 * lateral_plan.c
 *		Where the planner takes the plan node of lateral joins by points of rows.
 *
 * What outer rows ask for has one of the registered forms (lateral_path.h): a call in FROM (lateral_call.c), and those that
 * other rooms register.  The planner calls the hook here with each two relations that it could join.  The first form that
 * finds its question there has its node offered over the cheapest outer paths, over those whose order is useful, and over
 * partial ones, for processes below a Gather.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"

#include "base/compat.h"
#include "plan/known.h"
#include "plan/lateral.h"
#include "plan/lateral_path.h"
#include "plan/scan.h"

/* how many forms the planner considers at most */
#define FORMS_MAX 8

static set_join_pathlist_hook_type previous_hook;
static const LateralForm *forms[FORMS_MAX];
static int	form_count;

static Plan *plan_join(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets,
					   List *clauses, List *children);

static const CustomPathMethods path_methods = {
	.CustomName = "geonn lateral join",
	.PlanCustomPath = plan_join
};

/*
 * The column of this relation and number among these expressions; NULL: it is not there.
 */
static Var *
find_column(const List *expressions, const Var *column)
{
	ListCell   *cell;

	foreach(cell, expressions)
	{
		Var		   *found = lfirst(cell);

		if (IsA(found, Var) && found->varno == column->varno && found->varattno == column->varattno)
			return found;
	}
	return NULL;
}

/*
 * From PostgreSQL 16 on, a column says which outer joins may have made it NULL: above the join these may be more than in the
 * join's clauses, but a row of the node has one value for both.  Returns the expression with each column as the first of this
 * relation and number among LateralPath.columns.
 */
static Node *
name_as_above(Node *node, void *columns)
{
	const Var  *above;

	if (node == NULL)
		return NULL;
	if (!IsA(node, Var))
		return expression_tree_mutator(node, name_as_above, columns);
	above = find_column(columns, (const Var *) node);
	return above == NULL ? node : copyObject((Node *) above);
}

/*
 * PostgreSQL finds a column by relation and number, so Vars that share both must be equal in all else.
 */
bool
geonn_note_columns(LateralPath *path, List *used, const RelOptInfo *outer, const RelOptInfo *inner)
{
	ListCell   *cell;

	foreach(cell, pull_var_clause((Node *) used, PVC_INCLUDE_PLACEHOLDERS))
	{
		Var		   *column = lfirst(cell);
		bool		is_inner;
		List	  **columns;
		const Var  *other;

		if (!IsA(column, Var))
			return false;
		column = (Var *) name_as_above((Node *) column, path->columns);
		is_inner = bms_is_member(column->varno, inner->relids);
		columns = is_inner ? &path->inner_columns : &path->outer_columns;
		if (is_inner ? column->varattno < path->least_column : find_column(outer->reltarget->exprs, column) == NULL)
			return false;
		other = find_column(*columns, column);
		if (other == NULL)
			*columns = lappend(*columns, column);
		else if (!equal(other, column))
			return false;
	}
	return true;
}

/*
 * Set the clauses by which two rows match, and those that rows of the join must meet (expressions).  False:
 * the node cannot test them.
 */
static bool
divide_clauses(const RelOptInfo *rel, const JoinPathExtraData *extra, LateralPath *path)
{
	List	   *joining = list_difference_ptr(extra->restrictlist, path->answered);
	List	   *clauses = list_concat_copy(joining, path->conditions);

	if (extract_actual_clauses(clauses, true) != NIL)
		return false;
	path->neighbours = NIL;
	if (path->type == JOIN_INNER)
	{
		path->rows = extract_actual_clauses(clauses, false);
		return true;
	}
	if (path->type == JOIN_SEMI)
	{
		path->neighbours = extract_actual_clauses(clauses, false);
		return true;
	}
	extract_actual_join_clauses(joining, rel->relids, &path->neighbours, &path->rows);
	path->neighbours = list_concat(path->neighbours, extract_actual_clauses(path->conditions, false));
	return true;
}

/*
 * Offer the node over this outer path; is_partial: each process below a Gather takes a part of its rows.
 */
static void
offer_path(PlannerInfo *root, const LateralPath *template, Path *outer, List *pathkeys, bool is_partial)
{
	LateralPath *copy = palloc(sizeof(LateralPath));
	CustomPath *custom = &copy->path;
	Path	   *path = &custom->path;

	*copy = *template;
	path->rows = path->parent->rows;
	path->pathkeys = pathkeys;
	custom->custom_paths = list_make1(outer);
	if (is_partial)
		(void) geonn_divide_path(path, outer->parallel_workers);
	if (template->references != NULL)
		custom->custom_paths = lappend(custom->custom_paths, template->references);
	if (template->own != NULL && (!is_partial || template->own_suits_workers))
		custom->custom_paths = lappend(custom->custom_paths, template->own);
	path->parallel_aware &= template->form->shares_references;
	template->form->set_cost(root, template, custom);
	if (is_partial)
		add_partial_path(path->parent, path);
	else
		add_path(path->parent, path);
}

/*
 * Offer the node over the cheapest outer paths, and over those whose order is useful.
 */
static void
offer_paths(PlannerInfo *root, const LateralPath *template, RelOptInfo *outer)
{
	ListCell   *cell;

	offer_path(root, template, outer->cheapest_total_path, NIL, false);
	foreach(cell, outer->pathlist)
	{
		Path	   *path = lfirst(cell);
		List	   *pathkeys;

		if (path->param_info != NULL)
			continue;
		pathkeys = build_join_pathkeys(root, template->path.path.parent, template->type,
									   path->pathkeys);
		if (pathkeys != NIL || path == outer->cheapest_startup_path)
			offer_path(root, template, path, pathkeys, false);
	}
}

/*
 * Can workers run the join?  Not a right join: no process knows which rows of the inner relation the others have matched.
 * No path of PostgreSQL's own says so: its joins with the function, its scan of it, and its joins
 * with a subquery that has a LIMIT are for the leader alone.  So the node looks at what workers may run.
 */
static bool
suits_workers(PlannerInfo *root, const LateralPath *template, RelOptInfo *outer)
{
	return template->type != JOIN_RIGHT && outer->consider_parallel && outer->partial_pathlist != NIL &&
		root->glob->parallelModeOK && max_parallel_workers_per_gather > 0 &&
		is_parallel_safe(root, (Node *) template->path.path.pathtarget->exprs) &&
		is_parallel_safe(root, (Node *) template->neighbours) &&
		is_parallel_safe(root, (Node *) template->rows) &&
		template->form->suits_workers(root, template);
}

/*
 * Offer the node over the outer rows' partial paths, for processes below a Gather.
 */
static void
offer_partial_paths(PlannerInfo *root, const LateralPath *template, RelOptInfo *outer)
{
	RelOptInfo *rel = template->path.path.parent;
	ListCell   *cell;

	if (!suits_workers(root, template, outer))
		return;
	foreach(cell, outer->partial_pathlist)
	{
		Path	   *part = lfirst(cell);

		offer_path(root, template, part, build_join_pathkeys(root, rel, template->type, part->pathkeys), true);
	}
}

/*
 * Set path->form to one that finds its question here.  False: none does.
 */
static bool
find_question(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *clauses, LateralPath *path)
{
	bool		takes_nodes = geonn_statement_takes_nodes(root);
	bool		may_plan = false;

	for (int i = 0; i < form_count; i++)
	{
		path->form = forms[i];
		if (path->type == JOIN_RIGHT && !forms[i]->takes_right)
			continue;
		if (!takes_nodes && (forms[i]->takes_update == NULL || !forms[i]->takes_update(root, outer, inner)))
			continue;
		may_plan = may_plan || geonn_may_plan(root);
		if (!may_plan)
			return false;
		if (forms[i]->recognise(root, outer, inner, clauses, path))
			return true;
	}
	return false;
}

static void
offer_join(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *outer, RelOptInfo *inner, JoinType type,
		   JoinPathExtraData *extra)
{
	LateralPath template = {.type = type,.inner = inner->relids};
	CustomPath *path = &template.path;

	path->path.parent = rel;

	if (previous_hook != NULL)
		previous_hook(root, rel, outer, inner, type, extra);
	if ((type != JOIN_INNER && type != JOIN_LEFT && type != JOIN_SEMI && type != JOIN_ANTI && type != JOIN_RIGHT) ||
		(inner->reloptkind != RELOPT_BASEREL && inner->reloptkind != RELOPT_JOINREL) || !bms_is_empty(rel->lateral_relids) ||
		outer->cheapest_total_path == NULL || outer->cheapest_total_path->param_info != NULL ||
		inner->pathlist == NIL)
		return;

	/* from 19 on, PostgreSQL may aggregate rows before the join: these lack the columns needed */
	if (contain_agg_clause((Node *) rel->reltarget->exprs))
		return;
	if (!find_question(root, outer, inner, extra->restrictlist, &template) ||
		!divide_clauses(rel, extra, &template))
		return;
	template.columns = list_concat(pull_var_clause((Node *) rel->reltarget->exprs, PVC_INCLUDE_PLACEHOLDERS),
								   outer->reltarget->exprs);
	template.columns = list_concat(template.columns, inner->reltarget->exprs);
	if (!geonn_note_columns(&template, rel->reltarget->exprs, outer, inner) ||
		!geonn_note_columns(&template, template.neighbours, outer, inner) ||
		!geonn_note_columns(&template, template.rows, outer, inner) ||
		!geonn_note_columns(&template, template.question_columns, outer, inner))
		return;
	if (template.form->keep_own_path != NULL && type != JOIN_RIGHT)
		template.form->keep_own_path(root, outer, inner, &template);

	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.pathtarget = rel->reltarget;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	offer_partial_paths(root, &template, outer);
	offer_paths(root, &template, outer);
}

/*
 * The numbers of the outer columns in the rows of the outer plan.
 */
static List *
outer_numbers(const LateralPath *path, const Plan *outer)
{
	List	   *expressions = get_tlist_exprs(outer->targetlist, true);
	List	   *numbers = NIL;
	ListCell   *cell;

	foreach(cell, path->outer_columns)
	{
		const Var  *column = lfirst_node(Var, cell);
		Var		   *returned = find_column(expressions, column);

		if (returned == NULL)
			elog(ERROR, "column %d of relation %d is not among the outer plan's", column->varattno,
				 column->varno);
		numbers = lappend_int(numbers, tlist_member((Expr *) returned, outer->targetlist)->resno);
	}
	return numbers;
}

List *
geonn_lateral_private(const LateralPath *path, const Plan *outer, List *question)
{
	LateralPrivate planned = {
		.type = makeInteger(path->type),
		.keeps_order = makeBoolean(path->path.path.pathkeys != NIL),
		.outer_columns = outer_numbers(path, outer),
		.question = question
	};

	return geonn_pack_fields(&planned);
}

static Plan *
plan_join(PlannerInfo *root, RelOptInfo *rel pg_attribute_unused(), CustomPath *path, List *targets,
		  List *clauses pg_attribute_unused(), List *children)
{
	LateralPath *lateral = (LateralPath *) path;
	CustomScan *scan = lateral->form->make_node(root, lateral, targets, children);

	scan->scan.plan.qual = (List *) name_as_above((Node *) scan->scan.plan.qual, lateral->columns);
	scan->custom_exprs = (List *) name_as_above((Node *) scan->custom_exprs, lateral->columns);
	scan->custom_scan_tlist = (List *) name_as_above((Node *) scan->custom_scan_tlist, lateral->columns);
	scan->methods = &lateral->form->node->scan;
	return (Plan *) scan;
}

void
geonn_register_lateral_form(const LateralForm *form)
{
	Assert(form_count < FORMS_MAX);
	forms[form_count++] = form;
	RegisterCustomScanMethods(&form->node->scan);
}

void
geonn_plan_lateral_joins(void)
{
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = offer_join;
}
