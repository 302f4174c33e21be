/*
 * sql_zone_scan.c
 *		The polygons of a plane that have the point of an outer query's row inside, one point after the other.
 *
 *	SELECT p.id, (SELECT z.id FROM z WHERE ST_Contains(z.g, p.g) LIMIT 1) FROM p
 *
 * PostgreSQL executes such a subquery for each row of p.  In place of its scan of z the subquery has a node that reads z
 * once, keeps its rows and an index of their polygons (zones/plane.h), and looks up one point in each execution.  All
 * above the scan is PostgreSQL's: LIMIT, aggregates, joins with other tables, EXISTS below an OR, the error where several
 * rows are a value.
 *
 * Clauses of z that do not depend on the outer row are tested as z is read, by a scan of PostgreSQL's own, so that
 * policies, security barriers and privileges are those of the statement.  The others are tested after the point, but
 * before PostGIS's function, as they cost less.  The node is left out where they cost more, or where a security barrier
 * asks for another order.
 *
 * Rows come in the order in which z was read.  So LIMIT 1 without ORDER BY returns the same row wherever a point comes
 * again.
 *
 * PostgreSQL plans a subquery before it knows how often that is executed.  So the path's cost is that of one point.  Reading and
 * indexing, which are paid once, are not in it: ZoneScans.zones adds them up for the statement, and sql_statement.c compares
 * the statement's plans with and without such nodes.
 *
 * For geography each point would be a search of the engine, so that the node is for the plane alone.
 */
#include "postgres.h"

#include "catalog/pg_class_d.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "base/settings.h"
#include "plan/join_node.h"
#include "plan/known.h"
#include "plan/plan_fields.h"
#include "plan/scan.h"
#include "sql/sql_fallback.h"
#include "sql/sql_form.h"
#include "sql/sql_reasons.h"
#include "sql/sql_references.h"
#include "sql/sql_within_form.h"
#include "sql/sql_zone_scan.h"
#include "sql/sql_zones.h"

/* the node's path */
typedef struct ZonePath
{
	CustomPath	path;			/* first; its child returns the references */
	RestrictInfo *clause;		/* asks for the polygons */
	Node	   *point;			/* the point, of parameters */
	int			zone;			/* the references' column with the polygon, from 0 on */
	List	   *late;			/* clauses (RestrictInfo) that depend on the outer row, too */
	Cost		zones;			/* as in ZoneScans */
} ZonePath;

/* the custom_exprs of the node's plan (plan_fields.h); its custom_private has an IntList of the polygon's column */
typedef struct ZoneExpressions
{
	Node	   *clause;
	Node	   *point;
} ZoneExpressions;

typedef struct ZoneScan
{
	JoinNode	node;			/* first */
	ZoneExpressions planned;
	SqlReferences references;	/* of an execution of the node, which goes on for all points */
	Zones		zones;
	ExprState  *clause;
	ExprState  *point;
	Fallback	fallback;
	uint64		decided;		/* how many pairs were found without PostGIS's function */
	uint64		rechecked;		/* how many pairs PostGIS's function was called for */

	/* of one point */
	bool		is_looked_up;
	bool		asks_all;		/* PostGIS's function decides about all references */
	uint64		next;			/* the next reference of those, or of the invalid ones */
} ZoneScan;

static ZoneScans *scans;		/* NULL: the planner does not consider the node */
static set_rel_pathlist_hook_type previous_hook;
static const JoinNodeMethods methods;

/* ---- the planner ---- */

static bool
has_zone_call(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, has_zone_call, context, 0);
	return (IsA(node, FuncExpr) && contain_vars_of_level(node, 1) && geonn_is_zone_call(node)) ||
		expression_tree_walker(node, has_zone_call, context);
}

bool
geonn_asks_for_zones_of_rows(Query *query)
{
	return geonn_enable_sql_joins == GEONN_SQL_JOINS_ON && has_zone_call((Node *) query, NULL);
}

ZoneScans *
geonn_offer_zone_scans(ZoneScans *offer)
{
	ZoneScans  *former = scans;

	scans = offer;
	return former;
}

/*
 * Has the expression a parameter whose value is of an outer query's row?
 */
static bool
depends_on_outer_row(Node *node, PlannerInfo *root)
{
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Param) || ((const Param *) node)->paramkind != PARAM_EXEC)
		return expression_tree_walker(node, depends_on_outer_row, root);
	for (const PlannerInfo *around = root->parent_root; around != NULL; around = around->parent_root)
	{
		foreach(cell, around->plan_params)
		{
			if (lfirst_node(PlannerParamItem, cell)->paramId == ((const Param *) node)->paramid)
				return true;
		}
	}
	return false;
}

/*
 * Find the clause by which the relation's rows are asked for, and set the path's question.  False: there is none.  The zone is a
 * column: PostgreSQL would compute another expression for some rows alone, and it may fail for others.
 */
static bool
find_question(PlannerInfo *root, const RelOptInfo *rel, ZonePath *path, Node **zone)
{
	ListCell   *cell;

	foreach(cell, rel->baserestrictinfo)
	{
		path->clause = lfirst_node(RestrictInfo, cell);
		if (geonn_asks_for_zones(root, rel, (const Node *) path->clause->clause, &path->point, zone) && IsA(*zone, Var) &&
			depends_on_outer_row(path->point, root) &&
			!contain_volatile_functions((Node *) path->clause->clause) && !contain_subplans((Node *) path->clause->clause))
			return true;
	}
	return false;
}

/*
 * Set which other clauses are tested as references are read, and which after the point.  False: another order is asked for.
 */
static bool
divide_clauses(PlannerInfo *root, const RelOptInfo *rel, ZonePath *path, List **early)
{
	ListCell   *cell;

	*early = NIL;
	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);
		bool		is_late = depends_on_outer_row((Node *) clause->clause, root);

		if (clause == path->clause || clause->pseudoconstant)
			continue;
		if (contain_volatile_functions((Node *) clause->clause) || contain_subplans((Node *) clause->clause) ||
			clause->security_level > path->clause->security_level)
			return false;
		if (is_late && (clause->security_level < path->clause->security_level ||
						geonn_cost_of_clause(root, clause) > geonn_cost_of_clause(root, path->clause)))
			return false;
		if (is_late)
			path->late = lappend(path->late, clause);
		else
			*early = lappend(*early, clause);
	}
	return true;
}

/*
 * The columns that the node needs of the references, of which one is the polygon.
 */
static PathTarget *
columns_of_references(PlannerInfo *root, const RelOptInfo *rel, ZonePath *path, Node *zone)
{
	PathTarget *target = create_empty_pathtarget();
	List	   *used = list_concat(get_actual_clauses(path->late), list_copy(rel->reltarget->exprs));
	ListCell   *cell;

	used = lappend(used, path->clause->clause);
	add_new_columns_to_pathtarget(target, pull_var_clause((Node *) used, PVC_RECURSE_PLACEHOLDERS));
	foreach(cell, target->exprs)
	{
		const Var  *column = lfirst(cell);
		bool		is_column = IsA(column, Var) && column->varattno > 0;
		int32	   *width = is_column ? &rel->attr_widths[column->varattno - rel->min_attr] : NULL;

		if (equal(column, zone))
			path->zone = foreach_current_index(cell);

		/* the planner has set the widths of those columns alone that its own scan returns */
		if (width != NULL && *width <= 0)
			*width = get_attavgwidth(planner_rt_fetch(rel->relid, root)->relid, column->varattno);
	}
	return set_pathtarget_cost_width(root, target);
}

/*
 * The path that returns the references: a scan of a relation that has these clauses alone.
 */
static Path *
path_of_references(PlannerInfo *root, const RelOptInfo *rel, List *early, PathTarget *columns)
{
	RelOptInfo *scanned = palloc(sizeof(RelOptInfo));

	*scanned = *rel;
	scanned->baserestrictinfo = early;
	scanned->reltarget = columns;
	scanned->rows = clamp_row_est(rel->tuples * clauselist_selectivity(root, early, 0, JOIN_INNER, NULL));
	cost_qual_eval(&scanned->baserestrictcost, early, root);
	return create_seqscan_path(root, scanned, NULL, 0);
}

static Plan *plan_scan(PlannerInfo *root, RelOptInfo *rel, CustomPath *path, List *targets, List *clauses, List *children);

static const CustomPathMethods path_methods = {
	.CustomName = "geonn zones of a point",
	.PlanCustomPath = plan_scan
};

/*
 * Has PostgreSQL an index for the scan?  The node compares values other than polygons with each point, which takes longer.
 */
static bool
has_index_path(const RelOptInfo *rel)
{
	ListCell   *cell;

	foreach(cell, rel->pathlist)
	{
		if (IsA(lfirst(cell), IndexPath) || IsA(lfirst(cell), BitmapHeapPath))
			return true;
	}
	return false;
}

/* Does the type of a column say that its values are polygons? */
static bool
is_of_polygons(const Node *zone)
{
	int32		typmod = exprTypmod(zone);

	(void) getBaseTypeAndTypmod(exprType(zone), &typmod);
	return geonn_typmod_is_polygons(typmod);
}

/* May a subquery have the node in place of a scan of this relation? */
static bool
may_offer(PlannerInfo *root, RelOptInfo *rel, const RangeTblEntry *entry)
{
	return scans != NULL && geonn_enable_sql_joins == GEONN_SQL_JOINS_ON && root->parent_root != NULL &&
		rel->reloptkind == RELOPT_BASEREL && entry->rtekind == RTE_RELATION && !entry->inh && entry->tablesample == NULL &&
		(entry->relkind == RELKIND_RELATION || entry->relkind == RELKIND_MATVIEW) && bms_is_empty(rel->lateral_relids) &&
		!IS_DUMMY_REL(rel) && geonn_statement_takes_nodes(root);
}

static void
offer_scan(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *entry)
{
	ZonePath   *path;
	CustomPath *custom;
	Path	   *references;
	List	   *early;
	Node	   *zone;
	Cost		call;

	if (previous_hook != NULL)
		previous_hook(root, rel, relid, entry);
	if (!may_offer(root, rel, entry))
		return;
	path = palloc0(sizeof(ZonePath));
	if (!find_question(root, rel, path, &zone) || (!is_of_polygons(zone) && has_index_path(rel)) ||
		!divide_clauses(root, rel, path, &early) || !geonn_may_plan(root))
		return;
	references = path_of_references(root, rel, early, columns_of_references(root, rel, path, zone));
	if (!geonn_references_surely_fit(references, false, rel->tuples))
		return;
	call = geonn_cost_of_clause(root, path->clause);
	custom = &path->path;
	custom->path.type = T_CustomPath;
	custom->path.pathtype = T_CustomScan;
	custom->path.parent = rel;
	custom->path.pathtarget = rel->reltarget;
	custom->path.rows = rel->rows;
	custom->path.parallel_safe = references->parallel_safe;
	custom->path.total_cost = geonn_zones_cost_of_points(call, 1, rel->rows);
	custom->flags = CUSTOMPATH_SUPPORT_PROJECTION;
	custom->methods = &path_methods;
	custom->custom_paths = list_make1(references);
	path->zones = geonn_zones_cost(call, references);
	add_path(rel, &custom->path);
}

static Plan *
plan_scan(PlannerInfo *root, RelOptInfo *rel pg_attribute_unused(), CustomPath *custom, List *targets,
		  List *clauses pg_attribute_unused(), List *children)
{
	const ZonePath *path = (const ZonePath *) custom;
	const Plan *references = linitial(children);
	ZoneExpressions expressions = {.clause = (Node *) path->clause->clause,.point = path->point};
	List	   *columns = NIL;
	CustomScan *scan;
	ListCell   *cell;

	foreach(cell, references->targetlist)
		columns = lappend(columns, lfirst_node(TargetEntry, cell)->expr);
	scan = geonn_make_scan(root, custom, targets, get_actual_clauses(path->late), geonn_pack_fields(&expressions), columns);
	scan->custom_plans = children;
	scan->custom_private = list_make1(list_make1_int(path->zone));
	scan->methods = &methods.scan;
	geonn_join_is_planned();
	if (scans != NULL)
	{
		scans->nodes++;
		scans->zones += path->zones;
	}
	return (Plan *) scan;
}

/* ---- the node ---- */

static void
begin_scan(JoinNode *node, EState *estate, int flags)
{
	ZoneScan   *scan = (ZoneScan *) node;
	PlanState  *plan = &node->custom.ss.ps;
	const CustomScan *planned = (const CustomScan *) plan->plan;
	PlanState  *references = ExecInitNode(linitial(planned->custom_plans), estate,
										  flags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));

	node->custom.custom_ps = list_make1(references);
	node->has_no_search = true;
	geonn_unpack_fields(planned->custom_exprs, &scan->planned);
	geonn_sql_references_begin(&scan->references, references, false, linitial(planned->custom_private),
							   GEONN_POINT_GEOMETRY, false);
	scan->references.zones = &scan->zones;
	scan->clause = ExecInitExpr((Expr *) scan->planned.clause, plan);
	scan->point = ExecInitExpr((Expr *) scan->planned.point, plan);
}

/*
 * Read the references, in the memory of an execution.
 */
static void
begin_execution(ZoneScan *scan)
{
	JoinNode   *node = &scan->node;
	MemoryContext former;

	node->context = AllocSetContextCreate(node->custom.ss.ps.state->es_query_cxt, "geonn zones of a point",
										  ALLOCSET_DEFAULT_SIZES);
	former = MemoryContextSwitchTo(node->context);
	geonn_sql_references_read(&scan->references);
	MemoryContextSwitchTo(former);
	scan->is_looked_up = false;
}

/*
 * Look up the point that the parameters have now.
 */
static void
look_up(ZoneScan *scan)
{
	SqlReferences *references = &scan->references;
	PointStatus status = POINT_NULL;
	NullableDatum point;
	double		x;
	double		y;

	scan->is_looked_up = true;
	scan->next = 0;
	scan->zones.left = 0;

	/* PostgreSQL evaluates the point only if it has a reference */
	if (references->rereads || references->count > 0)
	{
		point.value = ExecEvalExprSwitchContext(scan->point, scan->node.custom.ss.ps.ps_ExprContext, &point.isnull);
		status = geonn_zones_read_point(&scan->zones, &point, &x, &y);
		status = geonn_sql_status_beside(references, status, point.isnull);
	}
	scan->asks_all = status == POINT_NOT_FINITE || (references->rereads && status != POINT_NULL);
	scan->fallback.rows += scan->asks_all;
	if (scan->asks_all && references->rereads)
		geonn_sql_references_reread(references);
	else if (status == POINT_VALID)
		geonn_zones_find(&scan->zones, x, y);
	else if (status == POINT_NULL)
		scan->next = PG_UINT64_MAX;
}

/*
 * Get the next reference that may have the point inside, in the order in which they were read; NULL: none is left.  Sets
 * whether it has it for sure.
 */
static const Reference *
next_kept(ZoneScan *scan, bool *is_sure)
{
	const SqlReferences *references = &scan->references;
	Zones	   *zones = &scan->zones;
	uint64		invalid = scan->next < references->invalid.count ? references->invalid.numbers[scan->next] : PG_UINT64_MAX;

	*is_sure = false;
	if (scan->asks_all)
		return scan->next < references->count ? references->rows[scan->next++] : NULL;
	if (zones->left == 0 && invalid == PG_UINT64_MAX)
		return NULL;
	if (zones->left == 0 || invalid < zones->found->number)
	{
		scan->next++;
		return references->rows[invalid];
	}
	*is_sure = zones->found->is_sure;
	zones->left--;
	return references->rows[zones->found++->number];
}

/*
 * Set the columns of the next reference that may have the point inside; false: none is left.
 */
static bool
next_reference(ZoneScan *scan, Datum *values, bool *nulls, bool *is_sure)
{
	SqlReferences *references = &scan->references;
	const Datum *from;
	const bool *from_nulls;

	if (references->rereads && scan->asks_all)
	{
		TupleTableSlot *slot = geonn_sql_references_next(references);

		if (TupIsNull(slot))
			return false;
		geonn_count_compared(&scan->fallback, 1, true);
		slot_getallattrs(slot);
		from = slot->tts_values;
		from_nulls = slot->tts_isnull;
		*is_sure = false;
	}
	else
	{
		const Reference *reference = next_kept(scan, is_sure);

		if (reference == NULL)
			return false;
		from = reference->values;
		from_nulls = reference->nulls;
	}
	memcpy(values, from, references->columns * sizeof(Datum));
	memcpy(nulls, from_nulls, references->columns * sizeof(bool));
	return true;
}

/*
 * Call PostGIS's function for the point and the reference of the scan's slot, if the clauses hold that PostgreSQL would test
 * before it: the function may fail.
 */
static bool
is_inside(ZoneScan *scan, ExprContext *expressions)
{
	bool		is_null;
	Datum		result;

	if (!ExecQual(scan->node.custom.ss.ps.qual, expressions))
		return false;
	scan->rechecked++;
	result = ExecEvalExprSwitchContext(scan->clause, expressions, &is_null);
	return !is_null && DatumGetBool(result);
}

static TupleTableSlot *
next_row(JoinNode *node)
{
	ZoneScan   *scan = (ZoneScan *) node;
	TupleTableSlot *slot = node->custom.ss.ss_ScanTupleSlot;
	ExprContext *expressions = node->custom.ss.ps.ps_ExprContext;
	bool		is_sure;

	ResetExprContext(expressions);
	if (node->context == NULL)
		begin_execution(scan);
	if (!scan->is_looked_up)
		look_up(scan);
	while (next_reference(scan, ExecClearTuple(slot)->tts_values, slot->tts_isnull, &is_sure))
	{
		CHECK_FOR_INTERRUPTS();
		expressions->ecxt_scantuple = ExecStoreVirtualTuple(slot);
		scan->decided += is_sure;
		if (is_sure || is_inside(scan, expressions))
			return slot;
		ResetExprContext(expressions);
	}
	return ExecClearTuple(slot);
}

/*
 * Implements JoinNodeMethods.go_on.
 */
static bool
look_up_anew(JoinNode *node)
{
	((ZoneScan *) node)->is_looked_up = false;
	return true;
}

static void
explain_scan(const JoinNode *node, List *ancestors, ExplainState *explain)
{
	const ZoneScan *scan = (const ZoneScan *) node;

	geonn_node_explain_expression(node, ancestors, explain, "Within", scan->planned.clause);
	if (!explain->analyze)
		return;
	ExplainPropertyUInteger("Pairs Decided", NULL, scan->decided, explain);
	ExplainPropertyUInteger("Pairs Rechecked", NULL, scan->rechecked, explain);
	ExplainPropertyUInteger("Rows Compared with All References", NULL, scan->fallback.rows, explain);
}

static const JoinNodeMethods methods = {
	.scan = {"geonn zones of a point", geonn_node_create},
	.size = sizeof(ZoneScan),
	.begin = begin_scan,
	.next_row = next_row,
	.go_on = look_up_anew,
	.explain = explain_scan
};

void
geonn_plan_zone_scans(void)
{
	RegisterCustomScanMethods(&methods.scan);
	previous_hook = set_rel_pathlist_hook;
	set_rel_pathlist_hook = offer_scan;
}
