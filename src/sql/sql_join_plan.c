/*
 * sql_join_plan.c
 *		The form of nearest-neighbour subqueries (sql_form.c), whose node is that of sql_join.c.
 *
 * The node keeps PostgreSQL's own path for an outer row, where that has an index (sql_own_plan.c).  Below a Gather, processes
 * share nothing: each executes the plan of the references, and has a search of its own.
 */
#include "postgres.h"

#include "catalog/pg_class_d.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "rewrite/rewriteManip.h"

#include "base/compat.h"
#include "base/settings.h"
#include "plan/estimate.h"
#include "plan/lateral_path.h"
#include "plan/scan.h"
#include "sql/sql_form.h"
#include "sql/sql_join.h"
#include "sql/sql_own_plan.h"
#include "sql/sql_plan.h"

/* what PostgreSQL leaves out of a search in an index by distance, in the units of lateral_path.h */
#define COST_OF_DESCENT 40

static uint64 subquery_nodes;	/* geonn_subquery_nodes */

uint64
geonn_subquery_nodes(void)
{
	return subquery_nodes;
}

/*
 * The cost of PostgreSQL's own plan for an outer row's subquery.
 */
static Cost
own_cost(const RelOptInfo *inner)
{
	return ((const Path *) linitial(inner->pathlist))->total_cost;
}

/*
 * Implements LateralForm.takes_update: does the statement update rows of the outer relation, for each of which the inner one,
 * a subquery, returns one row at most?  It can have the node: where another transaction has updated a row, PostgreSQL
 * executes the plan again for the new row alone, and the node searches for its row of the subquery.
 */
static bool
takes_update(PlannerInfo *root, const RelOptInfo *outer, const RelOptInfo *inner)
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
 * Implements LateralForm.recognise.
 */
static bool
recognise(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *clauses pg_attribute_unused(), LateralPath *path)
{
	const SqlForm *form;

	if (!geonn_enable_sql_joins || path->type == JOIN_SEMI || inner->rtekind != RTE_SUBQUERY ||
		bms_is_empty(inner->lateral_relids) || !bms_is_subset(inner->lateral_relids, outer->relids))
		return false;

	/* do not spend time in planning the references where PostgreSQL's own way is short */
	if ((own_cost(inner) + COST_OF_DESCENT) * outer->rows < COST_OF_NEW_SEARCH)
		return false;
	form = geonn_sql_form(root, inner);
	if (form == NULL || form->problem != NULL)
		return false;
	path->question = (void *) form;
	path->question_columns = form->outer_columns;
	path->least_column = 0;
	path->conditions = inner->baserestrictinfo;
	return true;
}

/*
 * Implements LateralForm.keep_own_path.  The path tests conditions on the subquery's rows, as the node does: these must have the
 * same result again.
 */
static void
keep_own_path(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, LateralPath *path)
{
	const SqlForm *form = path->question;
	List	   *used = NIL;
	List	   *columns;
	ListCell   *cell;

	foreach(cell, inner->subplan_params)
		used = lappend(used, ((const PlannerParamItem *) lfirst(cell))->item);
	if (!form->descends || !geonn_note_columns(path, used, outer, inner) ||
		!geonn_own_columns(inner, path->inner_columns, &columns) ||
		contain_volatile_functions((Node *) extract_actual_clauses(inner->baserestrictinfo, false)))
		return;
	path->own = geonn_own_path(root, path->path.path.parent, outer, path->outer_columns, inner->cheapest_total_path, columns);

	/* no Gather is in such a path, and workers may call its functions if they may call the node's */
	path->own_suits_workers = true;
}

/*
 * Implements LateralForm.set_cost.  PostgreSQL takes a search in an index by distance for a hundredth of what it
 * is.  So both ways are compared by what they do take, and the node's cost is to that of PostgreSQL's own way as
 * they are.
 */
static void
set_cost(PlannerInfo *root, const LateralPath *path, CustomPath *custom)
{
	const SqlForm *form = path->question;
	Cost		own = own_cost(find_base_rel(root, bms_singleton_member(path->inner)));
	const Path *outer = linitial(custom->custom_paths);
	Cost		references = form->references->total_cost + COST_OF_NEW_SEARCH +
		OPERATORS_A_REFERENCE * cpu_operator_cost * form->references->rows;
	Cost		row = GEONN_OPERATORS_A_SEARCH * cpu_operator_cost + form->needed * (cpu_tuple_cost + form->output_cost);
	Cost		replaced = own + (form->descends ? COST_OF_DESCENT : 0);
	double		scale = 1;

	if (references + row * outer->rows < replaced * outer->rows)
		scale = own / replaced;
	custom->path.startup_cost = outer->startup_cost + scale * references;
	custom->path.total_cost = outer->total_cost + scale * (references + row * outer->rows);
	if (custom->path.pathkeys != NIL)
		custom->path.total_cost += cpu_operator_cost * custom->path.rows;
}

static bool
suits_workers(PlannerInfo *root, const LateralPath *path)
{
	const SqlForm *form = path->question;

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
 * Implements LateralForm.make_node: see sql_plan.h for the node's lists.
 */
static CustomScan *
make_node(PlannerInfo *root, LateralPath *path, List *targets, List *children)
{
	Plan	   *outer = linitial(children);
	const SqlForm *form = path->question;
	RelOptInfo *rel = palloc(sizeof(RelOptInfo));
	Index		number = geonn_add_references(root, form);
	Plan	   *references = geonn_plan_references(form, number);
	List	   *outputs = NIL;
	List	   *columns = list_concat_copy(path->outer_columns, path->inner_columns);
	SqlExpressions expressions;
	SqlPrivate	planned;
	List	   *packed;
	CustomScan *scan;
	ListCell   *cell;

	foreach(cell, path->inner_columns)
	{
		AttrNumber	column = lfirst_node(Var, cell)->varattno;

		outputs = lappend(outputs, column == 0 ? form->row : list_nth(form->outputs, column - 1));
	}
	foreach(cell, references->targetlist)
		columns = lappend(columns, lfirst_node(TargetEntry, cell)->expr);
	expressions = (SqlExpressions) {
		.keys = form->keys,
		.observation = form->observation,
		.limit = form->limit,
		.offset = form->offset,
		.reach = form->reach,
		.conditions = form->conditions,
		.outputs = outputs,
		.clauses = path->neighbours
	};
	packed = copyObject(geonn_pack_fields(&expressions));
	ChangeVarNodes((Node *) packed, REFERENCES_VARNO, (int) number, 0);
	scan = geonn_make_scan(root, &path->path, targets, copyObject(path->rows), packed, columns);

	/* EXPLAIN names the relations that the path's has, to which the references belong from here on */
	*rel = *path->path.path.parent;
	rel->relids = bms_add_member(bms_copy(rel->relids), (int) number);
	path->path.path.parent = rel;
	subquery_nodes++;
	scan->custom_plans = list_concat(list_make2(outer, references), list_copy_tail(children, 1));
	planned = (SqlPrivate) {
		.operators = form->operators,
		.collations = form->collations,
		.nulls_first = form->nulls_first,
		.equal_keys = equal_keys(form, outputs),
		.point = form->point,
		.point_kind = makeInteger(form->kind),
		.metric = makeInteger(form->metric),
		.function = makeString(pstrdup(form->function)),
		.excluded = makeInteger(form->excluded),
		.has_shapes = makeBoolean(form->has_shapes),
		.table = form->table
	};
	scan->custom_private = geonn_lateral_private(path, outer, geonn_pack_fields(&planned));
	return scan;
}

const LateralForm geonn_subquery_form = {
	.node = &geonn_sql_join_methods,
	.recognise = recognise,
	.takes_update = takes_update,
	.keep_own_path = keep_own_path,
	.set_cost = set_cost,
	.suits_workers = suits_workers,
	.make_node = make_node
};
