/*
 * commands.h
 *		SQL as text, the commands that geonn returns, and queries of this server's catalogs.
 */
#ifndef GEONN_SHARD_COMMANDS_H
#define GEONN_SHARD_COMMANDS_H

#include "fmgr.h"
#include "lib/stringinfo.h"
#include "nodes/execnodes.h"
#include "nodes/pg_list.h"
#include "utils/array.h"

/*
 * Format SQL, in the current memory context.  As in PostgreSQL's format(), %I is an identifier, %L a literal
 * or NULL, and %s a text as it is; %u is an Oid or another number.
 */
extern char *geonn_shard_sql(const char *format,...);

/* Format a text as geonn_shard_sql() does, and add it to a list that is separated by commas. */
extern void geonn_shard_add(StringInfo list, const char *format,...);

/* The columns of the result: a server's name, and the text of a command. */
#define COMMAND_COLUMNS 2

/*
 * Add a command for a server to the result; with NULL as server, for the coordinator.  The format is that of
 * geonn_shard_sql().
 */
extern void geonn_command(ReturnSetInfo *commands, const char *server, const char *format,...);

/*
 * Return the rows of a query, each a char *[columns] with NULL for an SQL NULL, in the current memory
 * context.  The search_path must be pg_catalog, pg_temp, so that the query finds PostgreSQL's own operators.
 */
extern List *geonn_shard_rows(int columns, const char *query);

/* Return the first column of a query's rows, as char *. */
extern List *geonn_shard_column(const char *query);

/* Return the first column of the query's first row.  Returns NULL if the query has no row, or the value is NULL. */
extern char *geonn_shard_value(const char *query);

/*
 * Return the elements of an array of names or texts: a list of char *, NULL for an SQL NULL.  Raises an
 * error, about this argument and with this hint, if the array has several dimensions.
 */
extern List *geonn_shard_array(ArrayType *array, const char *argument, const char *hint);

/* Return the elements of an array of names, as geonn_shard_array() does.  Raises an error about a NULL as well. */
extern List *geonn_shard_names(ArrayType *array, const char *argument, const char *hint);

/* Return whether `name` is one of the names, a list of char *. */
extern bool geonn_is_named(List *names, const char *name);

/* Add `name` to the names, a list of char *, unless it is one of them. */
extern List *geonn_add_name(List *names, char *name);

/* Return the SQL of an array of these names, a list of char *. */
extern char *geonn_names_array(List *names);

#endif							/* GEONN_SHARD_COMMANDS_H */
