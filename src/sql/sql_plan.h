/*
 * sql_plan.h
 *		What the plan of a nearest-neighbour subquery's node has (sql_join.c).
 *
 * The plan's children return the outer rows, the references, and the subquery's outputs for an outer row
 * (sql_own_plan.h), if PostgreSQL has an index for it.  The scan target list has Vars of the outer columns, of the
 * subquery's outputs, and of the references' columns.
 */
#ifndef GEONN_SQL_PLAN_H
#define GEONN_SQL_PLAN_H

#include "nodes/primnodes.h"
#include "nodes/value.h"

#include "plan/plan_fields.h"

/* its custom_exprs (plan_fields.h) */
typedef struct SqlExpressions
{
	List	   *keys;			/* of ORDER BY; the first is the distance */
	List	   *observation;	/* the observation's point: a value, or latitude and longitude */
	Node	   *limit;			/* NULL Consts where the subquery has none */
	Node	   *offset;
	Node	   *reach;
	List	   *conditions;		/* that a reference and the outer row must meet */
	List	   *outputs;
	List	   *clauses;		/* by which a pair of rows matches */
} SqlExpressions;

/* the question in its LateralPrivate */
typedef struct SqlPrivate
{
	List	   *operators;		/* OidList: the ordering operators of the keys */
	List	   *collations;		/* OidList: their collations */
	List	   *nulls_first;	/* IntList: their NULLS FIRST */
	List	   *equal_keys;		/* IntList: for each output the index of an equal key, or -1 */
	List	   *point;			/* IntList: the reference's point, as columns of the references from 0 on */
	Integer    *point_kind;		/* a GeonnPointKind; GEONN_POINT_NONE: latitude and longitude */
	Integer    *metric;			/* enum geonn_metric */
	String	   *function;		/* the name of the function that computes the distance */
	Integer    *excluded;		/* how many references are expected not to meet the conditions */
	Boolean    *has_shapes;		/* the reference's point is lines or polygons (sql_shapes.c) */
	List	   *table;			/* of SqlTablePlan: the table whose rows the references are (sql_table.c); NIL: none */
} SqlPrivate;

/* the members of its table */
typedef struct SqlTablePlan
{
	List	   *table;			/* OidList of one */
	List	   *attributes;		/* IntList: the numbers of id, latitude and longitude */
	Integer    *id;				/* the id among the columns of the references from 0 on */
} SqlTablePlan;

#endif							/* GEONN_SQL_PLAN_H */
