/*
 * query.c
 *		The plan of a query that only reads.
 */
#include "postgres.h"

#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "query.h"

/*
 * A position in the text of a query is none in the calling statement.
 */
static void
move_error_position(void *argument)
{
	int			position = geterrposition();

	if (position > 0)
	{
		errposition(0);
		internalerrposition(position);
		internalerrquery(argument);
	}
}

PlannedStmt *
geonn_plan_query(const char *query, const char *title, int options)
{
	ErrorContextCallback context = {
		.previous = error_context_stack,
		.callback = move_error_position,
		.arg = unconstify(char *, query)
	};
	List	   *parsed;
	List	   *analyzed = NIL;
	PlannedStmt *plan = NULL;

	error_context_stack = &context;
	parsed = pg_parse_query(query);
	if (list_length(parsed) == 1)
		analyzed = pg_analyze_and_rewrite_fixedparams(linitial_node(RawStmt, parsed),
													  query, NULL, 0, NULL);
	if (list_length(analyzed) == 1 &&
		linitial_node(Query, analyzed)->commandType == CMD_SELECT)
		plan = pg_plan_query(linitial_node(Query, analyzed), query, options, NULL);
	error_context_stack = context.previous;
	if (plan == NULL || !CommandIsReadOnly(plan))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("%s is not one SELECT that changes nothing", title),
				 errhint("Give one SELECT without INTO, FOR UPDATE and statements that change rows, as in 'SELECT id, lat, lon FROM city'.")));
	return plan;
}
