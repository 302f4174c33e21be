/*
 * sql_within.h
 *		The plan node of joins within a distance, in PostGIS's words: what its plan has.
 */
#ifndef GEONN_SQL_WITHIN_H
#define GEONN_SQL_WITHIN_H

#include "plan/lateral.h"
#include "plan/lateral_path.h"

/* the Nodes in custom_private, after those of LateralPrivate */
typedef enum WithinPrivate
{
	WITHIN_POINT = LATERAL_OUTER_COLUMNS + 1,	/* IntList of one: the reference's point, as a column of the
												 * references from 0 on */
	WITHIN_METRIC,				/* Integer: enum geonn_metric */
	WITHIN_FUNCTION				/* String: PostGIS's function that measures */
} WithinPrivate;

/* the indexes of the plan's custom expressions */
enum
{
	WITHIN_CLAUSE,				/* the clause that says within which distance */
	WITHIN_OBSERVATION,			/* its point of the outer row */
	WITHIN_RADIUS,				/* its distance */
	WITHIN_CLAUSES				/* from here on: the other clauses by which a pair of rows matches */
};

/*
 * The plan's children return the outer rows, the references, and those of an outer row (sql_own_plan.h), if PostgreSQL
 * has an index for it.  The scan target list has Vars of the outer columns, and then all of the references' columns.
 */
extern const JoinNodeMethods geonn_within_methods;

extern const LateralForm geonn_within_lateral_form;

#endif							/* GEONN_SQL_WITHIN_H */
