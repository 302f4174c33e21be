/*
 * support.c
 *		What PostgreSQL asks of the joins while it plans a statement.
 *
 * It asks for the rows of a function in FROM once its clauses are known, and before paths are
 * made: so that request is also the time to ask for columns of other relations (own_rows.c).
 */
#include "postgres.h"

#include "fmgr.h"
#include "nodes/supportnodes.h"

#include "plan/estimate.h"
#include "plan/own_rows.h"

PG_FUNCTION_INFO_V1(geonn_join_support);

static Node *
answer_request(Node *request)
{
	JoinEstimate estimate;

	if (IsA(request, SupportRequestRows))
	{
		SupportRequestRows *asked = (SupportRequestRows *) request;

		if (asked->root == NULL || !IsA(asked->node, FuncExpr) ||
			!geonn_estimate_join(asked->root, (FuncExpr *) asked->node, NULL, &estimate))
			return NULL;
		geonn_want_own_points(asked->root, (FuncExpr *) asked->node);
		asked->rows = estimate.rows;
		return request;
	}
	if (IsA(request, SupportRequestCost))
	{
		SupportRequestCost *asked = (SupportRequestCost *) request;

		if (asked->root == NULL || asked->node == NULL || !IsA(asked->node, FuncExpr) ||
			!geonn_estimate_join(asked->root, (FuncExpr *) asked->node, NULL, &estimate))
			return NULL;
		asked->startup = estimate.cost;
		asked->per_tuple = 0;
		return request;
	}
	return NULL;
}

Datum
geonn_join_support(PG_FUNCTION_ARGS)
{
	PG_RETURN_POINTER(answer_request((Node *) PG_GETARG_POINTER(0)));
}
