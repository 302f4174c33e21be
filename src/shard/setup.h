/*
 * setup.h
 *		What geonn_shard_ddl() is asked for, and the pieces that its commands come from.
 */
#ifndef GEONN_SHARD_SETUP_H
#define GEONN_SHARD_SETUP_H

#include "fmgr.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"

#include "join/arguments.h"
#include "shard/placement.h"
#include "shard/table.h"

typedef struct ShardSetup
{
	ReturnSetInfo *commands;
	List	   *servers;		/* of char * */
	const char *extension;		/* its schema, bare */
	const char *geonn;			/* the same, quoted */
	ShardTable *obs;
	ShardTable *ref;
	ShardTable *sharded;		/* one of these */
	ShardTable *replicated;		/* the other */
	char	   *coordinator;	/* connection string for shards */
	ShardPlacement *placement;
	char	   *view;			/* name of the question's, bare, in the schema of sharded */
	bool		cache;
	char	   *schedule;		/* of the cache, or NULL */
	List	   *readers;		/* of char *: roles, quoted */
	GeonnArguments *arguments;
	char	   *row;			/* columns of the answer, with types */
} ShardSetup;

/*
 * Read the arguments of geonn_shard_ddl(), in the current memory context; commands is NULL.  Raises an
 * error for what does not fit together, and those that the join would raise.
 */
extern ShardSetup *geonn_setup_read(FunctionCallInfo fcinfo);

/* ---- tables ---- */

/*
 * Raise an error if a table has what shards cannot have, as row-level security, and of the table that is
 * divided also what looks at rows as they are written, as triggers.
 */
extern void geonn_setup_check_table(const ShardSetup *setup, const ShardTable *table);

/*
 * Raise an error if a server has rows and is not named, since a question that leaves one out would
 * miss its rows; or if the table is divided in another way.
 */
extern void geonn_setup_check_sharded(const ShardSetup *setup);

/* Add the commands for the version and the publication of the table that is replicated. */
extern void geonn_setup_publish(const ShardSetup *setup);

/* Add the commands for a shard's table of the rows that are divided, without partitions. */
extern void geonn_setup_part(const ShardSetup *setup, const char *server);

/* Add the commands for a shard's copy of the table that is replicated. */
extern void geonn_setup_subscribe(const ShardSetup *setup, const char *server);

/*
 * Add the commands for the coordinator's table of all rows that are divided, with its partitions on
 * the shards, and for what its planner needs to send whole questions.
 */
extern void geonn_setup_sharded(const ShardSetup *setup);

/* ---- views ---- */

/* Names with this ending, in the schema of the table that is divided; quoted. */
extern char *geonn_setup_relation(const ShardSetup *setup, const char *name, const char *rest);

/* The servers, of those that are named, that have no partition of this table of the coordinator's. */
extern List *geonn_setup_servers_without(const ShardSetup *setup, const char *table);

/* Add the commands for the views of both tables, and of the version. */
extern void geonn_setup_table_views(const ShardSetup *setup);

/* Add the commands for the views of the join. */
extern void geonn_setup_question(const ShardSetup *setup);

/* Add the command for the first neighbours of all shards, where the references are divided. */
extern void geonn_setup_merge(const ShardSetup *setup);

/* Add the commands for the caches of the join, their schedules and their views, if they are asked for. */
extern void geonn_setup_caches(const ShardSetup *setup);

#endif							/* GEONN_SHARD_SETUP_H */
