/*
 * row_call.c
 *		Which call in FROM asks for the neighbours of the outer rows' points, and what is left of it without them.
 *
 * A LATERAL call has arrays with one element, from a row's columns.  Without these elements it is the same for all
 * rows, and nothing in it may be volatile.  Casts of the arrays become casts of their elements.  A call that would
 * read the outer rows itself (own_rows.c) has its points from their table.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "parser/parse_coerce.h"
#include "parser/parsetree.h"
#include "utils/array.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "plan/known.h"
#include "plan/row_call.h"

/*
 * The element of an array constructor with one element, cast as the array is; NULL: the argument is anything
 * else.
 */
static Node *
only_element(Node *argument)
{
	const ArrayCoerceExpr *cast = (const ArrayCoerceExpr *) argument;
	bool		is_cast = argument != NULL && IsA(argument, ArrayCoerceExpr);
	const ArrayExpr *array = (const ArrayExpr *) (is_cast ? (Node *) cast->arg : argument);
	Node	   *element;
	Node	   *result;

	if (array == NULL || !IsA(array, ArrayExpr) || array->multidims || list_length(array->elements) != 1)
		return NULL;
	element = linitial(array->elements);
	if (!is_cast)
		return element;
	result = coerce_to_target_type(NULL, element, exprType(element), get_element_type(cast->resulttype),
								   cast->resulttypmod, COERCION_EXPLICIT, COERCE_IMPLICIT_CAST, -1);
	if (result != NULL && result != element)
		exprSetInputCollation(result, exprCollation(element));
	return result;
}

/*
 * The only element of the argument windows, perhaps a constant; a NULL Const if points have no windows.
 * NULL: the array is anything else.
 */
static Node *
only_window(Node *argument)
{
	Const	   *constant = (Const *) argument;
	ArrayType  *array;
	int16		length;
	bool		by_value;
	char		alignment;
	bool		is_null;
	Datum		value;
	Oid			type;

	if (argument == NULL)
		return (Node *) makeNullConst(TEXTOID, -1, InvalidOid);
	if (!IsA(argument, Const))
		return only_element(argument);
	type = get_element_type(constant->consttype);
	if (constant->constisnull)
		return (Node *) makeNullConst(type, -1, InvalidOid);
	array = DatumGetArrayTypeP(constant->constvalue);
	if (ARR_NDIM(array) != 1 || ARR_DIMS(array)[0] != 1)
		return NULL;
	get_typlenbyvalalign(type, &length, &by_value, &alignment);
	value = array_get_element(PointerGetDatum(array), 1, ARR_LBOUND(array), -1, length, by_value, alignment, &is_null);
	return (Node *) makeConst(type, -1, constant->constcollid, length, value, is_null, by_value);
}

static Node *
empty_array(Node *array)
{
	Oid			type = exprType(array);

	return (Node *) makeConst(type, -1, exprCollation(array), -1,
							  PointerGetDatum(construct_empty_array(get_element_type(type))), false,
							  false);
}

static bool
is_same_for_all(const FuncExpr *call)
{
	return !contain_var_clause((Node *) call) && !contain_subplans((Node *) call->args) &&
		!contain_volatile_functions((Node *) call->args);
}

/*
 * Take the points out of the call.  False: the node cannot make this call.
 */
static bool
split_call(RangeTblFunction *whole, RowCall *call)
{
	const FuncExpr *expression = castNode(FuncExpr, whole->funcexpr);
	Node	   *latitudes = geonn_expression_argument(expression, "lat");
	Node	   *longitudes = geonn_expression_argument(expression, "lon");
	Node	   *windows = geonn_expression_argument(expression, "windows");
	FuncExpr   *rest;
	ListCell   *cell;

	/* ord is 1: each outer row's call has one point */
	call->point = list_make4(only_element(latitudes), only_element(longitudes), only_window(windows),
							 makeConst(INT8OID, -1, InvalidOid, sizeof(int64), Int64GetDatum(1), false,
									   FLOAT8PASSBYVAL));
	call->number = geonn_row_column(whole, "ord");
	if (list_member_ptr(call->point, NULL) || exprType(linitial(call->point)) != FLOAT8OID ||
		exprType(lsecond(call->point)) != FLOAT8OID || call->number == 0)
		return false;
	call->call = copyObject(whole);
	rest = castNode(FuncExpr, call->call->funcexpr);
	foreach(cell, expression->args)
	{
		if (lfirst(cell) == latitudes || lfirst(cell) == longitudes ||
			(lfirst(cell) == windows && !(IsA(windows, Const) && ((Const *) windows)->constisnull)))
			lfirst(list_nth_cell(rest->args, foreach_current_index(cell))) = empty_array(lfirst(cell));
	}
	call->table = InvalidOid;
	return is_same_for_all(rest) && !contain_subplans((Node *) expression) &&
		!contain_volatile_functions((Node *) call->point);
}

FuncExpr *
geonn_find_row_call(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *function, List *clauses, RowCall *call)
{
	RangeTblFunction *whole = geonn_join_call(planner_rt_fetch(function->relid, root));
	FuncExpr   *expression = whole == NULL ? NULL : castNode(FuncExpr, whole->funcexpr);

	/* counts are not pairs, which the node tells apart by their outer rows */
	if (expression == NULL || geonn_expression_argument(expression, "radii") != NULL)
		return NULL;
	if (!bms_is_empty(function->lateral_relids))
		return bms_is_subset(function->lateral_relids, outer->relids) && split_call(whole, call) ? expression : NULL;
	call->call = whole;
	return is_same_for_all(expression) && geonn_find_own_rows(root, function, outer, clauses, call) ? expression : NULL;
}
