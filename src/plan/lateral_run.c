/*
 * lateral_run.c
 *		Rows of a lateral join that are made of a search's pairs.
 *
 * Where each outer row has one neighbour, the answers of a batch are arrays of as many pairs (GeonnRun).  If the node
 * returns all of them, in any order, it makes a row of each at once: the outer row's columns are those of the round, and
 * the neighbour's are elements of these arrays.  Where the plan's rows are columns alone, they are made in the plan's own
 * slot, so that the executor has nothing to project.
 *
 * Other rows, as those that had to be waited for, and those of outer rows without a point, are made in lateral.c.
 */
#include "postgres.h"

#include "plan/lateral.h"

static RunColumn
scan_column(const LateralNode *state, const size_t *in_run, int number, int column)
{
	bool		is_outer = column < state->outer_columns;

	return (RunColumn) {
		.number = number,
		.outer = is_outer ? column : -1,
		.in_run = is_outer ? 0 : in_run[column - state->outer_columns]
	};
}

/*
 * Have the rows be the plan's, if these are columns of the scan's slot, and all rows are returned; else false.
 */
static bool
make_rows_of_plan(LateralNode *state, const size_t *in_run)
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
	state->run_column = palloc(list_length(plan->plan->targetlist) * sizeof(RunColumn));
	foreach(cell, plan->plan->targetlist)
	{
		const Var  *column = (const Var *) lfirst_node(TargetEntry, cell)->expr;

		state->run_column[state->run_columns] = scan_column(state, in_run, state->run_columns, column->varattno - 1);
		state->run_columns++;
	}
	state->run_slot = plan->ps_ResultTupleSlot;
	state->projection = plan->ps_ProjInfo;
	plan->ps_ProjInfo = NULL;
	return true;
}

/*
 * Have the rows be the scan's.
 */
static void
make_rows_of_scan(LateralNode *state, const size_t *in_run)
{
	int			neighbours = state->columns - 1;

	state->run_column = palloc((state->shown_columns + neighbours) * sizeof(RunColumn));
	for (int i = 0; i < state->shown_columns; i++)
		state->run_column[state->run_columns++] = scan_column(state, in_run, i, i);
	for (int i = state->outer_columns; i < state->outer_columns + neighbours; i++)
		state->run_column[state->run_columns++] = scan_column(state, in_run, i, i);
	state->run_slot = state->slot;
}

void
geonn_lateral_begin_runs(LateralNode *state, const size_t *in_run)
{
	if ((state->type != JOIN_INNER && state->type != JOIN_LEFT) || state->filter != NULL || state->node.keeps_order)
		return;
	if (!make_rows_of_plan(state, in_run))
		make_rows_of_scan(state, in_run);
}

static bool
begin_run(LateralNode *state)
{
	state->run = NULL;
	if (state->run_column != NULL && state->is_asking && state->source->next_run != NULL)
		state->run = state->source->next_run(state);
	return state->run != NULL;
}

TupleTableSlot *
geonn_lateral_next_of_run(LateralNode *state)
{
	TupleTableSlot *slot = state->run_slot;
	const Round *round = state->round;
	GeonnRun   *run = state->run;
	uint32		pair;
	uint64		number;

	if (run == NULL || run->next == run->end)
	{
		if (!begin_run(state))
			return NULL;
		run = state->run;
	}
	pair = run->next++;
	number = DatumGetUInt64(run->observation_id[pair]) - 1;
	Assert(number < round->given.count && pair < run->end);
	if (state->type == JOIN_LEFT)
		round->rows[number].is_matched = true;
	ExecClearTuple(slot);
	for (int i = 0; i < state->run_columns; i++)
	{
		const RunColumn *column = &state->run_column[i];

		if (column->outer >= 0)
		{
			slot->tts_values[column->number] = round->values[number * state->outer_columns + column->outer];
			slot->tts_isnull[column->number] = round->nulls[number * state->outer_columns + column->outer];
			continue;
		}

		/* these arrays of the run have Datum-sized elements */
		memcpy(&slot->tts_values[column->number], *(const Datum *const *) ((const char *) run + column->in_run) + pair,
			   sizeof(Datum));
		slot->tts_isnull[column->number] = false;
	}
	return ExecStoreVirtualTuple(slot);
}
