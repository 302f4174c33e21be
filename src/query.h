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
 * obs_sql.  options are those of cursors.
 */
extern PlannedStmt *geonn_plan_query(const char *query, const char *title, int options);

#endif							/* GEONN_QUERY_H */
