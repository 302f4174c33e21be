/*
 * scan.c
 *		The plan node of joins in FROM: rows as they come.
 *
 * PostgreSQL computes a function in FROM as a whole and keeps its rows in a tuplestore before the first one
 * goes on.  The node gives the same rows one by one.  It evaluates the call's arguments when its first row is
 * asked for, reads the references, and then observations as far as rows are wanted: so the first rows come
 * early, a LIMIT ends the reading, and nothing is stored.  The rows of clusters and assignments come once all points
 * have been searched for.  Only the columns that are asked for are made.
 *
 * The node is offered beside the function's scan, at less cost, where such a call stands alone in FROM with
 * arguments that are known when the scan begins.  The library need not be preloaded: the functions' planner
 * support is asked before their paths are made.
 *
 * Where both sides are plain tables, without a rule, policy or other extension that has them read in another
 * way, or come with the parameters of an execution, a second one is offered for parallel plans.  Its workers
 * divide the observations between them.  The node checks the tables that it meets, and searches alone if they
 * are none of these (join_node.c).  Every process computes the arguments for itself, so they must not be
 * volatile.  The functions themselves stay restricted to the leader.
 *
 * Nodes that read only the observations that meet the clauses on them (observation_filter.c) are offered
 * besides, for one process, at the cost of a plan for that reading.  One takes the clauses of the relation
 * itself, and those that follow from joined relations' own clauses.  Others are for the inner side of a nested
 * loop: they take the id from a row of another relation, and search anew for each of its rows.  That pays where
 * few rows come, and the references are few or kept.  Calls that UNION ALL joins together are for one process,
 * too, since PostgreSQL has decided by then that no process shares these rows.
 * No node is offered where a whole row is wanted.
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "base/compat.h"
#include "base/value.h"
#include "join/arguments.h"
#include "plan/estimate.h"
#include "plan/join_node.h"
#include "plan/known.h"
#include "plan/observation_filter.h"
#include "plan/plan_fields.h"
#include "plan/scan.h"
#include "points/table_reader.h"
#include "points/query.h"

/* the cost of another search with the same references: about 0.2 ms */
#define COST_OF_SEARCH 100

/* the custom_exprs of the node's plan (plan_fields.h) */
typedef struct ScanExpressions
{
	RangeTblFunction *call;
	List	   *conditions;		/* on observations, which the node reads by */
} ScanExpressions;

/* ---- execution ---- */

static void
begin_scan(JoinNode *node, EState *estate pg_attribute_unused(), int flags pg_attribute_unused())
{
	const CustomScan *scan = (const CustomScan *) node->custom.ss.ps.plan;
	ScanExpressions expressions;

	geonn_unpack_fields(scan->custom_exprs, &expressions);
	geonn_node_begin_call(node, expressions.call);
	node->attributes = geonn_attributes(scan->custom_scan_tlist, 0);
	node->filter = expressions.conditions;
	node->shows_observations = node->filter != NIL;
}

static Node *
parameter_value(void *state, Node *parameter)
{
	PlanState  *node = state;
	int16		length;
	bool		by_value;
	bool		is_null;
	Datum		value = ExecEvalExpr(ExecInitExpr((Expr *) parameter, node), node->ps_ExprContext,
									 &is_null);

	get_typlenbyval(exprType(parameter), &length, &by_value);
	if (!is_null)
		value = geonn_copy_value(value, by_value, length);
	return (Node *) makeConst(exprType(parameter), exprTypmod(parameter), exprCollation(parameter),
							  length, value, is_null, by_value);
}

static GeonnSearch *
create_search(JoinNode *node)
{
	ScanState  *scan = &node->custom.ss;
	TupleDesc	planned = scan->ss_ScanTupleSlot->tts_tupleDescriptor;
	TupleDesc	row_type;
	GeonnJoin  *join = geonn_node_join(node, &row_type);
	GeonnSearch *search;

	geonn_check_row_type(node, row_type, planned);
	search = geonn_search_begin(join, row_type);
	if (node->filter != NIL)
		join->observations->conditions = geonn_observation_conditions(node->filter, join->observations,
																	  row_type, INDEX_VAR,
																	  node->attributes,
																	  parameter_value, scan);
	geonn_search_project(search, planned, node->attributes);
	return search;
}

static void
begin_search(JoinNode *node)
{
	MemoryContext former;

	node->context = AllocSetContextCreate(node->custom.ss.ps.state->es_query_cxt, "geonn scan",
										  ALLOCSET_SMALL_SIZES);
	former = MemoryContextSwitchTo(node->context);
	node->first = node->search = create_search(node);
	if (node->shared != NULL)
		geonn_search_take_part(node->search, node->shared);

	/* a rollback to a savepoint must not undo what is still being read, so read all now */
	else if (GetCurrentSubTransactionId() != node->begun_in)
		geonn_search_complete(node->search);
	MemoryContextSwitchTo(former);
}

static TupleTableSlot *
next_row(JoinNode *node)
{
	TupleTableSlot *slot = node->custom.ss.ss_ScanTupleSlot;

	if (unlikely(node->search == NULL))
		begin_search(node);
	ExecClearTuple(slot);
	if (!geonn_search_next(node->search, slot->tts_values, slot->tts_isnull))
		return slot;
	return ExecStoreVirtualTuple(slot);
}

static const JoinNodeMethods methods = {
	.scan = {"geonn join", geonn_node_create},
	.filter_label = "Filter on Observations",
	.size = sizeof(JoinNode),
	.begin = begin_scan,
	.next_row = next_row,
	.prepare = create_search
};

/* ---- paths ---- */

static set_rel_pathlist_hook_type previous_hook;

static Plan *plan_scan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets,
					   List *clauses, List *children);

static const CustomPathMethods path_methods = {
	.CustomName = "geonn join",
	.PlanCustomPath = plan_scan
};

/*
 * The columns of the relation that the path needs for its target and these clauses (RestrictInfo),
 * as Vars, each once.
 */
static List *
needed_columns(CustomPath *path, List *clauses)
{
	RelOptInfo *rel = path->path.parent;
	List	   *used = list_concat_copy(path->path.pathtarget->exprs, path->custom_private);
	List	   *columns = NIL;
	ListCell   *cell;

	used = list_concat(used, get_actual_clauses(clauses));
	foreach(cell, pull_var_clause((Node *) used, PVC_RECURSE_PLACEHOLDERS))
	{
		Var		   *column = copyObject(lfirst_node(Var, cell));

		if (column->varno != (int) rel->relid)
			continue;
		geonn_forget_outer_joins(column);
		columns = list_append_unique(columns, column);
	}
	return columns;
}

/*
 * The path that reads all observations.  It costs what the function does, less storing rows and reading them
 * again, with a lower startup cost.
 */
static CustomPath *
whole_path(PlannerInfo *root, RelOptInfo *rel, FuncExpr *expression, const Path *function)
{
	CustomPath *path = makeNode(CustomPath);
	Cost		storing = cpu_tuple_cost * function->rows / 2;
	Cost		references;

	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = rel->reltarget;
	path->path.rows = rel->rows;
	path->path.startup_cost = function->startup_cost;
	path->path.total_cost = Max(function->total_cost - storing, function->startup_cost);
	/* the first row of clusters, and of an assignment, comes once all points have been searched for */
	if (!geonn_expression_has_one_side(expression) && !geonn_expression_assigns(expression) &&
		geonn_estimate_references(root, expression, &references))
		path->path.startup_cost = Min(function->startup_cost, rel->baserestrictcost.startup + references);
	path->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	path->methods = &path_methods;
	return path;
}

/* ---- parallel plans ---- */

static PlainTable *
plain_table(Oid oid)
{
	PlainTable *table = palloc0(sizeof(PlainTable));

	table->table = oid;
	return table;
}

/*
 * The plain tables (PlainTable, without attributes) that make up a relation, if reading it scans them
 * sequentially, so that processes can share the pages; else NIL.  The plan of a similar query tells; it
 * selects no column, lest another extension refuse one that the join does not read.
 */
static List *
plain_tables(Oid relation)
{
	char		kind = get_rel_relkind(relation);
	char	   *name = kind != 0 && geonn_may_plan_another() ? geonn_relation_name(relation) : NULL;
	PlannedStmt *plan;
	Plan	   *top;
	List	   *tables = NIL;
	ListCell   *cell;

	if (name == NULL || (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
						 kind != RELKIND_MATVIEW))
		return NIL;
	plan = geonn_plan_query(psprintf("SELECT FROM %s", name), name,
							CURSOR_OPT_PARALLEL_OK | GEONN_PLAN_TABLES, relation, NIL);
	if (plan == NULL)
		return NIL;
	top = plan->planTree;
	if (IsA(top, Gather))
		top = outerPlan(top);
	foreach(cell, IsA(top, Append) ? ((Append *) top)->appendplans : list_make1(top))
	{
		const Scan *scan = lfirst(cell);

		if (!IsA(scan, SeqScan) || scan->plan.qual != NIL)
			return NIL;
		tables = lappend(tables, plain_table(rt_fetch(scan->scanrelid, plan->rtable)->relid));
	}
	return tables;
}

double
geonn_divide_path(Path *path, int workers)
{
	/* the leader searches in the time that its workers leave it */
	double		leader = parallel_leader_participation ? Max(0, 1.0 - 0.3 * workers) : 0;

	Assert(workers > 0 && path->param_info == NULL);
	path->rows = clamp_row_est(path->rows / (workers + leader));
	path->parallel_aware = true;
	path->parallel_safe = true;
	path->parallel_workers = workers;
	path->parent->consider_parallel = true;
	return workers + leader;
}

/* Has the relation, or one that comes later, a column of PostGIS's whose type leaves open whether its values are points? */
static bool
may_turn_to_shapes(Node *observations)
{
	Oid			relation = geonn_comes_later(NULL, observations) ? InvalidOid : geonn_known_relation(NULL, observations);
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	AttrNumber	columns;

	if (!HeapTupleIsValid(tuple))
		return true;
	columns = ((Form_pg_class) GETSTRUCT(tuple))->relnatts;
	ReleaseSysCache(tuple);
	for (AttrNumber i = 1; i <= columns; i++)
	{
		Oid			type;
		int32		typmod;
		Oid			collation;

		get_atttypetypmodcoll(relation, i, &type, &typmod, &collation);
		if (OidIsValid(type) && geonn_point_kind(getBaseType(type)) != GEONN_POINT_NONE && geonn_typmod_is_any(typmod))
			return true;
	}
	return false;
}

static bool
are_temporary(List *tables)
{
	ListCell   *cell;

	foreach(cell, tables)
	{
		if (get_rel_persistence(((const PlainTable *) lfirst(cell))->table) == RELPERSISTENCE_TEMP)
			return true;
	}
	return false;
}

/* A process that meets the first shape among observations reads the references itself; workers may not read temporary tables. */
bool
geonn_references_are_plain(const FuncExpr *expression)
{
	Node	   *references = geonn_expression_argument(expression, "ref");
	List	   *tables;

	if (geonn_comes_later(NULL, references))
		return true;
	tables = plain_tables(geonn_known_relation(NULL, references));
	return tables != NIL &&
		!(are_temporary(tables) && may_turn_to_shapes(geonn_expression_argument(expression, "obs")));
}

static int
workers_for(Oid observations)
{
	char		kind = get_rel_relkind(observations);

	/* if a table is too small for any worker, the query need not be planned */
	if ((kind == RELKIND_RELATION || kind == RELKIND_MATVIEW) && !has_subclass(observations) &&
		geonn_table_workers(list_make1(plain_table(observations))) == 0)
		return 0;
	return geonn_table_workers(plain_tables(observations));
}

static void
offer_parallel_scan(PlannerInfo *root, RelOptInfo *rel, FuncExpr *expression, CustomPath *alone)
{
	Node	   *observations = geonn_expression_argument(expression, "obs");
	CustomPath *path;
	int			workers;

	if (rel->reloptkind != RELOPT_BASEREL || !root->glob->parallelModeOK || max_parallel_workers_per_gather == 0 ||
		!is_parallel_safe(root, (Node *) expression->args) ||
		contain_volatile_functions((Node *) expression->args) ||
		!is_parallel_safe(root, (Node *) rel->reltarget->exprs) ||
		/* pseudoconstant clauses, too: a Result node checks them above the scan, in the worker */
		!is_parallel_safe(root, (Node *) rel->baserestrictinfo))
		return;
	workers = geonn_comes_later(NULL, observations) ? max_parallel_workers_per_gather :
		workers_for(geonn_known_relation(NULL, observations));
	if (workers == 0 || !geonn_references_are_plain(expression))
		return;

	path = makeNode(CustomPath);
	*path = *alone;
	path->path.total_cost = alone->path.startup_cost +
		(alone->path.total_cost - alone->path.startup_cost) / geonn_divide_path(&path->path, workers);
	add_partial_path(rel, (Path *) path);
}

/* ---- plans that read a part of the observations ---- */

/*
 * The path that reads only observations that meet the clauses own (RestrictInfo) and implied (expressions).
 * all: the clauses that its rows must meet.  *known: the estimate of its rows comes from that reading.
 */
static CustomPath *
filtered_path(PlannerInfo *root, RangeTblFunction *call, const CustomPath *whole, List *all,
			  List *own, List *implied, bool *known)
{
	CustomPath *path = makeNode(CustomPath);
	List	   *filter = list_concat_unique(get_actual_clauses(own), implied);
	JoinEstimate estimate;

	*path = *whole;
	path->custom_private = filter;
	*known = geonn_estimate_filtered(root, path->path.parent->relid, call, filter, &estimate);
	if (*known)
	{
		path->path.rows = clamp_row_est(estimate.rows *
										clauselist_selectivity(root, list_difference_ptr(all, own), 0, JOIN_INNER, NULL));
		path->path.total_cost = Max(estimate.cost + cpu_tuple_cost * estimate.rows,
									path->path.startup_cost);
	}
	else
		path->path.total_cost = path->path.startup_cost +
			(path->path.total_cost - path->path.startup_cost) *
			clauselist_selectivity(root, filter, 0, JOIN_INNER, NULL);
	return path;
}

static void
offer_inner_scans(PlannerInfo *root, RelOptInfo *rel, RangeTblFunction *call, const CustomPath *whole)
{
	List	   *offered = NIL;
	ListCell   *cell;

	foreach(cell, geonn_observation_join_clauses(root, rel, call))
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);
		ParamPathInfo *parameters =
			get_baserel_parampathinfo(root, rel, bms_del_member(bms_copy(clause->clause_relids), rel->relid));
		List	   *clauses;
		CustomPath *path;
		bool		known;

		if (parameters == NULL || list_member_ptr(offered, parameters))
			continue;
		offered = lappend(offered, parameters);
		clauses = list_concat_copy(rel->baserestrictinfo, parameters->ppi_clauses);
		path = filtered_path(root, call, whole, clauses, geonn_observation_clauses(rel, call, clauses), NIL, &known);
		if (!known)
			continue;
		path->path.param_info = parameters;
		path->path.startup_cost += COST_OF_SEARCH;
		path->path.total_cost += COST_OF_SEARCH;
		add_path(rel, (Path *) path);
	}
}

/*
 * Offer paths that read only observations that meet the query's clauses on them.  whole is the path that
 * reads all.  Sets rel->rows if it has a better estimate.
 */
static void
offer_filtered_scans(PlannerInfo *root, RelOptInfo *rel, RangeTblFunction *call, const CustomPath *whole)
{
	List	   *own = geonn_observation_clauses(rel, call, rel->baserestrictinfo);
	List	   *implied = geonn_implied_observation_clauses(root, rel, call);

	if (own != NIL || implied != NIL)
	{
		bool		known;
		CustomPath *path = filtered_path(root, call, whole, rel->baserestrictinfo, own, implied, &known);

		if (known)
			rel->rows = path->path.rows;
		add_path(rel, (Path *) path);
	}
	if (rel->reloptkind == RELOPT_BASEREL)
		offer_inner_scans(root, rel, call, whole);
}

/* ---- all plans ---- */

static void
offer_scan(PlannerInfo *root, RelOptInfo *rel, Index relid pg_attribute_unused(),
		   RangeTblEntry *entry)
{
	RangeTblFunction *call;
	FuncExpr   *expression;
	Path	   *function;
	CustomPath *path;
	ListCell   *cell;

	if (previous_hook != NULL)
		previous_hook(root, rel, relid, entry);
	if ((rel->reloptkind != RELOPT_BASEREL && rel->reloptkind != RELOPT_OTHER_MEMBER_REL) ||
		rel->lateral_relids != NULL || !geonn_statement_takes_nodes(root))
		return;
	call = geonn_join_call(entry);
	if (call == NULL || !geonn_may_plan(root))
		return;
	expression = castNode(FuncExpr, call->funcexpr);
	geonn_estimate_row_conditions(root, rel, call);
	function = rel->pathlist == NIL ? NULL : linitial(rel->pathlist);
	if (function == NULL || function->pathtype != T_FunctionScan || geonn_row_type(call) == NULL ||
		contain_subplans((Node *) expression))
		return;
	path = whole_path(root, rel, expression, function);
	foreach(cell, needed_columns(path, rel->baserestrictinfo))
	{
		if (lfirst_node(Var, cell)->varattno <= 0)
			return;
	}

	/* add_path may free this path: so it comes last.  An assignment is one of all observations together. */
	if (!geonn_expression_assigns(expression))
	{
		offer_filtered_scans(root, rel, call, path);
		path->path.rows = rel->rows;
		offer_parallel_scan(root, rel, expression, path);
	}
	add_path(rel, (Path *) path);
}

/*
 * Have the statement planned anew when the argument's relation changes.  PostgreSQL does so itself for a
 * regclass constant, but not for a name.
 */
static void
depend_on(PlannerInfo *root, Node *argument)
{
	Oid			relation = geonn_known_relation(NULL, argument);

	if (OidIsValid(relation))
		root->glob->relationOids = lappend_oid(root->glob->relationOids, relation);
}

CustomScan *
geonn_make_scan(PlannerInfo *root, const CustomPath *path, List *targets, List *clauses,
				List *expressions, List *columns)
{
	CustomScan *scan = makeNode(CustomScan);
	ListCell   *cell;

	if (IsA(linitial(expressions), RangeTblFunction))
	{
		const FuncExpr *call = castNode(FuncExpr, linitial_node(RangeTblFunction, expressions)->funcexpr);

		depend_on(root, geonn_expression_argument(call, "obs"));
		depend_on(root, geonn_expression_references(call));
	}

	/* other roles may lack the privilege, or have other row-level policies on tables that workers scan */
	geonn_depend_on_privilege(root);
	scan->scan.plan.targetlist = targets;
	scan->scan.plan.qual = clauses;
	scan->scan.scanrelid = 0;
	scan->flags = path->flags;
	scan->custom_exprs = copyObject(expressions);
	scan->custom_relids = bms_copy(path->path.parent->relids);
	foreach(cell, columns)
	{
		int			number = list_length(scan->custom_scan_tlist) + 1;

		scan->custom_scan_tlist = lappend(scan->custom_scan_tlist,
										  makeTargetEntry(copyObject(lfirst(cell)), number, NULL, false));
	}
	return scan;
}

static Plan *
plan_scan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets, List *clauses,
		  List *children pg_attribute_unused())
{
	ScanExpressions expressions = {
		.call = geonn_join_call(planner_rt_fetch(rel->relid, root)),
		.conditions = path->custom_private
	};
	CustomScan *scan = geonn_make_scan(root, path, targets, extract_actual_clauses(clauses, false),
									   geonn_pack_fields(&expressions), needed_columns(path, clauses));

	scan->methods = &methods.scan;
	return (Plan *) scan;
}

void
geonn_plan_scans(void)
{
	RegisterCustomScanMethods(&methods.scan);
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = offer_scan;
}
