/*
 * observation_filter.c
 *		Conditions of a query on a join's rows that are conditions on observations.
 *
 * The id and the coordinates of an observation are the same in all of its rows, so a
 * condition on these columns alone can be asked of the observation before the search:
 * with WHERE obs_id = 77, one row is read by an index instead of all.  The planner
 * evaluates such a condition of SELECT FROM obs JOIN LATERAL (its neighbours) in the
 * same place: an invalid observation that does not meet it is not read, raises no
 * error and is not counted.  Conditions on references, distances and ranks are left
 * above the search, and so are volatile functions and subplans.
 *
 * The clauses become conditions of the query that reads the observations
 * (PointSource.conditions), once their parameters are known, and PostgreSQL plans
 * that query as any other of the caller's: it chooses indexes and partitions,
 * and has row-level security and the barriers of views tested before conditions that
 * might leak.  An observation's id can be narrower than the row type's column: then
 * the operator is exchanged for its sibling for the narrower integers, which an
 * index understands.
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

/* ---- which clauses are ---- */

/*
 * The role of a column of the row type; false: it is none of an observation's.
 */
static bool
column_role(TupleDesc row_type, int number, ColumnRole *role)
{
	const char *name;

	if (number <= 0 || number > row_type->natts ||
		TupleDescAttr(row_type, number - 1)->attisdropped)
		return false;
	name = NameStr(TupleDescAttr(row_type, number - 1)->attname);
	*role = strcmp(name, "obs_id") == 0 ? COLUMN_ID :
		strcmp(name, "obs_lat") == 0 ? COLUMN_LATITUDE : COLUMN_LONGITUDE;
	return *role != COLUMN_LONGITUDE || strcmp(name, "obs_lon") == 0;
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
		ColumnRole	role;

		if (!IsA(column, Var))
			return false;

		/* the clause of a join has another relation's columns, which come as parameters */
		if (column->varno != (int) rel->relid)
			continue;
		if (!column_role(row_type, column->varattno, &role))
			return false;
		own++;
	}
	return own > 0;
}

/*
 * The call's row type; NULL: it has none, or no observations of its own.
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
	TupleDesc	row_type = read_row_type(call);
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, row_type == NULL ? NIL : clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);

		if (!clause->pseudoconstant && restriction_is_securely_promotable(clause, rel) &&
			is_observation_clause(rel, row_type, (Node *) clause->clause))
			found = lappend(found, clause->clause);
	}
	return found;
}

Bitmapset *
geonn_observation_columns(const RangeTblFunction *call)
{
	TupleDesc	row_type = read_row_type(call);
	Bitmapset  *columns = NULL;
	ColumnRole	role;

	for (int number = 1; row_type != NULL && number <= row_type->natts; number++)
	{
		if (column_role(row_type, number, &role))
			columns = bms_add_member(columns, number);
	}
	return columns;
}

/* ---- clauses that follow from those of joined relations ---- */

/*
 * The operator of one of these families that does the same for another left type; InvalidOid: none
 * does.
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

/*
 * The clause of another relation's column as one of this column, which equals it by these operator
 * families and this collation; NULL: it does not say the same of equal values.
 */
static Expr *
transfer_clause(Node *clause, Var *from, Var *to, List *families, Oid collation)
{
	List	   *arguments;
	Oid		   *operator;
	Oid		   *function;
	Oid			own_collation;
	Oid			sibling;
	Node	   *right;

	if (IsA(clause, OpExpr) && list_length(((OpExpr *) clause)->args) == 2)
	{
		OpExpr	   *comparison = copyObject((OpExpr *) clause);

		if (equal(lsecond(comparison->args), from) && OidIsValid(get_commutator(comparison->opno)))
			CommuteOpExpr(comparison);
		clause = (Node *) comparison;
		arguments = comparison->args;
		operator = &comparison->opno;
		function = &comparison->opfuncid;
		own_collation = comparison->inputcollid;
	}
	else if (IsA(clause, ScalarArrayOpExpr) && ((ScalarArrayOpExpr *) clause)->useOr)
	{
		ScalarArrayOpExpr *comparison = copyObject((ScalarArrayOpExpr *) clause);

		comparison->hashfuncid = InvalidOid;
		comparison->negfuncid = InvalidOid;
		clause = (Node *) comparison;
		arguments = comparison->args;
		operator = &comparison->opno;
		function = &comparison->opfuncid;
		own_collation = comparison->inputcollid;
	}
	else
		return NULL;
	right = lsecond(arguments);
	sibling = sibling_operator(*operator, families, to->vartype);
	if (!equal(linitial(arguments), from) || own_collation != collation || !OidIsValid(sibling) ||
		contain_var_clause(right) || contain_subplans(right) || contain_volatile_functions(right))
		return NULL;
	linitial(arguments) = copyObject(to);
	*operator = sibling;
	*function = get_opcode(sibling);
	return (Expr *) clause;
}

/*
 * What the clauses of the other column's relation say of this column.
 */
static List *
transfer_clauses(PlannerInfo *root, Var *from, Var *to, List *families, Oid collation)
{
	RelOptInfo *rel = root->simple_rel_array[from->varno];
	List	   *found = NIL;
	ListCell   *cell;

	foreach(cell, rel == NULL ? NIL : rel->baserestrictinfo)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);
		Expr	   *transferred = NULL;

		/* of an equality, the planner makes a clause of this relation's itself */
		if (restriction_is_securely_promotable(clause, rel))
			transferred = transfer_clause((Node *) clause->clause, from, to, families, collation);
		if (transferred != NULL)
			found = lappend(found, transferred);
	}
	return found;
}

static bool
is_id_of(RelOptInfo *rel, TupleDesc row_type, Node *expression)
{
	ColumnRole	role;

	return IsA(expression, Var) && ((Var *) expression)->varno == (int) rel->relid &&
		column_role(row_type, ((Var *) expression)->varattno, &role) && role == COLUMN_ID;
}

static List *
implied_by_class(PlannerInfo *root, RelOptInfo *rel, TupleDesc row_type, EquivalenceClass *class)
{
	Node	   *id = NULL;
	List	   *found = NIL;
	ListCell   *cell;

	if (class->ec_has_volatile || class->ec_has_const || geonn_below_outer_join(class))
		return NIL;
	foreach(cell, class->ec_members)
	{
		EquivalenceMember *member = lfirst(cell);

		if (!member->em_is_child && is_id_of(rel, row_type, (Node *) member->em_expr))
			id = (Node *) member->em_expr;
	}
	foreach(cell, id == NULL ? NIL : class->ec_members)
	{
		EquivalenceMember *member = lfirst(cell);

		if (!member->em_is_child && IsA(member->em_expr, Var) &&
			((Var *) member->em_expr)->varno != (int) rel->relid)
			found = list_concat(found, transfer_clauses(root, (Var *) member->em_expr, (Var *) id,
														class->ec_opfamilies,
														class->ec_collation));
	}
	return found;
}

/*
 * Of an outer join that may leave this relation's rows out: those that meet no row of the other
 * side do not matter.
 */
static List *
implied_by_outer_join(PlannerInfo *root, RelOptInfo *rel, TupleDesc row_type,
					  RestrictInfo *clause)
{
	OpExpr	   *comparison = (OpExpr *) clause->clause;
	Node	   *id;
	Node	   *other;

	if (clause->is_pushed_down || clause->mergeopfamilies == NIL || bms_is_empty(clause->outer_relids) ||
		bms_is_member(rel->relid, clause->outer_relids))
		return NIL;
	id = linitial(comparison->args);
	other = lsecond(comparison->args);
	if (!is_id_of(rel, row_type, id))
	{
		id = lsecond(comparison->args);
		other = linitial(comparison->args);
	}
	if (!is_id_of(rel, row_type, id) || !IsA(other, Var) || ((Var *) other)->varlevelsup > 0 ||
		!bms_is_member(((Var *) other)->varno, clause->outer_relids))
		return NIL;
	return transfer_clauses(root, (Var *) other, (Var *) id, clause->mergeopfamilies,
							comparison->inputcollid);
}

List *
geonn_implied_observation_clauses(PlannerInfo *root, RelOptInfo *rel,
								  const RangeTblFunction *call)
{
	TupleDesc	row_type = read_row_type(call);
	List	   *found = NIL;
	ListCell   *cell;

	if (row_type == NULL)
		return NIL;
	foreach(cell, root->eq_classes)
		found = list_concat(found, implied_by_class(root, rel, row_type, lfirst(cell)));
	foreach(cell, rel->joininfo)
		found = list_concat(found, implied_by_outer_join(root, rel, row_type,
														 lfirst_node(RestrictInfo, cell)));
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
 * The source's column that gives the values of a column of the join's, as those; NULL: none does.
 */
static Node *
source_column(const Translation *translation, const Var *column)
{
	int			number = translation->attributes == NULL ? column->varattno :
		translation->attributes[column->varattno - 1];
	const PointColumn *origin;
	ColumnRole	role;
	Node	   *value;

	if (!column_role(translation->row_type, number, &role))
		return NULL;
	origin = &translation->source->columns[role];
	if (origin->name == NULL || (role != COLUMN_ID && origin->base_type != FLOAT8OID))
		return NULL;
	value = (Node *) makeVar(1, origin->attribute, origin->type, geonn_declared_typmod(origin),
							 origin->collation, 0);
	if (origin->type != column->vartype)
		value = coerce_to_target_type(NULL, value, origin->type, column->vartype, -1,
									  COERCION_EXPLICIT, COERCE_IMPLICIT_CAST, -1);

	/* values are the same ones, or wider integers */
	if (value == NULL || !(IsA(value, Var) || IsA(value, RelabelType) ||
						   (geonn_integer_width(column->vartype) > 0 &&
							geonn_integer_width(origin->base_type) > 0)))
		return NULL;
	return value;
}

/*
 * The integer that becomes wider here; NULL: none does.
 */
static Node *
widened_integer(Node *expression)
{
	FuncExpr   *cast = (FuncExpr *) expression;
	Node	   *integer;

	if (!IsA(expression, FuncExpr) || cast->funcformat != COERCE_IMPLICIT_CAST)
		return NULL;
	integer = linitial(cast->args);
	if (IsA(integer, RelabelType))
		integer = (Node *) ((RelabelType *) integer)->arg;
	return IsA(integer, Var) && geonn_integer_width(exprType(linitial(cast->args))) > 0 ?
		linitial(cast->args) : NULL;
}

/*
 * Have two integers compared without making one of them wider.
 */
static void
compare_narrow(Oid *operator, Oid *function, List *arguments, bool right_is_array)
{
	Node	   *narrow[2];
	Oid			types[2];
	int			strategy = get_op_opfamily_strategy(*operator, INTEGER_BTREE_FAM_OID);
	Oid			sibling;

	if (strategy == InvalidStrategy)
		return;
	for (int i = 0; i < 2; i++)
	{
		Node	   *argument = list_nth(arguments, i);

		narrow[i] = widened_integer(argument);
		types[i] = exprType(narrow[i] != NULL ? narrow[i] : argument);
		if (i == 1 && right_is_array)
			types[i] = get_base_element_type(types[i]);
		types[i] = getBaseType(types[i]);
	}
	sibling = get_opfamily_member(INTEGER_BTREE_FAM_OID, types[0], types[1], (int16) strategy);
	if (!OidIsValid(sibling))
		return;
	*operator = sibling;
	*function = get_opcode(sibling);
	for (int i = 0; i < 2; i++)
	{
		if (narrow[i] != NULL)
			lfirst(list_nth_cell(arguments, i)) = narrow[i];
	}
}

static Node *
translate(Node *node, void *context)
{
	Translation *translation = context;

	if (node == NULL)
		return NULL;
	if (IsA(node, Var) && ((Var *) node)->varno == translation->varno)
	{
		Node	   *column = source_column(translation, (Var *) node);

		/* what fails once has failed, whatever other columns the clause has */
		if (column == NULL)
			translation->failed = true;
		return column;
	}
	if (IsA(node, Var) || IsA(node, Param))
		return translation->value(translation->state, node);
	node = expression_tree_mutator(node, translate, context);
	if (translation->failed)
		return node;
	if (IsA(node, OpExpr) && list_length(((OpExpr *) node)->args) == 2)
		compare_narrow(&((OpExpr *) node)->opno, &((OpExpr *) node)->opfuncid,
					   ((OpExpr *) node)->args, false);
	if (IsA(node, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *comparison = (ScalarArrayOpExpr *) node;

		comparison->hashfuncid = InvalidOid;
		comparison->negfuncid = InvalidOid;
		compare_narrow(&comparison->opno, &comparison->opfuncid, comparison->args, true);
	}
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
