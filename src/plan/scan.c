/*
 * scan.c
 *		The plan node of joins in FROM: rows as they come.
 *
 * The node evaluates the call's arguments when its first row is asked for, reads
 * the references, and then observations as far as rows are wanted: so the first
 * rows come early, a LIMIT ends the reading, and nothing is stored.  Only the
 * columns that are asked for are made.  All else is as when the function is
 * called; EXECUTE on it is checked when the scan begins.
 *
 * Below a Gather, the leader prepares the search when workers are about to be
 * launched: it reads the references and shares the dataset and the tables of the
 * observations.  Then every process, the leader too, takes part with a search of
 * its own.  The prepared one lives until the leader's end of execution, which
 * comes after the workers'.  Without shared memory, as in a cursor, the node of
 * such a plan searches alone.  So does the leader's, and no worker is launched, where the
 * observations turn out not to be columns of plain tables, or of temporary ones, or to be few.
 * The planner may not know the tables: they can be parameters, and of a name in an
 * argument another table can have been created.  It never knows which columns will be read,
 * and one can be computed as it is read.  For the same reason the leader tells the workers
 * which relations its arguments have named, and they do not look up the names again.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/explain.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/ruleutils.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "join/nearest.h"
#include "join/report.h"
#include "plan/known.h"
#include "plan/observation_filter.h"
#include "plan/row_type.h"
#include "plan/scan.h"
#include "base/value.h"

/* what the processes of a parallel scan share; the search lies behind it */
typedef struct SharedScan
{
	Size		search_bytes;
	Oid			observations;	/* relations of the leader's search: a name in an argument */
	Oid			references;		/* can come to mean another one */
	int			processes;		/* at most */
	GeonnReport reports[FLEXIBLE_ARRAY_MEMBER]; /* the leader's, then the workers' */
} SharedScan;

typedef struct JoinScanState
{
	CustomScanState custom;		/* first */
	RangeTblFunction *call;
	FuncExpr   *expression;		/* the call's */
	FmgrInfo	function;
	List	   *arguments;		/* of ExprState */
	AttrNumber *attributes;		/* attributes of the row type that the scan returns */
	SubTransactionId begun_in;	/* the subtransaction in which the scan began */
	MemoryContext context;		/* of a search; NULL: it has not begun */
	GeonnSearch *search;
	Oid			observations;	/* relations of the last search; InvalidOid: not one */
	Oid			references;

	GeonnReport sum;			/* all searches that have ended */
	GeonnReport present;		/* the present call's searches that have ended */

	/* below a Gather */
	SharedScan *shared;			/* NULL: this process searches alone */
	MemoryContext preparation;	/* of the leader's prepared search */
	GeonnSearch *prepared;
	ProcessReports processes;
} JoinScanState;

static Node *create_scan_state(CustomScan *scan);
static void begin_scan(CustomScanState *node, EState *estate, int flags);
static TupleTableSlot *execute_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan(CustomScanState *node);
static Size estimate_shared(CustomScanState *node, ParallelContext *parallel);
static void initialize_shared(CustomScanState *node, ParallelContext *parallel, void *shared);
static void reinitialize_shared(CustomScanState *node, ParallelContext *parallel, void *shared);
static void initialize_worker(CustomScanState *node, shm_toc *toc, void *shared);
static void shut_down(CustomScanState *node);
static void explain_scan(CustomScanState *node, List *ancestors, ExplainState *explain);

const CustomScanMethods geonn_scan_methods = {
	.CustomName = "geonn join",
	.CreateCustomScanState = create_scan_state
};

static const CustomExecMethods execution_methods = {
	.CustomName = "geonn join",
	.BeginCustomScan = begin_scan,
	.ExecCustomScan = execute_scan,
	.EndCustomScan = end_scan,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = estimate_shared,
	.InitializeDSMCustomScan = initialize_shared,
	.ReInitializeDSMCustomScan = reinitialize_shared,
	.InitializeWorkerCustomScan = initialize_worker,
	.ShutdownCustomScan = shut_down,
	.ExplainCustomScan = explain_scan
};

static Node *
create_scan_state(CustomScan *scan pg_attribute_unused())
{
	JoinScanState *state = palloc0(sizeof(JoinScanState));

	NodeSetTag(state, T_CustomScanState);
	state->custom.methods = &execution_methods;
	return (Node *) state;
}

void
geonn_check_execute(Oid function)
{
	AclResult	result;

	result = object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

AttrNumber *
geonn_attributes(const List *targets, int first)
{
	AttrNumber *attributes = palloc((list_length(targets) - first + 1) * sizeof(AttrNumber));

	for (int i = first; i < list_length(targets); i++)
		attributes[i - first] = castNode(Var, list_nth_node(TargetEntry, targets, i)->expr)->varattno;
	return attributes;
}

static void
begin_scan(CustomScanState *node, EState *estate pg_attribute_unused(),
		   int flags pg_attribute_unused())
{
	JoinScanState *state = (JoinScanState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;

	state->begun_in = GetCurrentSubTransactionId();
	state->call = linitial_node(RangeTblFunction, scan->custom_exprs);
	state->expression = castNode(FuncExpr, state->call->funcexpr);
	geonn_check_execute(state->expression->funcid);
	fmgr_info(state->expression->funcid, &state->function);
	fmgr_info_set_expr((Node *) state->expression, &state->function);
	state->arguments = ExecInitExprList(state->expression->args, &node->ss.ps);
	state->attributes = geonn_attributes(scan->custom_scan_tlist, 0);
}

void
geonn_check_row_type(TupleDesc row_type, TupleDesc planned, const AttrNumber *attributes)
{
	for (int i = 0; i < planned->natts; i++)
	{
		int			number = attributes[i];

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

static Oid
relation_of(const PointSource *source)
{
	return source != NULL ? source->relation : InvalidOid;
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
 * The clauses that observations have to meet.
 */
static List *
observation_filter(const JoinScanState *state)
{
	return list_copy_tail(((CustomScan *) state->custom.ss.ps.plan)->custom_exprs, 1);
}

GeonnJoin *
geonn_called_join(const FuncExpr *expression, FmgrInfo *function, const NullableDatum *values)
{
	int			count = list_length(expression->args);
	FunctionCallInfo fcinfo = palloc0(SizeForFunctionCallInfo(count));

	InitFunctionCallInfoData(*fcinfo, function, count, expression->inputcollid, NULL, NULL);
	memcpy(fcinfo->args, values, count * sizeof(NullableDatum));
	return geonn_read_join(fcinfo);
}

NullableDatum *
geonn_evaluate_arguments(const FuncExpr *expression, List *arguments, ExprContext *expressions,
						 Oid observations, Oid references)
{
	const Node *observed = geonn_expression_argument(expression, "obs");
	const Node *referred = geonn_expression_argument(expression, "ref");
	NullableDatum *values = palloc0(list_length(arguments) * sizeof(NullableDatum));
	ListCell   *cell;
	int			number = 0;

	foreach(cell, arguments)
	{
		const Node *argument = list_nth(expression->args, number);
		Oid			relation = argument == observed ? observations :
			argument == referred ? references : InvalidOid;

		if (OidIsValid(relation))
			values[number].value = ObjectIdGetDatum(relation);
		else
			values[number].value = ExecEvalExpr(lfirst(cell), expressions,
												&values[number].isnull);
		number++;
	}
	return values;
}

/*
 * Create a search for the join that the arguments describe, in the current
 * memory context.
 */
static GeonnSearch *
create_search(JoinScanState *state)
{
	ScanState  *node = &state->custom.ss;
	const SharedScan *shared = state->shared;
	List	   *filter = observation_filter(state);
	TupleDesc	row_type = geonn_row_type(state->call);
	GeonnSearch *search;
	NullableDatum *values = geonn_evaluate_arguments(state->expression, state->arguments,
													 node->ps.ps_ExprContext,
													 shared != NULL ? shared->observations : InvalidOid,
													 shared != NULL ? shared->references : InvalidOid);
	GeonnJoin  *join = geonn_called_join(state->expression, &state->function, values);

	if (row_type != NULL)
		geonn_check_row_type(row_type, node->ss_ScanTupleSlot->tts_tupleDescriptor,
							 state->attributes);
	state->observations = relation_of(join->observations);
	state->references = relation_of(join->references);
	search = geonn_search_begin(join, row_type);
	if (filter != NIL && row_type != NULL)
		join->observations->conditions = geonn_observation_conditions(filter, join->observations,
																	  row_type, INDEX_VAR,
																	  state->attributes,
																	  parameter_value, node);
	geonn_search_project(search, node->ss_ScanTupleSlot->tts_tupleDescriptor,
						 state->attributes);
	return search;
}

static MemoryContext
create_context(JoinScanState *state)
{
	return AllocSetContextCreate(state->custom.ss.ps.state->es_query_cxt, "geonn scan",
								 ALLOCSET_SMALL_SIZES);
}

static Size
reports_size(int processes)
{
	return MAXALIGN(offsetof(SharedScan, reports) + processes * sizeof(GeonnReport));
}

static SharedSearch *
shared_search(SharedScan *shared)
{
	return (SharedSearch *) ((char *) shared + reports_size(shared->processes));
}

/*
 * Evaluate the arguments and begin to search.
 */
static void
begin_search(JoinScanState *state)
{
	MemoryContext former;

	state->context = create_context(state);
	former = MemoryContextSwitchTo(state->context);
	state->search = create_search(state);
	if (state->shared != NULL)
		geonn_search_take_part(state->search, shared_search(state->shared));

	/* a rollback to a savepoint must not undo what is still being read, so read all now */
	else if (GetCurrentSubTransactionId() != state->begun_in)
		geonn_search_complete(state->search);
	MemoryContextSwitchTo(former);
}

static TupleTableSlot *
next_row(ScanState *node)
{
	JoinScanState *state = (JoinScanState *) node;
	TupleTableSlot *slot = node->ss_ScanTupleSlot;

	if (unlikely(state->search == NULL))
		begin_search(state);
	ExecClearTuple(slot);
	if (!geonn_search_next(state->search, slot->tts_values, slot->tts_isnull))
		return slot;
	return ExecStoreVirtualTuple(slot);
}

/*
 * This loop replaces ExecScan.  When PostgreSQL runs a subquery again for a row
 * that another transaction has updated, ExecScan in some minor releases would
 * ask for a test row, and a function has none.
 */
static TupleTableSlot *
execute_scan(CustomScanState *node)
{
	ScanState  *scan = &node->ss;
	ExprContext *expressions = scan->ps.ps_ExprContext;

	if (scan->ps.qual == NULL && scan->ps.ps_ProjInfo == NULL)
		return next_row(scan);
	for (;;)
	{
		TupleTableSlot *slot;

		ResetExprContext(expressions);
		slot = next_row(scan);
		if (TupIsNull(slot))
			return scan->ps.ps_ProjInfo == NULL ? slot :
				ExecClearTuple(scan->ps.ps_ProjInfo->pi_state.resultslot);
		expressions->ecxt_scantuple = slot;
		if (ExecQual(scan->ps.qual, expressions))
			return scan->ps.ps_ProjInfo == NULL ? slot : ExecProject(scan->ps.ps_ProjInfo);
		InstrCountFiltered1(scan, 1);
	}
}

static void
add_search(GeonnReport *sum, const GeonnSearch *search)
{
	GeonnReport report;

	if (search == NULL)
		return;
	report = geonn_search_report(search);
	geonn_report_add(sum, &report);
}

/*
 * Log the call before the search that began it ends; that search is the call's
 * last.
 */
static void
log_call(JoinScanState *state, const GeonnSearch *search)
{
	geonn_search_log(search, &state->present);
	memset(&state->present, 0, sizeof(state->present));
}

static void
end_search(JoinScanState *state)
{
	add_search(&state->sum, state->search);
	add_search(&state->present, state->search);
	if (state->search != NULL)
	{
		if (state->prepared == NULL)
			log_call(state, state->search);
		geonn_search_end(state->search);
	}
	if (state->context != NULL)
		MemoryContextDelete(state->context);
	state->search = NULL;
	state->context = NULL;
}

static void
end_preparation(JoinScanState *state)
{
	add_search(&state->sum, state->prepared);
	add_search(&state->present, state->prepared);
	if (state->prepared != NULL)
	{
		log_call(state, state->prepared);
		geonn_search_end(state->prepared);
	}
	if (state->preparation != NULL)
		MemoryContextDelete(state->preparation);
	state->prepared = NULL;
	state->preparation = NULL;
}

static void
end_scan(CustomScanState *node)
{
	end_search((JoinScanState *) node);
	end_preparation((JoinScanState *) node);
}

static void
rescan(CustomScanState *node)
{
	end_search((JoinScanState *) node);
	ExecScanReScan(&node->ss);
}

/* ---- several processes ---- */

static Size
estimate_shared(CustomScanState *node, ParallelContext *parallel)
{
	JoinScanState *state = (JoinScanState *) node;
	MemoryContext former;

	end_preparation(state);
	state->preparation = create_context(state);
	former = MemoryContextSwitchTo(state->preparation);
	state->prepared = create_search(state);
	MemoryContextSwitchTo(former);
	return add_size(reports_size(parallel->nworkers + 1),
					geonn_search_shared_size(state->prepared));
}

/*
 * Read the references and share the prepared search; if it cannot be shared,
 * search alone.
 */
static void
share(JoinScanState *state, ParallelContext *parallel, SharedScan *shared)
{
	int			workers = geonn_search_share(state->prepared, shared_search(shared),
											 shared->search_bytes);

	shared->observations = state->observations;
	shared->references = state->references;
	if (workers > 0)
		state->shared = shared;
	else
		end_preparation(state);
	/* another node below the Gather may have asked for fewer */
	ReinitializeParallelWorkers(parallel, Min(workers, parallel->nworkers_to_launch));
}

static void
initialize_shared(CustomScanState *node, ParallelContext *parallel, void *memory)
{
	JoinScanState *state = (JoinScanState *) node;
	SharedScan *shared = memory;

	memset(shared, 0, reports_size(parallel->nworkers + 1));
	shared->processes = parallel->nworkers + 1;
	shared->search_bytes = node->pscan_len - reports_size(shared->processes);
	share(state, parallel, shared);
}

static void
reinitialize_shared(CustomScanState *node, ParallelContext *parallel, void *memory)
{
	JoinScanState *state = (JoinScanState *) node;
	SharedScan *shared = memory;

	if (state->shared != NULL)
		geonn_search_tell(state->prepared, shared_search(shared));
	state->shared = NULL;
	(void) estimate_shared(node, parallel);
	share(state, parallel, shared);
}

static void
initialize_worker(CustomScanState *node, shm_toc *toc pg_attribute_unused(), void *memory)
{
	((JoinScanState *) node)->shared = memory;
}

/*
 * Report while the shared memory still exists.  If not all rows were asked for,
 * workers may still be at work.
 */
static void
shut_down(CustomScanState *node)
{
	JoinScanState *state = (JoinScanState *) node;
	SharedScan *shared = state->shared;

	state->shared = NULL;
	if (shared == NULL)
		return;
	if (state->prepared == NULL)
	{
		add_search(&shared->reports[ParallelWorkerNumber + 1], state->search);
		return;
	}
	geonn_search_tell(state->prepared, shared_search(shared));
	geonn_reports_take(&state->processes, shared->reports, shared->processes, &state->present,
					   node->ss.ps.state->es_query_cxt);
}

/* ---- EXPLAIN ---- */

void
geonn_explain_side(ExplainState *explain, const char *label, Node *argument)
{
	Const	   *constant = (Const *) argument;
	Oid			relation = geonn_known_relation(NULL, argument);

	if (OidIsValid(relation))
		ExplainPropertyText(label, DatumGetCString(DirectFunctionCall1(regclassout,
																	   ObjectIdGetDatum(relation))),
							explain);
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

void
geonn_explain_columns(ExplainState *explain, const FuncExpr *expression)
{
	char	   *observations = geonn_named_columns(NULL, expression, "obs").radius;
	char	   *references = geonn_named_columns(NULL, expression, "ref").radius;

	explain_names(explain, "By", geonn_expression_argument(expression, "by"));
	explain_names(explain, "Overlaps", geonn_expression_argument(expression, "overlaps"));
	if (observations != NULL)
		ExplainPropertyText("Observation Radius", quote_identifier(observations), explain);
	if (references != NULL)
		ExplainPropertyText("Reference Radius", quote_identifier(references), explain);
}

static void
explain_analysis(const JoinScanState *state, ExplainState *explain)
{
	const ProcessReports *processes = &state->processes;
	GeonnReport sum = state->sum;
	GeonnReport leader;

	add_search(&sum, state->search);
	leader = sum;
	add_search(&sum, state->prepared);
	for (int i = 1; i < processes->count; i++)
		geonn_report_add(&sum, &processes->reports[i]);

	geonn_report_explain(&sum, explain);
	if (observation_filter(state) != NIL)
		ExplainPropertyInteger("Observations Read", NULL, (int64) sum.observations, explain);
	if (processes->count > 0)
	{
		processes->reports[0] = leader;
		geonn_report_explain_processes(processes->reports, processes->count, explain);
	}
}

/*
 * Show the clauses that observations have to meet, as PostgreSQL shows its filters.
 */
static void
explain_filter(const JoinScanState *state, List *ancestors, ExplainState *explain)
{
	List	   *filter = observation_filter(state);
	List	   *context;

	if (filter == NIL)
		return;
	context = set_deparse_context_plan(explain->deparse_cxt, state->custom.ss.ps.plan, ancestors);
	ExplainPropertyText("Filter on Observations",
						deparse_expression((Node *) make_ands_explicit(filter), context,
										   list_length(explain->rtable) > 1 || explain->verbose,
										   false), explain);
}

static void
explain_scan(CustomScanState *node, List *ancestors, ExplainState *explain)
{
	JoinScanState *state = (JoinScanState *) node;

	ExplainPropertyText("Function", get_func_name(state->expression->funcid), explain);
	geonn_explain_side(explain, "Observations", geonn_expression_observations(state->expression));
	geonn_explain_side(explain, "References", geonn_expression_references(state->expression));
	geonn_explain_columns(explain, state->expression);
	explain_filter(state, ancestors, explain);
	if (explain->analyze)
		explain_analysis(state, explain);
}
