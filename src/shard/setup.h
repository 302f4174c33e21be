/*
 * setup.h
 *		The arguments of geonn_shard_ddl(), and what they name.
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
	List	   *servers;		/* of char *: the names of the shards' servers */
	char	   *geonn;			/* the extension's schema, bare */
	ShardTable *obs;
	ShardTable *ref;
	ShardTable *sharded;		/* obs or ref: the table that is divided */
	ShardTable *replicated;		/* the other one, of which each shard has a copy */
	char	   *coordinator;	/* the connection string by which shards reach the coordinator */
	ShardPlacement *placement;
	char	   *view;			/* the name of the join's view, bare, in the schema of sharded */
	char	   *kept;			/* the name of the view of the shards' caches, bare; NULL: no caches */
	char	   *schedule;		/* the caches' schedule, or NULL */
	List	   *readers;		/* of char *: roles that may read the views */
	GeonnArguments *arguments;
	char	   *row;			/* the columns of the answer, with their types, as SQL */
} ShardSetup;

/*
 * Read the arguments of geonn_shard_ddl(), in the current memory context; commands is NULL.  Raises an
 * error about arguments that do not fit together, and the errors that the join would raise.
 */
extern ShardSetup *geonn_setup_read(FunctionCallInfo fcinfo);

#endif							/* GEONN_SHARD_SETUP_H */
