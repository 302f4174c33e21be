/*
 * lateral_rows.c
 *		The call of a lateral join, and its outer rows, which are kept in rounds, with their points.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"

#include "base/compat.h"
#include "plan/lateral_rows.h"

/* the rows of the largest round */
#define ROWS_MAX 65536

/* ---- the call ---- */

/*
 * The row type of the searches for a call that would read its observations itself: the numbers of
 * rows, as ord, are in the place of their ids.  These come from the outer rows, in the type that the
 * statement was planned with.
 */
static TupleDesc
number_rows(const LateralNode *state, TupleDesc row_type)
{
	AttrNumber	number = state->node.attributes[state->columns - 1];
	TupleDesc	numbered = CreateTupleDescCopy(row_type);

	TupleDescInitEntry(numbered, number, "ord", INT8OID, -1, 0);
	TupleDescFinalize(numbered);
	return numbered;
}

/*
 * The outer rows are of the table that the statement was planned for.  A name in text is looked up
 * when it is executed, and can have come to mean another table: the next execution has a new plan.
 */
static void
check_table(const LateralNode *state, const GeonnJoin *join)
{
	if (join->observations->relation == state->table)
		return;
	ResetPlanCache();
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the observations are of another table than when the statement was planned"),
			 errdetail("Now their name means \"%s\", which was created, or found first, after that.",
					   get_rel_name(join->observations->relation)),
			 errhint("Execute the statement again.")));
}

GeonnJoin *
geonn_lateral_join(LateralNode *state, TupleDesc *row_type)
{
	GeonnJoin  *join = geonn_node_join(&state->node, row_type);

	if (join->observations != NULL)
	{
		check_table(state, join);
		geonn_check_readable(join->observations);
		if (*row_type != NULL)
			*row_type = number_rows(state, *row_type);
	}
	if (*row_type != NULL)
		geonn_check_row_type(&state->node, *row_type, state->descriptor);
	return join;
}

/*
 * The first outer row has come.
 */
static void
read_join(LateralNode *state)
{
	MemoryContext former = MemoryContextSwitchTo(state->context);

	state->join = geonn_lateral_join(state, &state->row_type);
	if (state->join->given_window != NULL)
		state->range = geonn_window_range(&state->join->given_window->type);
	MemoryContextSwitchTo(former);
}

/* ---- rows ---- */

void
geonn_lateral_point(void *argument, uint64 number, PointRow *row)
{
	const Round *round = argument;
	const OuterRow *outer = &round->rows[number];

	row->latitude = outer->latitude;
	row->longitude = outer->longitude;
	row->latitude_is_null = outer->latitude_is_null;
	row->longitude_is_null = outer->longitude_is_null;
	row->limits = round->limits != NULL ? &round->limits[number] : NULL;
}

void
geonn_lateral_set_outer_columns(LateralNode *state, TupleTableSlot *outer)
{
	TupleTableSlot *slot = state->slot;

	for (int i = 0; i < state->outer_columns; i++)
		slot->tts_values[i] = slot_getattr(outer, state->numbers[i], &slot->tts_isnull[i]);
}

void
geonn_lateral_set_no_neighbour(LateralNode *state)
{
	int			columns = state->slot->tts_tupleDescriptor->natts - state->outer_columns;

	memset(state->slot->tts_values + state->outer_columns, 0, columns * sizeof(Datum));
	memset(state->slot->tts_isnull + state->outer_columns, true, columns * sizeof(bool));
}

static double
evaluate(ExprState *expression, ExprContext *expressions, bool *is_null)
{
	Datum		value = ExecEvalExprSwitchContext(expression, expressions, is_null);

	return *is_null ? 0 : DatumGetFloat8(value);
}

/*
 * Evaluate the window of the point that will be the round's next.
 */
static void
take_window(LateralNode *state, Round *round, ExprContext *expressions)
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
is_extended_row(LateralNode *state)
{
	bool		is_null = false;

	if (OidIsValid(state->table))
		ExecEvalExprSwitchContext(state->number, state->expressions, &is_null);
	return is_null;
}

/*
 * Keep an outer row and its point.  False: the point is an error, which must not be raised before
 * the rows of those in front of it have been returned.
 */
static bool
keep_outer_row(LateralNode *state, Round *round, TupleTableSlot *outer)
{
	ExprContext *expressions = state->expressions;
	TupleTableSlot *slot = state->slot;
	OuterRow   *row = &round->rows[round->given.count];
	PointStatus status;
	MemoryContext former;

	ResetExprContext(expressions);
	ExecClearTuple(slot);
	geonn_lateral_set_outer_columns(state, outer);
	geonn_lateral_set_no_neighbour(state);
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
next_outer_row(LateralNode *state)
{
	TupleTableSlot *outer = state->held;

	state->held = NULL;
	if (outer != NULL)
		return outer;
	if (!state->outer_ended)
		outer = ExecProcNode(linitial(state->node.custom.custom_ps));
	state->outer_ended = TupIsNull(outer);
	return state->outer_ended ? NULL : outer;
}

void
geonn_lateral_take_rows(LateralNode *state, Round *round)
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
