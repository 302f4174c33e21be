/*
 * lateral.h
 *		The plan node of a join whose rows each ask for the neighbours of their own point.
 */
#ifndef GEONN_LATERAL_H
#define GEONN_LATERAL_H

#include "plan/join_node.h"

/*
 * The Nodes in custom_private of the plan, in this order.  The first is never NULL: other extensions test it
 * to see whether a plan is theirs.  The node of scan.h has no such list.
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

/* the indexes of the plan's custom expressions */
enum
{
	LATERAL_CALL,				/* the call, a RangeTblFunction, with empty arrays in place of any points */
	LATERAL_LATITUDE,			/* a point's latitude and longitude, as double precision */
	LATERAL_LONGITUDE,
	LATERAL_WINDOW,				/* its window; a Const that is NULL where points have none */
	LATERAL_VALUE,				/* the value of ord or obs_id for all neighbours of a row */
	LATERAL_CLAUSES				/* from here on: the clauses by which a pair of rows matches */
};

/*
 * The node's methods, for the planner.  The plan's only child returns the outer rows.  The scan target list
 * has Vars of the child's columns, then of the function's row type.  The private list is LateralPrivate.
 */
extern const JoinNodeMethods geonn_lateral_methods;

/* Have the planner consider this node for joins. */
extern void geonn_plan_lateral_joins(void);

#endif							/* GEONN_LATERAL_H */
