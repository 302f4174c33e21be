/*
 * lateral_block.c
 *		Rows of a lateral join that are made of a search's pairs.
 *
 * The answers of a batch are arrays of pairs (GeonnBlock).  If the node returns all of them, in any order, it makes a row of
 * each at once: the outer row's columns are those of the round, and the neighbour's are elements of these arrays.  Where the
 * plan's rows are columns alone, they are made in the plan's own slot, so that the executor has nothing to project.
 *
 * Other rows, as those that a search has stored, and those of outer rows without a point, are made in lateral.c.
 */
#include "postgres.h"

#include "plan/lateral.h"

static MadeColumn
scan_column(const LateralNode *state, const BlockColumn *in_block, int number, int column)
{
	bool		is_outer = column < state->outer_columns;

	return (MadeColumn) {
		.number = number,
		.outer = is_outer ? column : -1,
		.in_block = is_outer ? (BlockColumn) {0} : in_block[column - state->outer_columns]
	};
}

/*
 * Have the rows be the plan's, if these are columns of the scan's slot, and all rows are returned; else false.
 */
static bool
make_rows_of_plan(LateralNode *state, const BlockColumn *in_block)
{
	PlanState  *plan = &state->node.custom.ss.ps;
	ListCell   *cell;

	if (plan->qual != NULL || plan->ps_ProjInfo == NULL)
		return false;
	foreach(cell, plan->plan->targetlist)
	{
		const Var  *column = (const Var *) lfirst_node(TargetEntry, cell)->expr;

		if (!IsA(column, Var) || column->varno != INDEX_VAR || column->varattno <= 0 ||
			column->varattno >= state->outer_columns + state->columns)
			return false;
	}
	state->made.column = palloc(list_length(plan->plan->targetlist) * sizeof(MadeColumn));
	foreach(cell, plan->plan->targetlist)
	{
		const Var  *column = (const Var *) lfirst_node(TargetEntry, cell)->expr;

		state->made.column[state->made.columns] = scan_column(state, in_block, state->made.columns, column->varattno - 1);
		state->made.columns++;
	}
	state->made.slot = plan->ps_ResultTupleSlot;
	state->made.projection = plan->ps_ProjInfo;
	plan->ps_ProjInfo = NULL;
	return true;
}

/*
 * Have the rows be the scan's.
 */
static void
make_rows_of_scan(LateralNode *state, const BlockColumn *in_block)
{
	int			neighbours = state->columns - 1;

	state->made.column = palloc((state->shown_columns + neighbours) * sizeof(MadeColumn));
	for (int i = 0; i < state->shown_columns; i++)
		state->made.column[state->made.columns++] = scan_column(state, in_block, i, i);
	for (int i = state->outer_columns; i < state->outer_columns + neighbours; i++)
		state->made.column[state->made.columns++] = scan_column(state, in_block, i, i);
	state->made.slot = state->slot;
}

void
geonn_lateral_begin_blocks(LateralNode *state, const BlockColumn *in_block)
{
	if ((state->type != JOIN_INNER && state->type != JOIN_LEFT) || state->filter != NULL || state->node.keeps_order)
		return;
	if (!make_rows_of_plan(state, in_block))
		make_rows_of_scan(state, in_block);
}

static bool
begin_block(LateralNode *state)
{
	state->made.pairs = NULL;
	if (state->made.column != NULL && state->neighbours.is_asking && state->source->next_block != NULL)
		state->made.pairs = state->source->next_block(state);
	return state->made.pairs != NULL;
}

TupleTableSlot *
geonn_lateral_next_of_block(LateralNode *state)
{
	TupleTableSlot *slot = state->made.slot;
	const Round *round = state->round;
	const GeonnBlock *block;
	uint64		number;

	if ((state->made.pairs == NULL || !geonn_block_next(state->made.pairs)) && !begin_block(state))
		return NULL;
	block = state->made.pairs;
	number = DatumGetUInt64(block->observation_id[block->observation]) - 1;
	if (state->type == JOIN_LEFT)
		round->rows[number].is_matched = true;
	ExecClearTuple(slot);
	for (int i = 0; i < state->made.columns; i++)
	{
		const MadeColumn *column = &state->made.column[i];

		if (column->outer >= 0)
		{
			slot->tts_values[column->number] = round->values[number * state->outer_columns + column->outer];
			slot->tts_isnull[column->number] = round->nulls[number * state->outer_columns + column->outer];
			continue;
		}
		slot->tts_values[column->number] = geonn_block_value(block, column->in_block);
		slot->tts_isnull[column->number] = false;
	}
	return ExecStoreVirtualTuple(slot);
}
