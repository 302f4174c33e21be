/*
 * lateral.c
 *		The plan node of a join whose rows each ask for the neighbours of their own point.
 *
 * The node works in rounds (lateral_round.c).  In each it takes outer rows from its child, keeps them, and
 * searches for the points of all of them at once.  Then it returns them with their neighbours.  At the end of
 * the round a left join returns those without any, too, and at the end of all a right join the neighbours of none.  An anti
 * join returns rows without any alone, and a semi join
 * each of the others once.  Rounds begin small, so that a LIMIT ends the work early, and grow; the rows stay
 * within work_mem.  Where the child reads a table from end to end, the node takes its rows page by page
 * (table_reader.c).  While the engine works on a round, the node takes the rows of the next one.  The engine's
 * rows come in no order: where the plan wants that of the outer rows, each round is sorted.
 *
 * A call that would read its observations itself (own_rows.c) searches in the same way: the numbers of
 * rows are exchanged for their ids, and what is said of invalid points names the table.
 *
 * Below a Gather the outer plan divides its rows between the processes; the leader has read the
 * references before, with a search that has no points, so that they are those of one snapshot and read
 * once (join_node.c).  Privileges are checked as when the function is called.
 */
#include "postgres.h"

#include "catalog/pg_operator_d.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
#include "utils/tuplesort.h"

#include "base/compat.h"
#include "plan/join_node.h"
#include "plan/lateral.h"
#include "plan/lateral_round.h"

static const LateralSource call_source;

/* ---- the plan ---- */

int
geonn_lateral_count_shown(const LateralNode *state, int first, int count)
{
	const CustomScan *scan = (const CustomScan *) state->node.custom.ss.ps.plan;
	Bitmapset  *used = NULL;

	pull_varattnos((Node *) scan->scan.plan.targetlist, INDEX_VAR, &used);
	pull_varattnos((Node *) scan->scan.plan.qual, INDEX_VAR, &used);
	pull_varattnos((Node *) state->node.filter, INDEX_VAR, &used);
	while (count > 0 && !bms_is_member(first + count - FirstLowInvalidHeapAttributeNumber, used))
		count--;
	bms_free(used);
	return count;
}

/*
 * Describe the searches' rows: the scan's columns of the function, and ord.
 */
static void
describe_rows(LateralNode *state)
{
	TupleDesc	scan = state->slot->tts_tupleDescriptor;

	Assert(state->outer_columns + state->columns - 1 <= scan->natts);
	state->descriptor = CreateTemplateTupleDesc(state->columns);
	for (int i = 0; i < state->columns - 1; i++)
		TupleDescCopyEntry(state->descriptor, (AttrNumber) (i + 1), scan,
						   (AttrNumber) (state->outer_columns + i + 1));
	TupleDescInitEntry(state->descriptor, (AttrNumber) state->columns, "ord", INT8OID, -1, 0);
	if (state->ord >= 0)
		TupleDescInitEntry(state->descriptor, (AttrNumber) (state->ord + 1), "ord", INT8OID, -1, 0);
	TupleDescFinalize(state->descriptor);
}

PlanState *
geonn_lateral_begin_child(LateralNode *state, LateralChild child, EState *estate, int flags)
{
	CustomScanState *node = &state->node.custom;
	const CustomScan *scan = (const CustomScan *) node->ss.ps.plan;
	PlanState  *plan = ExecInitNode(list_nth(scan->custom_plans, child), estate,
									flags & ~(EXEC_FLAG_REWIND | EXEC_FLAG_BACKWARD | EXEC_FLAG_MARK));

	Assert(list_length(node->custom_ps) == (int) child);
	node->custom_ps = lappend(node->custom_ps, plan);
	return plan;
}

const List *
geonn_lateral_begin_plan(LateralNode *state, EState *estate, int flags)
{
	JoinNode   *node = &state->node;
	const CustomScan *scan = (const CustomScan *) node->custom.ss.ps.plan;
	LateralPrivate planned;

	geonn_unpack_fields(scan->custom_private, &planned);
	state->type = (JoinType) intVal(planned.type);
	node->join_type = state->type == JOIN_INNER ? "Inner" : state->type == JOIN_LEFT ? "Left" :
		state->type == JOIN_RIGHT ? "Right" : state->type == JOIN_SEMI ? "Semi" : "Anti";
	node->keeps_order = boolVal(planned.keeps_order);
	state->outer_columns = list_length(planned.outer_columns);
	state->outer.numbers = palloc(state->outer_columns * sizeof(AttrNumber));
	for (int i = 0; i < state->outer_columns; i++)
	{
		state->outer.numbers[i] = (AttrNumber) list_nth_int(planned.outer_columns, i);
		state->outer.greatest_number = Max(state->outer.greatest_number, state->outer.numbers[i]);
	}
	(void) geonn_lateral_begin_child(state, LATERAL_OUTER, estate, flags);
	state->slot = node->custom.ss.ss_ScanTupleSlot;
	state->expressions = node->custom.ss.ps.ps_ExprContext;
	return planned.question;
}

void
geonn_lateral_begin_rows(LateralNode *state, EState *estate)
{
	JoinNode   *node = &state->node;

	state->filter = ExecInitQual(node->filter, &node->custom.ss.ps);
	state->outer.keeps_words = true;
	for (int i = 0; i < state->outer_columns; i++)
		state->outer.keeps_words &= TupleDescAttr(state->slot->tts_tupleDescriptor, i)->attbyval;
	state->shown_columns = state->ord >= 0 ? state->outer_columns :
		geonn_lateral_count_shown(state, 0, state->outer_columns);
	describe_rows(state);
	state->neighbours.found_slot = ExecInitExtraTupleSlot(estate, state->descriptor, &TTSOpsVirtual);
	state->neighbours.latest = !node->keeps_order ? state->neighbours.found_slot :
		ExecInitExtraTupleSlot(estate, state->descriptor, &TTSOpsMinimalTuple);
}

static void
begin_join(JoinNode *node, EState *estate, int flags)
{
	LateralNode *state = (LateralNode *) node;
	const CustomScan *scan = (const CustomScan *) node->custom.ss.ps.plan;
	CallExpressions expressions;
	CallPrivate planned;

	geonn_unpack_fields(scan->custom_exprs, &expressions);
	geonn_node_begin_call(node, expressions.call);
	geonn_unpack_fields(geonn_lateral_begin_plan(state, estate, flags), &planned);
	state->call.table = linitial_oid(planned.table);
	state->source = &call_source;
	node->point = list_truncate(list_copy(expressions.point), POINT_VALUE);
	node->filter = expressions.clauses;
	for (int i = 0; i < POINT_EXPRESSIONS; i++)
		state->call.point[i] = ExecInitExpr(list_nth(expressions.point, i), &node->custom.ss.ps);
	state->columns = list_length(scan->custom_scan_tlist) - state->outer_columns + 1;
	node->attributes = geonn_attributes(scan->custom_scan_tlist, state->outer_columns);
	node->attributes[state->columns - 1] = (AttrNumber) intVal(planned.number);
	state->ord = -1;
	for (int i = 0; i < state->columns - 1; i++)
	{
		if (node->attributes[i] == node->attributes[state->columns - 1])
			state->ord = i;
	}
	geonn_lateral_begin_rows(state, estate);
}

/* ---- the call ---- */

/*
 * Check that the call still means the table that was planned.  A name in text is looked up at execution, and
 * can mean another table by then: the next execution is planned anew.
 */
static void
check_table(const LateralNode *state, const GeonnJoin *join)
{
	if (join->observations->relation == state->call.table)
		return;
	ResetPlanCache();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the observations are of another table than when the statement was planned"),
			 errdetail("Now their name means \"%s\", which was created, or found first, after that.",
					   get_rel_name(join->observations->relation)),
			 errhint("Execute the statement again.")));
}

/*
 * Make the call's join, in the current memory context, and its row type.  If the call would read observations
 * itself, searches return row numbers, as ord, in place of obs_id, whose values come from the outer rows, in
 * the planned type.
 */
static GeonnJoin *
read_call(LateralNode *state, TupleDesc *row_type)
{
	GeonnJoin  *join = geonn_node_join(&state->node, row_type);

	if (join->observations != NULL)
	{
		check_table(state, join);
		(void) geonn_check_tables(join->observations);
		*row_type = CreateTupleDescCopy(*row_type);
		TupleDescInitEntry(*row_type, state->node.attributes[state->columns - 1], "ord", INT8OID, -1, 0);
		TupleDescFinalize(*row_type);
	}
	geonn_check_row_type(&state->node, *row_type, state->descriptor);
	return join;
}

/* ---- points ---- */

static double
evaluate(ExprState *expression, ExprContext *expressions, bool *is_null)
{
	Datum		value = ExecEvalExprSwitchContext(expression, expressions, is_null);

	return *is_null ? 0 : DatumGetFloat8(value);
}

/*
 * Evaluate the outer row's window.
 */
static const GeonnLimits *
evaluate_window(const LateralNode *state, const Round *round)
{
	ExprContext *expressions = state->expressions;
	GeonnLimits *limits = MemoryContextAlloc(round->memory, sizeof(GeonnLimits));
	bool		is_null;
	Datum		value = ExecEvalExprSwitchContext(state->call.point[POINT_WINDOW], expressions, &is_null);
	MemoryContext former = MemoryContextSwitchTo(expressions->ecxt_per_tuple_memory);

	geonn_limits_begin(limits);
	geonn_window_read(&state->join->given_window->type, value, is_null, 0, limits);
	MemoryContextSwitchTo(former);
	return limits;
}

/*
 * Implements LateralSource.read_point: the point is in the call's arrays.
 */
static void
read_call_point(LateralNode *state, Round *round, uint64 number)
{
	ExprContext *expressions = state->expressions;
	OuterRow   *row = &round->rows[number];

	round->latitudes[number] = evaluate(state->call.point[POINT_LATITUDE], expressions, &row->latitude_is_null);
	round->longitudes[number] = evaluate(state->call.point[POINT_LONGITUDE], expressions, &row->longitude_is_null);
	row->limits = state->join->given_window == NULL ? NULL : evaluate_window(state, round);
}

/* ---- searches ---- */

/*
 * Implements LateralSource.next: the search's rows are those of the call.
 */
static bool
next_of_call(LateralNode *state, Datum *values, bool *nulls)
{
	return geonn_search_next(state->node.search, values, nulls);
}

/*
 * Create a search without points; processes share its references.
 */
static GeonnSearch *
prepare_references(JoinNode *node)
{
	LateralNode *state = (LateralNode *) node;
	TupleDesc	row_type;
	GeonnJoin  *join = read_call(state, &row_type);
	GivenPoints *given = palloc0(sizeof(GivenPoints));

	given->more_follow = true;
	join->given = given;
	return geonn_lateral_create_search(state, join, row_type);
}

static void
begin_execution(LateralNode *state)
{
	state->node.context = AllocSetContextCreate(state->node.custom.ss.ps.state->es_query_cxt, "geonn lateral join",
												ALLOCSET_DEFAULT_SIZES);
	geonn_rounds_begin(state);
	state->outer.has_ended = false;
	memset(state->outer.counts, 0, sizeof(state->outer.counts));
	state->neighbours.has_ended = false;
	state->searches.has_references = state->node.shared != NULL;
	if (state->node.shared == NULL)
		return;
	state->searches.references = state->node.shared->references;
	geonn_shared_search_begin(state->node.shared);
}

/*
 * End the round's search, except the first, which has the references.
 */
static void
end_search(LateralNode *state)
{
	JoinNode   *node = &state->node;

	if (state->neighbours.sorted != NULL)
	{
		ExecClearTuple(state->neighbours.latest);
		tuplesort_end(state->neighbours.sorted);
	}
	state->neighbours.sorted = NULL;
	state->neighbours.is_held = false;
	state->made.pairs = NULL;
	geonn_lateral_end_second_search(state);
	if (node->search != NULL && node->search != node->first && node->search != node->following)
		geonn_node_end_search(node, node->search, false);
	node->search = NULL;
	state->neighbours.is_asking = false;
}

void
geonn_lateral_end_execution(JoinNode *node)
{
	LateralNode *state = (LateralNode *) node;

	end_search(state);
	geonn_lateral_end_following_search(node);
	if (state->outer.reader != NULL)
		geonn_table_reader_end(state->outer.reader);
	state->outer.reader = NULL;
	state->join = NULL;
	state->outer.held = NULL;
}

static void
sort_neighbours(LateralNode *state)
{
	AttrNumber	number = (AttrNumber) state->columns;
	Oid			less = Int8LessOperator;
	Oid			collation = InvalidOid;
	bool		nulls_first = false;
	TupleTableSlot *slot = state->neighbours.found_slot;
	MemoryContext former = MemoryContextSwitchTo(state->round->memory);

	state->neighbours.sorted = tuplesort_begin_heap(state->descriptor, 1, &number, &less, &collation,
													&nulls_first, work_mem, NULL, TUPLESORT_NONE);
	while (state->source->next(state, slot->tts_values, slot->tts_isnull))
	{
		ExecStoreVirtualTuple(slot);
		tuplesort_puttupleslot(state->neighbours.sorted, slot);
		ExecClearTuple(slot);
	}
	tuplesort_performsort(state->neighbours.sorted);
	MemoryContextSwitchTo(former);
}

/*
 * Implements LateralSource.begin_round.
 */
static void
begin_round_of_call(LateralNode *state)
{
	int			columns = state->columns - 1;
	MemoryContext former;
	BlockColumn *in_block;

	geonn_lateral_begin_search(state, false);
	former = MemoryContextSwitchTo(state->node.custom.ss.ps.state->es_query_cxt);
	in_block = palloc(columns * sizeof(BlockColumn));

	/* another execution can be of a table with other ids */
	state->call.takes_blocks = state->ord < 0 && geonn_search_in_blocks(state->node.search, columns, in_block);
	if (state->call.takes_blocks && state->made.column == NULL)
		geonn_lateral_begin_blocks(state, in_block);
	pfree(in_block);
	MemoryContextSwitchTo(former);
}

/*
 * Implements LateralSource.next_block.
 */
static GeonnBlock *
next_block_of_call(LateralNode *state)
{
	return state->call.takes_blocks ? geonn_search_next_pair(state->node.search) : NULL;
}

static const LateralSource call_source = {
	.make_join = read_call,
	.read_point = read_call_point,
	.begin_round = begin_round_of_call,
	.next = next_of_call,
	.next_block = next_block_of_call
};

/*
 * Go on to the next round; false: no outer row is left.  While the engine searches, read the rows of the
 * round after it, except in the first round.
 */
static bool
begin_round(LateralNode *state)
{
	Round	   *round = state->outer.next;
	bool		is_first = state->join == NULL;

	Assert(!state->neighbours.is_asking && !state->neighbours.is_held && state->neighbours.sorted == NULL);
	state->neighbours.unmatched = 0;
	state->outer.next = state->round;
	state->round = round;
	if (round->given.count == 0)
		geonn_round_take(state, round);
	state->outer.next->given.count = 0;
	if (round->given.count == 0)
		return false;
	state->source->begin_round(state);
	state->neighbours.is_asking = true;
	if (!is_first)
		geonn_round_take(state, state->outer.next);
	if (state->node.keeps_order)
		sort_neighbours(state);
	return true;
}

void
geonn_lateral_set_outer(const LateralNode *state, uint64 number, TupleTableSlot *slot, int count)
{
	const Round *round = state->round;
	int			columns = state->outer_columns;

	Assert(number < round->given.count && count <= columns);
	geonn_copy_columns(slot->tts_values, slot->tts_isnull, round->values + number * columns,
					   round->nulls + number * columns, count);
}

/*
 * Set the scan's slot to the round's next row before end that has no neighbour; false: none is left.
 */
static bool
next_unmatched(LateralNode *state, uint64 end)
{
	if (state->type == JOIN_INNER || state->type == JOIN_SEMI || state->type == JOIN_RIGHT)
		return false;
	while (state->neighbours.unmatched < end && state->round->rows[state->neighbours.unmatched].is_matched)
		state->neighbours.unmatched++;
	if (state->neighbours.unmatched >= end)
		return false;
	ExecClearTuple(state->slot);
	geonn_lateral_set_outer(state, state->neighbours.unmatched++, state->slot, state->shown_columns);
	geonn_set_no_neighbour(state);
	ExecStoreVirtualTuple(state->slot);
	return true;
}

static bool
take_neighbour(LateralNode *state)
{
	TupleTableSlot *slot = state->neighbours.latest;

	if (state->neighbours.sorted == NULL)
		return state->source->next(state, slot->tts_values, slot->tts_isnull);
	if (!tuplesort_gettupleslot(state->neighbours.sorted, true, false, slot, NULL))
		return false;
	slot_getallattrs(slot);
	return true;
}

/*
 * Set the scan's slot to this row of the round and the latest neighbour, with ord or obs_id as the function
 * would return it.
 */
static void
show_pair(LateralNode *state, uint64 number)
{
	Datum	   *values = state->slot->tts_values + state->outer_columns;
	bool	   *nulls = state->slot->tts_isnull + state->outer_columns;

	ExecClearTuple(state->slot);
	geonn_lateral_set_outer(state, number, state->slot, state->shown_columns);
	geonn_copy_columns(values, nulls, state->neighbours.latest->tts_values, state->neighbours.latest->tts_isnull,
					   state->columns - 1);
	state->expressions->ecxt_scantuple = ExecStoreVirtualTuple(state->slot);
	if (state->ord >= 0)
		values[state->ord] = ExecEvalExpr(state->call.point[POINT_VALUE], state->expressions, &nulls[state->ord]);
}

/*
 * Set the scan's slot to the round's next pair, or, if the order is kept, to an unmatched row before it;
 * false: no pair is left.
 */
static bool
next_neighbour(LateralNode *state)
{
	bool		asks_whether = state->type == JOIN_SEMI || state->type == JOIN_ANTI;

	while (state->neighbours.is_asking && (state->neighbours.is_held || take_neighbour(state)))
	{
		uint64		number =
			(DatumGetUInt64(state->neighbours.latest->tts_values[state->columns - 1]) >> state->source->rank_bits) - 1;

		Assert(number < state->round->given.count);
		state->neighbours.is_held = state->node.keeps_order && next_unmatched(state, number);
		if (state->neighbours.is_held)
			return true;
		if (asks_whether && state->round->rows[number].is_matched)
			continue;
		show_pair(state, number);
		if (state->filter != NULL)
		{
			ResetExprContext(state->expressions);
			if (!ExecQual(state->filter, state->expressions))
				continue;
		}
		if (state->type == JOIN_RIGHT)
			state->source->note_match(state);
		else if (state->type != JOIN_INNER)
			state->round->rows[number].is_matched = true;
		if (state->type != JOIN_ANTI)
			return true;
	}
	end_search(state);
	return false;
}

/*
 * Of a right join, after the last outer row: set the scan's slot to the next neighbour that matches none; false: none is left.
 */
static bool
next_alone(LateralNode *state)
{
	TupleTableSlot *slot = state->slot;
	int			outer_columns = state->outer_columns;

	if (state->type != JOIN_RIGHT)
		return false;
	if (state->join == NULL)
		geonn_round_make_join(state);
	ExecClearTuple(slot);
	if (!state->source->next_alone(state, slot->tts_values + outer_columns, slot->tts_isnull + outer_columns))
		return false;
	memset(slot->tts_values, 0, outer_columns * sizeof(Datum));
	memset(slot->tts_isnull, true, outer_columns * sizeof(bool));
	ExecStoreVirtualTuple(slot);
	return true;
}

TupleTableSlot *
geonn_lateral_next_row(JoinNode *node)
{
	LateralNode *state = (LateralNode *) node;
	TupleTableSlot *slot;

	if (node->context == NULL)
		begin_execution(state);
	slot = geonn_lateral_next_of_block(state);
	if (slot != NULL)
		return slot;
	while (!next_neighbour(state) && !next_unmatched(state, state->round->given.count))
	{
		if (begin_round(state))
			continue;
		if (next_alone(state))
			break;
		if (!state->neighbours.has_ended && state->node.shared != NULL)
			geonn_shared_search_end(state->node.shared, state->outer.counts);
		else if (!state->neighbours.has_ended && state->join != NULL)
			geonn_tell_of_observations(state->join, state->outer.counts);
		state->neighbours.has_ended = true;
		geonn_lateral_end_following_search(node);

		/* other nodes of the statement may need the session's place and descriptors */
		if (node->shared == NULL)
			geonn_node_end_first(node);
		return ExecClearTuple(state->made.projection != NULL ? state->made.slot : state->slot);
	}
	if (state->made.projection == NULL)
		return state->slot;
	state->expressions->ecxt_scantuple = state->slot;
	return ExecProject(state->made.projection);
}

const JoinNodeMethods geonn_lateral_methods = {
	.scan = {"geonn lateral join", geonn_node_create},
	.filter_label = "Join Filter",
	.size = sizeof(LateralNode),
	.begin = begin_join,
	.next_row = geonn_lateral_next_row,
	.prepare = prepare_references,
	.end_execution = geonn_lateral_end_execution
};
