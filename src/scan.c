/*
 * scan.c
 *		The plan node of joins in FROM: rows as they come.
 *
 * The node evaluates the call's arguments when its first row is asked for, reads
 * the references, and then observations as far as rows are wanted: so the first
 * rows come early, a LIMIT ends the reading, and nothing is stored.  Only the
 * columns that are asked for are made.  All else is as when the function is
 * called; EXECUTE on it is checked when the scan begins.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/explain.h"
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#endif
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

#include "nearest.h"
#include "scan.h"

typedef struct JoinScanState
{
	CustomScanState custom;		/* first */
	FuncExpr   *call;
	FmgrInfo	function;
	List	   *arguments;		/* of ExprState */
	AttrNumber *attributes;		/* of the row type that a row has */
	SubTransactionId begun_in;	/* of the scan's begin */
	MemoryContext context;		/* of a search; NULL: it has not begun */
	GeonnSearch *search;
} JoinScanState;

static Node *create_scan_state(CustomScan *scan);
static void begin_scan(CustomScanState *node, EState *estate, int flags);
static TupleTableSlot *execute_scan(CustomScanState *node);
static void end_scan(CustomScanState *node);
static void rescan(CustomScanState *node);
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

static void
check_execute(Oid function)
{
	AclResult	result;

#if PG_VERSION_NUM >= 160000
	result = object_aclcheck(ProcedureRelationId, function, GetUserId(), ACL_EXECUTE);
#else
	result = pg_proc_aclcheck(function, GetUserId(), ACL_EXECUTE);
#endif
	if (result != ACLCHECK_OK)
		aclcheck_error(result, OBJECT_FUNCTION, get_func_name(function));
	InvokeFunctionExecuteHook(function);
}

static void
begin_scan(CustomScanState *node, EState *estate pg_attribute_unused(),
		   int flags pg_attribute_unused())
{
	JoinScanState *state = (JoinScanState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	ListCell   *cell;
	int			count = 0;

	state->begun_in = GetCurrentSubTransactionId();
	state->call = linitial_node(FuncExpr, scan->custom_exprs);
	check_execute(state->call->funcid);
	fmgr_info(state->call->funcid, &state->function);
	fmgr_info_set_expr((Node *) state->call, &state->function);
	state->arguments = ExecInitExprList(state->call->args, &node->ss.ps);
	state->attributes = palloc(list_length(scan->custom_private) * sizeof(AttrNumber));
	foreach(cell, scan->custom_private)
		state->attributes[count++] = lfirst_int(cell);
}

/*
 * The plan took the row type for what it was then: its columns must be of the
 * same types still.
 */
static void
check_row_type(JoinScanState *state, TupleDesc row_type)
{
	TupleDesc	planned = state->custom.ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	for (int i = 0; i < planned->natts; i++)
	{
		int			number = state->attributes[i];

		if (number <= row_type->natts &&
			!TupleDescAttr(row_type, number - 1)->attisdropped &&
			TupleDescAttr(row_type, number - 1)->atttypid == TupleDescAttr(planned, i)->atttypid)
			continue;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the row type was changed after the statement was planned"),
				 errdetail("Its column %d is dropped now, or of another type.", number),
				 errhint("Prepare the statement again.")));
	}
}

/*
 * Evaluate the arguments and begin to search.
 */
static void
begin_search(JoinScanState *state)
{
	ScanState  *node = &state->custom.ss;
	ExprContext *expressions = node->ps.ps_ExprContext;
	MemoryContext former;
	FunctionCallInfo call;
	TupleDesc	row_type;
	ListCell   *cell;
	int			number = 0;

	state->context = AllocSetContextCreate(node->ps.state->es_query_cxt, "geonn scan",
										   ALLOCSET_SMALL_SIZES);
	former = MemoryContextSwitchTo(state->context);
	call = palloc0(SizeForFunctionCallInfo(list_length(state->arguments)));
	InitFunctionCallInfoData(*call, &state->function, list_length(state->arguments),
							 state->call->inputcollid, NULL, NULL);
	foreach(cell, state->arguments)
	{
		call->args[number].value = ExecEvalExpr(lfirst(cell), expressions,
												&call->args[number].isnull);
		number++;
	}
	if (get_call_result_type(call, NULL, &row_type) == TYPEFUNC_COMPOSITE)
		check_row_type(state, row_type);
	else
		row_type = NULL;
	state->search = geonn_search_begin(geonn_read_join(call), row_type);
	geonn_search_project(state->search, node->ss_ScanTupleSlot->tts_tupleDescriptor,
						 state->attributes);

	/* a rollback to a savepoint must not find what it undoes still being read */
	if (GetCurrentSubTransactionId() != state->begun_in)
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
 * Unlike ExecScan's, these rows are the function's also where a subquery is run
 * again for a row that somebody else has updated: some minor releases would ask
 * for a row of that kind, and there is none.
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
end_scan(CustomScanState *node)
{
	JoinScanState *state = (JoinScanState *) node;

	if (state->search != NULL)
		geonn_search_end(state->search);
	if (state->context != NULL)
		MemoryContextDelete(state->context);
	state->search = NULL;
	state->context = NULL;
}

static void
rescan(CustomScanState *node)
{
	end_scan(node);
	ExecScanReScan(&node->ss);
}

/*
 * Show an argument of the call, if it is a constant.
 */
static void
explain_argument(ExplainState *explain, const char *label, Node *argument)
{
	Const	   *constant = (Const *) argument;
	Oid			output;
	bool		is_varlena;

	if (!IsA(argument, Const) || constant->constisnull)
		return;
	getTypeOutputInfo(constant->consttype, &output, &is_varlena);
	ExplainPropertyText(label, OidOutputFunctionCall(output, constant->constvalue), explain);
}

static void
explain_scan(CustomScanState *node, List *ancestors pg_attribute_unused(),
			 ExplainState *explain)
{
	JoinScanState *state = (JoinScanState *) node;
	List	   *arguments = state->call->args;
	bool		of_points = exprType(linitial(arguments)) == FLOAT8ARRAYOID;

	ExplainPropertyText("Function", get_func_name(state->call->funcid), explain);
	if (!of_points)
		explain_argument(explain, "Observations", linitial(arguments));
	explain_argument(explain, "References", list_nth(arguments, of_points ? 2 : 1));
}
