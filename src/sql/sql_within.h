/*
 * sql_within.h
 *		The plan node of joins within a distance, in PostGIS's words: what its plan has.
 */
#ifndef GEONN_SQL_WITHIN_H
#define GEONN_SQL_WITHIN_H

#include "plan/lateral.h"
#include "plan/lateral_path.h"

/* the custom_exprs of the node's plan (plan_fields.h) */
typedef struct WithinExpressions
{
	Node	   *clause;			/* says within which distance, or polygon */
	Node	   *observation;	/* its point of the outer row */
	Node	   *radius;			/* its distance; NULL: it asks for polygons of a plane */
	List	   *implied;		/* clauses that hold for all pairs that are found without PostGIS's function */
	List	   *clauses;		/* the other ones by which a pair of rows matches */
} WithinExpressions;

/* the question in its LateralPrivate */
typedef struct WithinPrivate
{
	List	   *point;			/* IntList of one: the reference's point, as a column of the references from 0 on */
	Integer    *search;			/* WithinSearch */
	Boolean    *shapes_ask;		/* the outer rows may have lines and polygons */
	Integer    *metric;			/* enum geonn_metric */
	String	   *function;		/* PostGIS's function that measures */
	Boolean    *others_first;	/* the other clauses may be tested before it, too */
} WithinPrivate;

/*
 * The plan's children return the outer rows, the references, and those of an outer row (sql_own_plan.h), if PostgreSQL
 * has an index for it.  The scan target list has Vars of the outer columns, and then all of the references' columns.
 */
extern const JoinNodeMethods geonn_within_methods;

extern const LateralForm geonn_within_lateral_form;

#endif							/* GEONN_SQL_WITHIN_H */
