/*
 * neighbour.c
 *		An extension beside the module that does with plans what others do.
 *
 * As Citus does, it looks at the first member of custom_private of each plan of a custom scan; as
 * PostgreSQL may, it copies plans and writes them.  As TimescaleDB does for compressed chunks, it refuses to
 * plan a query that asks for a table's ctid: for tables whose names begin with "compressed".
 *
 * It also counts how often the planner looks at a relation: by that a test knows how often a query is planned.
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/optimizer.h"
#include "optimizer/paths.h"
#include "optimizer/planner.h"
#include "utils/lsyscache.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(neighbour_seen);
PG_FUNCTION_INFO_V1(neighbour_relations);
extern void _PG_init(void);

/* PostgreSQL 19 plans with the state of an EXPLAIN */
#if PG_VERSION_NUM >= 190000
#define EXPLAIN_PARAMETER , ExplainState *explain
#define EXPLAIN_ARGUMENT , explain
#else
#define EXPLAIN_PARAMETER
#define EXPLAIN_ARGUMENT
#endif

static planner_hook_type previous_planner;
static set_rel_pathlist_hook_type previous_pathlist;
static int64 seen;
static int64 relations;

static void
look_at_private(const List *list)
{
	ListCell   *cell;

	if (list == NIL)
		return;
	if (!IsA(list, List))
		elog(ERROR, "custom_private is no list of nodes");
	if (linitial(list) == NULL)
		elog(ERROR, "custom_private begins with no node");
	foreach(cell, list)
	{
		/* the tags of all nodes are small */
		if (lfirst(cell) != NULL && (int) nodeTag(lfirst(cell)) > 2000)
			elog(ERROR, "custom_private has a member that is no node");
	}
}

static void
look_at_plan(const Plan *plan)
{
	ListCell   *cell;

	if (plan == NULL)
		return;
	if (IsA(plan, CustomScan))
	{
		const CustomScan *scan = (const CustomScan *) plan;

		seen++;
		look_at_private(scan->custom_private);
		foreach(cell, scan->custom_plans)
			look_at_plan(lfirst(cell));
	}
	if (IsA(plan, SubqueryScan))
		look_at_plan(((const SubqueryScan *) plan)->subplan);
	if (IsA(plan, Append))
	{
		foreach(cell, ((const Append *) plan)->appendplans)
			look_at_plan(lfirst(cell));
	}
	look_at_plan(plan->lefttree);
	look_at_plan(plan->righttree);
}

static PlannedStmt *
plan_query(Query *query, const char *text, int options, ParamListInfo parameters EXPLAIN_PARAMETER)
{
	PlannedStmt *plan = previous_planner != NULL ?
		previous_planner(query, text, options, parameters EXPLAIN_ARGUMENT) :
		standard_planner(query, text, options, parameters EXPLAIN_ARGUMENT);
	PlannedStmt *copy = copyObject(plan);
	ListCell   *cell;

	look_at_plan(plan->planTree);
	foreach(cell, plan->subplans)
		look_at_plan(lfirst(cell));
	(void) nodeToString(plan);
	return copy;
}

static void
look_at_relation(PlannerInfo *root, RelOptInfo *rel, Index relid, RangeTblEntry *entry)
{
	Bitmapset  *columns = NULL;

	if (previous_pathlist != NULL)
		previous_pathlist(root, rel, relid, entry);
	relations++;
	pull_varattnos((Node *) rel->reltarget->exprs, relid, &columns);
	if (entry->rtekind == RTE_RELATION &&
		strncmp(get_rel_name(entry->relid), "compressed", strlen("compressed")) == 0 &&
		bms_is_member(SelfItemPointerAttributeNumber - FirstLowInvalidHeapAttributeNumber, columns))
		elog(ERROR, "transparent decompression only supports tableoid system column");
}

/*
 * How many plans of custom scans this process has seen.
 */
Datum
neighbour_seen(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_INT64(seen);
}

/*
 * How many relations of queries the planner has made paths for in this process.
 */
Datum
neighbour_relations(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_INT64(relations);
}

void
_PG_init(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_query;
	previous_pathlist = set_rel_pathlist_hook;
	set_rel_pathlist_hook = look_at_relation;
}
