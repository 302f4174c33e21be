/*
 * lateral_scan.c
 *		The plan node of a join whose rows each ask for the neighbours of their own point.
 *
 * The node works in rounds.  In each it takes outer rows from its child, keeps them, and searches for
 * the points of all of them at once.  Then it returns them with their neighbours, and at the end of
 * the round, for a left join, those without any; an anti join returns these alone.  Rounds begin
 * small, so that a LIMIT ends the work early, and grow; the rows stay within work_mem.  While the
 * engine works on a round, the node takes the rows of the next one.  The engine's rows come in no
 * order: where the plan wants that of the outer rows, each round is sorted.
 *
 * A call that would read its observations itself (own_rows.c) searches in the same way: the numbers of
 * rows are exchanged for their ids, and what is said of invalid points names the table.
 *
 * The first round's search reads the references, and stays until the end: the later ones use the
 * same.  Below a Gather the leader has read them before (lateral_parallel.c).  Privileges and EXECUTE are
 * checked as when the function is called.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/memutils.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "join/report.h"
#include "plan/lateral_join.h"
#include "plan/lateral_state.h"
#include "plan/scan.h"

/* the rows of the first round, and of the largest */
#define ROWS_FIRST 64
#define ROWS_MAX 65536

static Node *create_state(CustomScan *scan);
static void begin_join(CustomScanState *node, EState *estate, int flags);
static TupleTableSlot *execute_join(CustomScanState *node);
static void end_join(CustomScanState *node);
static void rescan(CustomScanState *node);

const CustomScanMethods geonn_lateral_methods = {
	.CustomName = "geonn lateral join",
	.CreateCustomScanState = create_state
};

static const CustomExecMethods execution_methods = {
	.CustomName = "geonn lateral join",
	.BeginCustomScan = begin_join,
	.ExecCustomScan = execute_join,
	.EndCustomScan = end_join,
	.ReScanCustomScan = rescan,
	.EstimateDSMCustomScan = geonn_lateral_estimate_shared,
	.InitializeDSMCustomScan = geonn_lateral_initialize_shared,
	.ReInitializeDSMCustomScan = geonn_lateral_reinitialize_shared,
	.InitializeWorkerCustomScan = geonn_lateral_initialize_worker,
	.ShutdownCustomScan = geonn_lateral_shut_down,
	.ExplainCustomScan = geonn_lateral_explain
};

static Node *
create_state(CustomScan *scan pg_attribute_unused())
{
	LateralState *state = palloc0(sizeof(LateralState));

	NodeSetTag(state, T_CustomScanState);
	state->custom.methods = &execution_methods;
	return (Node *) state;
}

/*
 * What the planner has put into the plan's private list (LateralPrivate), and the columns of the function.
 */
static void
read_plan(LateralState *state, const CustomScan *scan)
{
	const List *outer = list_nth(scan->custom_private, LATERAL_OUTER_COLUMNS);

	state->type = (JoinType) intVal(list_nth(scan->custom_private, LATERAL_JOIN_TYPE));
	state->keeps_order = boolVal(list_nth(scan->custom_private, LATERAL_KEEPS_ORDER));
	state->table = linitial_oid(list_nth(scan->custom_private, LATERAL_TABLE));
	state->outer_columns = list_length(outer);
	state->numbers = palloc(state->outer_columns * sizeof(AttrNumber));
	for (int i = 0; i < state->outer_columns; i++)
		state->numbers[i] = (AttrNumber) list_nth_int(outer, i);
	state->columns = list_length(scan->custom_scan_tlist) - state->outer_columns + 1;
	state->attributes = geonn_attributes(scan->custom_scan_tlist, state->outer_columns);
	state->attributes[state->columns - 1] = (AttrNumber) intVal(list_nth(scan->custom_private, LATERAL_NUMBER));
}

/*
 * Describe the searches' rows: the scan's columns of the function, and ord.
 */
static void
describe_rows(LateralState *state)
{
	TupleDesc	scan = state->custom.ss.ss_ScanTupleSlot->tts_tupleDescriptor;

	state->descriptor = CreateTemplateTupleDesc(state->columns);
	for (int i = 0; i < state->columns - 1; i++)
		TupleDescCopyEntry(state->descriptor, (AttrNumber) (i + 1), scan,
						   (AttrNumber) (state->outer_columns + i + 1));
	state->values = palloc(state->columns * sizeof(Datum));
	state->nulls = palloc(state->columns * sizeof(bool));
	state->are_ord = palloc(state->columns * sizeof(bool));
	for (int i = 0; i < state->columns; i++)
	{
		state->are_ord[i] = state->attributes[i] == state->attributes[state->columns - 1];
		if (state->are_ord[i])
			TupleDescInitEntry(state->descriptor, (AttrNumber) (i + 1), "ord", INT8OID, -1, 0);
	}
	TupleDescFinalize(state->descriptor);
}

static void
begin_join(CustomScanState *node, EState *estate, int flags)
{
	LateralState *state = (LateralState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;

	flags &= ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	state->outer = ExecInitNode(linitial(scan->custom_plans), estate, flags);
	node->custom_ps = list_make1(state->outer);
	state->outer_slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(state->outer),
											   &TTSOpsMinimalTuple);
	state->call = linitial_node(RangeTblFunction, scan->custom_exprs);
	state->expression = castNode(FuncExpr, state->call->funcexpr);
	geonn_check_execute(state->expression->funcid);
	fmgr_info(state->expression->funcid, &state->function);
	fmgr_info_set_expr((Node *) state->expression, &state->function);
	state->arguments = ExecInitExprList(state->expression->args, &node->ss.ps);
	state->latitude = ExecInitExpr(lsecond(scan->custom_exprs), &node->ss.ps);
	state->longitude = ExecInitExpr(lthird(scan->custom_exprs), &node->ss.ps);
	state->number = ExecInitExpr(lfourth(scan->custom_exprs), &node->ss.ps);
	state->window = ExecInitExpr(list_nth(scan->custom_exprs, 4), &node->ss.ps);
	state->filter = ExecInitQual(geonn_lateral_filter(state), &node->ss.ps);
	read_plan(state, scan);
	state->begun_in = GetCurrentSubTransactionId();
	describe_rows(state);
	if (state->keeps_order)
	{
		state->put_slot = ExecInitExtraTupleSlot(estate, state->descriptor, &TTSOpsVirtual);
		state->sorted_slot = ExecInitExtraTupleSlot(estate, state->descriptor,
													&TTSOpsMinimalTuple);
	}
}

/* ---- a round's rows ---- */

static void
outer_point(void *argument, uint64 number, PointRow *row)
{
	const Round *round = argument;
	const OuterRow *outer = &round->rows[number];

	row->latitude = outer->latitude;
	row->longitude = outer->longitude;
	row->latitude_is_null = outer->latitude_is_null;
	row->longitude_is_null = outer->longitude_is_null;
	row->limits = round->limits != NULL ? &round->limits[number] : NULL;
}

/*
 * Have the scan's slot begin with the columns of this outer row.
 */
static void
set_outer_columns(LateralState *state, TupleTableSlot *outer)
{
	TupleTableSlot *slot = state->custom.ss.ss_ScanTupleSlot;

	for (int i = 0; i < state->outer_columns; i++)
		slot->tts_values[i] = slot_getattr(outer, state->numbers[i], &slot->tts_isnull[i]);
}

/*
 * Have the scan's slot end with NULLs.
 */
static void
set_no_neighbour(LateralState *state)
{
	TupleTableSlot *slot = state->custom.ss.ss_ScanTupleSlot;

	for (int i = state->outer_columns; i < slot->tts_tupleDescriptor->natts; i++)
	{
		slot->tts_values[i] = (Datum) 0;
		slot->tts_isnull[i] = true;
	}
}

static double
evaluate(ExprState *expression, ExprContext *expressions, bool *is_null)
{
	Datum		value = ExecEvalExprSwitchContext(expression, expressions, is_null);

	return *is_null ? 0 : DatumGetFloat8(value);
}

/*
 * The first outer row has come.
 */
static void
read_join(LateralState *state)
{
	MemoryContext former = MemoryContextSwitchTo(state->context);

	state->join = geonn_lateral_join(state, &state->row_type);
	if (state->join->given_window != NULL)
		state->range = geonn_window_range(&state->join->given_window->type);
	MemoryContextSwitchTo(former);
}

/*
 * Evaluate the window of the point that will be the round's next.
 */
static void
take_window(LateralState *state, Round *round, ExprContext *expressions)
{
	GeonnLimits *limits;
	MemoryContext former;
	bool		is_null;
	Datum		value;

	if (round->limits == NULL)
		round->limits = MemoryContextAllocHuge(round->memory, state->wanted * sizeof(GeonnLimits));
	limits = &round->limits[round->given.count];
	geonn_limits_begin(limits);
	value = ExecEvalExprSwitchContext(state->window, expressions, &is_null);
	former = MemoryContextSwitchTo(expressions->ecxt_per_tuple_memory);
	geonn_window_read(&state->join->given_window->type, state->range, value, is_null, 0, limits);
	MemoryContextSwitchTo(former);
}

/*
 * Has an outer join filled in NULLs where the slot's row has the columns of the call's table?  Such
 * a row is none of the table's, whose ids are never NULL.
 */
static bool
is_extended_row(LateralState *state)
{
	bool		is_null = false;

	if (OidIsValid(state->table))
		ExecEvalExprSwitchContext(state->number, state->custom.ss.ps.ps_ExprContext, &is_null);
	return is_null;
}

/*
 * Keep an outer row and its point.  False: the point is an error, which must not be raised before
 * the rows of those in front of it have been returned.
 */
static bool
keep_outer_row(LateralState *state, Round *round, TupleTableSlot *outer)
{
	ExprContext *expressions = state->custom.ss.ps.ps_ExprContext;
	TupleTableSlot *slot = state->custom.ss.ss_ScanTupleSlot;
	OuterRow   *row = &round->rows[round->given.count];
	PointStatus status;
	MemoryContext former;

	ResetExprContext(expressions);
	ExecClearTuple(slot);
	set_outer_columns(state, outer);
	set_no_neighbour(state);
	expressions->ecxt_scantuple = ExecStoreVirtualTuple(slot);
	row->latitude = evaluate(state->latitude, expressions, &row->latitude_is_null);
	row->longitude = evaluate(state->longitude, expressions, &row->longitude_is_null);
	if (state->join->given_window != NULL)
		take_window(state, round, expressions);
	row->is_matched = false;
	status = geonn_given_row(&round->given, round->given.count).status;
	if (state->join->invalid == GEONN_INVALID_IS_ERROR && round->given.count > 0 &&
		status != POINT_VALID && status != POINT_NULL)
		return false;
	if (status != POINT_NULL || !is_extended_row(state))
		state->counts[status]++;
	former = MemoryContextSwitchTo(round->memory);
	row->tuple = ExecCopySlotMinimalTuple(outer);
	MemoryContextSwitchTo(former);
	round->given.count++;
	return true;
}

/*
 * The next outer row; NULL: all were taken.
 */
static TupleTableSlot *
next_outer_row(LateralState *state)
{
	TupleTableSlot *outer = state->held;

	state->held = NULL;
	if (outer != NULL)
		return outer;
	if (!state->outer_ended)
		outer = ExecProcNode(state->outer);
	state->outer_ended = TupIsNull(outer);
	return state->outer_ended ? NULL : outer;
}

/*
 * Take the rows of a round, as many as half of work_mem takes: two rounds have rows at a time.
 */
static void
take_outer_rows(LateralState *state, Round *round)
{
	Size		limit = (Size) work_mem * 1024 / 2;
	Size		row_bytes = sizeof(OuterRow);
	TupleTableSlot *outer;

	MemoryContextReset(round->memory);
	round->given.count = 0;
	round->rows = MemoryContextAllocHuge(round->memory, state->wanted * sizeof(OuterRow));
	round->limits = NULL;
	while (round->given.count < (uint64) state->wanted &&
		   (round->given.count == 0 || MemoryContextMemAllocated(round->memory, false) < limit) &&
		   (outer = next_outer_row(state)) != NULL)
	{
		if (state->join == NULL)
			read_join(state);
		if (!keep_outer_row(state, round, outer))
		{
			state->held = outer;
			break;
		}
	}
	if (round->limits != NULL)
		row_bytes += sizeof(GeonnLimits);
	state->wanted = (int) Min(Min((Size) state->wanted * 4, ROWS_MAX), limit / 2 / row_bytes);
}

/* ---- searches ---- */

static MemoryContext
create_context(MemoryContext parent)
{
	return AllocSetContextCreate(parent, "geonn lateral join", ALLOCSET_DEFAULT_SIZES);
}

static void
begin_execution(LateralState *state)
{
	state->context = create_context(state->custom.ss.ps.state->es_query_cxt);
	for (int i = 0; i < (int) lengthof(state->rounds); i++)
	{
		Round	   *round = &state->rounds[i];

		memset(round, 0, sizeof(*round));
		round->memory = create_context(state->context);
		round->given.point = outer_point;
		round->given.state = round;
		round->given.each_alone = true;
	}
	state->round = &state->rounds[0];
	state->next = &state->rounds[1];
	state->wanted = ROWS_FIRST;
	state->outer_ended = false;
	memset(state->counts, 0, sizeof(state->counts));
	state->has_ended = false;
	state->has_references = state->shared != NULL;
	if (state->shared == NULL)
		return;
	state->references = state->shared->references;
	pg_atomic_fetch_add_u32(&state->shared->begun, 1);
}

/*
 * Sort the rows of the round's search by the outer rows.
 */
static void
sort_neighbours(LateralState *state)
{
	AttrNumber	number = (AttrNumber) state->columns;
	Oid			less = Int8LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;
	TupleTableSlot *slot = state->put_slot;
	MemoryContext former = MemoryContextSwitchTo(state->round->memory);

	state->sorted = tuplesort_begin_heap(state->descriptor, 1, &number, &less, &collation,
										 &nulls_first, work_mem, NULL, TUPLESORT_NONE);
	while (geonn_search_next(state->round->search, slot->tts_values, slot->tts_isnull))
	{
		ExecStoreVirtualTuple(slot);
		tuplesort_puttupleslot(state->sorted, slot);
		ExecClearTuple(slot);
	}
	tuplesort_performsort(state->sorted);
	MemoryContextSwitchTo(former);
}

/*
 * Search for the present round's points.
 */
static void
begin_search(LateralState *state)
{
	Round	   *round = state->round;
	MemoryContext former = MemoryContextSwitchTo(state->has_references ? round->memory :
												 state->context);

	/* the first search's join lives as long as that search */
	round->join = *state->join;
	round->join.given = &round->given;
	round->search = geonn_search_begin(&round->join, state->row_type);
	geonn_search_project(round->search, state->descriptor, state->attributes);
	if (state->has_references)
		geonn_search_follow(round->search, &state->references);
	else
		state->first = round->search;

	/* a rollback to a savepoint must not undo what is still being read, so read all now */
	if (!state->keeps_order && GetCurrentSubTransactionId() != state->begun_in)
		geonn_search_complete(round->search);
	else
		geonn_search_send(round->search);
	if (!state->has_references)
		state->references = geonn_search_references(round->search);
	state->has_references = true;
	MemoryContextSwitchTo(former);
}

/*
 * Go on to the next round; false: all outer rows were taken.  But for the first one, the rows of the
 * round behind it are taken while the engine works.
 */
static bool
begin_round(LateralState *state)
{
	Round	   *round = state->next;
	bool		is_first = state->join == NULL;

	ExecClearTuple(state->outer_slot);
	state->current = PG_UINT64_MAX;
	state->unmatched = 0;
	state->next = state->round;
	state->round = round;
	if (round->given.count == 0)
		take_outer_rows(state, round);
	state->next->given.count = 0;
	if (round->given.count == 0)
		return false;
	begin_search(state);
	if (!is_first)
		take_outer_rows(state, state->next);
	if (state->keeps_order)
		sort_neighbours(state);
	return true;
}

/*
 * All outer rows have been taken, and all of their rows returned.
 */
static void
end_outer_rows(LateralState *state)
{
	SharedLateral *shared = state->shared;

	if (shared == NULL && state->join != NULL)
		geonn_lateral_tell(state->join, state->counts);
	for (int i = 0; shared != NULL && i < POINT_STATUSES; i++)
		pg_atomic_fetch_add_u64(&shared->counts[i], (int64) state->counts[i]);
	if (shared != NULL && !state->has_ended)
		pg_atomic_fetch_add_u32(&shared->ended, 1);
	state->has_ended = true;
	memset(state->counts, 0, sizeof(state->counts));
}

/*
 * Have the scan's slot begin with the columns of this row of the round.
 */
static void
show_outer_row(LateralState *state, uint64 number)
{
	if (state->current != number)
	{
		ExecStoreMinimalTuple(state->round->rows[number].tuple, state->outer_slot, false);
		slot_getallattrs(state->outer_slot);
		state->current = number;
	}
	set_outer_columns(state, state->outer_slot);
}

/*
 * The next row of this round, of those in front of the end, that has no neighbour in the scan's slot;
 * false: all were returned.
 */
static bool
next_unmatched(LateralState *state, uint64 end)
{
	TupleTableSlot *slot = state->custom.ss.ss_ScanTupleSlot;

	if (state->type == JOIN_INNER)
		return false;
	while (state->unmatched < end && state->round->rows[state->unmatched].is_matched)
		state->unmatched++;
	if (state->unmatched >= end)
		return false;
	ExecClearTuple(slot);
	show_outer_row(state, state->unmatched++);
	set_no_neighbour(state);
	ExecStoreVirtualTuple(slot);
	return true;
}

/*
 * Take the next row of the round's search; false: all were taken.
 */
static bool
take_neighbour(LateralState *state)
{
	TupleTableSlot *slot = state->sorted_slot;

	if (state->sorted == NULL)
		return geonn_search_next(state->round->search, state->values, state->nulls);
	if (!tuplesort_gettupleslot(state->sorted, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	memcpy(state->values, slot->tts_values, state->columns * sizeof(Datum));
	memcpy(state->nulls, slot->tts_isnull, state->columns * sizeof(bool));
	return true;
}

/*
 * Is the pair of rows in the scan's slot one of neighbours?
 */
static bool
passes_filter(LateralState *state)
{
	ExprContext *expressions = state->custom.ss.ps.ps_ExprContext;

	if (state->filter == NULL)
		return true;
	ResetExprContext(expressions);
	expressions->ecxt_scantuple = state->custom.ss.ss_ScanTupleSlot;
	return ExecQual(state->filter, expressions);
}

/*
 * Have the scan's slot name the outer row that it has as the function would.
 */
static void
show_number(LateralState *state)
{
	ExprContext *expressions = state->custom.ss.ps.ps_ExprContext;
	TupleTableSlot *slot = state->custom.ss.ss_ScanTupleSlot;

	expressions->ecxt_scantuple = slot;
	for (int i = 0; i < state->columns - 1; i++)
	{
		int			place = state->outer_columns + i;

		if (state->are_ord[i])
			slot->tts_values[place] = ExecEvalExpr(state->number, expressions,
												   &slot->tts_isnull[place]);
	}
}

/*
 * Set the scan's slot to the row of the round that has this number, and the neighbour that was taken.
 */
static void
show_pair(LateralState *state, uint64 number)
{
	TupleTableSlot *slot = state->custom.ss.ss_ScanTupleSlot;

	ExecClearTuple(slot);
	show_outer_row(state, number);

	for (int i = 0; i < state->columns - 1; i++)
	{
		slot->tts_values[state->outer_columns + i] = state->values[i];
		slot->tts_isnull[state->outer_columns + i] = state->nulls[i];
	}
	ExecStoreVirtualTuple(slot);
	show_number(state);
}

/*
 * The next pair of the round in the scan's slot, or where the order is kept a row without neighbours
 * in front of it; false: all pairs were returned.
 */
static bool
next_neighbour(LateralState *state)
{
	while (state->round->search != NULL && (state->holds_neighbour || take_neighbour(state)))
	{
		uint64		number = (uint64) DatumGetInt64(state->values[state->columns - 1]) - 1;

		state->holds_neighbour = state->keeps_order && next_unmatched(state, number);
		if (state->holds_neighbour)
			return true;
		show_pair(state, number);
		if (!passes_filter(state))
			continue;
		state->round->rows[number].is_matched = true;
		if (state->type != JOIN_ANTI)
			return true;
	}
	geonn_lateral_end_search(state);
	return false;
}

static TupleTableSlot *
next_row(LateralState *state)
{
	if (state->context == NULL)
		begin_execution(state);
	while (!next_neighbour(state) && !next_unmatched(state, state->round->given.count))
	{
		if (begin_round(state))
			continue;
		end_outer_rows(state);
		return ExecClearTuple(state->custom.ss.ss_ScanTupleSlot);
	}
	return state->custom.ss.ss_ScanTupleSlot;
}

static TupleTableSlot *
execute_join(CustomScanState *node)
{
	ScanState  *scan = &node->ss;
	ExprContext *expressions = scan->ps.ps_ExprContext;

	for (;;)
	{
		TupleTableSlot *slot = next_row((LateralState *) node);

		if (TupIsNull(slot))
			return scan->ps.ps_ProjInfo == NULL ? slot :
				ExecClearTuple(scan->ps.ps_ProjInfo->pi_state.resultslot);
		ResetExprContext(expressions);
		expressions->ecxt_scantuple = slot;
		if (ExecQual(scan->ps.qual, expressions))
			return scan->ps.ps_ProjInfo == NULL ? slot : ExecProject(scan->ps.ps_ProjInfo);
		InstrCountFiltered1(scan, 1);
	}
}

static void
end_join(CustomScanState *node)
{
	LateralState *state = (LateralState *) node;

	geonn_lateral_end_execution(state);
	geonn_lateral_end_preparation(state);
	ExecEndNode(state->outer);
}

static void
rescan(CustomScanState *node)
{
	LateralState *state = (LateralState *) node;

	geonn_lateral_end_execution(state);
	if (node->ss.ps.chgParam != NULL)
		UpdateChangedParamSet(state->outer, node->ss.ps.chgParam);
	if (state->outer->chgParam == NULL)
		ExecReScan(state->outer);
	ExecScanReScan(&node->ss);
}
