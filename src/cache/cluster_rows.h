/*
 * cluster_rows.h
 *		The rows of a cache of clusters.
 */
#ifndef GEONN_CACHE_CLUSTER_ROWS_H
#define GEONN_CACHE_CLUSTER_ROWS_H

#include "join/join.h"

/*
 * Takes a row.  The values, and what the function allocates in the current memory context, live until it returns.
 */
typedef void (*ClusterVisitor) (void *state, const Datum *values, const bool *nulls);

/*
 * Find clusters with the active snapshot, and visit the row of each point, in the order of ids.  row_type is that of the
 * cache's table: a cluster is the least id of its core points.  Returns the number of rows.  Raises an error where
 * geonn.session_memory_limit leaves no room for an id of each cluster.
 */
extern uint64 geonn_visit_clusters(const GeonnJoin *join, TupleDesc row_type, ClusterVisitor visit, void *state);

#endif							/* GEONN_CACHE_CLUSTER_ROWS_H */
