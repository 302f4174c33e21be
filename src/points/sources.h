/*
 * sources.h
 *		Relations and queries from which points are read: their columns, and the query that reads them.
 */
#ifndef GEONN_SOURCES_H
#define GEONN_SOURCES_H

#include "points/columns.h"

/*
 * Choose a relation's columns: those that are named, and the others by their names and types.  Raises an error if that
 * fails.  by and overlaps are lists of names (char *); overlaps has the columns with windows.  Takes the lock that a
 * SELECT takes, until the end of the transaction.  The lock keeps other transactions from altering the relation.  This
 * transaction still can, and any transaction can rename the relation's schema.
 */
extern PointSource *geonn_relation_source(Oid relation, const GeonnColumnNames *named,
										  List *by, List *overlaps);

/* Choose a relation's columns for the planner.  Returns NULL where geonn_relation_source() would raise an error. */
extern PointSource *geonn_clear_source(Oid relation, const GeonnColumnNames *named, List *by,
									   List *overlaps);

/* Return whether relations of this kind (pg_class.relkind) can be read as points. */
extern bool geonn_has_points(char kind);

/*
 * Choose the columns of a query that the caller gave in this argument.  Raises an error unless the
 * query is one SELECT that changes nothing.
 */
extern PointSource *geonn_query_source(const char *argument, const char *query,
									   const GeonnColumnNames *named, List *by,
									   List *overlaps);

#endif							/* GEONN_SOURCES_H */
