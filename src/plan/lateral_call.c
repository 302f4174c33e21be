/*
 * lateral_call.c
 *		The form of a call in FROM by points of outer rows, whose node is that of lateral.c.
 *
 * FROM o, LATERAL geonn_nearest_points(ARRAY[o.lat], ARRAY[o.lon], 'ref') calls the function for each row of o.
 * The node of lateral.c gives the same rows, but searches for many rows of o at once.  It is offered for inner,
 * left and anti joins, where the arrays have one element and the other arguments are the same for all rows and
 * not volatile.  The row type needs the column ord, by which the node knows which row a neighbour belongs to.
 *
 * FROM obs o JOIN geonn_nearest('obs', 'ref') n ON n.obs_id = o.id asks for the same where id is a unique key
 * (own_rows.c).  Then the column obs_id has that part.
 *
 * geonn_nearest_sql is left to the function, though format('SELECT %s AS lat, …', o.lat) can ask for the same.
 * What a text means is known when PostgreSQL has parsed it: NULLs, settings for output and names that are found
 * first then can make another query of each row's, so a plan for all rows would rest on a guess.
 *
 * Below a Gather, each process takes a part of the outer rows (join_node.c), where the references are plain tables
 * or come with the parameters, as in scan.c.  Such a node is offered over each partial path of the outer rows,
 * though the functions themselves are restricted to the leader.
 */
#include "postgres.h"

#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "plan/estimate.h"
#include "plan/lateral.h"
#include "plan/lateral_path.h"
#include "plan/row_call.h"
#include "plan/scan.h"

typedef struct Call
{
	RowCall		call;			/* for these outer rows */
	FuncExpr   *expression;		/* the query's own */
	const Path *function;		/* PostgreSQL's path for it */
} Call;

static bool
recognise_call(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *clauses, LateralPath *path)
{
	Call	   *call;

	if (inner->rtekind != RTE_FUNCTION || path->type == JOIN_SEMI)
		return false;
	call = palloc0(sizeof(Call));
	call->expression = geonn_find_row_call(root, outer, inner, clauses, &call->call);
	call->function = linitial(inner->pathlist);
	path->question = call;
	path->question_columns = call->call.point;
	path->least_column = 1;
	path->conditions = inner->baserestrictinfo;
	return call->expression != NULL;
}

/*
 * Set the cost of reading the outer rows and, once, the references, and of the returned rows.  PostgreSQL
 * counts a function's cost once, however often a nested loop calls it: so a LATERAL call's searches must not
 * count here.
 */
static void
set_cost_of_call(PlannerInfo *root, const LateralPath *template, CustomPath *path)
{
	const Call *call = template->question;
	const Path *outer = linitial(path->custom_paths);
	Cost		references;

	if (!geonn_estimate_references(root, call->expression, &references))
		references = call->function->total_cost;
	path->path.startup_cost = outer->startup_cost + references;
	path->path.total_cost = outer->total_cost + references + cpu_tuple_cost * path->path.rows;

	/* for a call that reads observations itself, other joins count the search too */
	if (geonn_expression_observations(call->expression) != NULL)
		path->path.total_cost += GEONN_OPERATORS_A_SEARCH * cpu_operator_cost * outer->rows;
	if (path->path.pathkeys != NIL)
		path->path.total_cost += cpu_operator_cost * path->path.rows;
}

static bool
call_suits_workers(PlannerInfo *root, const LateralPath *path)
{
	const RowCall *call = &((const Call *) path->question)->call;
	FuncExpr   *expression = castNode(FuncExpr, call->call->funcexpr);

	return is_parallel_safe(root, (Node *) expression->args) && is_parallel_safe(root, (Node *) call->point) &&
		geonn_references_are_plain(expression);
}

static CustomScan *
make_node_of_call(PlannerInfo *root, LateralPath *path, List *targets, List *children)
{
	const RowCall *call = &((const Call *) path->question)->call;
	CallExpressions expressions = {.call = call->call,.point = call->point,.clauses = path->neighbours};
	CallPrivate planned = {.number = makeInteger(call->number),.table = list_make1_oid(call->table)};
	CustomScan *scan;

	Assert(list_length(call->point) == POINT_EXPRESSIONS);
	scan = geonn_make_scan(root, &path->path, targets, copyObject(path->rows), geonn_pack_fields(&expressions),
						   list_concat_copy(path->outer_columns, path->inner_columns));
	scan->custom_plans = children;
	scan->custom_private = geonn_lateral_private(path, linitial(children), geonn_pack_fields(&planned));
	return scan;
}

const LateralForm geonn_call_form = {
	.node = &geonn_lateral_methods,
	.shares_references = true,
	.recognise = recognise_call,
	.set_cost = set_cost_of_call,
	.suits_workers = call_suits_workers,
	.make_node = make_node_of_call
};
