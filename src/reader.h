/*
 * reader.h
 *		The points of a relation, as the caller of the statement may see them.
 */
#ifndef GEONN_READER_H
#define GEONN_READER_H

#include "nodes/plannodes.h"

#include "columns.h"

/* is given each valid point */
typedef void (*PointConsumer) (void *state, int64 id, double latitude,
							   double longitude);

/* The plan of a query without parameters. */
extern PlannedStmt *geonn_plan_query(const char *query);

/*
 * Raise the error that reading the relation would raise for want of
 * privileges or the like, without reading it.
 */
extern void geonn_check_readable(const PointRelation *relation);

/*
 * Read the relation with the statement's snapshot.  Rows that are no points
 * are left out; a warning tells of those whose coordinates are out of range.
 */
extern void geonn_read_points(const PointRelation *relation,
							  PointConsumer consume, void *state);

#endif							/* GEONN_READER_H */
