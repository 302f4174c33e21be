/*
 * sql_within_form.h
 *		Joins within a distance, in PostGIS's words: which the planner can give to a node.
 */
#ifndef GEONN_SQL_WITHIN_FORM_H
#define GEONN_SQL_WITHIN_FORM_H

#include "nodes/pathnodes.h"

/* what finds the references of an outer row */
typedef enum WithinSearch
{
	WITHIN_DISTANCE,			/* the engine, by the distance of points */
	WITHIN_SHAPES,				/* the engine, by the distance of lines and polygons */
	WITHIN_PLANE				/* this process, by the polygons of a plane */
} WithinSearch;

/* a join of outer rows with the references within a distance of their points */
typedef struct WithinForm
{
	RestrictInfo *clause;		/* the clause that says within which distance */
	const char *function;		/* PostGIS's, that decides */
	WithinSearch search;
	Node	   *observation;	/* the outer row's point */
	Node	   *radius;			/* the distance, of outer columns and parameters; NULL: search is WITHIN_PLANE */
	int			point;			/* the references' column with the point, from 0 on */
	int			metric;			/* enum geonn_metric */
	bool		are_shapes;		/* as far as is known, the references are lines and polygons */
	bool		shapes_ask;		/* the outer rows may have lines and polygons in place of points */
	Cost		call_cost;		/* of testing the clause, as the planner counts it */
	bool		others_first;	/* the node may test the other clauses before this one, too */
	List	   *implied;		/* other clauses (RestrictInfo) that hold for all pairs found without PostGIS */
	Path	   *references;		/* returns the inner relation's columns, and the point if that is none of them */
} WithinForm;

/*
 * The form of a join of these relations by these clauses; NULL: none of the clauses is one by which the node joins.
 * A DEBUG1 message says why not, if a clause says within which distance.
 */
extern WithinForm *geonn_within_form(PlannerInfo *root, RelOptInfo *outer, RelOptInfo *inner, JoinType type,
									 Relids joined, List *clauses);

/* Is the expression a call of one of PostGIS's predicates by which the node finds polygons of a plane? */
extern bool geonn_is_zone_call(const Node *expression);

/*
 * Does a clause of this relation ask which polygons of a plane, in its rows, have one point inside, that is of no relation of the
 * query?  Sets both.
 */
extern bool geonn_asks_for_zones(PlannerInfo *root, const RelOptInfo *rel, const Node *clause, Node **point, Node **zone);

/* Return what it costs to test a clause of one row, or of one pair of rows. */
extern Cost geonn_cost_of_clause(PlannerInfo *root, const RestrictInfo *clause);

#endif							/* GEONN_SQL_WITHIN_FORM_H */
