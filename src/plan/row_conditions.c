/*
 * row_conditions.c
 *		Conditions on the columns of a join's rows, and how many rows they leave.
 *
 * PostgreSQL has no statistics of a function's columns, and takes constants for its guess: a 200th of the rows
 * for obs_id = 7, a third for distance < 1000.  The join knows more.  An id has the rows of one observation or
 * reference.  A distance or a rank below a number leaves what a join with that max_distance or k would return.
 * Observations that are kept unmatched have NULLs in the reference's columns.  The planner asks for a condition's
 * selectivity where it sizes a relation, which is before its paths are made, and keeps it with the condition: so
 * it is set there, and the sizes anew.
 */
#include "postgres.h"

#include <math.h>

#include "access/stratnum.h"
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/typcache.h"

#include "base/value.h"
#include "plan/estimate.h"
#include "plan/known.h"
#include "points/reader.h"

/* a column of the rows, and a value with which it is compared */
typedef struct ColumnCondition
{
	const char *column;
	int			strategy;		/* the comparison's btree strategy; 0: it has none */
	Const	   *value;			/* NULL: not known */
} ColumnCondition;

static bool
is_of_column(Node *side, Index relid)
{
	return IsA(side, Var) && ((Var *) side)->varno == (int) relid && ((Var *) side)->varlevelsup == 0 &&
		((Var *) side)->varattno > 0;
}

/*
 * A column's name in the row type, whatever alias the query gives it.
 */
static const char *
column_name(TupleDesc row_type, Node *column)
{
	return NameStr(TupleDescAttr(row_type, ((Var *) column)->varattno - 1)->attname);
}

/*
 * Set *comparison; false: the clause compares no column of relid.
 */
static bool
read_comparison(PlannerInfo *root, Node *clause, Index relid, TupleDesc row_type,
				ColumnCondition *comparison)
{
	OpExpr	   *operation = (OpExpr *) clause;
	VariableStatData variable;
	Node	   *other;
	Oid			operator;
	bool		is_left;

	if (!IsA(clause, OpExpr) ||
		!get_restriction_variable(root, operation->args, (int) relid, &variable, &other, &is_left))
		return false;
	ReleaseVariableStats(variable);
	operator = is_left ? operation->opno : get_commutator(operation->opno);
	if (!is_of_column(variable.var, relid) || !OidIsValid(operator))
		return false;
	comparison->column = column_name(row_type, variable.var);
	comparison->strategy =
		get_op_opfamily_strategy(operator, lookup_type_cache(variable.vartype, TYPECACHE_BTREE_OPFAMILY)->btree_opf);
	comparison->value = geonn_known_value(root, other);
	return true;
}

static bool
read_number(const Const *value, double *number)
{
	if (value == NULL ||
		(value->consttype != FLOAT8OID && geonn_integer_width(value->consttype) == 0))
		return false;
	*number = geonn_number(value->consttype, value->constvalue);
	return !isnan(*number);
}

static double
share_within(PlannerInfo *root, const FuncExpr *expression, double rows, double radius, double k)
{
	JoinEstimate narrower;

	if (radius < 0 || k < 1 || !geonn_estimate_join(root, expression, radius, k, &narrower))
		return 0;
	return Min(1, narrower.matches / Max(1, rows));
}

/*
 * The share of the rows whose distance, or rank, meets the strategy's comparison with number.
 */
static double
share_of_comparison(PlannerInfo *root, const FuncExpr *expression, double rows, int strategy,
					double number, bool of_rank)
{
	double		radius = of_rank ? INFINITY : number;
	double		k = INFINITY;
	double		share;

	/* ranks are integers */
	if (of_rank)
		k = strategy == BTLessStrategyNumber || strategy == BTGreaterEqualStrategyNumber ? ceil(number) - 1 : floor(number);
	share = share_within(root, expression, rows, radius, k);
	if (strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber)
		return share;
	if (strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber)
		return 1 - share;
	if (strategy != BTEqualStrategyNumber || !of_rank)
		return -1;
	return Max(0, share - share_within(root, expression, rows, radius, k - 1));
}

/*
 * The share of the rows for which the comparison is true; -1: not known.
 */
static double
share_of(PlannerInfo *root, const FuncExpr *expression, const JoinEstimate *all,
		 const ColumnCondition *comparison)
{
	double		number;
	bool		of_rank = strcmp(comparison->column, "rank") == 0;

	if (strcmp(comparison->column, "obs_id") == 0 || strcmp(comparison->column, "ord") == 0)
		return comparison->strategy == BTEqualStrategyNumber ? 1 / Max(1, all->observations) : -1;
	if (strcmp(comparison->column, "ref_id") == 0)
		return comparison->strategy == BTEqualStrategyNumber ?
			Min(1, all->matches / Max(1, all->rows)) / Max(1, all->references) : -1;
	if ((!of_rank && strcmp(comparison->column, "distance") != 0) ||
		!read_number(comparison->value, &number))
		return -1;
	return share_of_comparison(root, expression, all->rows, comparison->strategy, number, of_rank);
}

/*
 * The share of the rows that pass an IS [NOT] NULL test of a column; -1: unknown, or another clause.
 */
static double
share_of_null_test(Node *clause, Index relid, TupleDesc row_type, const JoinEstimate *all)
{
	static const char *const of_reference[] = {"ref_id", "distance", "ref_lat", "ref_lon", "bearing"};
	NullTest   *test = (NullTest *) clause;
	double		matched = Min(1, all->matches / Max(1, all->rows));
	const char *column;

	if (!IsA(clause, NullTest) || test->argisrow || !is_of_column((Node *) test->arg, relid))
		return -1;
	column = column_name(row_type, (Node *) test->arg);
	for (int i = 0; i < (int) lengthof(of_reference); i++)
		if (strcmp(column, of_reference[i]) == 0)
			return test->nulltesttype == IS_NULL ? 1 - matched : matched;
	return -1;
}

void
geonn_estimate_row_conditions(PlannerInfo *root, RelOptInfo *rel, const RangeTblFunction *call)
{
	const FuncExpr *expression = castNode(FuncExpr, call->funcexpr);
	TupleDesc	row_type = rel->baserestrictinfo == NIL ? NULL : geonn_row_type(call);
	JoinEstimate all;
	bool		changed = false;
	ListCell   *cell;

	if (row_type == NULL || !geonn_estimate_join(root, expression, INFINITY, INFINITY, &all))
		return;
	foreach(cell, rel->baserestrictinfo)
	{
		RestrictInfo *condition = lfirst_node(RestrictInfo, cell);
		ColumnCondition comparison;
		double		share;

		if (read_comparison(root, (Node *) condition->clause, rel->relid, row_type, &comparison))
			share = share_of(root, expression, &all, &comparison);
		else
			share = share_of_null_test((Node *) condition->clause, rel->relid, row_type, &all);
		if (share < 0)
			continue;
		condition->norm_selec = condition->outer_selec = share;
		changed = true;
	}
	if (!changed)
		return;
	rel->rows = clamp_row_est(rel->tuples *
							  clauselist_selectivity(root, rel->baserestrictinfo, 0, JOIN_INNER, NULL));
	foreach(cell, rel->pathlist)
		((Path *) lfirst(cell))->rows = rel->rows;
}
