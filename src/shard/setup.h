/*
 * setup.h
 *		What geonn_shard_ddl() is asked for.
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
	char	   *geonn;			/* schema of the extension, bare */
	ShardTable *obs;
	ShardTable *ref;
	ShardTable *sharded;		/* one of these */
	ShardTable *replicated;		/* the other */
	char	   *coordinator;	/* connection string for shards */
	ShardPlacement *placement;
	char	   *view;			/* name of the question's, bare, in the schema of sharded */
	char	   *kept;			/* name of its cache's view, bare; NULL: no cache */
	char	   *schedule;		/* of the cache, or NULL */
	List	   *readers;		/* of char *: roles */
	GeonnArguments *arguments;
	char	   *row;			/* columns of the answer, with types */
} ShardSetup;

/*
 * Read the arguments of geonn_shard_ddl(), in the current memory context; commands is NULL.  Raises an
 * error for what does not fit together, and those that the join would raise.
 */
extern ShardSetup *geonn_setup_read(FunctionCallInfo fcinfo);

#endif							/* GEONN_SHARD_SETUP_H */
