/*
 * sql_statement.h
 *		Statements that ask for the nearest rows without a LATERAL subquery.
 */
#ifndef GEONN_SQL_STATEMENT_H
#define GEONN_SQL_STATEMENT_H

/* Have such statements planned in a second way, too: with the subquery in FROM. */
extern void geonn_plan_sql_statements(void);

#endif							/* GEONN_SQL_STATEMENT_H */
