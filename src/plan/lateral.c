/*
 * lateral.c
 *		The plan node of a join whose rows each ask for the neighbours of their own point.
 *
 * The node works in rounds.  In each it takes outer rows from its child, keeps them, and searches for
 * the points of all of them at once.  Then it returns them with their neighbours, and at the end of
 * the round, for a left join, those without any; an anti join returns these alone.  Rounds begin
 * small, so that a LIMIT ends the work early, and grow; the rows stay within work_mem (lateral_rows.c).  While the
 * engine works on a round, the node takes the rows of the next one.  The engine's rows come in no
 * order: where the plan wants that of the outer rows, each round is sorted.
 *
 * A call that would read its observations itself (own_rows.c) searches in the same way: the numbers of
 * rows are exchanged for their ids, and what is said of invalid points names the table.
 *
 * The first round's search reads the references, and stays until the end: the later ones use the
 * same.  Below a Gather the outer plan divides its rows between the processes; the leader has read the
 * references before, with a search that has no points, so that they are those of one snapshot and read
 * once (join_node.c).  Privileges are checked as when the function is called.
 */
#include "postgres.h"

#include "access/xact.h"
#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/tuplesort.h"

#include "base/compat.h"
#include "plan/lateral.h"
#include "plan/lateral_rows.h"

/* ---- the plan ---- */

/*
 * What the planner has put into the plan's private list (LateralPrivate), and the columns of the function.
 */
static void
read_plan(LateralNode *state, const CustomScan *scan)
{
	const List *outer = list_nth(scan->custom_private, LATERAL_OUTER_COLUMNS);

	state->type = (JoinType) intVal(list_nth(scan->custom_private, LATERAL_JOIN_TYPE));
	state->node.join_type = state->type == JOIN_INNER ? "Inner" : state->type == JOIN_LEFT ? "Left" : "Anti";
	state->node.keeps_order = boolVal(list_nth(scan->custom_private, LATERAL_KEEPS_ORDER));
	state->table = linitial_oid(list_nth(scan->custom_private, LATERAL_TABLE));
	state->outer_columns = list_length(outer);
	state->numbers = palloc(state->outer_columns * sizeof(AttrNumber));
	for (int i = 0; i < state->outer_columns; i++)
		state->numbers[i] = (AttrNumber) list_nth_int(outer, i);
	state->columns = list_length(scan->custom_scan_tlist) - state->outer_columns + 1;
	state->node.attributes = geonn_attributes(scan->custom_scan_tlist, state->outer_columns);
	state->node.attributes[state->columns - 1] = (AttrNumber) intVal(list_nth(scan->custom_private, LATERAL_NUMBER));
}

/*
 * Is this column of the searches' rows the one that has the number of the outer row?
 */
static bool
is_ord(const LateralNode *state, int column)
{
	return state->node.attributes[column] == state->node.attributes[state->columns - 1];
}

/*
 * Describe the searches' rows: the scan's columns of the function, and ord.
 */
static void
describe_rows(LateralNode *state)
{
	TupleDesc	scan = state->slot->tts_tupleDescriptor;

	state->descriptor = CreateTemplateTupleDesc(state->columns);
	for (int i = 0; i < state->columns - 1; i++)
		TupleDescCopyEntry(state->descriptor, (AttrNumber) (i + 1), scan,
						   (AttrNumber) (state->outer_columns + i + 1));
	for (int i = 0; i < state->columns; i++)
	{
		if (is_ord(state, i))
			TupleDescInitEntry(state->descriptor, (AttrNumber) (i + 1), "ord", INT8OID, -1, 0);
	}
	TupleDescFinalize(state->descriptor);
}

static void
begin_join(JoinNode *node, EState *estate, int flags)
{
	LateralNode *state = (LateralNode *) node;
	PlanState  *plan = &node->custom.ss.ps;
	const CustomScan *scan = (const CustomScan *) plan->plan;
	PlanState  *outer;

	flags &= ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK);
	outer = ExecInitNode(linitial(scan->custom_plans), estate, flags);
	node->custom.custom_ps = list_make1(outer);
	state->outer_slot = ExecInitExtraTupleSlot(estate, ExecGetResultType(outer), &TTSOpsMinimalTuple);
	node->point = list_make3(lsecond(scan->custom_exprs), lthird(scan->custom_exprs),
							 list_nth(scan->custom_exprs, LATERAL_WINDOW));
	node->filter = list_copy_tail(scan->custom_exprs, LATERAL_WINDOW + 1);
	state->latitude = ExecInitExpr(linitial(node->point), plan);
	state->longitude = ExecInitExpr(lsecond(node->point), plan);
	state->window = ExecInitExpr(lthird(node->point), plan);
	state->number = ExecInitExpr(lfourth(scan->custom_exprs), plan);
	state->filter = ExecInitQual(node->filter, plan);
	state->slot = node->custom.ss.ss_ScanTupleSlot;
	state->expressions = plan->ps_ExprContext;
	read_plan(state, scan);
	describe_rows(state);
	state->found_slot = ExecInitExtraTupleSlot(estate, state->descriptor, &TTSOpsVirtual);
	state->sorted_slot = ExecInitExtraTupleSlot(estate, state->descriptor, &TTSOpsMinimalTuple);
}

/* ---- searches ---- */

/*
 * A search that has no points, with the references of all processes.
 */
static GeonnSearch *
prepare_references(JoinNode *node)
{
	LateralNode *state = (LateralNode *) node;
	TupleDesc	row_type;
	GeonnJoin  *join = geonn_lateral_join(state, &row_type);
	GeonnSearch *search;

	join->given = palloc0(sizeof(GivenPoints));
	search = geonn_search_begin(join, row_type);
	geonn_search_project(search, state->descriptor, node->attributes);
	return search;
}

static MemoryContext
create_context(MemoryContext parent)
{
	return AllocSetContextCreate(parent, "geonn lateral join", ALLOCSET_DEFAULT_SIZES);
}

static void
begin_execution(LateralNode *state)
{
	state->context = create_context(state->node.custom.ss.ps.state->es_query_cxt);
	for (int i = 0; i < (int) lengthof(state->rounds); i++)
	{
		Round	   *round = &state->rounds[i];

		memset(round, 0, sizeof(*round));
		round->memory = create_context(state->context);
		round->given.point = geonn_lateral_point;
		round->given.state = round;
		round->given.each_alone = true;
	}
	state->round = &state->rounds[0];
	state->next = &state->rounds[1];
	state->wanted = GEONN_ROWS_FIRST;
	state->outer_ended = false;
	memset(state->counts, 0, sizeof(state->counts));
	state->has_ended = false;
	state->has_references = state->node.shared != NULL;
	if (state->node.shared == NULL)
		return;
	state->references = state->node.shared->references;
	geonn_shared_search_begin(state->node.shared);
}

/*
 * End the round's search; but the first one, which has the references, stays.
 */
static void
end_search(LateralNode *state)
{
	GeonnSearch *search = state->round->search;

	if (state->sorted != NULL)
	{
		ExecClearTuple(state->sorted_slot);
		tuplesort_end(state->sorted);
	}
	state->sorted = NULL;
	state->holds_neighbour = false;
	state->round->search = NULL;
	if (search != NULL && search != state->first)
		geonn_node_end_search(&state->node, search, false);
}

static void
end_execution(JoinNode *node)
{
	LateralNode *state = (LateralNode *) node;

	if (state->context != NULL)
		end_search(state);
	if (state->first != NULL)
		geonn_node_end_search(node, state->first, true);
	state->first = NULL;
	state->join = NULL;
	state->held = NULL;
	ExecClearTuple(state->outer_slot);
	if (state->context != NULL)
		MemoryContextDelete(state->context);
	state->context = NULL;
}

/*
 * Sort the rows of the round's search by the outer rows.
 */
static void
sort_neighbours(LateralNode *state)
{
	AttrNumber	number = (AttrNumber) state->columns;
	Oid			less = Int8LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;
	TupleTableSlot *slot = state->found_slot;
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
begin_search(LateralNode *state)
{
	Round	   *round = state->round;
	MemoryContext former = MemoryContextSwitchTo(state->has_references ? round->memory :
												 state->context);

	/* the first search's join lives as long as that search */
	round->join = *state->join;
	round->join.given = &round->given;
	round->search = geonn_search_begin(&round->join, state->row_type);
	geonn_search_project(round->search, state->descriptor, state->node.attributes);
	if (state->has_references)
		geonn_search_follow(round->search, &state->references);
	else
		state->first = round->search;

	/* a rollback to a savepoint must not undo what is still being read, so read all now */
	if (!state->node.keeps_order && GetCurrentSubTransactionId() != state->node.begun_in)
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
begin_round(LateralNode *state)
{
	Round	   *round = state->next;
	bool		is_first = state->join == NULL;

	ExecClearTuple(state->outer_slot);
	state->current = PG_UINT64_MAX;
	state->unmatched = 0;
	state->next = state->round;
	state->round = round;
	if (round->given.count == 0)
		geonn_lateral_take_rows(state, round);
	state->next->given.count = 0;
	if (round->given.count == 0)
		return false;
	begin_search(state);
	if (!is_first)
		geonn_lateral_take_rows(state, state->next);
	if (state->node.keeps_order)
		sort_neighbours(state);
	return true;
}

/*
 * End the execution: all outer rows were taken, and all of their rows returned.
 */
static void
end_outer_rows(LateralNode *state)
{
	if (state->has_ended)
		return;
	state->has_ended = true;
	if (state->node.shared != NULL)
		geonn_shared_search_end(state->node.shared, state->counts);
	else if (state->join != NULL)
		geonn_tell_of_observations(state->join, state->counts);
}

/*
 * Have the scan's slot begin with the columns of this row of the round.
 */
static void
show_outer_row(LateralNode *state, uint64 number)
{
	if (state->current != number)
	{
		ExecStoreMinimalTuple(state->round->rows[number].tuple, state->outer_slot, false);
		slot_getallattrs(state->outer_slot);
		state->current = number;
	}
	geonn_lateral_set_outer_columns(state, state->outer_slot);
}

/*
 * The next row of this round, of those in front of the end, that has no neighbour in the scan's slot;
 * false: all were returned.
 */
static bool
next_unmatched(LateralNode *state, uint64 end)
{
	if (state->type == JOIN_INNER)
		return false;
	while (state->unmatched < end && state->round->rows[state->unmatched].is_matched)
		state->unmatched++;
	if (state->unmatched >= end)
		return false;
	ExecClearTuple(state->slot);
	show_outer_row(state, state->unmatched++);
	geonn_lateral_set_no_neighbour(state);
	ExecStoreVirtualTuple(state->slot);
	return true;
}

/*
 * Take the next row of the round's search; false: all were taken.
 */
static bool
take_neighbour(LateralNode *state)
{
	TupleTableSlot *slot = state->sorted == NULL ? state->found_slot : state->sorted_slot;
	bool		found = state->sorted == NULL ?
		geonn_search_next(state->round->search, slot->tts_values, slot->tts_isnull) :
		tuplesort_gettupleslot(state->sorted, true, false, slot, NULL);

	if (found && state->sorted != NULL)
		slot_getallattrs(slot);
	state->values = slot->tts_values;
	state->nulls = slot->tts_isnull;
	return found;
}

/*
 * Are the two rows in the scan's slot neighbours?
 */
static bool
passes_filter(LateralNode *state)
{
	if (state->filter == NULL)
		return true;
	ResetExprContext(state->expressions);
	state->expressions->ecxt_scantuple = state->slot;
	return ExecQual(state->filter, state->expressions);
}

/*
 * Set the scan's slot to the row of the round that has this number, and the neighbour that was taken; it
 * names the outer row as the function would.
 */
static void
show_pair(LateralNode *state, uint64 number)
{
	Datum	   *values = state->slot->tts_values + state->outer_columns;
	bool	   *nulls = state->slot->tts_isnull + state->outer_columns;

	ExecClearTuple(state->slot);
	show_outer_row(state, number);
	memcpy(values, state->values, (state->columns - 1) * sizeof(Datum));
	memcpy(nulls, state->nulls, (state->columns - 1) * sizeof(bool));
	state->expressions->ecxt_scantuple = ExecStoreVirtualTuple(state->slot);
	for (int i = 0; i < state->columns - 1; i++)
	{
		if (is_ord(state, i))
			values[i] = ExecEvalExpr(state->number, state->expressions, &nulls[i]);
	}
}

/*
 * The next pair of the round in the scan's slot, or where the order is kept a row without neighbours
 * in front of it; false: all pairs were returned.
 */
static bool
next_neighbour(LateralNode *state)
{
	while (state->round->search != NULL && (state->holds_neighbour || take_neighbour(state)))
	{
		uint64		number = (uint64) DatumGetInt64(state->values[state->columns - 1]) - 1;

		state->holds_neighbour = state->node.keeps_order && next_unmatched(state, number);
		if (state->holds_neighbour)
			return true;
		show_pair(state, number);
		if (!passes_filter(state))
			continue;
		state->round->rows[number].is_matched = true;
		if (state->type != JOIN_ANTI)
			return true;
	}
	end_search(state);
	return false;
}

static TupleTableSlot *
next_row(JoinNode *node)
{
	LateralNode *state = (LateralNode *) node;

	if (state->context == NULL)
		begin_execution(state);
	while (!next_neighbour(state) && !next_unmatched(state, state->round->given.count))
	{
		if (begin_round(state))
			continue;
		end_outer_rows(state);
		return ExecClearTuple(state->slot);
	}
	return state->slot;
}

static void
add_reports(const JoinNode *node, GeonnReport *sum)
{
	const LateralNode *state = (const LateralNode *) node;

	geonn_add_search(sum, state->first);
	if (state->round != NULL && state->round->search != state->first)
		geonn_add_search(sum, state->round->search);
}

static const JoinNodeMethods methods = {
	.name = "geonn lateral join",
	.filter_label = "Join Filter",
	.size = sizeof(LateralNode),
	.begin = begin_join,
	.next_row = next_row,
	.prepare = prepare_references,
	.end_execution = end_execution,
	.add_reports = add_reports
};

static Node *
create_node(CustomScan *scan pg_attribute_unused())
{
	return geonn_node_create(&methods);
}

const CustomScanMethods geonn_lateral_methods = {
	.CustomName = "geonn lateral join",
	.CreateCustomScanState = create_node
};
