/*
 * query.h
 *		The plan of a query that only reads, and the names of relations in it.
 */
#ifndef GEONN_QUERY_H
#define GEONN_QUERY_H

#include "nodes/plannodes.h"

/*
 * The plan of a query without parameters.  Raises an error unless it is one
 * SELECT that changes nothing; title is what that is said of, as in: query
 * obs_sql.  options are those of cursors.
 *
 * Where the query is the module's own and reads one relation, its OID is given:
 * NULL is returned, and nothing of what was found instead has run, where the name is another's
 * by now.
 */
extern PlannedStmt *geonn_plan_query(const char *query, const char *title, int options, Oid relation);

/*
 * The relation's name in SQL, with its schema; NULL where there is none, or it may not be
 * looked up there.  Its lock stays until the end of the transaction, so that a query by
 * this name is about this relation when it is planned.
 */
extern char *geonn_relation_name(Oid oid);

#endif							/* GEONN_QUERY_H */
