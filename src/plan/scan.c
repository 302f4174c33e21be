/*
 * scan.c
 *		The plan node of joins in FROM: rows as they come.
 *
 * The node evaluates the call's arguments when its first row is asked for, reads
 * the references, and then observations as far as rows are wanted: so the first
 * rows come early, a LIMIT ends the reading, and nothing is stored.  Only the
 * columns that are asked for are made.  All else is as when the function is
 * called.
 */
#include "postgres.h"

#include "access/xact.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "base/value.h"
#include "plan/join_node.h"
#include "plan/observation_filter.h"
#include "plan/scan.h"

typedef struct ScanNode
{
	JoinNode	node;			/* first */
	MemoryContext context;		/* has the search; NULL: it has not begun */
	GeonnSearch *search;
} ScanNode;

static Node *create_node(CustomScan *scan);

const CustomScanMethods geonn_scan_methods = {
	.CustomName = "geonn join",
	.CreateCustomScanState = create_node
};

static void
begin_scan(JoinNode *node, EState *estate pg_attribute_unused(), int flags pg_attribute_unused())
{
	const CustomScan *scan = (const CustomScan *) node->custom.ss.ps.plan;

	node->attributes = geonn_attributes(scan->custom_scan_tlist, 0);
	node->filter = list_copy_tail(scan->custom_exprs, 1);
	node->shows_observations = node->filter != NIL;
}

/*
 * The value that a parameter now has.
 */
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

/*
 * Create a search for the join that the arguments describe, in the current
 * memory context.
 */
static GeonnSearch *
create_search(JoinNode *node)
{
	ScanState  *scan = &node->custom.ss;
	TupleDesc	planned = scan->ss_ScanTupleSlot->tts_tupleDescriptor;
	TupleDesc	row_type;
	GeonnJoin  *join = geonn_node_join(node, &row_type);
	GeonnSearch *search;

	if (row_type != NULL)
		geonn_check_row_type(node, row_type, planned);
	search = geonn_search_begin(join, row_type);
	if (node->filter != NIL && row_type != NULL)
		join->observations->conditions = geonn_observation_conditions(node->filter, join->observations,
																	  row_type, INDEX_VAR,
																	  node->attributes,
																	  parameter_value, scan);
	geonn_search_project(search, planned, node->attributes);
	return search;
}

/*
 * Evaluate the arguments and begin to search.
 */
static void
begin_search(ScanNode *scan)
{
	JoinNode   *node = &scan->node;
	MemoryContext former;

	scan->context = AllocSetContextCreate(node->custom.ss.ps.state->es_query_cxt, "geonn scan",
										  ALLOCSET_SMALL_SIZES);
	former = MemoryContextSwitchTo(scan->context);
	scan->search = create_search(node);
	if (node->shared != NULL)
		geonn_search_take_part(scan->search, node->shared);

	/* a rollback to a savepoint must not undo what is still being read, so read all now */
	else if (GetCurrentSubTransactionId() != node->begun_in)
		geonn_search_complete(scan->search);
	MemoryContextSwitchTo(former);
}

static TupleTableSlot *
next_row(JoinNode *node)
{
	ScanNode   *scan = (ScanNode *) node;
	TupleTableSlot *slot = node->custom.ss.ss_ScanTupleSlot;

	if (unlikely(scan->search == NULL))
		begin_search(scan);
	ExecClearTuple(slot);
	if (!geonn_search_next(scan->search, slot->tts_values, slot->tts_isnull))
		return slot;
	return ExecStoreVirtualTuple(slot);
}

static void
end_execution(JoinNode *node)
{
	ScanNode   *scan = (ScanNode *) node;

	if (scan->search != NULL)
		geonn_node_end_search(node, scan->search, node->prepared == NULL);
	if (scan->context != NULL)
		MemoryContextDelete(scan->context);
	scan->search = NULL;
	scan->context = NULL;
}

static void
add_reports(const JoinNode *node, GeonnReport *sum)
{
	geonn_add_search(sum, ((const ScanNode *) node)->search);
}

static const JoinNodeMethods methods = {
	.name = "geonn join",
	.filter_label = "Filter on Observations",
	.size = sizeof(ScanNode),
	.begin = begin_scan,
	.next_row = next_row,
	.prepare = create_search,
	.end_execution = end_execution,
	.add_reports = add_reports
};

static Node *
create_node(CustomScan *scan pg_attribute_unused())
{
	return geonn_node_create(&methods);
}
