/*
 * lateral_plan.c
 *		Where the planner takes the plan node of lateral joins by points of rows.
 *
 * FROM o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') calls the function for each row of o.
 * The node of lateral.c gives the same rows, but searches for many rows of o at once.  It is offered for inner,
 * left and anti joins, where the arrays have one element and the other arguments are the same for all rows and
 * not volatile.  The row type needs the column ord, by which the node knows which row a neighbour belongs to.
 *
 * FROM obs o JOIN geonn_nearest('obs', 'ref') n ON n.obs_id = o.id asks for the same where id is a unique key
 * (own_rows.c).  Then the column obs_id has that part.
 *
 * geonn_nearest_sql is left to the function, though format('SELECT %s AS lat, …', o.lat) can ask for the same.
 * What a text means is known when PostgreSQL has parsed it: NULLs, settings for output and names that are found
 * first then can make another query of each row's, so a plan for all rows would rest on a guess.
 *
 * A subquery that asks for the nearest rows (sql_form.c) asks for the same, too.  Its node (sql_join.c) is offered
 * over the same outer paths.
 *
 * A join within a distance (sql_within_form.c) has a node (sql_within.c) over these, too, also where it is a semi join.
 * Both keep PostgreSQL's own path for an outer row, where that has an index (sql_own_plan.c).
 *
 * Below a Gather, each process takes a part of the outer rows (join_node.c), where the references are plain tables
 * or come with the parameters, as in scan.c.  Such a node is offered over each partial path of the outer rows,
 * though the functions themselves are restricted to the leader.  The nodes of subqueries and of joins within
 * a distance share nothing: each process executes the plan of the references, and has a search of its own.
 */
#include "postgres.h"

#include "catalog/pg_class_d.h"
#include "nodes/makefuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"

#include "base/compat.h"
#include "base/settings.h"
#include "join/arguments.h"
#include "plan/estimate.h"
#include "plan/lateral.h"
#include "plan/row_call.h"
#include "plan/known.h"
#include "plan/scan.h"
#include "plan/sql_form.h"
#include "plan/sql_join.h"
#include "plan/sql_own_plan.h"
#include "plan/sql_reasons.h"
#include "plan/sql_within.h"
#include "plan/sql_within_form.h"

/* the node's path; copies of it differ in their outer paths */
typedef struct LateralPath
{
	CustomPath	path;			/* first */
	const SqlForm *form;		/* set: the node is of a subquery */
	const WithinForm *within;	/* set: the node is of a join within a distance */

	/* else of a call */
	RowCall		call;
	FuncExpr   *expression;		/* the query's own call; RowCall has a copy for these outer rows */
	JoinType	type;
	Index		inner;			/* the relation of the call's or the subquery's rows, or of the references */
	const SpecialJoinInfo *outer_join;	/* NULL: an inner join */
	List	   *neighbours;		/* clauses by which two rows match */
	List	   *rows;			/* clauses that rows of the join must meet */
	List	   *outer_columns;	/* Vars that are used of outer rows and of the call's rows */
	List	   *call_columns;

	Cost		replaced_cost;	/* the cost of PostgreSQL's own plan for an outer row's subquery */
	Path	   *own;			/* the path of that plan (sql_own_plan.c), by an index; NULL: none */
	bool		own_suits_workers;
} LateralPath;

/*
 * Costs of subqueries, in units of about 4 microseconds of a backend: a search with new references; what a reference
 * takes besides its reading; what PostgreSQL leaves out of a search in an index by distance; a call of PostGIS's
 * function; and a call of one that measures a distance on the sphere
 */
#define COST_OF_NEW_SEARCH 500
#define OPERATORS_A_REFERENCE 10
#define COST_OF_DESCENT 40
#define COST_OF_CALL 1
#define COST_OF_SPHERE_CALL 0.2

static set_join_pathlist_hook_type previous_hook;
static uint64 subquery_nodes;	/* geonn_subquery_nodes */

static Plan *plan_join(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets,
					   List *clauses, List *children);

static const CustomPathMethods path_methods = {
	.CustomName = "geonn lateral join",
	.PlanCustomPath = plan_join
};

/*
 * Add the used columns to the path's lists, each once.  False: the node cannot return one: it is no column of
 * the outer rows or of the function.  PostgreSQL finds a column by relation and number, so Vars that share
 * both must be equal in all else.
 */
static bool
note_columns(LateralPath *path, List *used, const RelOptInfo *outer, const RelOptInfo *function)
{
	ListCell   *cell;
	ListCell   *noted;

	foreach(cell, pull_var_clause((Node *) used, PVC_INCLUDE_PLACEHOLDERS))
	{
		Var		   *column = lfirst(cell);
		bool		of_call = IsA(column, Var) && column->varno == (int) function->relid;
		List	  **columns = of_call ? &path->call_columns : &path->outer_columns;

		if (of_call ? path->within == NULL && column->varattno < (path->form != NULL ? 0 : 1) :
			!IsA(column, Var) || !list_member(outer->reltarget->exprs, column))
			return false;
		foreach(noted, *columns)
		{
			const Var  *other = lfirst(noted);

			if (other->varno == column->varno && other->varattno == column->varattno && !equal(other, column))
				return false;
		}
		*columns = list_append_unique(*columns, column);
	}
	return true;
}

/*
 * Expressions of the inner relation's columns, as they are above the join.
 */
static List *
above_join(const LateralPath *path, List *expressions)
{
	return path->type != JOIN_LEFT && path->type != JOIN_ANTI ? expressions :
		geonn_above_outer_join(expressions, path->inner, path->outer_join);
}

/*
 * Set the clauses by which two rows match, and those that rows of the join must meet (expressions).  False:
 * the node cannot test them.
 */
static bool
divide_clauses(RelOptInfo *rel, RelOptInfo *inner, const JoinPathExtraData *extra, LateralPath *path)
{
	/* a call and a LATERAL subquery do not test their own; of a join within a distance, the references' path does */
	List	   *own = path->within != NULL ? NIL : inner->baserestrictinfo;
	List	   *joining = path->within == NULL ? extra->restrictlist :
		list_delete_ptr(list_copy(extra->restrictlist), path->within->clause);
	List	   *clauses = list_concat_copy(joining, own);

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
	path->neighbours = list_concat(path->neighbours, extract_actual_clauses(own, false));
	path->neighbours = above_join(path, path->neighbours);
	return true;
}

/*
 * Set the cost of reading the outer rows and, once, the references, and of the returned rows.  PostgreSQL
 * counts a function's cost once, however often a nested loop calls it: so a LATERAL call's searches must not
 * count here.
 */
static void
set_cost(PlannerInfo *root, CustomPath *path, FuncExpr *expression, const Path *function)
{
	const Path *outer = linitial(path->custom_paths);
	Cost		references;

	if (!geonn_estimate_references(root, expression, &references))
		references = function->total_cost;
	path->path.startup_cost = outer->startup_cost + references;
	path->path.total_cost = outer->total_cost + references + cpu_tuple_cost * path->path.rows;

	/* for a call that reads observations itself, other joins count the search too */
	if (geonn_expression_observations(expression) != NULL)
		path->path.total_cost += GEONN_OPERATORS_A_SEARCH * cpu_operator_cost * outer->rows;
	if (path->path.pathkeys != NIL)
		path->path.total_cost += cpu_operator_cost * path->path.rows;
}

/*
 * Set the cost of a subquery's node.  PostgreSQL takes a search in an index by distance for a hundredth of what it
 * is.  So both ways are compared by what they do take, and the node's cost is to that of PostgreSQL's own way as
 * they are.
 */
static void
set_cost_of_form(const LateralPath *path, CustomPath *custom)
{
	const SqlForm *form = path->form;
	const Path *outer = linitial(custom->custom_paths);
	Cost		references = form->references->total_cost + COST_OF_NEW_SEARCH +
		OPERATORS_A_REFERENCE * cpu_operator_cost * form->references->rows;
	Cost		row = GEONN_OPERATORS_A_SEARCH * cpu_operator_cost + form->needed * (cpu_tuple_cost + form->output_cost);
	Cost		replaced = path->replaced_cost + (form->descends ? COST_OF_DESCENT : 0);
	double		scale = 1;

	if (references + row * outer->rows < replaced * outer->rows)
		scale = path->replaced_cost / replaced;
	custom->path.startup_cost = outer->startup_cost + scale * references;
	custom->path.total_cost = outer->total_cost + scale * (references + row * outer->rows);
	if (custom->path.pathkeys != NIL)
		custom->path.total_cost += cpu_operator_cost * custom->path.rows;
}

/*
 * Set the cost of a node of a join within a distance: a search of each outer row, and its pairs.  PostGIS says that a
 * call costs far more than it takes.  So that both ways are compared by what they do take, the node's cost is as many
 * times what it is as that of a call.
 */
static void
set_cost_of_within(const LateralPath *path, CustomPath *custom)
{
	const Path *references = path->within->references;
	const Path *outer = linitial(custom->custom_paths);
	Cost		search = references->total_cost + COST_OF_NEW_SEARCH +
		OPERATORS_A_REFERENCE * cpu_operator_cost * references->rows;
	Cost		rows = GEONN_OPERATORS_A_SEARCH * cpu_operator_cost * outer->rows + cpu_tuple_cost * custom->path.rows;
	bool		is_of_sphere = path->within->metric == GEONN_METRIC_SPHERE && IsA(path->within->clause->clause, OpExpr);
	double		scale = Max(path->within->call_cost / (is_of_sphere ? COST_OF_SPHERE_CALL : COST_OF_CALL), 1);

	custom->path.startup_cost = outer->startup_cost + scale * search;
	custom->path.total_cost = outer->total_cost + scale * (search + rows);
	if (custom->path.pathkeys != NIL)
		custom->path.total_cost += cpu_operator_cost * custom->path.rows;
}

/*
 * Offer the node over this outer path; is_partial: each process below a Gather takes a part of its rows.
 */
static void
offer_path(PlannerInfo *root, const LateralPath *template, Path *outer, const Path *function,
		   List *pathkeys, bool is_partial)
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
	if (template->within != NULL)
		custom->custom_paths = lappend(custom->custom_paths, template->within->references);
	if (template->own != NULL && (!is_partial || template->own_suits_workers))
		custom->custom_paths = lappend(custom->custom_paths, template->own);
	path->parallel_aware &= template->form == NULL && template->within == NULL;
	if (template->form != NULL)
		set_cost_of_form(template, custom);
	else if (template->within != NULL)
		set_cost_of_within(template, custom);
	else
		set_cost(root, custom, template->expression, function);
	if (is_partial)
		add_partial_path(path->parent, path);
	else
		add_path(path->parent, path);
}

/*
 * Offer the node over the cheapest outer paths, and over those whose order is useful.
 */
static void
offer_paths(PlannerInfo *root, const LateralPath *template, RelOptInfo *outer, const Path *function)
{
	ListCell   *cell;

	offer_path(root, template, outer->cheapest_total_path, function, NIL, false);
	foreach(cell, outer->pathlist)
	{
		Path	   *path = lfirst(cell);
		List	   *pathkeys;

		if (path->param_info != NULL)
			continue;
		pathkeys = build_join_pathkeys(root, template->path.path.parent, template->type,
									   path->pathkeys);
		if (pathkeys != NIL || path == outer->cheapest_startup_path)
			offer_path(root, template, path, function, pathkeys, false);
	}
}

static bool
form_suits_workers(PlannerInfo *root, const SqlForm *form)
{
	return form->references->parallel_safe &&
		is_parallel_safe(root, (Node *) form->keys) &&
		is_parallel_safe(root, (Node *) form->observation) &&
		is_parallel_safe(root, (Node *) form->outputs) &&
		is_parallel_safe(root, (Node *) form->conditions) &&
		is_parallel_safe(root, form->reach) &&
		is_parallel_safe(root, form->limit) &&
		is_parallel_safe(root, form->offset);
}

/*
 * Can workers run the join?  PostgreSQL's own joins with the function, and its scan, are for the leader
 * alone, and so are its joins with a subquery that has a LIMIT.
 */
static bool
suits_workers(PlannerInfo *root, const LateralPath *template, RelOptInfo *outer)
{
	const RowCall *call = &template->call;

	if (!outer->consider_parallel || outer->partial_pathlist == NIL ||
		!root->glob->parallelModeOK || max_parallel_workers_per_gather == 0 ||
		!is_parallel_safe(root, (Node *) template->path.path.pathtarget->exprs) ||
		!is_parallel_safe(root, (Node *) template->neighbours) ||
		!is_parallel_safe(root, (Node *) template->rows))
		return false;
	if (template->form != NULL)
		return form_suits_workers(root, template->form);
	if (template->within != NULL)
		return template->within->references->parallel_safe &&
			is_parallel_safe(root, (Node *) template->within->clause->clause);
	return is_parallel_safe(root, (Node *) castNode(FuncExpr, call->call->funcexpr)->args) &&
		is_parallel_safe(root, (Node *) call->point) &&
		geonn_references_are_plain(castNode(FuncExpr, call->call->funcexpr));
}

/*
 * Offer the node over the outer rows' partial paths, for processes below a Gather.
 */
static void
offer_partial_paths(PlannerInfo *root, const LateralPath *template, RelOptInfo *outer,
					const Path *function)
{
	RelOptInfo *rel = template->path.path.parent;
	ListCell   *cell;

	if (!suits_workers(root, template, outer))
		return;
	foreach(cell, outer->partial_pathlist)
	{
		Path	   *part = lfirst(cell);

		offer_path(root, template, part, function,
				   build_join_pathkeys(root, rel, template->type, part->pathkeys), true);
	}
}

/*
 * Does the statement update rows of the outer relation, for each of which the inner one, a subquery, returns one row at
 * most?  It can have the subquery's node: where another transaction has updated a row, PostgreSQL executes the plan again
 * for the new row alone, and the node searches for its row of the subquery.
 */
static bool
updates_outer_rows(PlannerInfo *root, const RelOptInfo *outer, const RelOptInfo *inner)
{
	const RangeTblEntry *entry;

	if (root->parse->commandType != CMD_UPDATE || !bms_is_member(root->parse->resultRelation, outer->relids) ||
		inner->rtekind != RTE_SUBQUERY || bms_is_empty(inner->lateral_relids))
		return false;
	entry = planner_rt_fetch(root->parse->resultRelation, root);
	return entry->relkind == RELKIND_RELATION && !entry->inh &&
		geonn_sql_asks_for_nearest_one(planner_rt_fetch(inner->relid, root)->subquery);
}

/*
 * Set path->form, or path->call.  False: no node can answer.
 */
static bool
find_question(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *clauses, LateralPath *path)
{
	if ((!geonn_statement_takes_nodes(root) && !updates_outer_rows(root, outer, inner)) || !geonn_may_plan(root))
		return false;
	if (inner->rtekind == RTE_FUNCTION)
	{
		path->expression = path->type == JOIN_SEMI ? NULL : geonn_find_row_call(root, outer, inner, clauses, &path->call);
		return path->expression != NULL;
	}
	if (!geonn_enable_sql_joins || !bms_is_subset(inner->lateral_relids, outer->relids))
		return false;
	if (bms_is_empty(inner->lateral_relids))
	{
		path->within = geonn_within_form(root, outer, inner, path->type, path->path.path.parent->relids, clauses);
		return path->within != NULL;
	}
	if (path->type == JOIN_SEMI || inner->rtekind != RTE_SUBQUERY)
		return false;
	path->replaced_cost = ((const Path *) linitial(inner->pathlist))->total_cost;

	/* do not spend time in planning the references where PostgreSQL's own way is short */
	if ((path->replaced_cost + COST_OF_DESCENT) * outer->rows < COST_OF_NEW_SEARCH)
		return false;
	path->form = geonn_sql_form(root, inner);
	return path->form != NULL && path->form->problem == NULL;
}

/*
 * Where PostgreSQL's own path for the subquery of an outer row has an index: keep it.  It tests conditions on the
 * subquery's rows, as the node does: these must have the same result again.
 */
static void
keep_path_of_form(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, LateralPath *path)
{
	List	   *used = NIL;
	List	   *columns;
	ListCell   *cell;

	foreach(cell, inner->subplan_params)
		used = lappend(used, ((const PlannerParamItem *) lfirst(cell))->item);
	if (!path->form->descends || !note_columns(path, used, outer, inner) ||
		!geonn_own_columns(inner, path->call_columns, &columns) ||
		contain_volatile_functions((Node *) extract_actual_clauses(inner->baserestrictinfo, false)))
		return;
	path->own = geonn_own_path(root, path->path.path.parent, outer, path->outer_columns, inner->cheapest_total_path, columns);

	/* no Gather is in such a path, and workers may call its functions if they may call the node's */
	path->own_suits_workers = true;
}

/*
 * Likewise for a join within a distance: the cheapest path that an outer row parameterizes.
 */
static void
keep_path_of_within(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, LateralPath *path)
{
	Path	   *cheapest = NULL;
	List	   *clauses;
	ListCell   *cell;

	foreach(cell, inner->pathlist)
	{
		Path	   *own = lfirst(cell);

		if (own->param_info != NULL && bms_is_subset(own->param_info->ppi_req_outer, outer->relids) &&
			(cheapest == NULL || own->total_cost < cheapest->total_cost))
			cheapest = own;
	}
	if (cheapest == NULL)
		return;
	clauses = extract_actual_clauses(cheapest->param_info->ppi_clauses, false);
	if (contain_volatile_functions((Node *) clauses) || !note_columns(path, clauses, outer, inner))
		return;
	path->own = geonn_own_path(root, path->path.path.parent, outer, path->outer_columns, cheapest,
							   path->within->references->pathtarget->exprs);
	path->own_suits_workers = cheapest->parallel_safe;
}

/*
 * Expressions with all columns that the node's question needs of outer rows.
 */
static List *
columns_of_question(const LateralPath *path)
{
	return path->form != NULL ? path->form->outer_columns :
		path->within != NULL ? list_make1(path->within->clause->clause) : path->call.point;
}

static void
offer_join(PlannerInfo *root, RelOptInfo *rel, RelOptInfo *outer, RelOptInfo *inner, JoinType type,
		   JoinPathExtraData *extra)
{
	LateralPath template = {.type = type,.inner = inner->relid,.outer_join = extra->sjinfo};
	CustomPath *path = &template.path;

	path->path.parent = rel;

	if (previous_hook != NULL)
		previous_hook(root, rel, outer, inner, type, extra);
	if ((type != JOIN_INNER && type != JOIN_LEFT && type != JOIN_SEMI && type != JOIN_ANTI) ||
		inner->reloptkind != RELOPT_BASEREL ||
		(inner->rtekind != RTE_FUNCTION && inner->rtekind != RTE_SUBQUERY && inner->rtekind != RTE_RELATION) ||
		!bms_is_empty(rel->lateral_relids) ||
		outer->cheapest_total_path == NULL || outer->cheapest_total_path->param_info != NULL ||
		inner->pathlist == NIL)
		return;

	/* from 19 on, PostgreSQL may aggregate rows before the join: these lack the columns needed */
	if (contain_agg_clause((Node *) rel->reltarget->exprs))
		return;
	if (!find_question(root, outer, inner, extra->restrictlist, &template) ||
		!divide_clauses(rel, inner, extra, &template) ||
		!note_columns(&template, rel->reltarget->exprs, outer, inner) ||
		!note_columns(&template, template.neighbours, outer, inner) ||
		!note_columns(&template, template.rows, outer, inner) ||
		!note_columns(&template, columns_of_question(&template), outer, inner))
		return;
	if (template.form != NULL)
		keep_path_of_form(root, outer, inner, &template);
	else if (template.within != NULL)
		keep_path_of_within(root, outer, inner, &template);

	path->path.type = T_CustomPath;
	path->path.pathtype = T_CustomScan;
	path->path.pathtarget = rel->reltarget;
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	offer_partial_paths(root, &template, outer, linitial(inner->pathlist));
	offer_paths(root, &template, outer, linitial(inner->pathlist));
}

/*
 * The numbers of the outer columns in the rows of the outer plan.
 */
static List *
outer_numbers(const LateralPath *path, const Plan *outer)
{
	List	   *numbers = NIL;
	ListCell   *cell;

	foreach(cell, path->outer_columns)
	{
		Var		   *column = lfirst(cell);
		TargetEntry *entry = tlist_member((Expr *) column, outer->targetlist);

		if (entry == NULL)
			elog(ERROR, "column %d of relation %d is not among the outer plan's", column->varattno,
				 column->varno);
		numbers = lappend_int(numbers, entry->resno);
	}
	return numbers;
}

/*
 * As LateralPrivate has them.
 */
static List *
private_list(const LateralPath *path, const Plan *outer, AttrNumber number, Oid table)
{
	return list_make5(makeInteger(path->type), makeBoolean(path->path.path.pathkeys != NIL),
					  makeInteger(number), list_make1_oid(table), outer_numbers(path, outer));
}

/*
 * For each of the outputs the index of an equal key, or -1.
 */
static List *
equal_keys(const SqlForm *form, List *outputs)
{
	List	   *numbers = NIL;
	ListCell   *cell;

	foreach(cell, outputs)
	{
		int			number = list_length(form->keys) - 1;

		while (number >= 0 && !equal(list_nth(form->keys, number), lfirst(cell)))
			number--;
		numbers = lappend_int(numbers, number);
	}
	return numbers;
}

/*
 * The node of a subquery: see sql_join.h for its lists.
 */
static Plan *
plan_form(PlannerInfo *root, LateralPath *path, List *targets, List *children)
{
	Plan	   *outer = linitial(children);
	const SqlForm *form = path->form;
	RelOptInfo *rel = palloc(sizeof(RelOptInfo));
	Index		number = geonn_add_references(root, form);
	Plan	   *references = geonn_plan_references(form, number);
	List	   *outputs = NIL;
	List	   *columns = list_concat_copy(path->outer_columns, path->call_columns);
	List	   *expressions;
	CustomScan *scan;
	ListCell   *cell;

	foreach(cell, path->call_columns)
	{
		AttrNumber	column = lfirst_node(Var, cell)->varattno;

		outputs = lappend(outputs, column == 0 ? form->row : list_nth(form->outputs, column - 1));
	}
	foreach(cell, references->targetlist)
		columns = lappend(columns, lfirst_node(TargetEntry, cell)->expr);
	expressions = list_concat_copy(form->keys, form->observation);
	expressions = list_concat(expressions, list_make4(form->limit, form->offset, form->reach, form->conditions));
	expressions = list_concat(expressions, outputs);
	expressions = list_concat(copyObject(expressions), path->neighbours);
	ChangeVarNodes((Node *) expressions, REFERENCES_VARNO, (int) number, 0);
	scan = geonn_make_scan(root, &path->path, targets, copyObject(path->rows), expressions, columns);

	/* EXPLAIN names the relations that the path's has, to which the references belong from here on */
	*rel = *path->path.path.parent;
	rel->relids = bms_add_member(bms_copy(rel->relids), (int) number);
	path->path.path.parent = rel;
	scan->methods = &geonn_sql_join_methods.scan;
	subquery_nodes++;
	scan->custom_plans = list_concat(list_make2(outer, references), list_copy_tail(children, 1));
	scan->custom_private = list_concat(private_list(path, outer, 0, InvalidOid),
									   list_make4(form->operators, form->collations, form->nulls_first,
												  equal_keys(form, outputs)));
	scan->custom_private = list_concat(scan->custom_private,
									   list_make5(form->point, makeInteger(form->kind), makeInteger(form->metric),
												  makeString(pstrdup(form->function)), makeInteger(form->excluded)));
	scan->custom_private = list_concat(scan->custom_private, list_make2(makeBoolean(form->has_lines), form->table));
	return (Plan *) scan;
}

/*
 * The node of a join within a distance: see sql_within.h for its lists.
 */
static Plan *
plan_within(PlannerInfo *root, const LateralPath *path, List *targets, List *children)
{
	const WithinForm *form = path->within;
	const Plan *references = lsecond(children);
	List	   *columns = NIL;
	List	   *call = list_make1(form->clause->clause);
	CustomScan *scan;
	ListCell   *cell;

	foreach(cell, references->targetlist)
		columns = lappend(columns, lfirst_node(TargetEntry, cell)->expr);
	scan = geonn_make_scan(root, &path->path, targets, copyObject(path->rows),
						   list_concat(list_concat(above_join(path, call), list_make2(form->observation, form->radius)),
									   path->neighbours),
						   list_concat_copy(path->outer_columns, above_join(path, columns)));
	scan->methods = &geonn_within_methods.scan;
	geonn_join_is_planned();
	scan->custom_plans = children;
	scan->custom_private = list_concat(private_list(path, linitial(children), 0, InvalidOid),
									   list_make3(list_make1_int(form->point), makeInteger(form->metric),
												  makeString(pstrdup(form->function))));
	return (Plan *) scan;
}

static Plan *
plan_join(PlannerInfo *root, RelOptInfo *rel pg_attribute_unused(), CustomPath *path, List *targets,
		  List *clauses pg_attribute_unused(), List *children)
{
	LateralPath *lateral = (LateralPath *) path;
	const RowCall *call = &lateral->call;
	CustomScan *scan;

	if (lateral->form != NULL)
		return plan_form(root, lateral, targets, children);
	if (lateral->within != NULL)
		return plan_within(root, lateral, targets, children);
	scan = geonn_make_scan(root, path, targets, copyObject(lateral->rows),
						   list_concat(lcons(call->call, list_copy(call->point)), lateral->neighbours),
						   list_concat_copy(lateral->outer_columns, lateral->call_columns));
	scan->methods = &geonn_lateral_methods.scan;
	scan->custom_plans = children;
	scan->custom_private = private_list(lateral, linitial(children), call->number, call->table);
	return (Plan *) scan;
}

uint64
geonn_subquery_nodes(void)
{
	return subquery_nodes;
}

void
geonn_plan_lateral_joins(void)
{
	RegisterCustomScanMethods(&geonn_lateral_methods.scan);
	RegisterCustomScanMethods(&geonn_sql_join_methods.scan);
	RegisterCustomScanMethods(&geonn_within_methods.scan);
	geonn_own_plan_register();
	previous_hook = set_join_pathlist_hook;
	set_join_pathlist_hook = offer_join;
}
