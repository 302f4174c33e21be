/*
 * columns.h
 *		Where points are read from: a relation or a query, and which of its
 *		columns are the id, the coordinates and the columns to join by.
 */
#ifndef GEONN_COLUMNS_H
#define GEONN_COLUMNS_H

#include "access/attnum.h"
#include "access/tupdesc.h"
#include "nodes/pg_list.h"

#include "points/geometry.h"
#include "points/options.h"

typedef enum ColumnRole
{
	COLUMN_ID,
	COLUMN_LATITUDE,
	COLUMN_LONGITUDE,
	COLUMN_POINT				/* instead of latitude and longitude */
} ColumnRole;

#define COLUMN_ROLES 4

typedef struct PointColumn
{
	char	   *name;			/* NULL: there is no such column */
	Oid			type;			/* as declared */
	int32		typmod;
	Oid			collation;
	Oid			base_type;		/* below any domain */
	const char *reason;			/* why it was chosen */
	AttrNumber	attribute;		/* of the rows that the source's query returns */
} PointColumn;

typedef struct PointSource
{
	Oid			relation;		/* InvalidOid: the caller's query */
	char	   *title;			/* for messages: relation "city", query obs_sql */
	char	   *query;			/* what returns the rows */
	int			query_columns;	/* that it returns */
	PointColumn columns[COLUMN_ROLES];	/* by ColumnRole */
	GeonnPointKind point_kind;	/* of the point column, if there is one */
	int			by_count;
	PointColumn *by;			/* [by_count] */

	/* of a relation */
	char	   *name;
	char	   *schema;
	char	   *quoted_name;	/* with its schema, for SQL */
} PointSource;

/*
 * Choose a relation's columns: those that are named, and the others by their
 * names and types; or raise an error.  by is a list of names (char *).  Takes
 * the lock that a SELECT takes, until the end of the transaction.  That keeps
 * others from altering the relation, though not this transaction itself, and
 * nobody from renaming its schema.
 */
extern PointSource *geonn_relation_source(Oid relation, const GeonnColumnNames *named,
										  List *by);

/*
 * The same for what a query returns, given as this argument.  Raises an error
 * unless it is one SELECT that changes nothing.
 */
extern PointSource *geonn_query_source(const char *argument, const char *query,
									   const GeonnColumnNames *named, List *by);

#endif							/* GEONN_COLUMNS_H */
