/*
 * estimate.c
 *		What the planner is told about the joins: their rows, and their cost.
 *
 * The number of rows is the number of observations times the rows of each.  The
 * first comes from the planner's own estimate for SELECT FROM obs, whatever obs
 * is: a table, partitions, a view, a foreign table, a query.  That is a plan of
 * its own, made and thrown away.  Rows whose coordinates are NULL are left out as
 * far as statistics know them.  Each observation has min(k, references) rows.  With a distance or
 * columns that decide which references are candidates, samples of both tables tell how many
 * candidates are near (sample.c, neighbours.c).  Conditions on the rows' columns narrow that
 * (row_conditions.c).
 *
 * The cost is that of reading both sides and something for each row, all of it
 * before the first row.
 *
 * Relations raise no errors here; a wrong query in an argument does, as it would
 * a moment later.
 */
#include "postgres.h"

#include <math.h>

#include "access/sysattr.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"

#include "common/geodesy.h"
#include "base/compat.h"
#include "join/arguments.h"
#include "plan/estimate.h"
#include "plan/known.h"
#include "plan/neighbours.h"
#include "plan/observation_filter.h"
#include "plan/row_type.h"
#include "plan/sample.h"
#include "points/query.h"

/*
 * How deep estimates go into views over geonn_nearest of views over ....  The
 * limit also ends the estimate of a view that contains itself.
 */
#define DEPTH_MAX 4

/* sides of a plan whose estimates are kept; others are estimated again */
#define SIDES_KNOWN 8

/* references where their number is not known */
#define UNKNOWN_ROWS 1000

/*
 * Rows of a table, and neighbours of an observation, where they come with the parameters of an execution.
 * PostgreSQL takes a plan for all executions unless those for one each cost less.  So these are the
 * numbers from which on the plan for many rows is as good as the plan for the very table.  With
 * much greater ones, such a plan would always be compiled (jit_above_cost).
 *
 * A larger table whose own column obs_id is joined with is most likely the one that will come.  Only the
 * plan for that table can take its rows for observations (own_rows.c), which is faster at any size: so
 * the other one counts no fewer rows.
 */
#define MANY_ROWS 1e6
#define MANY_NEIGHBOURS 100

typedef struct SideEstimate
{
	double		rows;			/* -1: unknown */
	double		cost;			/* of reading it */
} SideEstimate;

typedef struct KnownSide
{
	const Node *side;			/* the argument in the plan's tree */
	bool		all_rows;
	SideEstimate estimate;
} KnownSide;

/* estimates for the plan that is being made */
static struct
{
	const PlannerInfo *root;	/* NULL: none */
	int			count;
	KnownSide	sides[SIDES_KNOWN];
}			known_sides;

/*
 * Add "column IS NOT NULL" for the named column, or without one for the first of these that exists.
 */
static void
add_not_null(StringInfo query, Oid relation, const char *named, const char *const *usual)
{
	const char *const only[] = {named, NULL};
	const char *const *names = named != NULL ? only : usual;

	for (; *names != NULL; names++)
	{
		if (get_attnum(relation, *names) == InvalidAttrNumber)
			continue;
		appendStringInfo(query, " %s %s IS NOT NULL",
						 strstr(query->data, " WHERE ") == NULL ? "WHERE" : "AND",
						 quote_identifier(*names));
		return;
	}
}

/*
 * The query that reads a relation's rows that have coordinates, by the columns that options name; NULL:
 * all rows.  It asks for no other columns than the join does.  NULL if the relation cannot be read.
 */
static char *
relation_query(Oid oid, const GeonnColumnNames *named)
{
	static const char *const latitudes[] = {"lat", "latitude", NULL};
	static const char *const longitudes[] = {"lon", "lng", "long", "longitude", NULL};
	char	   *name = geonn_relation_name(oid);
	char		kind = get_rel_relkind(oid);
	StringInfoData query;

	if (name == NULL || (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE &&
						 kind != RELKIND_VIEW && kind != RELKIND_MATVIEW &&
						 kind != RELKIND_FOREIGN_TABLE))
		return NULL;
	initStringInfo(&query);
	appendStringInfo(&query, "SELECT FROM %s", name);
	if (named != NULL && named->point != NULL)
		add_not_null(&query, oid, named->point, NULL);
	else if (named != NULL)
	{
		add_not_null(&query, oid, named->latitude, latitudes);
		add_not_null(&query, oid, named->longitude, longitudes);
	}
	return query.data;
}

/*
 * Estimates, which EXPLAIN shows, reveal something of a table's contents: so
 * only a user that may read the table gets them.  No hook is asked, as the executor's check would:
 * hooks take that for the beginning of a statement's execution.
 */
static bool
may_read(PlannedStmt *plan)
{
	ListCell   *cell;

	foreach(cell, geonn_permissions(plan))
	{
		const RTEPermissionInfo *table = lfirst(cell);

		if (table->requiredPerms != 0 &&
			!geonn_may_read(table->relid, OidIsValid(table->checkAsUser) ? table->checkAsUser : GetUserId(),
							table->selectedCols))
			return false;
	}
	return true;
}

/*
 * What is expected of a table or query that comes with the parameters of an execution.
 */
static SideEstimate
many_rows(void)
{
	SideEstimate many = {MANY_ROWS, 2 * cpu_tuple_cost * MANY_ROWS};

	return many;
}

/*
 * What the planner expects of the query's rows that meet conditions; relation and title as for
 * geonn_plan_filtered_query.
 */
static SideEstimate
estimate_query(const char *query, const char *title, Oid relation, List *conditions)
{
	static int	depth = 0;
	volatile SideEstimate estimate = {-1, 0};
	SideEstimate result;

	if (query != NULL && depth < DEPTH_MAX && ActiveSnapshotSet())
	{
		depth++;
		PG_TRY();
		{
			PlannedStmt *plan = geonn_plan_filtered_query(query, title,
														  conditions == NIL ? CURSOR_OPT_PARALLEL_OK : 0,
														  relation, conditions);

			if (plan != NULL && may_read(plan))
			{
				estimate.rows = plan->planTree->plan_rows;
				estimate.cost = plan->planTree->total_cost;
			}
		}
		PG_FINALLY();
		{
			depth--;
		}
		PG_END_TRY();
	}
	result.rows = estimate.rows;
	result.cost = estimate.cost;
	return result;
}

/*
 * What the planner expects of one side, given as a relation or a query; the title is for
 * errors of a query, and named as for relation_query.
 */
static SideEstimate
estimate_unknown_side(PlannerInfo *root, Node *side, const char *title, const GeonnColumnNames *named)
{
	Const	   *argument = geonn_known_value(root, side);
	Oid			relation = geonn_known_relation(root, side);
	char	   *query = NULL;

	if (geonn_comes_later(root, side))
		return many_rows();
	if (OidIsValid(relation))
		query = relation_query(relation, named);
	else if (argument != NULL && argument->consttype == TEXTOID)
		query = TextDatumGetCString(argument->constvalue);
	return estimate_query(query, title, relation, NIL);
}

/* planner_cxt is reset, or deleted: the pointer may soon mean another plan */
static void
forget_sides(void *root)
{
	if (known_sides.root == root)
		known_sides.root = NULL;
}

/*
 * The same, for a side that has been estimated for this plan already, or now is: PostgreSQL asks for
 * rows and for costs, and each estimate plans a query.
 */
static SideEstimate
estimate_side(PlannerInfo *root, Node *side, const char *title, const GeonnColumnNames *named)
{
	bool		all_rows = named == NULL;
	SideEstimate estimate;
	MemoryContextCallback *callback;

	for (int i = 0; i < known_sides.count && known_sides.root == root; i++)
	{
		if (known_sides.sides[i].side == side && known_sides.sides[i].all_rows == all_rows)
			return known_sides.sides[i].estimate;
	}
	estimate = estimate_unknown_side(root, side, title, named);
	if (known_sides.root != root)
	{
		callback = MemoryContextAlloc(root->planner_cxt, sizeof(MemoryContextCallback));
		callback->func = forget_sides;
		callback->arg = root;
		MemoryContextRegisterResetCallback(root->planner_cxt, callback);
		known_sides.root = root;
		known_sides.count = 0;
	}
	if (known_sides.count < SIDES_KNOWN)
		known_sides.sides[known_sides.count++] = (KnownSide) {side, all_rows, estimate};
	return estimate;
}

/*
 * The number of points in the array, if the planner knows it.
 */
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

static bool
is_column(Node *expression, Index relid, AttrNumber number)
{
	Var		   *column = (Var *) strip_implicit_coercions(expression);

	return IsA(column, Var) && column->varno == (int) relid && column->varattno == number;
}

/*
 * The rows of the table that the expression is a column of; 0: it is none.
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
	AttrNumber	number = function != NULL ? geonn_row_column(call, "obs_id") : 0;
	double		rows = 0;
	ListCell   *cell;

	foreach(cell, number != 0 ? root->eq_classes : NIL)
	{
		EquivalenceClass *class = lfirst(cell);
		double		largest = 0;
		bool		has_id = false;
		ListCell   *member;

		foreach(member, class->ec_members)
		{
			Node	   *value = (Node *) ((EquivalenceMember *) lfirst(member))->em_expr;

			has_id = has_id || is_column(value, function->relid, number);
			largest = Max(largest, rows_of_column(root, value));
		}
		if (has_id)
			rows = Max(rows, largest);
	}
	return rows;
}

static SideEstimate
estimate_observations(PlannerInfo *root, const FuncExpr *expression, bool all_rows)
{
	Node	   *side = geonn_expression_observations(expression);
	GeonnColumnNames named = geonn_named_columns(root, expression, "obs");
	SideEstimate estimate;
	double		joined;

	if (side == NULL)
		return estimate_array(root, geonn_expression_argument(expression, "lat"));
	estimate = estimate_side(root, side, "query obs_sql", all_rows ? NULL : &named);
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

static SideEstimate
estimate_references(PlannerInfo *root, const FuncExpr *expression)
{
	GeonnColumnNames named = geonn_named_columns(root, expression, "ref");

	return estimate_side(root, geonn_expression_references(expression), "query ref_sql", &named);
}

/* ---- neighbours ---- */

static bool
known_truth(PlannerInfo *root, const FuncExpr *expression, const char *name)
{
	Const	   *argument = geonn_known_value(root, geonn_expression_argument(expression, name));

	return argument != NULL && DatumGetBool(argument->constvalue);
}

/*
 * The argument as a number; as it is without one.  later: the number, where it comes with the parameters
 * of an execution.
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
 * The column that the option names, if it does.
 */
static char *
named_column(Const *options, const char *side, const char *what)
{
	char	   *key = psprintf("%s_%s", side, what);
	Jsonb	   *object = options != NULL ? DatumGetJsonbP(options->constvalue) : NULL;
	JsonbValue	space;
	JsonbValue *value;

	if (object == NULL || !JB_ROOT_IS_OBJECT(object))
		return NULL;
	value = getKeyJsonValueFromContainer(&object->root, key, strlen(key), &space);
	return value != NULL && value->type == jbvString ?
		pnstrdup(value->val.string.val, value->val.string.len) : NULL;
}

GeonnColumnNames
geonn_named_columns(PlannerInfo *root, const FuncExpr *expression, const char *side)
{
	Const	   *options = geonn_known_value(root, geonn_expression_argument(expression, "options"));
	GeonnColumnNames named = {
		.id = named_column(options, side, "id"),
		.latitude = named_column(options, side, "lat"),
		.longitude = named_column(options, side, "lon"),
		.point = named_column(options, side, "geog"),
		.radius = named_column(options, side, "radius")
	};

	return named;
}

/*
 * A sample of one side, "obs" or "ref", if that is a table.
 */
static const PointSample *
sample_side(PlannerInfo *root, const FuncExpr *expression, const char *side)
{
	Oid			relation = geonn_known_relation(root, geonn_expression_argument(expression, side));
	ArrayType  *by = geonn_known_names(root, geonn_expression_argument(expression, "by"));
	ArrayType  *overlaps = geonn_known_names(root, geonn_expression_argument(expression, "overlaps"));
	GeonnColumnNames named = geonn_named_columns(root, expression, side);

	if (!OidIsValid(relation))
		return NULL;
	return geonn_sample(relation, &named, strcmp(side, "ref") == 0, by, overlaps);
}

/*
 * Is each observation among the references?
 */
static bool
has_itself(PlannerInfo *root, const FuncExpr *expression)
{
	Oid			observations = geonn_known_relation(root, geonn_expression_argument(expression, "obs"));

	return OidIsValid(observations) &&
		observations == geonn_known_relation(root, geonn_expression_argument(expression, "ref"));
}

/*
 * Do columns of the points decide which references are candidates?
 */
static bool
has_columns(PlannerInfo *root, const FuncExpr *expression)
{
	return geonn_known_names(root, geonn_expression_argument(expression, "by")) != NULL ||
		geonn_known_names(root, geonn_expression_argument(expression, "overlaps")) != NULL ||
		geonn_named_columns(root, expression, "obs").radius != NULL ||
		geonn_named_columns(root, expression, "ref").radius != NULL;
}

/*
 * Is the radius left to the points?
 */
static bool
has_no_radius(const FuncExpr *expression)
{
	const Const *radius = (const Const *) geonn_expression_argument(expression, "radius");

	return radius != NULL && IsA(radius, Const) && radius->constisnull;
}

/*
 * What an observation is expected to have.  Where a side cannot be sampled, observations are taken to
 * be where references are, and these spread evenly over the Earth; with one in the
 * radius at least, since a query with a radius most likely finds neighbours in it, and with not
 * very many where points have radiuses.
 */
static NeighboursExpected
expect_neighbours(PlannerInfo *root, const FuncExpr *expression, const JoinBounds *bounds,
				  double count)
{
	bool		itself = has_itself(root, expression);
	bool		excluded = itself && known_truth(root, expression, "exclude_self");
	NeighboursAsked asked = {
		.radius = bounds->radius,
		.k = bounds->k,
		.references = excluded ? Max(count - 1, 0) : count,
		.itself = itself && !excluded
	};
	NeighboursExpected expected = {0, 0};
	const PointSample *references;
	const PointSample *observations;

	if (count > 0 && (!isinf(bounds->radius) || has_columns(root, expression)))
	{
		references = sample_side(root, expression, "ref");
		observations = references != NULL ? sample_side(root, expression, "obs") : NULL;
		if (references != NULL)
			return geonn_expect_neighbours(observations != NULL ? observations : references,
										   references, &asked);
	}
	expected.each = asked.references;

	if (has_no_radius(expression))
		expected.each = Min(expected.each, MANY_NEIGHBOURS);
	if (!isinf(bounds->radius))
	{
		/* a cap's share of the sphere is a quarter of its squared chord */
		double		share = bounds->radius > 0 ? geonn_radius_limit(bounds->radius) / 4 : 0;

		expected.each = Max(1, Min(1, share) * asked.references);
	}
	expected.each = Max(0, Min(bounds->k, expected.each));
	expected.unmatched = expected.each > 0 ? 0 : 1;
	return expected;
}

/*
 * The bounds that the call's arguments set.
 */
static JoinBounds
read_bounds(PlannerInfo *root, const FuncExpr *expression)
{
	Node	   *radius = geonn_expression_argument(expression, "radius");
	bool		within = radius != NULL;
	JoinBounds	bounds = {
		.radius = known_number(root, expression, within ? "radius" : "max_distance",
							   within && !has_no_radius(expression) ? 0 : INFINITY, INFINITY),
		.k = within ? INFINITY : known_number(root, expression, "k", 1, MANY_NEIGHBOURS)
	};

	if (within && geonn_comes_later(root, radius))
		bounds.k = MANY_NEIGHBOURS;
	return bounds;
}

/* ---- joins ---- */

/*
 * Estimate the join of such observations; the rest is as for geonn_estimate_join.
 */
static bool
estimate_join_of(PlannerInfo *root, const FuncExpr *expression, SideEstimate observations,
				 const JoinBounds *narrower, JoinEstimate *estimate)
{
	JoinBounds	bounds;
	SideEstimate references;
	NeighboursExpected expected;

	if (observations.rows < 0)
		return false;
	references = estimate_references(root, expression);
	bounds = read_bounds(root, expression);
	if (narrower != NULL)
	{
		bounds.radius = Min(bounds.radius, narrower->radius);
		bounds.k = Min(bounds.k, narrower->k);
	}
	estimate->observations = observations.rows;
	estimate->references = references.rows < 0 ? UNKNOWN_ROWS : references.rows;
	expected = expect_neighbours(root, expression, &bounds, estimate->references);
	estimate->matches = observations.rows * expected.each;
	estimate->rows = observations.rows * expected.each;
	if (known_truth(root, expression, "keep_unmatched"))
		estimate->rows += observations.rows * expected.unmatched;
	estimate->rows = clamp_row_est(estimate->rows);
	estimate->cost = observations.cost + references.cost +
		GEONN_OPERATORS_A_SEARCH * cpu_operator_cost * observations.rows + cpu_tuple_cost * estimate->rows;
	return true;
}

bool
geonn_estimate_join(PlannerInfo *root, const FuncExpr *expression, const JoinBounds *narrower,
					JoinEstimate *estimate)
{
	bool		keeps = known_truth(root, expression, "keep_unmatched");

	return estimate_join_of(root, expression, estimate_observations(root, expression, keeps),
							narrower, estimate);
}

/* ---- of some observations ---- */

/*
 * The name of the relation's id column, or NULL if that is not clear: by options, the primary key,
 * or "id".
 */
static char *
id_column(PlannerInfo *root, const FuncExpr *expression, Oid relation)
{
	Const	   *options = geonn_known_value(root, geonn_expression_argument(expression, "options"));
	Jsonb	   *json = options != NULL ? DatumGetJsonbP(options->constvalue) : NULL;
	JsonbValue	name;
	Oid			constraint;
	Bitmapset  *key;

	if (json != NULL && JB_ROOT_IS_OBJECT(json) &&
		getKeyJsonValueFromContainer(&json->root, "obs_id", strlen("obs_id"), &name) != NULL)
		return name.type == jbvString ? pnstrdup(name.val.string.val, name.val.string.len) : NULL;
	key = get_primary_key_attnos(relation, true, &constraint);
	if (bms_num_members(key) == 1)
		return get_attname(relation, bms_singleton_member(key) + FirstLowInvalidHeapAttributeNumber,
						   true);
	return pstrdup("id");
}

/*
 * A source with nothing but the observations' id, from what is known of them; false: not enough.
 */
static bool
id_source(PlannerInfo *root, const FuncExpr *expression, PointSource *source)
{
	PointColumn *id = &source->columns[COLUMN_ID];
	char	   *name;
	AttrNumber	attribute;

	source->relation = geonn_known_relation(root, geonn_expression_observations(expression));
	if (!OidIsValid(source->relation) || relation_query(source->relation, NULL) == NULL)
		return false;
	id->name = id_column(root, expression, source->relation);
	attribute = id->name == NULL ? InvalidAttrNumber : get_attnum(source->relation, id->name);
	name = geonn_relation_name(source->relation);
	if (attribute <= 0 || name == NULL)
		return false;
	get_atttypetypmodcoll(source->relation, attribute, &id->type, &id->typmod, &id->collation);
	id->base_type = getBaseTypeAndTypmod(id->type, &id->typmod);
	id->attribute = 1;
	source->query = psprintf("SELECT %s FROM %s", quote_identifier(id->name), name);
	return true;
}

/*
 * A parameter's value as far as the planner knows it, or the parameter as one of a plan of its own.
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
	const FuncExpr *expression = castNode(FuncExpr, call->funcexpr);
	PointSource source = {0};
	List	   *conditions;

	if (!id_source(root, expression, &source))
		return false;
	conditions = geonn_observation_conditions(clauses, &source, geonn_row_type(call), relid,
											  NULL, expected_value, root);
	if (conditions == NIL)
		return false;
	return estimate_join_of(root, expression,
							estimate_query(source.query, "", source.relation, conditions),
							NULL, estimate);
}

bool
geonn_estimate_references(PlannerInfo *root, const FuncExpr *expression, Cost *cost)
{
	SideEstimate references = estimate_references(root, expression);

	*cost = references.cost;
	return references.rows >= 0;
}
