/*
 * sql_conditions.h
 *		Conditions of a nearest-neighbour subquery that join its rows with the outer row.
 */
#ifndef GEONN_SQL_CONDITIONS_H
#define GEONN_SQL_CONDITIONS_H

#include "nodes/pathnodes.h"

/* the conditions of a subquery, as it has them */
typedef struct SqlConditions
{
	List	   *own;			/* on the references alone */
	List	   *joined;			/* those that the node tests */
	List	   *groups;			/* of these, the references' sides of equalities */
	Node	   *reach;			/* metres: references farther away do not meet them; NULL: none says so */
	int			excluded;		/* how many references are expected not to meet them, before those that do */
} SqlConditions;

/*
 * Divide the conditions of the subquery, whose distance is between these arguments.  Returns why the node cannot test
 * one of them; NULL: it can test all.
 */
extern const char *geonn_divide_sql_conditions(const Query *query, List *observation, List *reference,
											   SqlConditions *conditions);

/*
 * Do equalities divide the references into more groups than a search can go through?  `root` has planned the
 * subquery's own rows, as many as `rows`, of which `needed` are returned.
 */
extern bool geonn_has_many_groups(PlannerInfo *root, const SqlConditions *conditions, double rows, double needed);

#endif							/* GEONN_SQL_CONDITIONS_H */
