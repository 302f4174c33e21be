/*
 * coordinator.h
 *		The servers of the shards, and the coordinator's objects that belong to them.
 */
#ifndef GEONN_SHARD_COORDINATOR_H
#define GEONN_SHARD_COORDINATOR_H

#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
#include "utils/array.h"

#include "shard/table.h"

/* a foreign table of the coordinator's */
typedef struct ShardPartition
{
	char	   *schema;			/* schema, name and server are bare: not quoted */
	char	   *name;
	char	   *quoted;			/* the table's name, quoted, with its schema */
	char	   *server;
	char	   *remote;			/* the table's option table_name, bare */
	char	   *bound;			/* FOR VALUES …, as SQL; bound, parent and parent_key are NULL if the table is no
								 * partition */
	char	   *parent;			/* the name of the table's parent, quoted, with its schema */
	char	   *parent_key;		/* the text behind PARTITION BY in the definition of the parent, as SQL */
} ShardPartition;

/* Return the foreign partitions of a table, in the order of their creation; NIL for InvalidOid. */
extern List *geonn_shard_partitions(Oid table);

/* Return how many of these partitions (ShardPartition) are on the server. */
extern int	geonn_partitions_on(List *partitions, const char *server);

/*
 * Return the foreign tables on the server, as ShardPartitions.  Tables that another role owns, or whose
 * parent another role owns (trust.h), are left out.
 */
extern List *geonn_foreign_tables(const char *server);

/*
 * Return the names of servers in an array of type name.  Raises an error if the array is empty, or has a NULL or a name
 * twice; or if a name is not that of a server of postgres_fdw, or another role owns the server (trust.h).
 */
extern List *geonn_shard_servers(ArrayType *servers);

/*
 * Add the commands that create a view for each of geonn_overviews, in the schema of a table.  The view
 * shows the rows that geonn's view has on all shards.
 */
extern void geonn_command_overviews(ReturnSetInfo *commands, const ShardTable *table, List *servers);

/* The names of geonn's views that the coordinator shows for all shards; NULL at the end. */
extern const char *const geonn_overviews[];

/* Return the coordinator's schema for the views of a server's statistics, bare. */
extern char *geonn_statistics_schema(const char *server);

/* Return the name of a server's subscription to a table that is replicated. */
extern char *geonn_subscription(const char *replicated, const char *server);

/* Return the name of the replication slot of a server's subscription, unique among all databases of the coordinator. */
extern char *geonn_slot(const char *replicated, const char *server);

#endif							/* GEONN_SHARD_COORDINATOR_H */
