/*
 * sql_join.h
 *		The plan node of nearest-neighbour subqueries.
 */
#ifndef GEONN_SQL_JOIN_H
#define GEONN_SQL_JOIN_H

#include "plan/lateral_path.h"

/* The node's methods; sql_plan.h has what its plan has. */
extern const JoinNodeMethods geonn_sql_join_methods;

extern const LateralForm geonn_subquery_form;

/* How many such nodes this process has planned. */
extern uint64 geonn_subquery_nodes(void);

#endif							/* GEONN_SQL_JOIN_H */
