/*
 * placement.h
 *		How the rows of a table are divided among shards.
 */
#ifndef GEONN_SHARD_PLACEMENT_H
#define GEONN_SHARD_PLACEMENT_H

#include "join/arguments.h"
#include "shard/table.h"

typedef struct ShardPlacement
{
	char	   *key;			/* what follows PARTITION BY, as SQL */
	List	   *bounds;			/* of char *: FOR VALUES … of each partition, as SQL */
} ShardPlacement;

/*
 * Decide how to partition a table, by the arguments of geonn_shard_ddl(), for this many servers.  Raises an
 * error about arguments that do not fit together.
 */
extern ShardPlacement *geonn_shard_placement(const ShardTable *table, const GeonnArguments *arguments,
											 int servers);

/* Raise an error unless a partitioned table that exists is divided in this way. */
extern void geonn_check_placement(Oid partitioned, const ShardPlacement *placement);

#endif							/* GEONN_SHARD_PLACEMENT_H */
