/*
 * trust.h
 *		Checks that no other role could have made the objects that commands name.
 */
#ifndef GEONN_SHARD_TRUST_H
#define GEONN_SHARD_TRUST_H

#include "nodes/execnodes.h"
#include "nodes/pg_list.h"

/*
 * Raise an error unless an object's owner has all privileges of the current user: such a role gains
 * nothing if the current user runs its code.  `what` names the object in the message.
 */
extern void geonn_shard_check_owner(const char *what, Oid owner);

/*
 * Raise an error if, on this server, another role owns one of these tables (ShardTable *), or may create
 * objects in its schema; or if another role may create objects in one of the schemas (char *).
 */
extern void geonn_shard_check_here(List *tables, List *schemas);

/*
 * Add the command that comes before all other commands for a server, for these tables (ShardTable *), the divided one
 * first.  The command creates the tables' schemas and, in schema `geonn`, the extension, unless they exist.  It fails if
 * another role owns an object that the tables' commands name, or may create objects in the object's schema.
 */
extern void geonn_shard_prepare(ReturnSetInfo *commands, const char *server, List *tables,
								const char *geonn);

#endif							/* GEONN_SHARD_TRUST_H */
