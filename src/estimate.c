/*
 * estimate.c
 *		What the planner is told about geonn_nearest(): its number of rows.
 *
 * There is a row for each observation, so the estimate is the planner's own
 * for SELECT FROM obs, whatever obs is: a table, partitions, a view, a
 * foreign table.  That is a plan of its own, made and thrown away.
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "reader.h"

/*
 * Views over geonn_nearest of views over ... : how deep estimates go.  It is
 * also what ends the estimate of a view that contains itself.
 */
#define DEPTH_MAX 4

PG_FUNCTION_INFO_V1(geonn_nearest_support);

/*
 * The relation that the argument names, as far as it is known to the planner.
 */
static Oid
known_relation(PlannerInfo *root, Node *argument)
{
	Const	   *constant;

	/* nothing but parameters is computed here: functions could raise errors */
	if (IsA(argument, Param))
		argument = estimate_expression_value(root, argument);
	if (!IsA(argument, Const))
		return InvalidOid;
	constant = (Const *) argument;
	if (constant->constisnull || constant->consttype != REGCLASSOID)
		return InvalidOid;
	return DatumGetObjectId(constant->constvalue);
}

/*
 * The planner's estimate of the relation's rows, or -1.
 */
static double
estimate_rows(Oid relation)
{
	char		kind = get_rel_relkind(relation);
	char	   *name = get_rel_name(relation);
	char	   *schema = get_namespace_name(get_rel_namespace(relation));
	PlannedStmt *plan;

	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
		kind != RELKIND_VIEW && kind != RELKIND_MATVIEW &&
		kind != RELKIND_FOREIGN_TABLE)
		return -1;
	if (name == NULL || schema == NULL || !ActiveSnapshotSet())
		return -1;

	plan = geonn_plan_query(psprintf("SELECT FROM %s",
									 quote_qualified_identifier(schema, name)));
	return plan->planTree->plan_rows;
}

Datum
geonn_nearest_support(PG_FUNCTION_ARGS)
{
	static int	depth = 0;
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	SupportRequestRows *rows;
	Oid			relation;
	volatile double estimate = -1;

	if (!IsA(request, SupportRequestRows))
		PG_RETURN_POINTER(NULL);
	rows = (SupportRequestRows *) request;
	if (!is_funcclause(rows->node))
		PG_RETURN_POINTER(NULL);
	relation = known_relation(rows->root,
							  linitial(((FuncExpr *) rows->node)->args));
	if (!OidIsValid(relation) || depth == DEPTH_MAX)
		PG_RETURN_POINTER(NULL);

	depth++;
	PG_TRY();
	{
		estimate = estimate_rows(relation);
	}
	PG_FINALLY();
	{
		depth--;
	}
	PG_END_TRY();

	if (estimate < 0)
		PG_RETURN_POINTER(NULL);
	rows->rows = clamp_row_est(estimate);
	PG_RETURN_POINTER(rows);
}
