/*
 * query.h
 *		The plan of a query that only reads, and the names of relations in it.
 */
#ifndef GEONN_QUERY_H
#define GEONN_QUERY_H

#include "nodes/plannodes.h"

/* let the plan read tables, which processes can share, instead of an index alone */
#define GEONN_PLAN_TABLES	(1 << 30)

/*
 * Return the plan of a query without parameters.  Raises an error unless the query is one SELECT that changes nothing;
 * title names the query in that error, for example: query obs_sql.  options are those of cursors, and GEONN_PLAN_TABLES.
 *
 * relation: the OID of the relation that the query reads, if the module itself wrote the query to read one relation.  If
 * the name in the query now belongs to another relation, the function returns NULL; nothing of that relation has run then.
 *
 * The plan returns the rows that meet all of these conditions, boolean expressions (Expr); NIL: all rows.  The conditions'
 * Vars have varno 1, and as attribute the number of the query's column.  The planner treats the conditions as those of
 * SELECT * FROM (query) WHERE .... They must have no parameters if the plan is to run.
 */
extern PlannedStmt *geonn_plan_query(const char *query, const char *title, int options, Oid relation,
									 List *conditions);

/*
 * Return the relation's name in SQL, with its schema; NULL if the relation does not exist, or if
 * the user may not look it up in that schema.  The relation stays locked until the end of the
 * transaction, so that a query by this name is about this relation when it is planned.
 */
extern char *geonn_relation_name(Oid oid);

#endif							/* GEONN_QUERY_H */
