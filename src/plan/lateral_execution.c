/*
 * lateral_execution.c
 *		What executions of a lateral join have at their beginning and end, in any process.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "join/report.h"
#include "plan/lateral_state.h"
#include "plan/row_type.h"
#include "plan/scan.h"

List *
geonn_lateral_filter(const LateralState *state)
{
	return list_copy_tail(((CustomScan *) state->custom.ss.ps.plan)->custom_exprs, 5);
}

/*
 * The row type of the searches for a call that would read its observations itself: the numbers of
 * rows, as ord, are in the place of their ids.  These come from the outer rows, in the type that the
 * statement was planned with.
 */
static TupleDesc
number_rows(const LateralState *state, TupleDesc row_type)
{
	AttrNumber	number = state->attributes[state->columns - 1];
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
check_table(const LateralState *state, const GeonnJoin *join)
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

/*
 * The arguments are read, as by a call of the function.
 */
GeonnJoin *
geonn_lateral_join(LateralState *state, TupleDesc *row_type)
{
	const SharedLateral *shared = state->shared;
	Oid			observations = shared != NULL ? shared->observation_table : InvalidOid;
	Oid			references = shared != NULL ? shared->reference_table : InvalidOid;
	NullableDatum *values = geonn_evaluate_arguments(state->expression, state->arguments,
													 state->custom.ss.ps.ps_ExprContext,
													 observations, references);
	GeonnJoin  *join = geonn_called_join(state->expression, &state->function, values);

	*row_type = geonn_row_type(state->call);
	if (join->observations != NULL)
	{
		check_table(state, join);
		geonn_check_readable(join->observations);
		if (*row_type != NULL)
			*row_type = number_rows(state, *row_type);
	}
	if (*row_type != NULL)
		geonn_check_row_type(*row_type, state->descriptor, state->attributes);
	return join;
}

void
geonn_lateral_tell(const GeonnJoin *join, const uint64 *counts)
{
	if (join->observations != NULL)
		geonn_tell_of_rows(join->observations, geonn_observations_policy(join), counts);
	else
		geonn_warn_of_given(counts, join->keep_unmatched);
}

void
geonn_lateral_add_search(GeonnReport *sum, const GeonnSearch *search)
{
	GeonnReport report;

	if (search == NULL)
		return;
	report = geonn_search_report(search);
	geonn_report_add(sum, &report);
}

void
geonn_lateral_end_search(LateralState *state)
{
	GeonnSearch *search;

	if (state->sorted != NULL)
	{
		ExecClearTuple(state->sorted_slot);
		tuplesort_end(state->sorted);
	}
	state->sorted = NULL;
	state->holds_neighbour = false;
	search = state->round->search;
	state->round->search = NULL;
	if (search == NULL || search == state->first)
		return;
	geonn_lateral_add_search(&state->present, search);
	geonn_search_end(search);
}

void
geonn_lateral_end_execution(LateralState *state)
{
	if (state->context != NULL)
		geonn_lateral_end_search(state);
	geonn_lateral_add_search(&state->present, state->first);
	geonn_report_add(&state->sum, &state->present);
	if (state->first != NULL)
	{
		geonn_search_log(state->first, &state->present);
		geonn_search_end(state->first);
	}
	else
		geonn_report_add(&state->together, &state->present);
	memset(&state->present, 0, sizeof(state->present));
	state->first = NULL;
	state->join = NULL;
	state->held = NULL;
	ExecClearTuple(state->outer_slot);
	if (state->context != NULL)
		MemoryContextDelete(state->context);
	state->context = NULL;
}
