/*
 * lateral.h
 *		The plan node of a join whose rows each ask for the neighbours of their own point.
 */
#ifndef GEONN_LATERAL_H
#define GEONN_LATERAL_H

#include "plan/join_node.h"

/*
 * What custom_private of the node's plan has, in this order: Nodes, as PostgreSQL copies and writes them.  The
 * first is never NULL: other extensions look at it to see whether a plan is theirs.  The node of scan.h
 * has none.
 */
typedef enum LateralPrivate
{
	LATERAL_JOIN_TYPE,			/* Integer: a JoinType, inner, left or anti */
	LATERAL_KEEPS_ORDER,		/* Boolean: the rows come in the order of the outer ones */
	LATERAL_NUMBER,				/* Integer: the attribute number of the column ord or obs_id */
	LATERAL_TABLE,				/* OidList of one: the table of the outer rows, which the call would read as
								 * its observations; InvalidOid: the call has arrays of points */
	LATERAL_OUTER_COLUMNS		/* IntList: the numbers of the child's columns, in the order of its target list */
} LateralPrivate;

/* the places of the custom expressions of the node's plan */
enum
{
	LATERAL_CALL,				/* a RangeTblFunction, with empty arrays in place of the points, if it has them */
	LATERAL_LATITUDE,			/* a point's latitude and longitude, as double precision */
	LATERAL_LONGITUDE,
	LATERAL_WINDOW,				/* its window; a Const that is NULL where points have none */
	LATERAL_VALUE,				/* the value of the function's column ord or obs_id in a row's neighbours */
	LATERAL_CLAUSES				/* from here on: the clauses that make a pair of rows neighbours */
};

/*
 * For the planner: the node's methods.  The plan's only child gives the outer rows.  Its scan target list has
 * columns of the child, and behind them columns of the function's row type, as Vars.  The private list is that of
 * LateralPrivate.
 */
extern const JoinNodeMethods geonn_lateral_methods;

/* Have the planner consider this node for joins. */
extern void geonn_plan_lateral_joins(void);

#endif							/* GEONN_LATERAL_H */
