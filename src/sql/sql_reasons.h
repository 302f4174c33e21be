/*
 * sql_reasons.h
 *		Why a statement that looks like a nearest-neighbour one was left to PostgreSQL.
 */
#ifndef GEONN_SQL_REASONS_H
#define GEONN_SQL_REASONS_H

/* what of a statement can be left to PostgreSQL */
typedef enum SqlPart
{
	SQL_SUBQUERY,				/* of the nearest rows */
	SQL_JOIN					/* within a distance */
} SqlPart;

/*
 * The planner leaves a subquery of this name, or a join (name: NULL), to PostgreSQL: say why to a client that sees DEBUG1,
 * and to EXPLAIN (VERBOSE).
 */
extern void geonn_left_to_postgresql(SqlPart part, const char *name, const char *reason);

/* The planner has put a join within a distance into a plan: what was said of other orders of its tables is void. */
extern void geonn_join_is_planned(void);

/*
 * The planner has planned a statement.  Only the reasons of the statement that EXPLAIN shows count: it is the first one that is
 * planned, and those of functions are planned in between or while it is executed.
 */
extern void geonn_statement_is_planned(void);

/* Have EXPLAIN (VERBOSE) show the reasons. */
extern void geonn_explain_reasons(void);

#endif							/* GEONN_SQL_REASONS_H */
