/*
 * query.h
 *		The plan of a query that only reads.
 */
#ifndef GEONN_QUERY_H
#define GEONN_QUERY_H

#include "nodes/plannodes.h"

/*
 * The plan of a query without parameters.  Raises an error unless it is one
 * SELECT that changes nothing; title is what that is said of, as in: query
 * obs_sql.
 */
extern PlannedStmt *geonn_plan_query(const char *query, const char *title);

#endif							/* GEONN_QUERY_H */
