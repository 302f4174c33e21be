/*
 * sql_within_form.c
 *		Joins within a distance, in PostGIS's words: which the planner can give to a node.
 *
 *	FROM o [LEFT] JOIN r ON ST_DWithin(o.g, r.g, d [, use_spheroid]) AND ...
 *	FROM o [LEFT] JOIN r ON ST_Distance(o.g, r.g [, use_spheroid]) <= d AND ...
 *	FROM o WHERE [NOT] EXISTS (SELECT ... FROM r WHERE ST_DWithin(o.g, r.g, d) AND ...)
 *	FROM o [LEFT] JOIN r ON ST_Covers(r.g, o.g) AND ..., and so ST_CoveredBy and ST_Intersects
 *
 * A join is one of these if one of its clauses is a call of ST_DWithin, or compares a distance of the table in
 * sql_distance.c with a limit, by <= or <: between points, lines and polygons of both sides, with a limit that does not
 * depend on the references.  ST_Covers and its like ask for what is within the distance 0.
 * Where a join has both, the call is what the search is by, and the comparison is one of the other clauses.
 * PostgreSQL makes semi and anti joins of EXISTS and NOT EXISTS.
 *
 * The references are the rows of the inner relation, or of a join of several, by a path of PostgreSQL's own: so
 * privileges, policies, security barriers, locks and snapshots are those of the statement, and what restricts the
 * references alone is tested there.  The other clauses are tested by the node, for pairs within the distance.
 *
 * ST_DWithin for geometries measures in the plane of their coordinates, and is left alone.
 */
#include "postgres.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/restrictinfo.h"
#include "optimizer/tlist.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"

#include "base/compat.h"
#include "base/settings.h"
#include "common/protocol.h"
#include "sql/sql_conditions.h"
#include "sql/sql_form.h"
#include "sql/sql_references.h"
#include "sql/sql_reasons.h"
#include "sql/sql_within_form.h"
#include "sql/sql_zones.h"

/* which argument of a function has the other within it */
typedef enum Container
{
	CONTAINER_NONE,				/* neither: it asks for a distance */
	CONTAINER_FIRST,
	CONTAINER_SECOND,
	CONTAINER_EITHER
} Container;

/* a function of PostGIS's by which the node joins */
typedef struct WithinFunction
{
	const char *name;
	GeonnPointKind kind;		/* the type of the first two arguments */
	int			arguments;		/* so many, of which others are a radius and use_spheroid */
	WithinSearch search;
	Container	container;
} WithinFunction;

/* what a clause asks, whatever the two sides of the join are */
typedef struct WithinQuestion
{
	const char *function;		/* PostGIS's, that decides */
	WithinSearch search;
	Container	container;
	Node	   *one;			/* the first argument, and the second */
	Node	   *other;
	Node	   *radius;			/* the distance; NULL: search is WITHIN_PLANE */
	int			metric;			/* enum geonn_metric */
	const char *problem;		/* why no node can answer it; NULL: nothing of the clause alone */
} WithinQuestion;

static const WithinFunction functions[] = {
	{"st_dwithin", GEONN_POINT_GEOGRAPHY, 4, WITHIN_DISTANCE, CONTAINER_NONE},
	{"st_covers", GEONN_POINT_GEOGRAPHY, 2, WITHIN_SHAPES, CONTAINER_FIRST},
	{"st_coveredby", GEONN_POINT_GEOGRAPHY, 2, WITHIN_SHAPES, CONTAINER_SECOND},
	{"st_intersects", GEONN_POINT_GEOGRAPHY, 2, WITHIN_SHAPES, CONTAINER_EITHER},
	{"st_contains", GEONN_POINT_GEOMETRY, 2, WITHIN_PLANE, CONTAINER_FIRST},
	{"st_within", GEONN_POINT_GEOMETRY, 2, WITHIN_PLANE, CONTAINER_SECOND},
	{"st_covers", GEONN_POINT_GEOMETRY, 2, WITHIN_PLANE, CONTAINER_FIRST},
	{"st_coveredby", GEONN_POINT_GEOMETRY, 2, WITHIN_PLANE, CONTAINER_SECOND},
	{"st_intersects", GEONN_POINT_GEOMETRY, 2, WITHIN_PLANE, CONTAINER_EITHER}
};

/*
 * The row of PostGIS's function that the expression calls; NULL: it is no such call.
 */
static const WithinFunction *
find_function(const Node *expression)
{
	const FuncExpr *call = (const FuncExpr *) expression;
	const char *name;

	if (!IsA(expression, FuncExpr) || call->funcresulttype != BOOLOID || call->args == NIL)
		return NULL;
	name = get_func_name(call->funcid);
	for (int i = 0; name != NULL && i < (int) lengthof(functions); i++)
	{
		const WithinFunction *row = &functions[i];

		/* the name of the type will do: the function's extension is PostGIS, whose types have it */
		if (strcmp(name, row->name) == 0 && list_length(call->args) == row->arguments &&
			geonn_point_kind_by_name(getBaseType(exprType(linitial(call->args)))) == row->kind &&
			geonn_is_of_extension(call->funcid, "postgis"))
			return row;
	}
	return NULL;
}

/*
 * Is the expression a comparison by which one value is less than another, or equal?  Sets both.
 */
static bool
is_upper_limit(const Node *expression, Node **less, Node **greater)
{
	const OpExpr *comparison = (const OpExpr *) expression;

	if (!IsA(expression, OpExpr))
		return false;
	*less = linitial(comparison->args);
	*greater = llast(comparison->args);
	switch (get_opcode(comparison->opno))
	{
		case F_FLOAT8LT:
		case F_FLOAT8LE:
			return true;
		case F_FLOAT8GT:
		case F_FLOAT8GE:
			*less = lsecond(comparison->args);
			*greater = linitial(comparison->args);
			return true;
		default:
			return false;
	}
}

/*
 * Find out what a clause asks.  False: it does not say within which distance.
 */
static bool
read_question(const Node *expression, WithinQuestion *question)
{
	const FuncExpr *call = (const FuncExpr *) expression;
	const WithinFunction *function;
	const Const *use_spheroid;
	Node	   *distance;

	*question = (WithinQuestion) {.metric = GEONN_METRIC_SPHERE};
	if (is_upper_limit(expression, &distance, &question->radius))
	{
		question->function = geonn_sql_distance_of_geographies(distance, &question->one, &question->other,
															   &question->metric);
		return question->function != NULL;
	}
	function = find_function(expression);
	if (function == NULL)
		return false;
	question->function = function->name;
	question->search = function->search;
	question->container = function->container;
	question->one = linitial(call->args);
	question->other = lsecond(call->args);
	if (function->search == WITHIN_SHAPES)
		question->radius = (Node *) makeConst(FLOAT8OID, -1, InvalidOid, sizeof(float8), Float8GetDatum(0), false,
											  FLOAT8PASSBYVAL);
	if (function->search != WITHIN_DISTANCE)
		return true;
	question->radius = lthird(call->args);
	use_spheroid = lfourth(call->args);
	if (!IsA(use_spheroid, Const) || use_spheroid->constisnull)
		question->problem = "use_spheroid is not a constant";
	else
		question->metric = DatumGetBool(use_spheroid->constvalue) ? GEONN_METRIC_SPHEROID : GEONN_METRIC_SPHERE;
	return true;
}

/*
 * The references' path, with their point as one of its columns, whose number is set.
 */
static Path *
path_of_references(PlannerInfo *root, RelOptInfo *inner, Node *point, int *number)
{
	PathTarget *target = inner->reltarget;
	Path	   *path = geonn_path_of_references(inner);
	ListCell   *cell;

	foreach(cell, target->exprs)
	{
		if (equal(lfirst(cell), point))
		{
			*number = foreach_current_index(cell);
			return path;
		}
	}
	*number = list_length(target->exprs);
	target = copy_pathtarget(target);
	add_column_to_pathtarget(target, (Expr *) point, 0);
	return (Path *) create_projection_path(root, inner, path, set_pathtarget_cost_width(root, target));
}

/*
 * Has PostgreSQL a path that gets the references of one outer row?
 */
static bool
has_index_path(const RelOptInfo *inner)
{
	ListCell   *cell;

	foreach(cell, inner->pathlist)
	{
		if (((const Path *) lfirst(cell))->param_info != NULL)
			return true;
	}
	return false;
}

/*
 * How many rows the relation can have, of a table and of subqueries; infinity: it is a join, or what PostgreSQL guesses about,
 * as a function.
 */
static double
most_rows(const RelOptInfo *inner)
{
	if (inner->reloptkind == RELOPT_JOINREL || (inner->rtekind != RTE_RELATION && inner->subroot == NULL))
		return INFINITY;
	return inner->subroot != NULL ? geonn_largest_relation(inner->subroot) : inner->tuples;
}

Cost
geonn_cost_of_clause(PlannerInfo *root, const RestrictInfo *clause)
{
	QualCost	cost;

	cost_qual_eval_node(&cost, (Node *) clause->clause, root);
	return cost.per_tuple;
}

/*
 * May the node test the other clauses before this one, as PostgreSQL does, and again after it?
 */
static bool
may_test_others_first(PlannerInfo *root, List *clauses, const RestrictInfo *own)
{
	ListCell   *cell;

	foreach(cell, clauses)
	{
		const RestrictInfo *other = lfirst_node(RestrictInfo, cell);

		if (other != own && (other->security_level > own->security_level ||
							 geonn_cost_of_clause(root, other) > geonn_cost_of_clause(root, own) ||
							 contain_volatile_functions((Node *) other->clause) || contain_subplans((Node *) other->clause)))
			return false;
	}
	return true;
}

/*
 * What keeps the engine from measuring between these values; NULL: nothing does, and the form says what they may be.
 */
static const char *
problem_on_sphere(const List *range_table, const WithinQuestion *question, Node *observation, Node *reference,
				  bool is_contained, WithinForm *form)
{
	const char *of_observation = geonn_problem_of_points(range_table, observation);
	const char *of_reference = geonn_problem_of_points(range_table, reference);
	bool		may_be_shapes = geonn_enable_sql_joins != GEONN_SQL_JOINS_POINTS && geonn_may_be_shapes(reference);

	form->shapes_ask = of_observation != NULL && geonn_enable_sql_joins != GEONN_SQL_JOINS_POINTS &&
		geonn_may_be_shapes(observation);
	if (of_observation != NULL && !form->shapes_ask)
		return of_observation;
	if (of_reference != NULL && !may_be_shapes)
		return of_reference;
	if ((question->container == CONTAINER_FIRST || question->container == CONTAINER_SECOND) &&
		(is_contained ? may_be_shapes : form->shapes_ask))
		return "it asks for shapes that cover shapes";
	if (may_be_shapes || form->shapes_ask)
		form->search = WITHIN_SHAPES;
	form->are_shapes = may_be_shapes && of_reference != NULL;
	return NULL;
}

/*
 * What keeps the node from joining these values; NULL: nothing does, and the form says what they may be.
 */
static const char *
problem_of_values(const PlannerInfo *root, const WithinQuestion *question, Node *observation, Node *reference,
				  bool is_reversed, WithinForm *form)
{
	bool		is_contained = (question->container == CONTAINER_FIRST && !is_reversed) ||
		(question->container == CONTAINER_SECOND && is_reversed);

	if (question->search != WITHIN_PLANE)
		return problem_on_sphere(root->parse->rtable, question, observation, reference, is_contained, form);
	return is_contained ? "its polygons are of the side that is not searched" :
		geonn_zones_problem(root->parse->rtable, observation, reference);
}

bool
geonn_is_zone_call(const Node *expression)
{
	const WithinFunction *function = find_function(expression);

	return function != NULL && function->search == WITHIN_PLANE;
}

bool
geonn_asks_for_zones(PlannerInfo *root, const RelOptInfo *rel, const Node *clause, Node **point, Node **zone)
{
	WithinQuestion question;
	WithinForm	form;
	bool		is_reversed;

	if (!geonn_is_zone_call(clause) || !read_question(clause, &question))
		return false;
	is_reversed = bms_is_subset(rel->relids, pull_varnos(root, question.one));
	*zone = is_reversed ? question.one : question.other;
	*point = is_reversed ? question.other : question.one;
	return bms_equal(pull_varnos(root, *zone), rel->relids) && bms_is_empty(pull_varnos(root, *point)) &&
		problem_of_values(root, &question, *point, *zone, is_reversed, &form) == NULL;
}

/*
 * The other clauses that hold for all pairs for which a predicate of a plane does.
 */
static List *
implied_clauses(List *clauses, const WithinForm *form, const Node *reference, JoinType type, Relids joined)
{
	List	   *implied = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);

		if (geonn_zones_imply((const Node *) clause->clause, form->observation, reference) &&
			!(IS_OUTER_JOIN(type) && RINFO_IS_PUSHED_DOWN(clause, joined)))
			implied = lappend(implied, clause);
	}
	return implied;
}

/*
 * Fill in the form for its clause.  Returns why the node cannot join by it; NULL: it can.
 */
static const char *
read_form(PlannerInfo *root, const RelOptInfo *outer, RelOptInfo *inner, JoinType type, Relids joined, List *clauses,
		  const WithinQuestion *question, WithinForm *form)
{
	Node	   *expression = (Node *) form->clause->clause;
	bool		is_reversed = bms_is_subset(pull_varnos(root, question->one), inner->relids);
	Node	   *reference = is_reversed ? question->one : question->other;
	const char *problem;
	Relids		sides;
	Relids		of_reference;
	QualCost	cost;
	ListCell   *cell;

	if (question->problem != NULL)
		return question->problem;
	form->function = question->function;
	form->search = question->search;
	form->observation = is_reversed ? question->other : question->one;
	form->radius = question->radius;
	form->metric = question->metric;
	sides = pull_varnos(root, (Node *) list_make2(form->observation, form->radius));
	of_reference = pull_varnos(root, reference);
	if (bms_is_empty(of_reference) || !bms_is_subset(of_reference, inner->relids) || !bms_is_subset(sides, outer->relids))
		return "its points are not one of each side, or its distance depends on the side that is searched";
	problem = problem_of_values(root, question, form->observation, reference, is_reversed, form);
	if (problem != NULL)
		return problem;
	form->others_first = may_test_others_first(root, clauses, form->clause);
	if (question->search == WITHIN_PLANE)
		form->implied = implied_clauses(clauses, form, reference, type, joined);
	else
	{
		form->observation = geonn_value_of_point(form->observation);
		reference = geonn_value_of_point(reference);
	}
	if (contain_volatile_functions(expression) || contain_subplans(expression))
		return "it has a volatile function or a subquery";
	if ((type == JOIN_LEFT || type == JOIN_ANTI) && contain_nonstrict_functions(reference))
		return "its value on the side that is searched may not be NULL where no row matches";
	foreach(cell, clauses)
	{
		if (lfirst_node(RestrictInfo, cell)->security_level < form->clause->security_level)
			return "another clause must be tested before it";
	}
	cost_qual_eval_node(&cost, expression, root);
	form->call_cost = cost.per_tuple;
	form->references = path_of_references(root, inner, reference, &form->point);
	if (!geonn_references_fit(form->references, form->are_shapes))
		return "its references would take more than half of geonn.session_memory_limit";
	if ((has_index_path(inner) || type == JOIN_RIGHT) &&
		!geonn_references_surely_fit(form->references, form->are_shapes, most_rows(inner)))
		return "its references may take more than geonn.session_memory_limit, and an index has those of a row";
	return NULL;
}

WithinForm *
geonn_within_form(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, JoinType type, Relids joined,
				  List *clauses)
{
	WithinForm *comparison = NULL;
	ListCell   *cell;

	if (inner->cheapest_total_path == NULL || inner->cheapest_total_path->param_info != NULL)
		return NULL;
	foreach(cell, clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);
		WithinQuestion question;
		WithinForm *form;
		const char *problem;

		if (!read_question((const Node *) clause->clause, &question) ||
			(question.search != WITHIN_DISTANCE && geonn_enable_sql_joins == GEONN_SQL_JOINS_POINTS) ||
			(IS_OUTER_JOIN(type) && RINFO_IS_PUSHED_DOWN(clause, joined)))
			continue;
		form = palloc0(sizeof(WithinForm));
		form->clause = clause;
		problem = read_form(root, outer, inner, type, joined, clauses, &question, form);
		if (problem != NULL)
			geonn_left_to_postgresql(SQL_JOIN, question.search == WITHIN_DISTANCE ? NULL : question.function, problem);
		else if (!IsA(clause->clause, OpExpr))
			return form;
		else if (comparison == NULL)
			comparison = form;
	}
	return comparison;
}
