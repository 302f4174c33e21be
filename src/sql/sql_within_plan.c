/*
 * sql_within_plan.c
 *		The form of joins within a distance (sql_within_form.c), whose node is that of sql_within.c.
 *
 * The node is offered for semi joins, too.  It keeps PostgreSQL's own path for an outer row, where that has an index
 * (sql_own_plan.c).  Below a Gather, processes share nothing: each executes the plan of the references, and has a search
 * of its own.
 */
#include "postgres.h"

#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"

#include "base/compat.h"
#include "base/settings.h"
#include "common/protocol.h"
#include "plan/estimate.h"
#include "plan/lateral_path.h"
#include "plan/scan.h"
#include "sql/sql_own_plan.h"
#include "sql/sql_reasons.h"
#include "sql/sql_within.h"
#include "sql/sql_within_form.h"
#include "sql/sql_zones.h"

/* a call of a function that measures a distance on the sphere, in the units of lateral_path.h */
#define COST_OF_SPHERE_CALL 0.2

/* of an arc of a line or polygon, in a call, and its bytes */
#define COST_OF_ARC 0.125
#define BYTES_AN_ARC 16

/* an arc that asks takes as much as so many that are asked for: a search for its own, and distances between two arcs */
#define ARCS_ASKED_FOR 2.5

/*
 * Implements LateralForm.takes_update, for rows that are locked, too: PostgreSQL executes the plan again for a row that another
 * transaction has updated, with this row alone, and the node's children return it and the rows that belong to it.  Where the
 * updated table has children, its rows have columns that no CustomScan can return.
 */
static bool
takes_update(PlannerInfo *root, const RelOptInfo *outer pg_attribute_unused(), const RelOptInfo *inner pg_attribute_unused())
{
	return root->parse->resultRelation == 0 || !planner_rt_fetch(root->parse->resultRelation, root)->inh;
}

/*
 * Implements LateralForm.recognise.
 */
static bool
recognise(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, List *clauses, LateralPath *path)
{
	WithinForm *form;

	if (!geonn_enable_sql_joins || !bms_is_empty(inner->lateral_relids))
		return false;
	form = geonn_within_form(root, outer, inner, path->type, path->path.path.parent->relids, clauses);
	if (form == NULL || (path->type == JOIN_RIGHT && form->search != WITHIN_PLANE))
		return false;
	path->question = form;
	path->question_columns = list_make1(form->clause->clause);
	path->least_column = PG_INT16_MIN;
	path->answered = lcons(form->clause, list_copy(form->implied));
	path->references = form->references;
	return true;
}

/*
 * Implements LateralForm.keep_own_path: the cheapest path that an outer row parameterizes.
 */
static void
keep_own_path(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, LateralPath *path)
{
	Path	   *cheapest = NULL;
	List	   *clauses;
	ListCell   *cell;

	foreach(cell, inner->pathlist)
	{
		Path	   *own = lfirst(cell);

		if (own->param_info != NULL && bms_is_subset(own->param_info->ppi_req_outer, outer->relids) &&
			(cheapest == NULL || own->total_cost < cheapest->total_cost))
			cheapest = own;
	}
	if (cheapest == NULL)
		return;
	clauses = extract_actual_clauses(cheapest->param_info->ppi_clauses, false);
	if (contain_volatile_functions((Node *) clauses) || !geonn_note_columns(path, clauses, outer, inner))
		return;
	path->own = geonn_own_path(root, path->path.path.parent, outer, path->outer_columns, cheapest,
							   path->references->pathtarget->exprs);
	path->own_suits_workers = cheapest->parallel_safe;
}

/*
 * How many arcs a row of the path has, as its width tells, if it has a line or polygon.
 */
static double
arcs_of(const Path *path, bool has_shape)
{
	return has_shape ? Max(path->pathtarget->width / BYTES_AN_ARC, 1) : 1;
}

/*
 * The costs of the node for polygons of a plane, before the first row, and of all rows.
 */
static void
set_cost_of_plane(const WithinForm *form, const Path *references, const Path *outer, CustomPath *custom)
{
	Cost		zones = geonn_zones_cost(form->call_cost, references);

	custom->path.startup_cost = outer->startup_cost + zones;
	custom->path.total_cost = outer->total_cost + zones +
		geonn_zones_cost_of_points(form->call_cost, outer->rows, custom->path.rows);
}

/*
 * The costs of the node that searches by a distance.
 */
static void
set_cost_of_search(const WithinForm *form, const Path *references, const Path *outer, CustomPath *custom)
{
	double		arcs_of_reference = arcs_of(references, form->are_shapes);
	double		arcs_of_row = arcs_of(outer, form->shapes_ask);
	Cost		search = references->total_cost + COST_OF_NEW_SEARCH +
		OPERATORS_A_REFERENCE * cpu_operator_cost * references->rows * arcs_of_reference;
	Cost		rows = GEONN_OPERATORS_A_SEARCH * cpu_operator_cost * outer->rows * arcs_of_row *
		(form->shapes_ask ? ARCS_ASKED_FOR : 1) + cpu_tuple_cost * custom->path.rows;
	bool		is_of_sphere = form->metric == GEONN_METRIC_SPHERE && IsA(form->clause->clause, OpExpr);
	Cost		call = (is_of_sphere ? COST_OF_SPHERE_CALL : COST_OF_CALL) +
		COST_OF_ARC * (arcs_of_reference + arcs_of_row - 2);
	double		scale = Max(form->call_cost / call, 1);

	custom->path.startup_cost = outer->startup_cost + scale * search;
	custom->path.total_cost = outer->total_cost + scale * (search + rows);
}

/*
 * Implements LateralForm.set_cost: a search of each outer row, and its pairs.  PostGIS says that a
 * call costs far more than it takes.  So that both ways are compared by what they do take, the node's cost is as many
 * times what it is as that of a call.
 */
static void
set_cost(PlannerInfo *root pg_attribute_unused(), const LateralPath *path, CustomPath *custom)
{
	const WithinForm *form = path->question;
	const Path *outer = linitial(custom->custom_paths);

	if (form->search == WITHIN_PLANE)
		set_cost_of_plane(form, path->references, outer, custom);
	else
		set_cost_of_search(form, path->references, outer, custom);
	if (custom->path.pathkeys != NIL)
		custom->path.total_cost += cpu_operator_cost * custom->path.rows;
}

static bool
suits_workers(PlannerInfo *root, const LateralPath *path)
{
	const WithinForm *form = path->question;

	return path->references->parallel_safe && is_parallel_safe(root, (Node *) form->clause->clause);
}

/*
 * Implements LateralForm.make_node: see sql_within.h for the node's lists.
 */
static CustomScan *
make_node(PlannerInfo *root, LateralPath *path, List *targets, List *children)
{
	const WithinForm *form = path->question;
	const Plan *references = list_nth(children, LATERAL_REFERENCES);
	List	   *columns = NIL;
	WithinExpressions expressions = {
		.clause = (Node *) form->clause->clause,
		.observation = form->observation,
		.radius = form->radius,
		.implied = get_actual_clauses(form->implied),
		.clauses = path->neighbours
	};
	WithinPrivate planned = {
		.point = list_make1_int(form->point),
		.search = makeInteger(form->search),
		.shapes_ask = makeBoolean(form->shapes_ask),
		.metric = makeInteger(form->metric),
		.function = makeString(pstrdup(form->function)),
		.others_first = makeBoolean(form->others_first)
	};
	CustomScan *scan;
	ListCell   *cell;

	foreach(cell, references->targetlist)
		columns = lappend(columns, lfirst_node(TargetEntry, cell)->expr);
	scan = geonn_make_scan(root, &path->path, targets, copyObject(path->rows), geonn_pack_fields(&expressions),
						   list_concat_copy(path->outer_columns, columns));
	geonn_join_is_planned();
	scan->custom_plans = children;
	scan->custom_private = geonn_lateral_private(path, linitial(children), geonn_pack_fields(&planned));
	return scan;
}

const LateralForm geonn_within_lateral_form = {
	.node = &geonn_within_methods,
	.takes_right = true,
	.recognise = recognise,
	.takes_update = takes_update,
	.keep_own_path = keep_own_path,
	.set_cost = set_cost,
	.suits_workers = suits_workers,
	.make_node = make_node
};
