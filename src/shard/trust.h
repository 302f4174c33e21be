/*
 * trust.h
 *		Whether other roles could have made what the commands name.
 */
#ifndef GEONN_SHARD_TRUST_H
#define GEONN_SHARD_TRUST_H

#include "fmgr.h"
#include "nodes/pg_list.h"

#include "shard/table.h"

/*
 * Has the role all privileges of the current user?  What such a role has made, the current user can
 * run: the role gains nothing by it.
 */
extern bool geonn_shard_trusts(Oid role);

/* Raise an error unless the owner of something, which the message names, is such a role. */
extern void geonn_shard_check_owner(const char *what, Oid owner);

/* The owner of a relation. */
extern Oid	geonn_shard_owner(Oid relation);

/*
 * Raise an error if, on this server, another role owns one of these tables, of ShardTable *, or may
 * create objects in the schema of one, or in one of the schemas, of char *.
 */
extern void geonn_shard_check_here(List *tables, List *schemas);

/*
 * A query of the roles that own objects, or may create some in schemas, without having the privileges of the
 * current user: as text, NULL for none.  objects is a query of (classid, objid).
 */
extern char *geonn_trust_query(const char *objects, List *schemas);

/* what an error says of such roles */
extern const char geonn_trust_detail[];
extern const char geonn_trust_hint[];

/* Names, of char *, as an array, as SQL. */
extern char *geonn_names_array(List *names);

/*
 * Run a query on the catalogs, where the search_path is pg_catalog, and copy the columns of its first row
 * into the current memory context; false: it has none.
 */
extern bool geonn_shard_ask(const char *query, int parameters, const Oid *types,
							const Datum *values, int columns, char **answer);

#endif							/* GEONN_SHARD_TRUST_H */
