/*
 * commands.h
 *		The commands that the functions of this room return, and what the coordinator has already.
 */
#ifndef GEONN_SHARD_COMMANDS_H
#define GEONN_SHARD_COMMANDS_H

#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"

#include "shard/table.h"

/* a foreign partition of a table of the coordinator's */
typedef struct ShardPartition
{
	Oid			oid;
	char	   *schema;			/* bare, as name and server */
	char	   *name;
	char	   *quoted;			/* with its schema */
	char	   *server;
	char	   *remote;			/* table_name of its options, bare */
	char	   *bound;			/* FOR VALUES …, as SQL */
} ShardPartition;

/* what a command for a shard begins with, if it has expressions, in which names of pg_catalog are bare */
#define GEONN_CATALOG_PATH "SET search_path = pg_catalog, pg_temp; "

/* Begin the result of a function that returns (server name, command text). */
extern ReturnSetInfo *geonn_commands_begin(FunctionCallInfo fcinfo);

/* Add a command for a server; NULL: for the coordinator. */
extern void geonn_command(ReturnSetInfo *commands, const char *server, const char *format,...)
			__attribute__((format(printf, 3, 4)));

/* The foreign partitions of a table, in the order of their creation; NIL without a table. */
extern List *geonn_shard_partitions(Oid table);

/* Is this one of the names, of char *? */
extern bool geonn_is_named(List *names, const char *name);

/* Is one of these on the server? */
extern bool geonn_on_server(List *partitions, const char *server);

/*
 * The foreign tables on the server, as ShardPartitions; without parent those have no bound.  Tables that
 * other roles own, as trust.h says, or whose parents they own, are left out.
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

/* The local schema for a server's statistics, bare. */
extern char *geonn_statistics_schema(const char *server);

/* The names of the views of all shards, NULL at their end. */
extern const char *const geonn_overviews[];

/* The name of a server's subscription. */
extern char *geonn_subscription(const ShardTable *replicated, const char *server);

/* The name of its replication slot, which all databases of the coordinator's server share. */
extern char *geonn_slot(const ShardTable *replicated, const char *server);

#endif							/* GEONN_SHARD_COMMANDS_H */
