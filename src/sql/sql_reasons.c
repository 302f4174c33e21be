/*
 * sql_reasons.c
 *		Why a statement that looks like a nearest-neighbour one was left to PostgreSQL: for DEBUG1 and EXPLAIN (VERBOSE).
 *
 * The planner finds out for each subquery, and for each order in which it could join the tables.  EXPLAIN shows each reason
 * once, below the plan; a join's only if no order of the tables has the node.  Only in the text format: in the others a
 * statement is one object, which ends with its plan.
 */
#include "postgres.h"

#include "commands/explain.h"
#include "executor/instrument.h"
#include "nodes/value.h"
#include "tcop/tcopprot.h"

#include "base/compat.h"
#include "base/settings.h"
#include "plan/known.h"
#include "sql/sql_reasons.h"

/* the statement that EXPLAIN has planned */
typedef struct Explained
{
	MemoryContext context;		/* of the reasons */
	List	   *reasons[SQL_JOIN + 1];	/* String */
	bool		has_join;		/* a plan joins within a distance */
	int			depth;			/* geonn_planning_depth while it is planned, and no statement of a function */
	bool		is_planned;
} Explained;

static Explained *explained;	/* NULL: no EXPLAIN asks for reasons */
static ExplainOneQuery_hook_type previous_hook;

/* Is the statement that EXPLAIN shows being planned? */
static bool
is_wanted(void)
{
	return explained != NULL && !explained->is_planned && geonn_planning_depth() == explained->depth;
}

void
geonn_left_to_postgresql(SqlPart part, const char *name, const char *reason)
{
	const char *what = part == SQL_SUBQUERY ? psprintf("the nearest-neighbour subquery \"%s\"", name) :
		name != NULL ? psprintf("a join by %s", name) : "a join within a distance";
	MemoryContext former;

	ereport(DEBUG1, (errmsg_internal("geonn leaves %s to PostgreSQL: %s", what, reason)));
	if (!is_wanted())
		return;
	former = MemoryContextSwitchTo(explained->context);
	explained->reasons[part] = list_append_unique(explained->reasons[part],
												  makeString(psprintf("%s: %s", what, reason)));
	MemoryContextSwitchTo(former);
}

void
geonn_join_is_planned(void)
{
	if (is_wanted())
		explained->has_join = true;
}

void
geonn_statement_is_planned(void)
{
	if (is_wanted())
		explained->is_planned = true;
}

static void
show(const List *reasons, ExplainState *state)
{
	ListCell   *cell;

	foreach(cell, reasons)
		ExplainPropertyText("Left to PostgreSQL", strVal(lfirst(cell)), state);
}

/*
 * Implements ExplainOneQuery_hook.
 */
static void
explain_query(Query *query, int options, IntoClause *into, ExplainState *state, const char *text,
			  ParamListInfo parameters, QueryEnvironment *environment)
{
	Explained	now = {.context = CurrentMemoryContext,.depth = geonn_planning_depth() + 1};
	Explained  *outer = explained;

	/* a function that planning evaluates may explain a statement of its own */
	explained = state->verbose && state->format == EXPLAIN_FORMAT_TEXT ? &now : NULL;
	PG_TRY();
	{
		if (previous_hook != NULL)
			previous_hook(query, options, into, state, text, parameters, environment);
		else
			standard_ExplainOneQuery(query, options, into, state, text, parameters, environment);
	}
	PG_FINALLY();
	{
		explained = outer;
	}
	PG_END_TRY();
	show(now.reasons[SQL_SUBQUERY], state);
	if (!now.has_join)
		show(now.reasons[SQL_JOIN], state);
}

void
geonn_explain_reasons(void)
{
	previous_hook = ExplainOneQuery_hook;
	ExplainOneQuery_hook = explain_query;
}
