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
 * Format SQL, in the current memory context.  As in PostgreSQL's format(), %I is an identifier, %L a literal,
 * or NULL, and %s a text as it is; %u is an Oid or another number.
 */
extern char *geonn_shard_sql(const char *format,...);

/* Add a text of such a format to a list that is separated by commas. */
extern void geonn_shard_add(StringInfo list, const char *format,...);

/* the columns of the result: a server's name, and the text of a command */
#define COMMAND_COLUMNS 2

/* Add a command for a server to the result; NULL: for the coordinator.  The format is that of geonn_shard_sql(). */
extern void geonn_command(ReturnSetInfo *commands, const char *server, const char *format,...);

/*
 * The rows of a query, each a char *[columns] with NULL for an SQL NULL, in the current memory context.  The
 * search_path has to be pg_catalog, pg_temp, so that the query finds PostgreSQL's own operators.
 */
extern List *geonn_shard_rows(int columns, const char *query);

/* The first column of a query's rows, as char *. */
extern List *geonn_shard_column(const char *query);

/* The first column of the query's first row; NULL: the query has no row, or the value is NULL. */
extern char *geonn_shard_value(const char *query);

/*
 * The elements of an array of names or texts: a list of char *, NULL for an SQL NULL.  Raises an error, about
 * this argument and with this hint, if the array has several dimensions.
 */
extern List *geonn_shard_array(ArrayType *array, const char *argument, const char *hint);

/* The elements of an array of names, likewise; raises an error about a NULL, too. */
extern List *geonn_shard_names(ArrayType *array, const char *argument, const char *hint);

/* Is this one of the names, a list of char *? */
extern bool geonn_is_named(List *names, const char *name);

/* Add this name to the names, a list of char *, unless it is one of them. */
extern List *geonn_add_name(List *names, char *name);

/* The SQL of an array of these names, a list of char *. */
extern char *geonn_names_array(List *names);

#endif							/* GEONN_SHARD_COMMANDS_H */
