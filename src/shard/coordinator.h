/*
 * coordinator.h
 *		The servers of the shards, and what the coordinator has of them already.
 */
#ifndef GEONN_SHARD_COORDINATOR_H
#define GEONN_SHARD_COORDINATOR_H

#include "nodes/execnodes.h"
#include "nodes/pg_list.h"

#include "shard/table.h"

/* a foreign table of the coordinator's */
typedef struct ShardPartition
{
	char	   *schema;			/* bare, as name and server */
	char	   *name;
	char	   *quoted;			/* with its schema */
	char	   *server;
	char	   *remote;			/* table_name of its options, bare */
	char	   *bound;			/* FOR VALUES …, as SQL; NULL, as all below: it is no partition */
	char	   *parent;			/* quoted, with its schema */
	char	   *parent_key;		/* what follows PARTITION BY, as SQL */
} ShardPartition;

/* The foreign partitions of a table, in the order of their creation; NIL without a table. */
extern List *geonn_shard_partitions(Oid table);

/* Is one of these on the server? */
extern bool geonn_on_server(List *partitions, const char *server);

/*
 * The foreign tables on the server, as ShardPartitions.  Tables that other roles own, as trust.h says, or
 * whose parents they own, are left out.
 */
extern List *geonn_foreign_tables(const char *server);

/*
 * The names of servers, of an array of type name.  Raises an error if it is empty, or has NULLs or a
 * name twice, or one that is not a foreign server of postgres_fdw, or is one of another role's.
 */
extern List *geonn_shard_servers(Datum servers);

/*
 * Add the commands that make the views of all shards, in the schema of a table: what they are doing, and
 * have done.
 */
extern void geonn_command_overviews(ReturnSetInfo *commands, const ShardTable *table, List *servers);

/* The names of the views of all shards, NULL at their end. */
extern const char *const geonn_overviews[];

/* The local schema for a server's statistics, bare. */
extern char *geonn_statistics_schema(const char *server);

/* The name of a server's subscription to a table that is replicated. */
extern char *geonn_subscription(const char *replicated, const char *server);

/* The name of its replication slot, which all databases of the coordinator's server share. */
extern char *geonn_slot(const char *replicated, const char *server);

#endif							/* GEONN_SHARD_COORDINATOR_H */
