/*
 * placement.h
 *		How the rows of a table are divided among shards.
 */
#ifndef GEONN_SHARD_PLACEMENT_H
#define GEONN_SHARD_PLACEMENT_H

#include "shard/table.h"

typedef struct ShardPlacement
{
	char	   *key;			/* what follows PARTITION BY, as SQL */
	List	   *bounds;			/* of char *: FOR VALUES … of each partition, as SQL */
} ShardPlacement;

/*
 * Read how a table is to be partitioned, for this many servers.  method is 'hash', 'list' or 'range';
 * column, partitions and bounds are NULL, 0 and 0 for their defaults.  Raises an error about arguments
 * that do not fit together.
 */
extern ShardPlacement *geonn_shard_placement(const ShardTable *table, const char *method,
											 const char *column, int partitions, Datum bounds,
											 int servers);

/* Raise an error unless a partitioned table that exists is divided in this way. */
extern void geonn_check_placement(Oid partitioned, const ShardPlacement *placement);

#endif							/* GEONN_SHARD_PLACEMENT_H */
