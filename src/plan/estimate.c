/*
 * estimate.c
 *		What the planner is told about the joins: their rows, and their cost.
 *
 * The number of rows is the number of observations times the rows of each.  The first comes from the planner's
 * own estimate for the query by which the join will read obs, whatever that is: a table, partitions, a view, a
 * foreign table, a query.  That is a plan of its own, made and thrown away.  Rows whose coordinates are NULL
 * are left out as far as statistics know them.  Each observation has min(k, references) rows.  With a distance
 * or columns that decide which references are candidates, samples of both tables tell how many candidates are
 * near (selectivity.c).  Conditions on the rows' columns narrow that (row_conditions.c).  Clusters have a row for each point.
 *
 * The cost is that of reading both sides and something for each row, all of it before the first row.
 *
 * PostgreSQL asks several times while it makes a plan.  So what is known of a call is kept for as long as the
 * plan is being made (known.c, which also says how deep plans nest).  Samples are kept longer (selectivity.c).
 *
 * Relations raise no errors here; a wrong query in an argument does, as it would a moment later.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "fmgr.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/supportnodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "common/geodesy.h"
#include "base/compat.h"
#include "join/arguments.h"
#include "plan/estimate.h"
#include "plan/known.h"
#include "plan/observation_filter.h"
#include "plan/own_rows.h"
#include "plan/selectivity.h"
#include "points/query.h"
#include "points/sources.h"

/* the assumed number of references if it is unknown */
#define UNKNOWN_ROWS 1000

/*
 * Estimates for a generic plan whose parameters give the table or k: rows of the table, neighbours of an
 * observation.  PostgreSQL uses the generic plan unless custom plans cost less.  So these are the numbers
 * from which on the plan for many rows is as good as a custom plan.  With much greater ones, that plan would
 * always be compiled (jit_above_cost).
 *
 * A larger table that is joined by obs_id is most likely the one that a parameter will name.  Only its custom
 * plan can use its rows as observations (own_rows.c), which is faster at any size: so the generic plan
 * assumes no fewer rows.
 */
#define MANY_ROWS 1e6
#define MANY_NEIGHBOURS 100

typedef struct SideEstimate
{
	double		rows;			/* -1: unknown */
	double		cost;			/* the cost of reading it; 0: unknown */
} SideEstimate;

/* what is known of a call */
typedef struct KnownJoin
{
	const FuncExpr *expression; /* in the plan's tree */
	PointSource *source;		/* the relation of the observations; NULL: it, or its columns, are unknown */
	PointSource *reference_source;	/* the relation of the references, or NULL */
	SideEstimate observations;
	SideEstimate references;
	bool		asked;			/* is expected set? */
	NeighboursExpected expected;	/* an observation's neighbours, estimated from the call's arguments */
} KnownJoin;

/* the calls of the plans that are being made: KnownJoin * */
static PlanNotes known_joins;

/* ---- sides ---- */

/*
 * May the user read all tables of the plan?  Estimates, which EXPLAIN shows, reveal something of their
 * contents.  The hook is not called: hooks take a call for the beginning of an execution.
 */
static bool
may_read(PlannedStmt *plan)
{
	ExecutorCheckPerms_hook_type hook = ExecutorCheckPerms_hook;
	volatile bool allowed = false;

	ExecutorCheckPerms_hook = NULL;
	PG_TRY();
	{
		allowed = geonn_check_permissions(plan, false);
	}
	PG_FINALLY();
	{
		ExecutorCheckPerms_hook = hook;
	}
	PG_END_TRY();
	return allowed;
}

/*
 * Have the planner estimate the query's rows that meet the conditions.  relation and title: see
 * geonn_plan_query.
 */
static SideEstimate
estimate_query(const char *query, const char *title, Oid relation, List *conditions)
{
	PlannedStmt *plan = NULL;

	if (query != NULL && geonn_may_plan_another() && ActiveSnapshotSet())
		plan = geonn_plan_query(query, title, conditions == NIL ? CURSOR_OPT_PARALLEL_OK : 0,
								relation, conditions);
	return plan != NULL && may_read(plan) ?
		(SideEstimate) {plan->planTree->plan_rows, plan->planTree->total_cost} : (SideEstimate) {-1, 0};
}

static char *
query_of_points(const PointSource *source)
{
	StringInfoData query;

	initStringInfo(&query);
	appendStringInfoString(&query, source->query);
	for (int role = COLUMN_LATITUDE; role <= COLUMN_SHAPE; role++)
	{
		const char *name = source->columns[role].name;

		if (name != NULL)
			appendStringInfo(&query, " %s %s IS NOT NULL",
							 role == COLUMN_LONGITUDE ? "AND" : "WHERE", quote_identifier(name));
	}
	return query.data;
}

/*
 * Have the planner estimate one side of the join, a relation or a query; title is for errors of a query.  A
 * relation's source is NULL if the options that name its columns are unknown.
 */
static SideEstimate
estimate_side(PlannerInfo *root, Node *side, const char *title, const PointSource *source, bool all_rows)
{
	Const	   *argument = geonn_known_value(root, side);
	Oid			relation = geonn_known_relation(root, side);
	char	   *name = NULL;
	char	   *query = NULL;

	/* assume this of a table or query that a parameter will name */
	if (geonn_comes_later(root, side))
		return (SideEstimate) {MANY_ROWS, 2 * cpu_tuple_cost * MANY_ROWS};
	if (source != NULL)
		return estimate_query(all_rows ? source->query : query_of_points(source), title,
							  source->relation, NIL);
	if (OidIsValid(relation) && geonn_has_points(get_rel_relkind(relation)))
		name = geonn_relation_name(relation);
	if (name != NULL)
		query = psprintf("SELECT FROM %s", name);
	else if (!OidIsValid(relation) && argument != NULL && argument->consttype == TEXTOID)
		query = TextDatumGetCString(argument->constvalue);
	return estimate_query(query, title, relation, NIL);
}

static SideEstimate
estimate_array(PlannerInfo *root, Node *latitudes)
{
	Const	   *argument = geonn_known_value(root, latitudes);
	SideEstimate estimate = {-1, 0};
	ArrayType  *array;

	/* as in ARRAY[lat] */
	if (latitudes != NULL && IsA(latitudes, ArrayExpr) && !((ArrayExpr *) latitudes)->multidims)
		estimate.rows = list_length(((ArrayExpr *) latitudes)->elements);
	if (argument == NULL)
		return estimate;
	array = DatumGetArrayTypeP(argument->constvalue);
	estimate.rows = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	return estimate;
}

/*
 * The rows of the table whose column the expression is; 0: it is no table's column.
 */
static double
rows_of_column(PlannerInfo *root, Node *expression)
{
	Var		   *column = (Var *) strip_implicit_coercions(expression);
	RelOptInfo *rel = IsA(column, Var) ? root->simple_rel_array[column->varno] : NULL;

	return rel != NULL && rel->rtekind == RTE_RELATION ? rel->tuples : 0;
}

/*
 * The rows of the largest table that is joined with the call by obs_id; 0: none is.
 */
static double
rows_joined_by_id(PlannerInfo *root, const FuncExpr *expression)
{
	RangeTblFunction *call;
	RelOptInfo *function = geonn_relation_of_call(root, expression, &call);
	double		rows = 0;
	ListCell   *cell;

	foreach(cell, function == NULL ? NIL :
			geonn_equalities(root, function, geonn_row_column(call, "obs_id")))
	{
		List	   *sides = ((OpExpr *) lfirst_node(RestrictInfo, cell)->clause)->args;

		rows = Max(rows, Max(rows_of_column(root, linitial(sides)), rows_of_column(root, lsecond(sides))));
	}
	return rows;
}

static bool
known_truth(PlannerInfo *root, const FuncExpr *expression, const char *name)
{
	Const	   *argument = geonn_known_value(root, geonn_expression_argument(expression, name));

	return argument != NULL && DatumGetBool(argument->constvalue);
}

static SideEstimate
estimate_observations(PlannerInfo *root, const FuncExpr *expression, const PointSource *source)
{
	Node	   *side = geonn_expression_observations(expression);
	SideEstimate estimate;
	double		joined;

	if (side == NULL)
		return estimate_array(root, geonn_expression_argument(expression, "lat"));
	estimate = estimate_side(root, side, "query obs_sql", source,
							 known_truth(root, expression, "keep_unmatched"));
	if (!geonn_comes_later(root, side))
		return estimate;
	joined = rows_joined_by_id(root, expression);
	if (joined > estimate.rows)
	{
		estimate.cost *= joined / estimate.rows;
		estimate.rows = joined;
	}
	return estimate;
}

/* ---- neighbours ---- */

/*
 * The argument as a number.  If it is unknown, returns one of the last two: later for a parameter, without
 * otherwise.
 */
static double
known_number(PlannerInfo *root, const FuncExpr *expression, const char *name, double without,
			 double later)
{
	Node	   *argument = geonn_expression_argument(expression, name);
	Const	   *value = geonn_known_value(root, argument);

	if (value == NULL)
		return geonn_comes_later(root, argument) ? later : without;
	return value->consttype == INT4OID ? DatumGetInt32(value->constvalue) :
		DatumGetFloat8(value->constvalue);
}

/*
 * Do columns to join by, windows or radiuses limit the candidates?
 */
static bool
has_columns(PlannerInfo *root, const KnownJoin *join)
{
	const PointSource *references = join->reference_source;

	return (references != NULL && (references->by_count > 0 || geonn_has_limits(references))) ||
		geonn_named_columns(root, join->expression, "obs").names[COLUMN_RADIUS] != NULL;
}

static bool
has_no_radius(const FuncExpr *expression)
{
	const Const *radius = (const Const *) geonn_expression_argument(expression, "radius");

	return radius != NULL && IsA(radius, Const) && radius->constisnull;
}

/*
 * Lower radius and k to those of the call.
 */
static void
narrow(PlannerInfo *root, const FuncExpr *expression, NeighboursAsked *asked)
{
	Node	   *radius = geonn_expression_argument(expression, "radius");
	bool		within = radius != NULL;

	asked->radius = Min(asked->radius,
						known_number(root, expression, within ? "radius" : "max_distance",
									 within && !has_no_radius(expression) ? 0 : INFINITY, INFINITY));
	if (!within)
		asked->k = Min(asked->k, known_number(root, expression, "k", 1, MANY_NEIGHBOURS));
	else if (geonn_comes_later(root, radius))
		asked->k = Min(asked->k, MANY_NEIGHBOURS);
}

/*
 * Estimate an observation's neighbours.  Tables that the user may read are sampled; without a sample,
 * observations are assumed to lie where references do.  Without one of the references, both are assumed to be
 * spread evenly over the Earth.  At least one is then assumed in the radius, since a query with a radius most
 * likely finds some, and at most MANY_NEIGHBOURS if points have radiuses.
 */
static NeighboursExpected
expect_neighbours(PlannerInfo *root, const KnownJoin *join, double radius, double k)
{
	const FuncExpr *expression = join->expression;
	Node	   *radii = geonn_expression_argument(expression, "radii");
	double		count = join->references.rows < 0 ? UNKNOWN_ROWS : join->references.rows;
	bool		itself = join->source != NULL && join->reference_source != NULL &&
		geonn_has_shapes(join->source) == geonn_has_shapes(join->reference_source) &&
		join->source->relation == join->reference_source->relation;
	bool		excluded = itself && known_truth(root, expression, "exclude_self");
	NeighboursAsked asked = {
		.radius = radius,
		.k = k,
		.references = excluded ? Max(count - 1, 0) : count,
		.itself = itself && !excluded
	};
	double		each = asked.references;

	/* a count has a row for each radius */
	if (radii != NULL)
		return (NeighboursExpected) {Max(1, estimate_array(root, radii).rows), 0};
	narrow(root, expression, &asked);
	if (count > 0 && (!isinf(asked.radius) || has_columns(root, join)))
	{
		const PointSample *references = NULL;
		const PointSample *observations = NULL;

		if (join->reference_source != NULL && join->references.rows >= 0)
			references = geonn_sample(join->reference_source);
		if (references != NULL && join->source != NULL && join->observations.rows >= 0)
			observations = geonn_sample(join->source);
		if (references != NULL)
			return geonn_expect_neighbours(observations != NULL ? observations : references,
										   references, &asked);
	}
	if (has_no_radius(expression))
		each = Min(each, MANY_NEIGHBOURS);

	/* a cap's share of the sphere is a quarter of its squared chord */
	if (!isinf(asked.radius))
		each = Max(1, Min(1, asked.radius > 0 ? geonn_radius_limit(asked.radius) / 4 : 0) * asked.references);
	each = Max(0, Min(asked.k, each));
	return (NeighboursExpected) {each, each > 0 ? 0 : 1};
}

/* ---- joins ---- */

/*
 * Return the call's KnownJoin, from this plan's notes or made now.
 */
static KnownJoin *
known_join(PlannerInfo *root, const FuncExpr *expression)
{
	MemoryContext former;
	KnownJoin  *join;
	ListCell   *cell;

	foreach(cell, geonn_plan_notes(&known_joins, root))
	{
		join = lfirst(cell);
		if (join->expression == expression)
			return join;
	}
	former = MemoryContextSwitchTo(root->planner_cxt);
	join = palloc0(sizeof(KnownJoin));
	join->expression = expression;
	join->source = geonn_known_source(root, expression, "obs");
	join->reference_source = geonn_known_source(root, expression, geonn_expression_has_one_side(expression) ? "points" : "ref");
	join->observations = estimate_observations(root, expression, join->source);
	join->references = estimate_side(root, geonn_expression_references(expression),
									 geonn_expression_has_one_side(expression) ? "query points_sql" : "query ref_sql",
									 join->reference_source, false);
	if (geonn_expression_has_one_side(expression))
	{
		/* the references ask, and each has a row */
		join->observations = (SideEstimate) {join->references.rows, 0};
		join->expected = (NeighboursExpected) {1, 0};
		join->asked = true;
	}
	geonn_add_plan_note(&known_joins, root, join);
	MemoryContextSwitchTo(former);
	return join;
}

/*
 * Estimate the join of these observations, by the call's radius and k and by these (infinity: none).
 */
static bool
estimate_join_of(PlannerInfo *root, KnownJoin *join, SideEstimate observations, double radius, double k,
				 JoinEstimate *estimate)
{
	bool		by_call = isinf(radius) && isinf(k);
	NeighboursExpected expected;

	if (observations.rows < 0)
		return false;
	if (by_call && !join->asked)
	{
		join->expected = expect_neighbours(root, join, radius, k);
		join->asked = true;
	}
	expected = by_call ? join->expected : expect_neighbours(root, join, radius, k);
	estimate->observations = observations.rows;
	estimate->references = join->references.rows < 0 ? UNKNOWN_ROWS : join->references.rows;
	estimate->matches = observations.rows * expected.each;
	estimate->rows = estimate->matches;
	if (known_truth(root, join->expression, "keep_unmatched"))
		estimate->rows += observations.rows * expected.unmatched;
	estimate->rows = clamp_row_est(estimate->rows);
	estimate->cost = observations.cost + join->references.cost +
		GEONN_OPERATORS_A_SEARCH * cpu_operator_cost * observations.rows + cpu_tuple_cost * estimate->rows;
	return true;
}

bool
geonn_estimate_join(PlannerInfo *root, const FuncExpr *expression, double radius, double k, JoinEstimate *estimate)
{
	KnownJoin  *join = known_join(root, expression);

	return estimate_join_of(root, join, join->observations, radius, k, estimate);
}

bool
geonn_estimate_references(PlannerInfo *root, const FuncExpr *expression, Cost *cost)
{
	const KnownJoin *join = known_join(root, expression);

	*cost = join->references.cost;
	return join->references.rows >= 0;
}

/* ---- of some observations ---- */

/*
 * The value that the planner expects of a parameter, or an external Param if it knows none.
 */
static Node *
expected_value(void *state, Node *parameter)
{
	Node	   *value = estimate_expression_value((PlannerInfo *) state, parameter);
	Param	   *unknown;

	if (IsA(value, Const))
		return value;
	unknown = makeNode(Param);
	unknown->paramkind = PARAM_EXTERN;
	unknown->paramid = 1;
	unknown->paramtype = exprType(parameter);
	unknown->paramtypmod = exprTypmod(parameter);
	unknown->paramcollid = exprCollation(parameter);
	unknown->location = -1;
	return (Node *) unknown;
}

bool
geonn_estimate_filtered(PlannerInfo *root, Index relid, const RangeTblFunction *call,
						List *clauses, JoinEstimate *estimate)
{
	KnownJoin  *join = known_join(root, castNode(FuncExpr, call->funcexpr));
	List	   *conditions;

	if (join->source == NULL)
		return false;
	conditions = geonn_observation_conditions(clauses, join->source, geonn_row_type(call), relid,
											  NULL, expected_value, root);
	if (conditions == NIL)
		return false;
	return estimate_join_of(root, join,
							estimate_query(join->source->query, "", join->source->relation, conditions),
							INFINITY, INFINITY, estimate);
}

/* ---- what PostgreSQL asks while it plans a statement ---- */

PG_FUNCTION_INFO_V1(geonn_join_support);

/*
 * PostgreSQL asks for a function's rows after its clauses are known and before it makes paths: so columns of
 * other relations are requested then, too (own_rows.c).
 */
Datum
geonn_join_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	SupportRequestRows *rows = IsA(request, SupportRequestRows) ? (SupportRequestRows *) request : NULL;
	SupportRequestCost *cost = IsA(request, SupportRequestCost) ? (SupportRequestCost *) request : NULL;
	PlannerInfo *root = rows != NULL ? rows->root : cost != NULL ? cost->root : NULL;
	Node	   *call = rows != NULL ? rows->node : cost != NULL ? cost->node : NULL;
	JoinEstimate estimate;

	if (root == NULL || call == NULL || !IsA(call, FuncExpr) || !geonn_may_plan(root) ||
		!geonn_estimate_join(root, (FuncExpr *) call, INFINITY, INFINITY, &estimate))
		PG_RETURN_POINTER(NULL);
	if (cost != NULL)
	{
		cost->startup = estimate.cost;
		cost->per_tuple = 0;
	}
	else
	{
		geonn_want_own_points(root, (FuncExpr *) call);
		rows->rows = estimate.rows;
	}
	PG_RETURN_POINTER(request);
}
