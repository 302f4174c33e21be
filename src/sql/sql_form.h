/*
 * sql_form.h
 *		Nearest-neighbour subqueries, as users of PostGIS write them: which the planner can give to a node.
 */
#ifndef GEONN_SQL_FORM_H
#define GEONN_SQL_FORM_H

#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

#include "sql/sql_distance.h"

/* the relation number of the references' columns in expressions, until the plan is made */
#define REFERENCES_VARNO PG_INT16_MAX

/* a LATERAL subquery that asks for the nearest references of a point of the outer row */
typedef struct SqlForm
{
	Index		relid;			/* the subquery's relation */
	const char *problem;		/* why no node can answer it; NULL: one can, and all that follows is set */

	/* expressions in Vars of the outer rows, and of the references' columns (REFERENCES_VARNO) */
	List	   *keys;			/* of ORDER BY; the first is the distance */
	List	   *operators;		/* OidList, OidList and IntList: how each key is ordered */
	List	   *collations;
	List	   *nulls_first;
	List	   *observation;	/* the observation's point: a value, or latitude and longitude */
	Node	   *limit;			/* a NULL Const: the subquery has none */
	Node	   *offset;
	List	   *conditions;		/* that a reference and the outer row must meet */
	Node	   *reach;			/* metres: references farther away do not meet them; a NULL Const: none says so */
	int			excluded;		/* how many references are expected not to meet them */
	List	   *outputs;		/* [the subquery's columns]; NULL: the column is not used */
	Node	   *row;			/* a row of all of them; NULL: not used */
	List	   *outer_columns;	/* the Vars of outer rows in all of these */

	List	   *point;			/* IntList: the reference's point, as columns of the references from 0 on */
	GeonnPointKind kind;		/* of both points; GEONN_POINT_NONE: latitude and longitude */
	bool		has_shapes;		/* the reference's point is lines or polygons (sql_shapes.c) */
	int			metric;			/* enum geonn_metric */
	const char *function;		/* the function that computes the distance */

	int			nesting;		/* how deep such subqueries nest in it, itself included: 1 where it has none */
	PlannerInfo *root;			/* the plan of a query that returns the references' columns */
	List	   *names;			/* of these columns (String) */
	const char *alias;			/* a name for the references */
	List	   *table;			/* of which they are all rows, as in SqlPrivate (sql_plan.h); NIL: none, or a search cannot
								 * have the outputs */
	Path	   *references;		/* that plan's cheapest path */
	double		needed;			/* how many rows the subquery reads, LIMIT and OFFSET, as estimated */
	Cost		output_cost;	/* the cost of the outputs of one row */
	bool		descends;		/* PostgreSQL's own plan gets the rows from an index in the order of distance */
} SqlForm;

/*
 * Does the query ask for one row, the nearest by a distance of the table in sql_distance.c?
 */
extern bool geonn_sql_asks_for_nearest_one(const Query *query);

/*
 * The form of this relation, which is a subquery; NULL: it is no nearest-neighbour subquery.  The subquery is looked
 * at, and its references planned, once for each plan.
 */
extern const SqlForm *geonn_sql_form(PlannerInfo *root, RelOptInfo *rel);

/*
 * The relation of the references in the range table of the plan that is being made, so that a scan of it can be
 * among the plan's nodes; called once.  Expressions get its number in place of REFERENCES_VARNO.
 */
extern Index geonn_add_references(PlannerInfo *root, const SqlForm *form);

/* A plan that returns the references' columns. */
extern Plan *geonn_plan_references(const SqlForm *form, Index references);

/*
 * The path by which the references are read, which are this relation's rows: the cheapest, or one that workers can execute, too,
 * where it costs less than twice as much.
 */
extern Path *geonn_path_of_references(const RelOptInfo *rel);

/* Are a path's rows, as references, expected to need at most half of geonn.session_memory_limit? */
extern bool geonn_references_fit(const Path *references, bool has_shapes);

/*
 * Will they fit even where conditions exclude fewer rows than is estimated?  `most` is how many there can be of a table.
 * References that turn out not to fit are read again for each outer row, where PostgreSQL's own plan gets a few rows
 * from an index.
 */
extern bool geonn_references_surely_fit(const Path *references, bool has_shapes, double most);

/* The number of rows of the largest relation of a planned query. */
extern double geonn_largest_relation(const PlannerInfo *root);

#endif							/* GEONN_SQL_FORM_H */
