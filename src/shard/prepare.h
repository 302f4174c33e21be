/*
 * prepare.h
 *		The command that comes before all others of a shard.
 */
#ifndef GEONN_SHARD_PREPARE_H
#define GEONN_SHARD_PREPARE_H

#include "nodes/execnodes.h"
#include "nodes/pg_list.h"

/*
 * Add the command that prepares a server for these tables, the one that is divided first: it creates their
 * schemas and the extension, in the schema of this name, unless they exist, and fails if another role
 * owns an object that the commands for the tables name, or may create objects in a schema of one.
 */
extern void geonn_shard_prepare(ReturnSetInfo *commands, const char *server, List *tables,
								const char *geonn);

#endif							/* GEONN_SHARD_PREPARE_H */
