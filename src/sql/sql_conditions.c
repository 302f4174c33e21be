/*
 * sql_conditions.c
 *		Conditions of a nearest-neighbour subquery that join its rows with the outer row.
 *
 * The node tests such a condition itself, by the statement's own expression, for one reference after the other in the
 * order of distance, until it has as many as the subquery returns.  That pays where few references fail:
 *
 *	r.id <> o.id						excludes one
 *	ST_DWithin(o.g, r.g, d)				says how far the search has to go
 *	r.c = o.c							leaves a group, where these are not many
 *	r.range && o.range, @>, <@			leaves what overlaps
 *
 * With any other condition, the statement is left to PostgreSQL.
 */
#include "postgres.h"

#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"

#include "sql/sql_conditions.h"
#include "sql/sql_distance.h"
#include "points/geometry.h"

/* the greatest number of references that a search is expected to go through for an outer row */
#define REFERENCES_A_ROW 200

/* how many references are expected to fail where equal or overlapping values are asked for; a search learns more */
#define FAILING_REFERENCES 8

/*
 * Is one side of the operator of the outer row, and the other of the subquery's own row?  Sets *own to the latter.
 */
static bool
joins_rows(const OpExpr *operation, Node **own)
{
	Node	   *other;

	if (list_length(operation->args) != 2)
		return false;
	*own = linitial(operation->args);
	other = lsecond(operation->args);
	if (contain_vars_of_level(other, 0))
	{
		*own = other;
		other = linitial(operation->args);
	}
	return contain_vars_of_level(*own, 0) && !contain_vars_of_level(*own, 1) && !contain_vars_of_level(other, 0);
}

static bool
is_equality(Oid operator, Oid type)
{
	return OidIsValid(operator) && (op_mergejoinable(operator, type) || op_hashjoinable(operator, type));
}

static bool
is_of_ranges(const OpExpr *operation)
{
	const char *name = get_opname(operation->opno);
	Oid			left = getBaseType(exprType(linitial(operation->args)));
	Oid			right = getBaseType(exprType(lsecond(operation->args)));

	return name != NULL && (strcmp(name, "&&") == 0 || strcmp(name, "@>") == 0 || strcmp(name, "<@") == 0) &&
		(type_is_range(left) || type_is_range(right));
}

static bool
take_operation(const OpExpr *operation, SqlConditions *conditions)
{
	Node	   *own;
	Oid			type;

	if (!joins_rows(operation, &own))
		return false;
	type = exprType(linitial(operation->args));
	if (is_equality(get_negator(operation->opno), type))
	{
		conditions->excluded++;
		return true;
	}
	conditions->excluded += FAILING_REFERENCES;
	if (!is_equality(operation->opno, type))
		return is_of_ranges(operation);
	conditions->groups = lappend(conditions->groups, own);
	return true;
}

/*
 * ST_DWithin between the points of the distance.
 */
static bool
take_function(const FuncExpr *call, List *observation, List *reference, SqlConditions *conditions)
{
	List	   *points;
	const char *name = get_func_name(call->funcid);

	if (name == NULL || strcmp(name, "st_dwithin") != 0 || list_length(call->args) < 3 ||
		list_length(observation) != 1 || !geonn_is_of_extension(call->funcid, "postgis") ||
		geonn_point_kind(getBaseType(exprType(linitial(call->args)))) != GEONN_POINT_GEOGRAPHY ||
		contain_vars_of_level((Node *) list_copy_tail(call->args, 2), 0))
		return false;
	points = list_truncate(list_copy(call->args), 2);
	if (!equal(points, list_concat_copy(observation, reference)) && !equal(points, list_concat_copy(reference, observation)))
		return false;
	if (conditions->reach == NULL)
		conditions->reach = lthird(call->args);
	return true;
}

/*
 * ST_DWithin comes after the others, as PostgreSQL tests it: it takes longest, and can fail for a value that these exclude.
 */
const char *
geonn_divide_sql_conditions(const Query *query, List *observation, List *reference, SqlConditions *conditions)
{
	List	   *functions = NIL;
	ListCell   *cell;

	foreach(cell, make_ands_implicit((Expr *) query->jointree->quals))
	{
		Node	   *condition = lfirst(cell);
		bool		is_joined = contain_vars_of_level(condition, 1);

		if (!is_joined)
			conditions->own = lappend(conditions->own, condition);
		else if (IsA(condition, OpExpr) && take_operation((const OpExpr *) condition, conditions))
			conditions->joined = lappend(conditions->joined, condition);
		else if (IsA(condition, FuncExpr) &&
				 take_function((const FuncExpr *) condition, observation, reference, conditions))
			functions = lappend(functions, condition);
		else
			return "a condition in it depends on the outer row";
	}
	conditions->joined = list_concat(conditions->joined, functions);
	return NULL;
}

bool
geonn_has_many_groups(PlannerInfo *root, const SqlConditions *conditions, double rows, double needed)
{
	ListCell   *cell;

	if (conditions->groups == NIL)
		return false;
	foreach(cell, pull_var_clause((Node *) conditions->groups, 0))
	{
		const Var  *column = lfirst_node(Var, cell);

		/* the statistics of a column of a view are another relation's */
		if (column->varno >= root->simple_rel_array_size || root->simple_rel_array[column->varno] == NULL)
			return true;
	}
	return estimate_num_groups(root, conditions->groups, rows, NULL, NULL) * needed > REFERENCES_A_ROW;
}
