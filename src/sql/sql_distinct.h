/*
 * sql_distinct.h
 *		DISTINCT ON statements that ask for the nearest row of another table.
 */
#ifndef GEONN_SQL_DISTINCT_H
#define GEONN_SQL_DISTINCT_H

#include "nodes/parsenodes.h"

/*
 * Turn a query that keeps the nearest row for each row of a table into one with a LATERAL subquery.  Returns whether it
 * is such a query; `try`: say only that.
 */
extern bool geonn_rewrite_distinct(Query *query, bool try);

/* An entry of the range table for a LATERAL subquery. */
extern RangeTblEntry *geonn_make_lateral_entry(Query *subquery);

#endif							/* GEONN_SQL_DISTINCT_H */
