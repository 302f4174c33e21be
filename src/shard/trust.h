/*
 * trust.h
 *		Checks that no other role could have made the objects that commands name.
 */
#ifndef GEONN_SHARD_TRUST_H
#define GEONN_SHARD_TRUST_H

#include "nodes/execnodes.h"
#include "nodes/pg_list.h"

/*
 * Raise an error unless an object's owner has all privileges of the current user: if the current user runs
 * what such a role has made, the role gains nothing by it.  `what` names the object in the message.
 */
extern void geonn_shard_check_owner(const char *what, Oid owner);

/*
 * Raise an error if, on this server, another role owns one of these tables, of ShardTable *, or may
 * create objects in the schema of one, or in one of the schemas, of char *.
 */
extern void geonn_shard_check_here(List *tables, List *schemas);

/*
 * Add the command that comes before all others of a server, for these tables, the one that is divided first:
 * it creates their schemas and the extension, in the schema of this name, unless they exist, and fails if
 * another role owns an object that the commands for the tables name, or may create objects in a schema of one.
 */
extern void geonn_shard_prepare(ReturnSetInfo *commands, const char *server, List *tables,
								const char *geonn);

#endif							/* GEONN_SHARD_TRUST_H */
