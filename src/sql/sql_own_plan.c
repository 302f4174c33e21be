/*
 * sql_own_plan.c
 *		PostgreSQL's own plan for one outer row, which answers where a node's search does not.
 *
 * Without geonn, PostgreSQL joins by a nested loop: for each outer row it gets a few rows from an index.  The nodes of
 * subqueries (sql_join.c) and of joins within a distance (sql_within.c) keep this path as their last child, where
 * there is an index.  The planner cannot make a plan of the inner path alone, as a nested loop has to pass the outer row's
 * columns to it.  So the child is a nested loop, whose outer side is a scan of one row: the outer row that the node shows it.
 *
 * The rows are those that PostgreSQL returns without geonn: privileges, policies and security barriers are in the path.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "nodes/extensible.h"
#include "nodes/makefuncs.h"
#include "nodes/pathnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/tlist.h"

#include "base/compat.h"
#include "sql/sql_own_plan.h"

typedef struct RowScan
{
	CustomScanState custom;		/* first */
	const LateralNode *lateral;
	uint64		number;			/* the outer row's number in the present round */
	bool		is_left;		/* the row has not been returned */
} RowScan;

/* ---- the scan of the row ---- */

static void
begin_row(CustomScanState *state pg_attribute_unused(), EState *estate pg_attribute_unused(),
		  int flags pg_attribute_unused())
{
	Assert(state->ss.ps.ps_ProjInfo == NULL);
}

static TupleTableSlot *
next_row(CustomScanState *state)
{
	RowScan    *scan = (RowScan *) state;
	TupleTableSlot *slot = ExecClearTuple(state->ss.ss_ScanTupleSlot);

	Assert(scan->lateral != NULL);
	if (!scan->is_left)
		return slot;
	scan->is_left = false;
	geonn_lateral_set_outer(scan->lateral, scan->number, slot, scan->lateral->outer_columns);
	return ExecStoreVirtualTuple(slot);
}

static void
end_row(CustomScanState *state pg_attribute_unused())
{
}

static void
rescan_row(CustomScanState *state)
{
	((RowScan *) state)->is_left = false;
}

static Node *
create_row(CustomScan *scan pg_attribute_unused())
{
	static const CustomExecMethods methods = {
		.CustomName = "geonn unanswered row",
		.BeginCustomScan = begin_row,
		.ExecCustomScan = next_row,
		.EndCustomScan = end_row,
		.ReScanCustomScan = rescan_row
	};
	RowScan    *state = palloc0(sizeof(RowScan));

	NodeSetTag(state, T_CustomScanState);
	state->custom.methods = &methods;
	return (Node *) state;
}

static const CustomScanMethods scan_methods = {"geonn unanswered row", create_row};

/* ---- the planner ---- */

/*
 * The scan returns the columns as they are.
 */
static Plan *
plan_row(PlannerInfo *root pg_attribute_unused(), RelOptInfo *rel pg_attribute_unused(), CustomPath *path, List *targets,
		 List *clauses pg_attribute_unused(), List *children pg_attribute_unused())
{
	CustomScan *scan = makeNode(CustomScan);

	scan->scan.plan.targetlist = targets;
	scan->custom_scan_tlist = copyObject(targets);
	scan->flags = path->flags;
	scan->methods = &scan_methods;
	return (Plan *) scan;
}

static const CustomPathMethods path_methods = {
	.CustomName = "geonn unanswered row",
	.PlanCustomPath = plan_row
};

static PathTarget *
make_target(PlannerInfo *root, List *expressions)
{
	PathTarget *target = create_empty_pathtarget();

	add_new_columns_to_pathtarget(target, expressions);
	return set_pathtarget_cost_width(root, target);
}

/*
 * A path of one row.  Its relation is like the outer one, but without restrictions: the row meets them.
 */
static Path *
path_of_row(PlannerInfo *root, const RelOptInfo *outer, List *columns)
{
	CustomPath *path = makeNode(CustomPath);
	RelOptInfo *rel = palloc(sizeof(RelOptInfo));

	*rel = *outer;
	rel->baserestrictinfo = NIL;
	path->path.pathtype = T_CustomScan;
	path->path.parent = rel;
	path->path.pathtarget = make_target(root, columns);
	path->path.rows = 1;
	path->methods = &path_methods;
	return &path->path;
}

Path *
geonn_own_path(PlannerInfo *root, RelOptInfo *joined, RelOptInfo *outer, List *outer_columns, Path *own,
			   List *expressions)
{
	NestPath   *loop = makeNode(NestPath);
	Path	   *path = &loop->jpath.path;

	loop->jpath.jointype = JOIN_INNER;
	loop->jpath.outerjoinpath = path_of_row(root, outer, outer_columns);
	loop->jpath.innerjoinpath = own;
	path->pathtype = T_NestLoop;
	path->parent = joined;
	path->pathtarget = make_target(root, expressions);
	path->rows = own->rows;
	path->startup_cost = own->startup_cost;
	path->total_cost = own->total_cost;
	return path;
}

bool
geonn_own_columns(const RelOptInfo *inner, const List *above, List **columns)
{
	ListCell   *cell;
	ListCell   *own;

	*columns = NIL;
	foreach(cell, above)
	{
		foreach(own, inner->reltarget->exprs)
		{
			if (IsA(lfirst(own), Var) && lfirst_node(Var, own)->varattno == lfirst_node(Var, cell)->varattno)
				break;
		}
		if (own == NULL)
			return false;
		*columns = lappend(*columns, lfirst(own));
	}
	return true;
}

/* ---- the child ---- */

PlanState *
geonn_own_plan_begin(LateralNode *lateral, EState *estate, int flags)
{
	const CustomScan *scan = (const CustomScan *) lateral->node.custom.ss.ps.plan;
	PlanState  *own;

	/* of a row that another transaction has updated, the plan's scan would return what it returned for the former one */
	if (list_length(scan->custom_plans) <= LATERAL_OWN || estate->es_epq_active != NULL)
		return NULL;
	own = geonn_lateral_begin_child(lateral, LATERAL_OWN, estate, flags);
	((RowScan *) outerPlanState(own))->lateral = lateral;
	return own;
}

void
geonn_own_plan_show(PlanState *own, uint64 number)
{
	RowScan    *scan = (RowScan *) outerPlanState(own);

	/* the plan keeps what it allocates until the node ends */
	MemoryContext former = MemoryContextSwitchTo(own->state->es_query_cxt);

	ExecReScan(own);
	MemoryContextSwitchTo(former);
	scan->number = number;
	scan->is_left = true;
}

TupleTableSlot *
geonn_own_plan_next(PlanState *own)
{
	/* the plan keeps what it allocates until the node ends */
	MemoryContext former = MemoryContextSwitchTo(own->state->es_query_cxt);
	TupleTableSlot *slot = ExecProcNode(own);

	MemoryContextSwitchTo(former);
	if (TupIsNull(slot))
		return NULL;
	slot_getallattrs(slot);
	return slot;
}

void
geonn_own_plan_register(void)
{
	RegisterCustomScanMethods(&scan_methods);
}
