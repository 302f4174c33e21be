/*
 * sql.h
 *		Statements of the caches' code, the roles that they run as, and their errors.
 */
#ifndef GEONN_CACHE_SQL_H
#define GEONN_CACHE_SQL_H

#include "fmgr.h"
#include "utils/snapshot.h"

/* The schema of the extension to which the called function belongs. */
extern Oid	geonn_cache_schema(FunctionCallInfo fcinfo);

/* The table geonn_cache of the extension in this schema.  Raises an error if it is missing. */
extern Oid	geonn_cache_table(Oid schema);

/* The table of this name that the extension in this schema has made.  Errors as above. */
extern Oid	geonn_own_table(Oid schema, const char *name);

/* A relation's owner, or InvalidOid if the relation was dropped. */
extern Oid	geonn_relation_owner(Oid relation);

/* Resolve names in pg_catalog alone, until the settings' nest level ends. */
extern void geonn_set_search_path(void);

/* Make the planner look rows up one by one in indexes, until the settings' nest level ends. */
extern void geonn_plan_by_index(void);

/* Run a command through SPI, to which the caller has connected. */
extern void geonn_run_command(const char *command);

/*
 * Run a statement with a role's privileges and a search_path of pg_catalog.  The types of values
 * are given; nulls may be NULL.  Reads with the given snapshot, or with NULL sees the latest data.
 * Returns how many rows were read or changed; those read are in SPI_tuptable.
 */
extern uint64 geonn_run_as(Oid role, const char *statement, Snapshot snapshot,
						   int count, const Oid *types, const Datum *values, const char *nulls);

/*
 * Run a statement on the extension's own tables, with their owner's privileges; $S in it is the
 * extension's schema.  Otherwise as geonn_run_as.
 */
extern uint64 geonn_catalog_run(Oid schema, const char *statement, Snapshot snapshot,
								int count, const Oid *types, const Datum *values,
								const char *nulls);

/* Copy the present error into this memory context and flush the error state. */
extern ErrorData *geonn_take_error(MemoryContext context);

/*
 * Run a step in a subtransaction, so that its failure takes back nothing else.  Returns the error that
 * it ended with, in the current memory context, or NULL.
 */
extern ErrorData *geonn_attempt(void (*step) (void *state), void *state);

#endif							/* GEONN_CACHE_SQL_H */
