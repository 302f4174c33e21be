/*
 * observation_filter.c
 *		Conditions of a query on a join's rows that are conditions on observations.
 *
 * The id and the coordinates of an observation are the same in all of its rows, so a condition on these columns
 * alone can be asked of the observation before the search: with WHERE obs_id = 77, one row is read by an index
 * instead of all.  The planner evaluates such a condition of SELECT FROM obs JOIN LATERAL (its neighbours) in the
 * same place: an invalid observation that does not meet it is not read, raises no error and is not counted.
 * Conditions on references, distances and ranks are left above the search, and so are volatile functions and
 * subplans.
 *
 * Once their parameters are known, the clauses become conditions of the query that reads the observations
 * (PointSource.conditions).  PostgreSQL plans that query as any other of the caller's: it chooses indexes and
 * partitions, and has row-level security and the barriers of views tested before conditions that might leak.
 * An observation's id can be narrower than the row type's column: then the operator is exchanged for its
 * sibling for the narrower integers, which an index understands.
 *
 * The plan node still tests the clauses on its rows.
 */
#include "postgres.h"

#include "access/stratnum.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parse_coerce.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "join/arguments.h"
#include "plan/observation_filter.h"
#include "plan/known.h"
#include "base/value.h"

/* ---- which clauses are conditions on observations ---- */

/* the row type's columns of observations, indexed by ColumnRole */
static const char *const names[] = {"obs_id", "obs_lat", "obs_lon"};

/*
 * The ColumnRole of a column of the row type; -1: it is no column of observations.
 */
static int
column_role(TupleDesc row_type, int number)
{
	for (int role = 0; role < (int) lengthof(names) && number > 0 && number <= row_type->natts; role++)
	{
		Form_pg_attribute attribute = TupleDescAttr(row_type, number - 1);

		if (!attribute->attisdropped && strcmp(NameStr(attribute->attname), names[role]) == 0)
			return role;
	}
	return -1;
}

static bool
is_observation_clause(RelOptInfo *rel, TupleDesc row_type, Node *clause)
{
	List	   *columns;
	ListCell   *cell;
	int			own = 0;

	if (contain_volatile_functions(clause) || contain_subplans(clause))
		return false;
	columns = pull_var_clause(clause, PVC_INCLUDE_PLACEHOLDERS);
	foreach(cell, columns)
	{
		Var		   *column = lfirst(cell);

		if (!IsA(column, Var))
			return false;

		/* join clauses also have other relations' columns, which become parameters */
		if (column->varno != (int) rel->relid)
			continue;
		if (column_role(row_type, column->varattno) < 0)
			return false;
		own++;
	}
	return own > 0;
}

/*
 * The call's row type; NULL: it has none, or reads no observations.
 */
static TupleDesc
read_row_type(const RangeTblFunction *call)
{
	return geonn_expression_observations(castNode(FuncExpr, call->funcexpr)) == NULL ? NULL :
		geonn_row_type(call);
}

List *
geonn_observation_clauses(RelOptInfo *rel, const RangeTblFunction *call, List *clauses)
{
	TupleDesc	row_type = clauses == NIL ? NULL : read_row_type(call);
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, row_type == NULL ? NIL : clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);

		if (!clause->pseudoconstant && restriction_is_securely_promotable(clause, rel) &&
			is_observation_clause(rel, row_type, (Node *) clause->clause))
			found = lappend(found, clause);
	}
	return found;
}

/* ---- clauses that come of joins ---- */

List *
geonn_observation_join_clauses(PlannerInfo *root, RelOptInfo *rel, const RangeTblFunction *call)
{
	List	   *clauses = NIL;
	List	   *usable = NIL;
	ListCell   *cell;

	for (int role = COLUMN_ID; role < (int) lengthof(names); role++)
		clauses = list_concat(clauses, geonn_equalities(root, rel, geonn_row_column(call, names[role])));
	foreach(cell, geonn_observation_clauses(rel, call, list_concat(clauses, rel->joininfo)))
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);

		if (clause->parent_ec != NULL || join_clause_is_movable_to(clause, rel))
			usable = lappend(usable, clause);
	}
	return usable;
}

/* ---- comparisons with other operators ---- */

/* the parts of an OpExpr with two arguments, or of a ScalarArrayOpExpr */
typedef struct ComparisonParts
{
	Oid		   *operator;
	Oid		   *function;
	List	   *arguments;
	Oid			collation;
	bool		right_is_array;
} ComparisonParts;

/*
 * Point at the parts of a comparison, so that the caller can change operator and function within the
 * expression.  False: the expression is no comparison.
 */
static bool
take_comparison(Node *expression, ComparisonParts *comparison)
{
	OpExpr	   *one = (OpExpr *) expression;
	ScalarArrayOpExpr *each = (ScalarArrayOpExpr *) expression;

	if (IsA(expression, OpExpr) && list_length(one->args) == 2)
		*comparison = (ComparisonParts) {&one->opno, &one->opfuncid, one->args, one->inputcollid, false};
	else if (IsA(expression, ScalarArrayOpExpr))
	{
		each->hashfuncid = each->negfuncid = InvalidOid;
		*comparison = (ComparisonParts) {&each->opno, &each->opfuncid, each->args, each->inputcollid, true};
	}
	else
		return false;
	return true;
}

static void
set_operator(ComparisonParts *comparison, Oid operator)
{
	*comparison->operator = operator;
	*comparison->function = get_opcode(operator);
}

/*
 * The operator of these families with the same strategy and right type, for this left type; InvalidOid: none.
 */
static Oid
sibling_operator(Oid operator, List *families, Oid left)
{
	ListCell   *cell;

	foreach(cell, families)
	{
		Oid			family = lfirst_oid(cell);
		int			strategy;
		Oid			former_left;
		Oid			right;

		if (!op_in_opfamily(operator, family))
			continue;
		get_op_opfamily_properties(operator, family, false, &strategy, &former_left, &right);
		return get_opfamily_member(family, left, right, (int16) strategy);
	}
	return InvalidOid;
}

/* ---- clauses that follow from those of joined relations ---- */

/*
 * Copy a clause with column to in place of from; both are equal by these operator families and this
 * collation.  NULL: the clause need not hold for equal values.
 */
static Node *
transfer_clause(Expr *original, Var *from, Var *to, List *families, Oid collation)
{
	Node	   *clause = copyObject((Node *) original);
	ComparisonParts comparison;
	Node	   *right;
	Oid			sibling;

	if (!take_comparison(clause, &comparison) ||
		(comparison.right_is_array && !((ScalarArrayOpExpr *) clause)->useOr))
		return NULL;
	if (!comparison.right_is_array && equal(lsecond(comparison.arguments), from) &&
		OidIsValid(get_commutator(*comparison.operator)))
		CommuteOpExpr((OpExpr *) clause);
	right = lsecond(comparison.arguments);
	sibling = sibling_operator(*comparison.operator, families, to->vartype);
	if (!equal(linitial(comparison.arguments), from) || comparison.collation != collation ||
		!OidIsValid(sibling) || contain_var_clause(right) || contain_subplans(right) ||
		contain_volatile_functions(right))
		return NULL;
	linitial(comparison.arguments) = copyObject(to);
	set_operator(&comparison, sibling);
	return clause;
}

/*
 * Clauses on the id that follow from the other relation's clauses on the column that join equates with it.
 * join is from an equivalence class, or from an outer join whose nullable side is this relation: rows of it
 * without a partner do not matter.
 */
static List *
implied_by(PlannerInfo *root, Index relid, AttrNumber number, const RestrictInfo *join)
{
	OpExpr	   *equality = (OpExpr *) join->clause;
	bool		of_class = join->parent_ec != NULL;
	Var		   *other = (Var *) geonn_compared_with(join, relid, number);
	Node	   *id;
	List	   *found = NIL;
	ListCell   *cell;

	if (other == NULL ||
		(!of_class && (join->is_pushed_down || bms_is_empty(join->outer_relids) ||
					   bms_is_member(relid, join->outer_relids))))
		return NIL;
	id = linitial(equality->args) == other ? lsecond(equality->args) : linitial(equality->args);
	if (!IsA(id, Var) || !IsA(other, Var) || root->simple_rel_array[other->varno] == NULL ||
		(!of_class && !bms_is_member(other->varno, join->outer_relids)))
		return NIL;
	foreach(cell, root->simple_rel_array[other->varno]->baserestrictinfo)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);
		Node	   *transferred = NULL;

		/* from an equality, the planner itself derives a clause on this relation */
		if (restriction_is_securely_promotable(clause, root->simple_rel_array[relid]))
			transferred = transfer_clause(clause->clause, other, (Var *) id, join->mergeopfamilies,
										  equality->inputcollid);
		if (transferred != NULL)
			found = lappend(found, transferred);
	}
	return found;
}

List *
geonn_implied_observation_clauses(PlannerInfo *root, RelOptInfo *rel, const RangeTblFunction *call)
{
	AttrNumber	number = read_row_type(call) == NULL ? 0 : geonn_row_column(call, names[COLUMN_ID]);
	List	   *found = NIL;
	ListCell   *cell;

	if (number == 0)
		return NIL;
	foreach(cell, list_concat(geonn_equalities(root, rel, number), rel->joininfo))
		found = list_concat(found, implied_by(root, rel->relid, number, lfirst_node(RestrictInfo, cell)));
	return found;
}

/* ---- conditions on a source ---- */

typedef struct Translation
{
	const PointSource *source;
	TupleDesc	row_type;
	int			varno;
	const AttrNumber *attributes;
	ParameterValue value;
	void	   *state;
	bool		failed;
} Translation;

/*
 * The source's column behind a column of the join, cast to its type; NULL: none.
 */
static Node *
source_column(const Translation *translation, const Var *column)
{
	int			number = translation->attributes == NULL ? column->varattno :
		translation->attributes[column->varattno - 1];
	int			role = column_role(translation->row_type, number);
	const PointColumn *origin;
	Node	   *value;

	if (role < 0)
		return NULL;
	origin = &translation->source->columns[role];
	if (origin->name == NULL || (role != COLUMN_ID && origin->base_type != FLOAT8OID))
		return NULL;
	value = (Node *) makeVar(1, origin->attribute, origin->type, geonn_declared_typmod(origin),
							 origin->collation, 0);
	if (origin->type != column->vartype)
		value = coerce_to_target_type(NULL, value, origin->type, column->vartype, -1,
									  COERCION_EXPLICIT, COERCE_IMPLICIT_CAST, -1);

	/* a cast may only relabel or widen integers */
	if (value == NULL || !(IsA(value, Var) || IsA(value, RelabelType) ||
						   (geonn_integer_width(column->vartype) > 0 &&
							geonn_integer_width(origin->base_type) > 0)))
		return NULL;
	return value;
}

/*
 * The integer column that is cast here; NULL: none is.
 */
static Node *
widened_integer(Node *expression)
{
	Node	   *integer = strip_implicit_coercions(expression);

	return integer != expression && IsA(integer, Var) &&
		geonn_integer_width(getBaseType(exprType(integer))) > 0 ? integer : NULL;
}

/*
 * Compare two integers without casting one to a wider type.
 */
static void
compare_narrow(ComparisonParts *comparison)
{
	Node	   *narrow[2];
	Oid			types[2];
	int			strategy = get_op_opfamily_strategy(*comparison->operator, INTEGER_BTREE_FAM_OID);
	Oid			sibling;

	if (strategy == InvalidStrategy)
		return;
	for (int i = 0; i < 2; i++)
	{
		Node	   *argument = list_nth(comparison->arguments, i);

		narrow[i] = widened_integer(argument);
		types[i] = exprType(narrow[i] != NULL ? narrow[i] : argument);
		if (i == 1 && comparison->right_is_array)
			types[i] = get_base_element_type(types[i]);
		types[i] = getBaseType(types[i]);
	}
	sibling = get_opfamily_member(INTEGER_BTREE_FAM_OID, types[0], types[1], (int16) strategy);
	if (!OidIsValid(sibling))
		return;
	set_operator(comparison, sibling);
	for (int i = 0; i < 2; i++)
	{
		if (narrow[i] != NULL)
			lfirst(list_nth_cell(comparison->arguments, i)) = narrow[i];
	}
}

static Node *
translate(Node *node, void *context)
{
	Translation *translation = context;
	ComparisonParts comparison;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == translation->varno)
	{
		Node	   *column = source_column(translation, (Var *) node);

		/* one column that fails makes the whole clause fail */
		if (column == NULL)
			translation->failed = true;
		return column;
	}
	if (IsA(node, Var) || IsA(node, Param))
		return translation->value(translation->state, node);
	node = expression_tree_mutator(node, translate, context);
	if (!translation->failed && take_comparison(node, &comparison))
		compare_narrow(&comparison);
	return node;
}

List *
geonn_observation_conditions(List *clauses, const PointSource *source, TupleDesc row_type, int varno,
							 const AttrNumber *attributes, ParameterValue value, void *state)
{
	List	   *conditions = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		Translation translation = {
			.source = source,
			.row_type = row_type,
			.varno = varno,
			.attributes = attributes,
			.value = value,
			.state = state
		};
		Node	   *condition = translate(lfirst(cell), &translation);

		if (!translation.failed)
			conditions = lappend(conditions, condition);
	}
	return conditions;
}
