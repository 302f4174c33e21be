/*
 * table.h
 *		A table of the coordinator, as commands for other servers have to write it.
 */
#ifndef GEONN_SHARD_TABLE_H
#define GEONN_SHARD_TABLE_H

#include "lib/stringinfo.h"
#include "nodes/pg_list.h"

/* Begins commands with expressions, in which PostgreSQL leaves out the schema pg_catalog. */
#define GEONN_CATALOG_PATH "SET search_path = pg_catalog, pg_temp; "

/* A table.  All texts except schema and name are SQL, with names quoted. */
typedef struct ShardTable
{
	Oid			oid;
	char	   *schema;
	char	   *name;
	char	   *quoted;			/* the table's name with its schema */
	char	   *definitions;	/* the definitions of the table's columns, and of its primary key */
	char	   *checks;			/* the table's check constraints, each after a comma */
	StringInfoData foreign_definitions;	/* the definitions of the table's columns alone, as foreign tables have them */
	StringInfoData columns;		/* the names of the table's columns */
	StringInfoData stored_columns;	/* the names of the columns that an INSERT sets: all columns except generated ones */
	StringInfoData typed_columns;	/* the names and types of the table's columns */
	List	   *key;			/* of char *, bare: the columns of the table's primary key */
	List	   *indexes;		/* of char *: CREATE INDEX for each index except the primary key's; unique indexes first */
} ShardTable;

/*
 * Describe a table, in the current memory context.  Raises an error unless it is an ordinary table
 * with a primary key, and the current user may read it; messages name the argument.  The caller has
 * set search_path so that all names come with their schemas.
 */
extern ShardTable *geonn_shard_table(Oid relation, const char *argument);

/*
 * Raise an error if the table has something that shards could not have.  No table may have row-level
 * security, for example.  The table that is divided may not have triggers or rules, which act on written rows.
 */
extern void geonn_shard_check_table(const ShardTable *table, bool is_divided);

/* Return the name followed by the rest.  Raises an error if the result is too long for a name in PostgreSQL. */
extern char *geonn_shard_name(const char *name, const char *rest);

/*
 * Return the table's name followed by the rest, quoted, with the table's schema.  Raises an error
 * if the result is too long for a name in PostgreSQL.
 */
extern char *geonn_shard_relation(const ShardTable *table, const char *rest);

/*
 * Return the relation of this name in the table's schema, or InvalidOid.  Raises an error if another role
 * owns it, as trust.h says.
 */
extern Oid	geonn_shard_find(const ShardTable *table, const char *name);

#endif							/* GEONN_SHARD_TABLE_H */
