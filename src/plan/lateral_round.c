/*
 * lateral_round.c
 *		Outer rows of a lateral join, whose neighbours are searched for at once.
 */
#include "postgres.h"

#include "miscadmin.h"
#include "utils/datum.h"
#include "utils/memutils.h"

#include "plan/lateral_round.h"

/* outer rows in the first and the largest round */
#define ROWS_FIRST 64
#define ROWS_MAX 65536

/*
 * Implements GivenPoints.point: the point of this row of the round.
 */
static void
round_point(void *argument, uint64 number, PointRow *row)
{
	const Round *round = argument;
	const OuterRow *outer = &round->rows[number];

	row->latitude = outer->latitude;
	row->longitude = outer->longitude;
	row->latitude_is_null = outer->latitude_is_null;
	row->longitude_is_null = outer->longitude_is_null;
	row->limits = outer->limits;
}

void
geonn_rounds_begin(LateralNode *state)
{
	for (int i = 0; i < (int) lengthof(state->rounds); i++)
	{
		Round	   *round = &state->rounds[i];

		memset(round, 0, sizeof(*round));
		round->memory = AllocSetContextCreate(state->node.context, "geonn lateral join", ALLOCSET_DEFAULT_SIZES);
		round->given.point = round_point;
		round->given.state = round;
		round->given.each_alone = true;
	}
	state->round = &state->rounds[0];
	state->next = &state->rounds[1];
	state->wanted = ROWS_FIRST;
}

void
geonn_set_no_neighbour(LateralNode *state)
{
	int			columns = state->slot->tts_tupleDescriptor->natts - state->outer_columns;

	memset(state->slot->tts_values + state->outer_columns, 0, columns * sizeof(Datum));
	memset(state->slot->tts_isnull + state->outer_columns, true, columns * sizeof(bool));
}

static void
read_join(LateralNode *state)
{
	MemoryContext former = MemoryContextSwitchTo(state->node.context);

	state->join = state->source->make_join(state, &state->row_type);
	MemoryContextSwitchTo(former);
}

/*
 * Did an outer join below fill the columns of the call's table with NULLs?  Such a row has a NULL id, which
 * the table itself never has.
 */
static bool
is_extended_row(LateralNode *state)
{
	bool		is_null = false;

	if (OidIsValid(state->table))
		ExecEvalExprSwitchContext(state->point[LATERAL_VALUE], state->expressions, &is_null);
	return is_null;
}

/*
 * Have the round keep the columns of the scan's slot, as those of its next row.
 */
static void
keep_columns(const LateralNode *state, Round *round)
{
	const TupleTableSlot *slot = state->slot;
	int			columns = state->outer_columns;
	Datum	   *values = round->values + round->given.count * columns;
	bool	   *nulls = round->nulls + round->given.count * columns;
	MemoryContext former = MemoryContextSwitchTo(round->memory);

	for (int i = 0; i < columns; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(slot->tts_tupleDescriptor, i);

		nulls[i] = slot->tts_isnull[i];
		values[i] = attribute->attbyval || nulls[i] ? slot->tts_values[i] :
			datumCopy(slot->tts_values[i], false, attribute->attlen);
	}
	MemoryContextSwitchTo(former);
}

/*
 * Keep an outer row and its point.  False: the point is invalid, and the error must wait until the rows of
 * earlier points have been returned.
 */
static bool
keep_outer_row(LateralNode *state, Round *round, TupleTableSlot *outer)
{
	ExprContext *expressions = state->expressions;
	TupleTableSlot *slot = state->slot;
	OuterRow   *row = &round->rows[round->given.count];
	PointStatus status;

	ResetExprContext(expressions);
	slot_getsomeattrs(outer, state->greatest_number);
	for (int i = 0; i < state->outer_columns; i++)
	{
		slot->tts_values[i] = outer->tts_values[state->numbers[i] - 1];
		slot->tts_isnull[i] = outer->tts_isnull[state->numbers[i] - 1];
	}
	state->source->read_point(state, round, row);
	row->is_matched = false;
	status = row->latitude_is_null || row->longitude_is_null ? POINT_NULL :
		geonn_point_status(row->latitude, row->longitude);
	if (state->join->invalid == GEONN_INVALID_IS_ERROR && round->given.count > 0 &&
		status != POINT_VALID && status != POINT_NULL)
		return false;
	if (status != POINT_NULL || !is_extended_row(state))
		state->counts[status]++;
	keep_columns(state, round);
	round->given.count++;
	return true;
}

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
geonn_round_take(LateralNode *state, Round *round)
{
	Size		limit = (Size) work_mem * 1024 / 2;
	int			columns = state->outer_columns;
	Size		row_bytes = sizeof(OuterRow) + columns * (sizeof(Datum) + sizeof(bool));
	TupleTableSlot *outer;

	MemoryContextReset(round->memory);
	round->given.count = 0;
	/* in one piece: several can make the context larger than the limit before a row is in it */
	round->rows = MemoryContextAllocHuge(round->memory, state->wanted * row_bytes);
	round->values = (Datum *) (round->rows + state->wanted);
	round->nulls = (bool *) (round->values + (Size) state->wanted * columns);
	ExecClearTuple(state->slot);
	geonn_set_no_neighbour(state);
	state->expressions->ecxt_scantuple = ExecStoreVirtualTuple(state->slot);
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
	state->wanted = (int) Min(Min((Size) state->wanted * 4, ROWS_MAX), limit / 2 / row_bytes);
}
