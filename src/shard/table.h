/*
 * table.h
 *		A table of the coordinator, as commands for other servers have to write it.
 */
#ifndef GEONN_SHARD_TABLE_H
#define GEONN_SHARD_TABLE_H

#include "nodes/pg_list.h"

/* what a command for a shard begins with, if it has expressions, in which names of pg_catalog are bare */
#define GEONN_CATALOG_PATH "SET search_path = pg_catalog, pg_temp; "

/* all texts but schema and name are SQL, with names quoted */
typedef struct ShardTable
{
	Oid			oid;
	char	   *schema;
	char	   *name;
	char	   *quoted;			/* with its schema */
	char	   *definitions;	/* of its columns, and of its primary key */
	char	   *checks;			/* its check constraints, each after a comma */
	char	   *foreign_definitions;	/* of its columns alone, as foreign tables have them */
	char	   *columns;		/* their names */
	char	   *stored_columns; /* those that an INSERT gives, without generated ones */
	char	   *typed_columns;	/* names and types alone */
	List	   *key;			/* of char *, bare: columns of the primary key */
	List	   *indexes;		/* of char *: CREATE INDEX, for those that are not unique */
	List	   *unique_indexes; /* of char *: likewise, but for the primary key */
} ShardTable;

/*
 * Describe a table, in the current memory context.  Raises an error unless it is an ordinary table
 * with a primary key, and the current user may read it.  The argument is named in messages.  The
 * caller has set search_path such that all names come with their schemas.
 */
extern ShardTable *geonn_shard_table(Oid relation, const char *argument);

/*
 * Raise an error if a table has what shards cannot have, as row-level security, and of the table that is
 * divided also what looks at rows as they are written, as triggers.
 */
extern void geonn_shard_check_table(const ShardTable *table, bool is_divided);

/* A type as SQL, with its modifier, its schema, and its collation unless that is the default. */
extern char *geonn_shard_type(Oid type, int32 typmod, Oid collation);

/* A name made of one and more, of which names of PostgreSQL have room. */
extern char *geonn_shard_name(const char *name, const char *rest);

/* The same of the table's name, quoted, with its schema. */
extern char *geonn_shard_relation(const ShardTable *table, const char *rest);

/*
 * The relation of this name in the table's schema, or InvalidOid.  Raises an error if another role owns it,
 * as trust.h says.
 */
extern Oid	geonn_shard_find(const ShardTable *table, const char *name);

#endif							/* GEONN_SHARD_TABLE_H */
