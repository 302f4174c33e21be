/*
 * row_type.c
 *		The call of a join in FROM, and the type of its rows.
 *
 * The argument row_type says what columns the rows have: it is of a composite type, or of type record,
 * and then a column definition list stands behind the call.  PostgreSQL keeps that list with the call
 * in a RangeTblFunction.  The planner's files and both plan nodes have calls in that form, so
 * that they need not tell the two apart.
 */
#include "postgres.h"

#include "fmgr.h"
#include "funcapi.h"
#include "parser/parsetree.h"
#include "utils/lsyscache.h"

#include "join/nearest.h"
#include "plan/row_type.h"

RangeTblFunction *
geonn_join_call(RangeTblEntry *entry)
{
	RangeTblFunction *call;
	FuncExpr   *expression;
	char	   *name;
	FmgrInfo	info;

	if (entry->rtekind != RTE_FUNCTION || entry->funcordinality ||
		list_length(entry->functions) != 1)
		return NULL;
	call = linitial_node(RangeTblFunction, entry->functions);
	if (!IsA(call->funcexpr, FuncExpr))
		return NULL;
	expression = (FuncExpr *) call->funcexpr;

	/* do not look up other functions: that may load their libraries */
	name = get_func_name(expression->funcid);
	if (name == NULL || strncmp(name, "geonn_", strlen("geonn_")) != 0)
		return NULL;
	fmgr_info(expression->funcid, &info);
	return geonn_is_join(info.fn_addr) ? call : NULL;
}

TupleDesc
geonn_row_type(const RangeTblFunction *call)
{
	TupleDesc	row_type;

	if (call->funccolnames != NIL)
		return BuildDescFromLists(call->funccolnames, call->funccoltypes, call->funccoltypmods,
								  call->funccolcollations);
	return get_expr_result_type(call->funcexpr, NULL, &row_type) == TYPEFUNC_COMPOSITE ? row_type :
		NULL;
}

RelOptInfo *
geonn_relation_of_call(PlannerInfo *root, const FuncExpr *expression, RangeTblFunction **call)
{
	for (int i = 1; i < root->simple_rel_array_size; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel == NULL || rel->reloptkind != RELOPT_BASEREL || !bms_is_empty(rel->lateral_relids))
			continue;
		*call = geonn_join_call(planner_rt_fetch(i, root));
		if (*call != NULL && (*call)->funcexpr == (const Node *) expression)
			return rel;
	}
	return NULL;
}

AttrNumber
geonn_row_column(const RangeTblFunction *call, const char *name)
{
	TupleDesc	row_type = geonn_row_type(call);

	for (int i = 0; row_type != NULL && i < row_type->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(row_type, i);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), name) == 0)
			return (AttrNumber) (i + 1);
	}
	return 0;
}
