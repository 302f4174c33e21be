/*
 * join_node.c
 *		What the plan nodes of joins have in common.
 *
 * A node evaluates the call's arguments, creates searches and returns rows (scan.c, lateral.c).  EXECUTE on the
 * function is checked when the node begins, and the privilege to search at all.  The node of sql_join.c has no call.
 *
 * Below a Gather, the leader prepares a search when workers are about to be launched: it reads the references and
 * shares the dataset.  For a call that reads its observations, it shares their tables, too.  Then every process, the
 * leader too, takes part with searches of its own.  The prepared one lives until the leader's end of execution,
 * which comes after the workers'.  Without shared memory, as in a cursor, the node of such a plan searches alone.
 * The leader also searches alone, and no worker is launched, where the observations are not columns of plain
 * tables, or the tables are temporary or small.  The planner may not know the tables: they can be parameters, and
 * a name in an argument can have come to mean a new table.  It never knows which columns will be read, and
 * one can be computed as it is read.  For the same reason the leader tells the workers which relations its
 * arguments have named, and they do not look up the names again.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

#include "base/compat.h"
#include "base/extension.h"
#include "join/arguments.h"
#include "join/call.h"
#include "join/nearest.h"
#include "plan/join_node.h"
#include "plan/known.h"

/* ---- the call ---- */

AttrNumber *
geonn_attributes(const List *targets, int first)
{
	AttrNumber *attributes = palloc((list_length(targets) - first + 1) * sizeof(AttrNumber));

	for (int i = first; i < list_length(targets); i++)
		attributes[i - first] = castNode(Var, list_nth_node(TargetEntry, targets, i)->expr)->varattno;
	return attributes;
}

void
geonn_check_row_type(const JoinNode *node, TupleDesc row_type, TupleDesc planned)
{
	for (int i = 0; i < planned->natts; i++)
	{
		int			number = node->attributes[i];

		if (number <= row_type->natts &&
			!TupleDescAttr(row_type, number - 1)->attisdropped &&
			TupleDescAttr(row_type, number - 1)->atttypid == TupleDescAttr(planned, i)->atttypid)
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the row type was changed after the statement was planned"),
				 errdetail("Column %d was dropped, or has another type now.", number),
				 errhint("Prepare the statement again.")));
	}
}

/*
 * In a parallel plan, relations that the leader looked up replace their arguments.
 */
static void
evaluate_arguments(const JoinNode *node, NullableDatum *values)
{
	const SharedSearch *shared = node->shared;
	const Node *observations = geonn_expression_argument(node->expression, "obs");
	const Node *references = geonn_expression_argument(node->expression, "ref");

	for (int i = 0; i < list_length(node->arguments); i++)
	{
		const Node *argument = list_nth(node->expression->args, i);
		Oid			relation = shared == NULL ? InvalidOid :
			argument == observations ? shared->observation_table :
			argument == references ? shared->reference_table : InvalidOid;

		if (OidIsValid(relation))
			values[i].value = ObjectIdGetDatum(relation);
		else
			values[i].value = ExecEvalExpr((ExprState *) list_nth(node->arguments, i),
										   node->custom.ss.ps.ps_ExprContext, &values[i].isnull);
	}
}

GeonnJoin *
geonn_node_join(JoinNode *node, TupleDesc *row_type)
{
	int			count = list_length(node->arguments);
	FunctionCallInfo fcinfo = palloc0(SizeForFunctionCallInfo(count));

	InitFunctionCallInfoData(*fcinfo, &node->function, count, node->expression->inputcollid, NULL, NULL);
	evaluate_arguments(node, fcinfo->args);
	*row_type = geonn_row_type(node->call);
	return geonn_read_join(fcinfo);
}

/* ---- searches ---- */

/*
 * Add the search's report to the sum; NULL: no search.
 */
static void
add_search(GeonnReport *sum, const GeonnSearch *search)
{
	GeonnReport report;

	if (search == NULL)
		return;
	report = geonn_search_report(search);
	geonn_report_add(sum, &report);
}

void
geonn_node_end_search(JoinNode *node, GeonnSearch *search, bool is_last)
{
	add_search(&node->sum, search);
	add_search(&node->present, search);
	if (is_last)
	{
		geonn_search_log(search, &node->present);
		memset(&node->present, 0, sizeof(node->present));
	}
	geonn_search_end(search);
}

void
geonn_node_end_first(JoinNode *node)
{
	if (node->first != NULL)
		geonn_node_end_search(node, node->first, node->prepared == NULL);
	node->first = node->search = NULL;
}

/*
 * Add the reports of the searches under way.
 */
static void
add_present(const JoinNode *node, GeonnReport *sum)
{
	add_search(sum, node->first);
	add_search(sum, node->following);
	if (node->search != node->first && node->search != node->following)
		add_search(sum, node->search);
}

static void
end_execution(JoinNode *node)
{
	if (node->context == NULL)
		return;
	if (node->methods->end_execution != NULL)
		node->methods->end_execution(node);
	geonn_node_end_first(node);
	MemoryContextDelete(node->context);
	node->context = NULL;
}

static void
end_preparation(JoinNode *node)
{
	if (node->prepared != NULL)
		geonn_node_end_search(node, node->prepared, true);
	if (node->preparation != NULL)
		MemoryContextDelete(node->preparation);
	node->prepared = NULL;
	node->preparation = NULL;
}

/* ---- execution ---- */

void
geonn_node_begin_call(JoinNode *node, RangeTblFunction *call)
{
	PlanState  *plan = &node->custom.ss.ps;
	Oid			function;

	node->call = castNode(RangeTblFunction, call);
	node->expression = castNode(FuncExpr, node->call->funcexpr);
	function = node->expression->funcid;
	if (object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
	fmgr_info(function, &node->function);
	fmgr_info_set_expr((Node *) node->expression, &node->function);
	node->arguments = ExecInitExprList(node->expression->args, plan);
}

static void
begin_node(CustomScanState *state, EState *estate, int flags)
{
	JoinNode   *node = (JoinNode *) state;

	geonn_check_may_search();
	node->begun_in = GetCurrentSubTransactionId();
	node->methods->begin(node, estate, flags);
}

/*
 * This loop replaces ExecScan: some minor releases of it ask for a test row when PostgreSQL rechecks a row
 * that another transaction has updated (EvalPlanQual), and a function has none.
 */
static TupleTableSlot *
execute_node(CustomScanState *state)
{
	JoinNode   *node = (JoinNode *) state;
	PlanState  *plan = &state->ss.ps;
	ExprContext *expressions = plan->ps_ExprContext;

	if (plan->qual == NULL && plan->ps_ProjInfo == NULL)
		return node->methods->next_row(node);
	for (;;)
	{
		TupleTableSlot *slot;

		/* quals may reject many rows */
		CHECK_FOR_INTERRUPTS();
		ResetExprContext(expressions);
		slot = node->methods->next_row(node);
		if (TupIsNull(slot))
			return plan->ps_ProjInfo == NULL ? slot :
				ExecClearTuple(plan->ps_ProjInfo->pi_state.resultslot);
		expressions->ecxt_scantuple = slot;
		if (ExecQual(plan->qual, expressions))
			return plan->ps_ProjInfo == NULL ? slot : ExecProject(plan->ps_ProjInfo);
		InstrCountFiltered1(&state->ss, 1);
	}
}

static void
end_node(CustomScanState *state)
{
	JoinNode   *node = (JoinNode *) state;
	ListCell   *cell;

	end_execution(node);
	end_preparation(node);
	foreach(cell, state->custom_ps)
		ExecEndNode(lfirst(cell));
}

static void
rescan_node(CustomScanState *state)
{
	JoinNode   *node = (JoinNode *) state;
	bool		children_change = false;
	ListCell   *cell;

	foreach(cell, state->custom_ps)
	{
		PlanState  *child = lfirst(cell);

		if (state->ss.ps.chgParam != NULL)
			UpdateChangedParamSet(child, state->ss.ps.chgParam);
		children_change |= child->chgParam != NULL;
	}
	if (children_change || node->context == NULL || node->methods->go_on == NULL || !node->methods->go_on(node))
	{
		end_execution(node);
		foreach(cell, state->custom_ps)
		{
			if (((PlanState *) lfirst(cell))->chgParam == NULL)
				ExecReScan(lfirst(cell));
		}
	}
	ExecScanReScan(&state->ss);
}

/* ---- several processes ---- */

/*
 * Create the search that all processes share.  Returns the bytes of shared memory that they need.
 */
static Size
prepare(JoinNode *node, int processes)
{
	MemoryContext former;

	end_preparation(node);
	node->preparation = AllocSetContextCreate(node->custom.ss.ps.state->es_query_cxt,
											  "geonn references", ALLOCSET_SMALL_SIZES);
	former = MemoryContextSwitchTo(node->preparation);
	node->prepared = node->methods->prepare(node);
	MemoryContextSwitchTo(former);
	return geonn_search_prepare_shared(node->prepared, processes);
}

/*
 * Read the references and share the prepared search; if it cannot be shared,
 * search alone.
 */
static void
share(JoinNode *node, ParallelContext *parallel, SharedSearch *shared)
{
	int			workers = geonn_search_share(node->prepared, shared);

	Assert(node->shared == NULL && node->prepared != NULL);
	if (workers > 0)
		node->shared = shared;
	else
		end_preparation(node);
	/* another node below the Gather may want fewer workers */
	ReinitializeParallelWorkers(parallel, Min(workers, parallel->nworkers_to_launch));
}

static Size
estimate_shared(CustomScanState *state, ParallelContext *parallel)
{
	JoinNode   *node = (JoinNode *) state;

	end_execution(node);
	return prepare(node, parallel->nworkers + 1);
}

static void
initialize_shared(CustomScanState *state, ParallelContext *parallel, void *memory)
{
	SharedSearch *shared = memory;

	memset(shared, 0, state->pscan_len);
	shared->bytes = state->pscan_len;
	shared->processes = parallel->nworkers + 1;
	share((JoinNode *) state, parallel, shared);
}

static void
reinitialize_shared(CustomScanState *state, ParallelContext *parallel, void *memory)
{
	JoinNode   *node = (JoinNode *) state;
	SharedSearch *shared = memory;

	if (node->shared != NULL)
		geonn_search_tell(node->prepared, shared);
	node->shared = NULL;
	end_execution(node);
	(void) prepare(node, shared->processes);
	share(node, parallel, shared);
}

static void
initialize_worker(CustomScanState *state, shm_toc *toc pg_attribute_unused(), void *memory)
{
	((JoinNode *) state)->shared = memory;
}

/*
 * Report while the shared memory still exists.  Workers may still search if not all rows were asked for.
 */
static void
shut_down(CustomScanState *state)
{
	JoinNode   *node = (JoinNode *) state;
	SharedSearch *shared = node->shared;

	node->shared = NULL;
	if (shared == NULL)
		return;
	if (node->prepared == NULL)
	{
		GeonnReport *report = &shared->reports[ParallelWorkerNumber + 1];

		geonn_report_add(report, &node->sum);
		add_present(node, report);
		memset(report->fates, 0, sizeof(report->fates));	/* texts of this process */
		return;
	}
	geonn_search_tell(node->prepared, shared);
	geonn_reports_take(&node->processes, shared->reports, shared->processes, &node->present,
					   state->ss.ps.state->es_query_cxt);
}

/* ---- EXPLAIN ---- */

void
geonn_node_explain_expression(const JoinNode *node, List *ancestors, ExplainState *explain,
							  const char *label, Node *expression)
{
	List	   *context = set_deparse_context_plan(explain->deparse_cxt, node->custom.ss.ps.plan,
												  ancestors);

	ExplainPropertyText(label, deparse_expression(expression, context,
												  list_length(explain->rtable) > 1 ||
												  explain->verbose, false), explain);
}

void
geonn_node_explain_relation(ExplainState *explain, const char *label, Oid relation)
{
	ExplainPropertyText(label, DatumGetCString(DirectFunctionCall1(regclassout, ObjectIdGetDatum(relation))), explain);
}

static void
explain_side(ExplainState *explain, const char *label, Node *argument)
{
	Const	   *constant = (Const *) argument;
	Oid			relation = geonn_known_relation(NULL, argument);

	if (OidIsValid(relation))
		geonn_node_explain_relation(explain, label, relation);
	else if (argument != NULL && IsA(argument, Const) && !constant->constisnull)
		ExplainPropertyText(label, TextDatumGetCString(constant->constvalue), explain);
}

static void
explain_names(ExplainState *explain, const char *label, Node *argument)
{
	List	   *names = geonn_known_names(NULL, argument);
	ListCell   *cell;

	foreach(cell, names)
		lfirst(cell) = unconstify(char *, quote_identifier(lfirst(cell)));
	if (names != NIL)
		ExplainPropertyList(label, names, explain);
}

/*
 * Show the columns that options name for conditions on candidates, as in: Observation Radius.
 */
static void
explain_limits(ExplainState *explain, const char *title, const FuncExpr *expression, const char *side)
{
	GeonnColumnNames named = geonn_named_columns(NULL, expression, side);

	for (ColumnRole role = COLUMN_RADIUS; role < COLUMN_ROLES; role++)
	{
		char	   *label = psprintf("%s %s", title, geonn_role_name(role));

		label[strlen(title) + 1] = (char) pg_toupper((unsigned char) label[strlen(title) + 1]);
		if (named.names[role] != NULL)
			ExplainPropertyText(label, quote_identifier(named.names[role]), explain);
	}
}

static void
explain_analysis(const JoinNode *node, ExplainState *explain)
{
	const ProcessReports *processes = &node->processes;
	GeonnReport sum = node->sum;
	GeonnReport leader;

	add_present(node, &sum);
	leader = sum;
	add_search(&sum, node->prepared);
	for (int i = 1; i < processes->count; i++)
		geonn_report_add(&sum, &processes->reports[i]);

	geonn_report_explain(&sum, explain);
	if (node->shows_observations)
		ExplainPropertyInteger("Observations Read", NULL, (int64) sum.observations, explain);
	if (processes->count > 0)
	{
		processes->reports[0] = leader;
		geonn_report_explain_processes(processes->reports, processes->count, explain);
	}
}

static void
explain_call(const JoinNode *node, List *ancestors, ExplainState *explain)
{
	static const char *const labels[] = {"Latitude", "Longitude", "Window"};
	const FuncExpr *expression = node->expression;

	ExplainPropertyText("Function", get_func_name(expression->funcid), explain);
	explain_side(explain, "Observations", geonn_expression_observations(expression));
	for (int i = 0; i < list_length(node->point); i++)
	{
		if (!IsA(list_nth(node->point, i), Const))
			geonn_node_explain_expression(node, ancestors, explain, labels[i], list_nth(node->point, i));
	}
	explain_side(explain, geonn_expression_has_one_side(expression) ? "Points" : "References",
				 geonn_expression_references(expression));
	explain_names(explain, "By", geonn_expression_argument(expression, "by"));
	explain_names(explain, "Differs", geonn_expression_argument(expression, "differs"));
	explain_names(explain, "Overlaps", geonn_expression_argument(expression, "overlaps"));
	explain_limits(explain, "Observation", expression, "obs");
	explain_limits(explain, "Reference", expression, "ref");
}

static void
explain_node(CustomScanState *state, List *ancestors, ExplainState *explain)
{
	const JoinNode *node = (const JoinNode *) state;

	if (node->join_type != NULL)
		ExplainPropertyText("Join Type", node->join_type, explain);
	if (node->methods->explain != NULL)
		node->methods->explain(node, ancestors, explain);
	else
		explain_call(node, ancestors, explain);
	if (node->keeps_order)
		ExplainPropertyBool("Keeps Order", true, explain);
	if (node->filter != NIL)
		geonn_node_explain_expression(node, ancestors, explain, node->methods->filter_label,
									  (Node *) make_ands_explicit(node->filter));
	if (explain->analyze && !node->has_no_search)
		explain_analysis(node, explain);
}

Node *
geonn_node_create(CustomScan *scan)
{
	const JoinNodeMethods *methods = (const JoinNodeMethods *) scan->methods;
	JoinNode   *node = palloc0(methods->size);

	NodeSetTag(node, T_CustomScanState);
	node->methods = methods;
	node->execution = (CustomExecMethods) {
		.CustomName = methods->scan.CustomName,
		.BeginCustomScan = begin_node,
		.ExecCustomScan = execute_node,
		.EndCustomScan = end_node,
		.ReScanCustomScan = rescan_node,
		.EstimateDSMCustomScan = estimate_shared,
		.InitializeDSMCustomScan = initialize_shared,
		.ReInitializeDSMCustomScan = reinitialize_shared,
		.InitializeWorkerCustomScan = initialize_worker,
		.ShutdownCustomScan = shut_down,
		.ExplainCustomScan = explain_node
	};
	node->custom.methods = &node->execution;
	return (Node *) node;
}
