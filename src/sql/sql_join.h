/*
 * sql_join.h
 *		The plan node of nearest-neighbour subqueries: what its plan has.
 */
#ifndef GEONN_SQL_JOIN_H
#define GEONN_SQL_JOIN_H

#include "plan/lateral.h"
#include "plan/lateral_path.h"

/* the Nodes in custom_private, after those of LateralPrivate */
typedef enum SqlPrivate
{
	SQL_OPERATORS = LATERAL_OUTER_COLUMNS + 1,	/* OidList: the ordering operators of the keys */
	SQL_COLLATIONS,				/* OidList: their collations */
	SQL_NULLS_FIRST,			/* IntList: their NULLS FIRST */
	SQL_OUTPUTS,				/* IntList: for each output the index of an equal key, or -1 */
	SQL_POINT,					/* IntList: the reference's point, as columns of the references from 0 on */
	SQL_POINT_KIND,				/* Integer: a GeonnPointKind; GEONN_POINT_NONE: latitude and longitude */
	SQL_METRIC,					/* Integer: enum geonn_metric */
	SQL_FUNCTION,				/* String: the name of the function that computes the distance */
	SQL_EXCLUDED,				/* Integer: how many references are expected not to meet the conditions */
	SQL_LINES,					/* Boolean: the reference's point is lines (sql_lines.c) */
	SQL_TABLE					/* List: the table whose rows the references are (sql_table.c); NIL: none.  It has an
								 * OidList of one; an IntList of the attribute numbers of id, latitude and longitude; and
								 * an Integer, the id among the columns of the references from 0 on */
} SqlPrivate;

/*
 * The plan's children return the outer rows, the references, and the subquery's outputs for an outer row
 * (sql_own_plan.h), if PostgreSQL has an index for it.  The scan target list has Vars of the outer columns, of the
 * subquery's outputs, and of the references' columns.  The custom expressions are the keys, the
 * observation's point (as many as SQL_POINT), LIMIT, OFFSET and the reach (NULL Consts where the subquery has none), the
 * List of the conditions, the outputs, and then the clauses by which a pair of rows matches.
 */
extern const JoinNodeMethods geonn_sql_join_methods;

extern const LateralForm geonn_subquery_form;

/* How many such nodes this process has planned. */
extern uint64 geonn_subquery_nodes(void);

#endif							/* GEONN_SQL_JOIN_H */
