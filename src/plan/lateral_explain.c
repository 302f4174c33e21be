/*
 * lateral_explain.c
 *		What EXPLAIN shows of a lateral join.
 */
#include "postgres.h"

#include "commands/explain.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
#include "utils/ruleutils.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "join/report.h"
#include "plan/lateral_state.h"
#include "plan/scan.h"

/*
 * Show expressions as PostgreSQL shows its conditions.
 */
static void
explain_expression(const LateralState *state, List *ancestors, ExplainState *explain,
				   const char *label, Node *expression)
{
	List	   *context = set_deparse_context_plan(explain->deparse_cxt, state->custom.ss.ps.plan,
												  ancestors);

	ExplainPropertyText(label, deparse_expression(expression, context,
												  list_length(explain->rtable) > 1 ||
												  explain->verbose, false), explain);
}

static void
explain_analysis(const LateralState *state, ExplainState *explain)
{
	const ProcessReports *processes = &state->processes;
	GeonnReport sum = state->sum;
	GeonnReport leader;

	geonn_report_add(&sum, &state->present);
	geonn_lateral_add_search(&sum, state->first);
	if (state->round != NULL && state->round->search != state->first)
		geonn_lateral_add_search(&sum, state->round->search);
	leader = sum;
	geonn_lateral_add_search(&sum, state->prepared);
	for (int i = 1; i < processes->count; i++)
		geonn_report_add(&sum, &processes->reports[i]);
	geonn_report_explain(&sum, explain);
	if (processes->count > 0)
	{
		processes->reports[0] = leader;
		geonn_report_explain_processes(processes->reports, processes->count, explain);
	}
}

void
geonn_lateral_explain(CustomScanState *node, List *ancestors, ExplainState *explain)
{
	LateralState *state = (LateralState *) node;
	CustomScan *scan = (CustomScan *) node->ss.ps.plan;
	Node	   *references = geonn_expression_references(state->expression);
	List	   *filter = geonn_lateral_filter(state);

	ExplainPropertyText("Join Type", state->type == JOIN_INNER ? "Inner" :
						state->type == JOIN_LEFT ? "Left" : "Anti", explain);
	ExplainPropertyText("Function", get_func_name(state->expression->funcid), explain);
	geonn_explain_side(explain, "Observations", geonn_expression_observations(state->expression));
	explain_expression(state, ancestors, explain, "Latitude", lsecond(scan->custom_exprs));
	explain_expression(state, ancestors, explain, "Longitude", lthird(scan->custom_exprs));
	if (!IsA(list_nth(scan->custom_exprs, 4), Const))
		explain_expression(state, ancestors, explain, "Window", list_nth(scan->custom_exprs, 4));
	geonn_explain_side(explain, "References", references);
	geonn_explain_columns(explain, state->expression);
	if (state->keeps_order)
		ExplainPropertyBool("Keeps Order", true, explain);
	if (filter != NIL)
		explain_expression(state, ancestors, explain, "Join Filter",
						   (Node *) make_ands_explicit(filter));
	if (explain->analyze)
		explain_analysis(state, explain);
}
