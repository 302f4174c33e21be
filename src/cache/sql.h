/*
 * sql.h
 *		Statements of the caches' code: the roles that they run as, and their names.
 */
#ifndef GEONN_CACHE_SQL_H
#define GEONN_CACHE_SQL_H

#include "access/htup.h"
#include "access/tupdesc.h"
#include "catalog/pg_type_d.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/plancache.h"
#include "utils/snapshot.h"

/* Return the schema of the extension to which the called function belongs. */
extern Oid	geonn_cache_schema(FunctionCallInfo fcinfo);

/* Return the table geonn_cache of the extension in this schema.  Raises an error if the table is missing. */
extern Oid	geonn_cache_table(Oid schema);

/* Return the table of this name that the extension in this schema has made.  Raises an error if the table is missing. */
extern Oid	geonn_own_table(Oid schema, const char *name);

/* Return the function of the triggers that notice changes of caches' tables. */
extern Oid	geonn_changes_function(Oid schema);

/* Return a relation's owner, or InvalidOid if the relation was dropped. */
extern Oid	geonn_relation_owner(Oid relation);

/* Set a GUC until the present GUC nest level ends. */
extern void geonn_set(const char *setting, const char *value);

/*
 * Continue as this role, with these bits added to the security context and a search_path of pg_catalog.
 * geonn_become_former() restores role, context and settings; the abort of the (sub)transaction does so as well.
 */
typedef struct GeonnIdentity
{
	Oid			user;
	int			context;		/* GetUserIdAndSecContext's */
	int			level;			/* the nest level of settings (NewGUCNestLevel) */
} GeonnIdentity;

extern GeonnIdentity geonn_become(Oid role, int restrictions);
extern void geonn_become_former(GeonnIdentity former);

/* Make the planner look rows up one by one in indexes, until the GUC nest level ends. */
extern void geonn_plan_by_index(void);

/* Run one or several SQL commands through SPI. */
extern void geonn_run_command(const char *command);

/* A value to which a statement refers as $1, $2, ... */
typedef struct GeonnValue
{
	Oid			type;
	bool		is_null;
	Datum		value;
} GeonnValue;

#define GEONN_VALUES_MAX	12

/* Write the last two arguments of geonn_run_as() and geonn_catalog_run(). */
#define GEONN_VALUES(...) \
	(int) lengthof(((GeonnValue[]) {__VA_ARGS__})), (GeonnValue[]) {__VA_ARGS__}
#define GEONN_NO_VALUES		0, NULL

#define GEONN_INT4(number)	{INT4OID, false, Int32GetDatum(number)}
#define GEONN_INT8(number)	{INT8OID, false, Int64GetDatum(number)}
#define GEONN_BOOL(truth)	{BOOLOID, false, BoolGetDatum(truth)}
#define GEONN_OID(oid)		{OIDOID, false, ObjectIdGetDatum(oid)}
#define GEONN_JSONB(jsonb)	{JSONBOID, false, JsonbPGetDatum(jsonb)}
#define GEONN_TEXT(string)	{TEXTOID, false, CStringGetTextDatum(string)}
#define GEONN_TEXT_OR_NULL(string) \
	{TEXTOID, (string) == NULL, (string) == NULL ? (Datum) 0 : CStringGetTextDatum(string)}

/* what a statement has read or changed */
typedef struct GeonnRows
{
	uint64		count;
	TupleDesc	type;			/* NULL: nothing was read */
	HeapTuple  *rows;			/* [count], if rows were read */
} GeonnRows;

/*
 * Run a statement with a role's privileges and a search_path of pg_catalog.  The statement reads with the given snapshot;
 * with NULL it sees the latest data.  The rows are in the current memory context.
 */
extern GeonnRows *geonn_run_as(Oid role, const char *statement, Snapshot snapshot,
							   int count, const GeonnValue *values);

/*
 * Run a statement on the extension's own tables, with their owner's privileges, like
 * geonn_run_as().  $S in the statement stands for the extension's schema.
 */
extern GeonnRows *geonn_catalog_run(Oid schema, const char *statement, Snapshot snapshot,
									int count, const GeonnValue *values);

/*
 * Return the value of a column, numbered from 1 on, of a row that was read.  geonn_row_value() raises an
 * error about a NULL; geonn_row_text() returns the value as text, or NULL.
 */
extern Datum geonn_row_value(const GeonnRows *rows, uint64 row, int column);
extern char *geonn_row_text(const GeonnRows *rows, uint64 row, int column);

/* A statement that the module itself prepares or executes. */
typedef struct GeonnOwnStatement
{
	const char *statement;
	Oid			target;			/* the cache's table that the statement writes; InvalidOid: another kind of statement
								 * (see sql.c) */
	Oid			triggers;		/* the function whose triggers of the target are not to fire */
	CachedPlan *plan;			/* the plan that is being executed; NULL: all triggers fire */
} GeonnOwnStatement;

/*
 * From now on, check the names of this statement (NULL: of none) whenever PostgreSQL analyzes it, and
 * leave out its triggers when its plan is executed.  Returns the former statement, which the caller sets
 * again afterwards, even after an error.
 */
extern const GeonnOwnStatement *geonn_set_own_statement(const GeonnOwnStatement *own);

/* Install the hooks for the module's own statements.  _PG_init() calls this once. */
extern void geonn_own_statements(void);

#endif							/* GEONN_CACHE_SQL_H */
