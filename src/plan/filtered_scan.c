/*
 * filtered_scan.c
 *		Where the planner takes a plan node that reads a part of the observations.
 *
 * Clauses on observations alone (observation_filter.c) limit the reading.  One path does so by the
 * clauses of the relation itself, and by those that follow from joined relations' own clauses.
 * Others are for the inner side of a nested loop: they take the id from a row of another
 * relation, and search anew for each of its rows.  That pays where few rows come, and the references
 * are few or kept.
 *
 * The cost is that of a plan for the reading with the clauses, so it depends on indexes and
 * statistics of the observations.
 */
#include "postgres.h"

#include "nodes/nodeFuncs.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/restrictinfo.h"

#include "plan/estimate.h"
#include "plan/filtered_scan.h"
#include "plan/observation_filter.h"

/* the cost of beginning another search, whose references are there: about 0.2 ms */
#define COST_OF_SEARCH 100

/*
 * The share of rows that is left by the clauses (RestrictInfo) that limit no reading.
 */
static Selectivity
other_selectivity(PlannerInfo *root, List *clauses, List *filter)
{
	List	   *others = NIL;
	ListCell   *cell;

	foreach(cell, clauses)
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);

		if (!list_member_ptr(filter, clause->clause))
			others = lappend(others, clause);
	}
	return clauselist_selectivity(root, others, 0, JOIN_INNER, NULL);
}

/*
 * The path with this filter; the clauses (RestrictInfo) are all that are tested on its rows.  known:
 * its rows are estimated from the reading.
 */
static CustomPath *
filtered_path(PlannerInfo *root, RangeTblFunction *call, const CustomPath *whole, List *clauses,
			  List *filter, bool *known)
{
	CustomPath *path = makeNode(CustomPath);
	JoinEstimate estimate;

	*path = *whole;
	path->custom_private = filter;
	*known = geonn_estimate_filtered(root, path->path.parent->relid, call, filter, &estimate);
	if (*known)
	{
		path->path.rows = clamp_row_est(estimate.rows * other_selectivity(root, clauses, filter));
		path->path.total_cost = Max(estimate.cost + cpu_tuple_cost * estimate.rows,
									path->path.startup_cost);
	}
	else
		path->path.total_cost = path->path.startup_cost +
			(path->path.total_cost - path->path.startup_cost) *
			clauselist_selectivity(root, filter, 0, JOIN_INNER, NULL);
	return path;
}

/* ---- the inner side of a nested loop ---- */

static bool
is_column_of(PlannerInfo *root pg_attribute_unused(), RelOptInfo *rel,
			 EquivalenceClass *class pg_attribute_unused(), EquivalenceMember *member, void *columns)
{
	return IsA(member->em_expr, Var) && ((Var *) member->em_expr)->varno == (int) rel->relid &&
		bms_is_member(((Var *) member->em_expr)->varattno, columns);
}

/*
 * The clauses (RestrictInfo) by which other relations' rows can limit the observations.
 */
static List *
join_clauses(PlannerInfo *root, RelOptInfo *rel, RangeTblFunction *call)
{
	Bitmapset  *columns = geonn_observation_columns(call);
	List	   *found = NIL;
	List	   *usable = NIL;
	ListCell   *cell;

	if (rel->has_eclass_joins)
		found = generate_implied_equalities_for_column(root, rel, is_column_of, columns, NULL);
	foreach(cell, rel->joininfo)
	{
		if (join_clause_is_movable_to(lfirst_node(RestrictInfo, cell), rel))
			found = lappend(found, lfirst(cell));
	}
	foreach(cell, found)
	{
		if (geonn_observation_clauses(rel, call, list_make1(lfirst(cell))) != NIL)
			usable = lappend(usable, lfirst(cell));
	}
	return usable;
}

/*
 * Offer the node as the inner side of a nested loop over these relations.
 */
static void
offer_inner_scan(PlannerInfo *root, RelOptInfo *rel, RangeTblFunction *call, const CustomPath *whole,
				 Relids outer)
{
	ParamPathInfo *parameters = get_baserel_parampathinfo(root, rel, outer);
	List	   *clauses = list_concat_copy(rel->baserestrictinfo, parameters->ppi_clauses);
	List	   *filter = geonn_observation_clauses(rel, call, clauses);
	CustomPath *path;
	bool		known;

	path = filtered_path(root, call, whole, clauses, filter, &known);
	if (!known)
		return;
	path->path.param_info = parameters;
	path->path.startup_cost += COST_OF_SEARCH;
	path->path.total_cost += COST_OF_SEARCH;
	add_path(rel, (Path *) path);
}

static bool
is_among(Relids relations, List *sets)
{
	ListCell   *cell;

	foreach(cell, sets)
	{
		if (bms_equal(lfirst(cell), relations))
			return true;
	}
	return false;
}

static void
offer_inner_scans(PlannerInfo *root, RelOptInfo *rel, RangeTblFunction *call,
				  const CustomPath *whole)
{
	List	   *offered = NIL;
	ListCell   *cell;

	foreach(cell, join_clauses(root, rel, call))
	{
		RestrictInfo *clause = lfirst_node(RestrictInfo, cell);
		Relids		outer = bms_del_member(bms_copy(clause->clause_relids), rel->relid);

		if (bms_is_empty(outer) || is_among(outer, offered))
			continue;
		offered = lappend(offered, outer);
		offer_inner_scan(root, rel, call, whole, outer);
	}
}

void
geonn_offer_filtered_scans(PlannerInfo *root, RelOptInfo *rel, RangeTblFunction *call,
						   const CustomPath *whole)
{
	List	   *filter = geonn_observation_clauses(rel, call, rel->baserestrictinfo);

	filter = list_concat_unique(filter, geonn_implied_observation_clauses(root, rel, call));
	if (filter != NIL)
	{
		bool		known;
		CustomPath *path = filtered_path(root, call, whole, rel->baserestrictinfo, filter,
										 &known);

		if (known)
			rel->rows = path->path.rows;
		add_path(rel, (Path *) path);
	}
	if (rel->reloptkind == RELOPT_BASEREL)
		offer_inner_scans(root, rel, call, whole);
}
